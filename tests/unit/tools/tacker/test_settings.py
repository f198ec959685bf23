# SPDX-License-Identifier: Apache-2.0
"""Labels, taints and maintenance of a node, and upgrades, from the command line."""

import json
import uuid

import pytest

WORKER = "worker-10-10-0-5"
USER_DATA = {
    "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
    "lcm-operation-user-data-class": "KubernetesClusterUserData",
}


def entry(cluster, rest, vm="workerNode"):
    return f"k8s_nodes:vnfc:{cluster.vnfcs[vm]}:{rest}"


@pytest.mark.parametrize(
    ("words", "entries"),
    [
        (
            ("label", "{}", "disk=ssd", "a.b/c="),
            {"label:disk": "ssd", "label:a.b/c": ""},
        ),
        (("label", "{}", "disk-"), {"label:disk": None}),
        (
            ("taint", "{}", "a=b:NoSchedule", "c:NoExecute"),
            {"taint:a:NoSchedule": "b", "taint:c:NoExecute": ""},
        ),
        (("taint", "{}", "a:NoSchedule-"), {"taint:a:NoSchedule": None}),
        (("maintenance", "begin", "{}"), {"maintenance": "true"}),
        (("maintenance", "end", "{}"), {"maintenance": None}),
    ],
)
def test_settings_are_entries_of_the_metadata(run, tacker, cluster, words, entries):
    at = words.index("{}")
    given = (*words[:at], "my-cluster", WORKER, *words[at + 1 :])
    tacker.course = ["PROCESSING", "COMPLETED"]
    code, out, err = run(*given)
    assert (code, err) == (0, "")
    assert out.startswith(f"modification of my-cluster ({cluster.api}): operation ")
    assert "COMPLETED after" in out
    ((method, path, headers, body),) = tacker.sent
    assert (method, path) == ("PATCH", cluster.path)
    wanted = {entry(cluster, name): value for name, value in entries.items()}
    assert body == {"metadata": wanted}
    kind = {"v1": "application/json", "v2": "application/merge-patch+json"}
    assert headers["content-type"] == kind[cluster.api]


@pytest.mark.parametrize(
    "words",
    [
        *[("label", "my-cluster", WORKER, text) for text in ("disk", "=ssd", "-", "")],
        *[("taint", "my-cluster", WORKER, t) for t in ("a", "a=b", ":E", "a:", "a:-")],
        ("maintenance", "pause", "my-cluster", WORKER),
        ("maintenance", "my-cluster", WORKER),
    ],
)
def test_what_is_no_setting(run, tacker, cluster, words):
    assert run(*words)[0] == 2
    assert tacker.sent == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("label", "my-cluster", WORKER, "kubernetes.io/a=b"), "kubernetes.io"),
        (("label", "my-cluster", WORKER, "a=b c"), "must be empty or have at most 63"),
        (("taint", "my-cluster", WORKER, "a=b:Never"), "effect"),
    ],
)
def test_what_the_driver_would_refuse(run, tacker, cluster, words, why):
    code, _, err = run(*words)
    assert (code, tacker.sent) == (1, [])
    assert why in err


def test_the_load_balancer_has_no_settings(run, tacker, cluster):
    code, _, err = run("label", "my-cluster", "load balancer", "a=b")
    assert (code, tacker.sent) == (1, [])
    assert err == "load balancer is no node of the cluster.\n"


# --- upgrade


@pytest.fixture
def package(tacker):
    """The ids of another package and of its VNFD."""
    ids = str(uuid.uuid4()), str(uuid.uuid4())
    tacker.packages[ids] = b""
    return ids


@pytest.fixture
def built(tacker, cluster):
    """The instantiation of the cluster."""
    given = {"additionalParams": {**USER_DATA, "k8s_cluster_installation_param": {}}}
    old = {"operationState": "ROLLED_BACK", "startTime": "2025"}
    tacker.operation(cluster.root, cluster.id, "INSTANTIATE", **old)
    more = {"operationState": "COMPLETED", "operationParams": given}
    tacker.operation(cluster.root, cluster.id, "INSTANTIATE", **more)


@pytest.mark.parametrize("api", ["v2"], indirect=True)
@pytest.mark.parametrize("which", [0, 1])
def test_upgrade(run, tacker, cluster, package, built, which):
    code, _, err = run(
        *("upgrade", "my-cluster", package[which], "--kubernetes-version", "1.35.4"),
        *("--kubespray-root-path", "/opt/kubespray-2.31.0"),
        *("--venv-path", "/opt/venv", "--no-wait"),
    )
    assert (code, err) == (0, "")
    ((method, path, _, body),) = tacker.sent
    assert (method, path) == ("POST", f"{cluster.path}/change_vnfpkg")
    ansible = {"kubespray_root_path": "/opt/kubespray-2.31.0", "venv_path": "/opt/venv"}
    assert body == {
        "vnfdId": package[1],
        "additionalParams": {
            "upgrade_type": "RollingUpdate",
            "vdu_params": [],
            **USER_DATA,
            "k8s_cluster_installation_param": {
                "cluster": {"kubernetes_version": "1.35.4"},
                "ansible": ansible,
            },
        },
    }


@pytest.mark.parametrize("api", ["v2"], indirect=True)
def test_another_package_alone_and_parameters_of_a_file(
    run, tacker, cluster, package, built, tmp_path
):
    assert run("upgrade", "my-cluster", package[0], "--no-wait")[0] == 0
    params = tacker.sent[0][3]["additionalParams"]
    required = {"upgrade_type": "RollingUpdate", "vdu_params": []}
    assert params == {**required, **USER_DATA}
    tacker.rows[cluster.root, "vnf_lcm_op_occs"].clear()
    ours = {"drain": {"timeout": 9}, "cluster": {"kubernetes_version": "1.34.3"}}
    more = {"k8s_cluster_installation_param": ours, "lcm-operation-user-data": "a.py"}
    (tmp_path / "more.json").write_text(json.dumps({"additionalParams": more}))
    words = ("--additional-param-file", "more.json", "--kubernetes-version", "1.35.4")
    assert run("upgrade", "my-cluster", package[0], *words, "--no-wait")[0] == 0
    params = tacker.sent[1][3]["additionalParams"]
    ours["cluster"]["kubernetes_version"] = "1.35.4"
    assert params == {**required, **more}


@pytest.mark.parametrize("api", ["v1"], indirect=True)
def test_v1_has_no_upgrade(run, tacker, cluster, package):
    code, _, err = run("upgrade", "my-cluster", package[0])
    assert (code, tacker.sent) == (1, [])
    assert "Tacker's v1 API has no change of the package, so my-cluster (v1)" in err


@pytest.mark.parametrize("api", ["v2"], indirect=True)
def test_packages_that_cannot_be_used(run, tacker, cluster, package, built):
    code, _, err = run("upgrade", "my-cluster", "simple.zip")
    assert (code, err[:40]) == (1, "simple.zip is no id of a VNF package or ")
    code, _, err = run("upgrade", "my-cluster", str(uuid.uuid4()))
    assert (code, "Tacker shows 0 VNF packages" in err) == (1, True)
    tacker.operational = "DISABLED"
    code, _, err = run("upgrade", "my-cluster", package[0])
    assert (code, "operationalState DISABLED" in err) == (1, True)
    assert tacker.sent == []
