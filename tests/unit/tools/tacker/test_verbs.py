# SPDX-License-Identifier: Apache-2.0
"""The verbs from the command line to what Tacker gets."""

import json
import time

import pytest

from tests.helpers.fakes import tacker_api
from tests.unit.tools.tacker.conftest import vnfd

WORKER = "worker-10-10-0-5"
OTHER = "worker-10-10-0-55"


def failed(tacker, cluster, kind, **more):
    error = {"status": 500, "detail": "heal_start: step 2/9 (drain) failed: why."}
    return tacker.operation(cluster.root, cluster.id, kind, **{"error": error, **more})


def body(tacker):
    ((_, _, _, found),) = tacker.sent
    return found


# --- heal


def test_heal_of_nodes_by_their_names(run, tacker, cluster):
    tacker.course = ["STARTING", "PROCESSING", "PROCESSING", "COMPLETED"]
    code, out, err = run("heal", "my-cluster", WORKER, OTHER, "--cause", "disk")
    assert (code, err) == (0, "")
    ((method, path, headers, sent),) = tacker.sent
    assert (method, path) == ("POST", f"{cluster.path}/heal")
    wanted = [cluster.vnfcs["workerNode"], cluster.vnfcs["workerNode2"]]
    assert sent == {"vnfcInstanceId": wanted, "cause": "disk"}
    assert headers["content-type"] == "application/json"
    assert (headers["version"] == "2.0.0") is (cluster.api == "v2")
    first, *states = out.splitlines()
    assert first.startswith(f"heal of my-cluster ({cluster.api}): operation ")
    assert [line.split()[0] for line in states] == [
        "STARTING",
        "PROCESSING",
        "COMPLETED",
    ]
    assert all(" after 0." in line for line in states)


@pytest.mark.parametrize("how", ["node", "server name", "server id", "vnfc", "twice"])
def test_a_node_has_several_names(run, tacker, cluster, how):
    server = cluster.servers["workerNode"]
    names = {
        "node": [WORKER],
        "server name": ["cl-workerNode"],
        "server id": [server],
        "vnfc": [cluster.vnfcs["workerNode"]],
        "twice": [WORKER, server],
    }[how]
    assert run("heal", cluster.id, *names, "--no-wait")[0] == 0
    assert body(tacker) == {"vnfcInstanceId": [cluster.vnfcs["workerNode"]]}


def test_the_load_balancer_has_the_name_that_cluster_show_prints(run, tacker, cluster):
    assert run("heal", "my-cluster", "load balancer", "--no-wait")[0] == 0
    assert body(tacker) == {"vnfcInstanceId": [cluster.vnfcs["externalLB"]]}


def test_an_unknown_node_is_refused_with_those_that_there_are(run, tacker, cluster):
    code, out, err = run("heal", "my-cluster", "worker-10-10-0-6")
    assert (code, out, tacker.sent) == (1, "", [])
    assert err.startswith(
        f"worker-10-10-0-6 is no VM of my-cluster ({cluster.api}); there are: "
        "control-plane-10-10-0-4 (masterNode, VNFC "
    )
    for name in (WORKER, OTHER, "load balancer"):
        assert f"{name} (" in err
    assert err.endswith("`tacker-k8s-mgmt cluster show` prints the names.\n")


def test_a_server_that_nova_does_not_show(run, tacker, cluster, openstack):
    cluster.document["instantiatedVnfInfo"]["vnfcResourceInfo"][1][
        "computeResource"
    ] = {"resourceId": "gone"}
    code, _, err = run("heal", "my-cluster", WORKER)
    assert code == 1
    assert "not in Nova (workerNode, VNFC " in err
    assert "Nova does not show all of Tacker's servers to this user" in err
    code, _, _ = run("heal", "my-cluster", cluster.vnfcs["workerNode"], "--no-wait")
    assert code == 0


def test_ids_need_no_nova(run, tacker, cluster, openstack):
    openstack.refused.add("compute")
    code, _, err = run("heal", "my-cluster", WORKER)
    assert (code, err[:30]) == (1, "Nova does not answer as it sho")
    vnfc = cluster.vnfcs["workerNode"]
    assert run("heal", "my-cluster", vnfc, "--no-wait")[0] == 0


def test_a_server_that_tacker_lists_twice(run, tacker, cluster):
    info = cluster.document["instantiatedVnfInfo"]
    for first, second in ((1, 2),):
        resources = info["vnfcResourceInfo"]
        resources[second]["computeResource"] = resources[first]["computeResource"]
    code, _, err = run("heal", "my-cluster", WORKER)
    assert code == 1
    assert f"{WORKER} is several VMs of my-cluster" in err
    for vm in ("workerNode", "workerNode2"):
        assert cluster.vnfcs[vm] in err
    assert err.endswith("Name it by its VNFC or its server.\n")
    assert run("heal", "my-cluster", cluster.vnfcs["workerNode"], "--no-wait")[0] == 0


def test_parameters_come_from_a_file(run, tacker, cluster, tmp_path):
    more = {"k8s_cluster_installation_param": {"worker_node": {"password": "s3cret"}}}
    (tmp_path / "again.json").write_text(json.dumps({"additionalParams": more}))
    words = ("heal", "my-cluster", WORKER, "--additional-param-file", "again.json")
    code, out, _ = run(*words, "--print")
    assert (code, tacker.sent) == (0, [])
    assert "s3cret" not in out
    assert '"password": "***"' in out
    assert run(*words, "--no-wait")[0] == 0
    assert body(tacker)["additionalParams"] == more


@pytest.mark.parametrize("text", ["{}", "[]", '{"additionalParams": 1}', "{", "null"])
def test_a_file_without_parameters_is_refused(run, cluster, tmp_path, text):
    (tmp_path / "again.json").write_text(text)
    words = ("heal", "my-cluster", WORKER, "--additional-param-file", "again.json")
    code, _, err = run(*words)
    assert code == 2
    assert err.startswith("again.json ")


def test_print_shows_the_request_and_sends_nothing(run, tacker, cluster):
    code, out, err = run("heal", "my-cluster", WORKER, "--print")
    assert (code, err, tacker.sent) == (0, "", [])
    head, _, shown = out.partition("\n\n")
    version = {"v1": "1.3.0", "v2": "2.0.0"}[cluster.api]
    assert head.splitlines() == [
        f"POST {cluster.path}/heal",
        "Accept: application/json",
        "Content-Type: application/json",
        f"Version: {version}",
    ]
    assert json.loads(shown) == {"vnfcInstanceId": [cluster.vnfcs["workerNode"]]}


def test_ctrl_c_leaves_the_operation_running(run, tacker, cluster, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    tacker.course = ["PROCESSING"] * 9
    monkeypatch.setattr(time, "sleep", interrupted)
    code, _, err = run("heal", "my-cluster", WORKER)
    (one,) = tacker.rows[cluster.root, "vnf_lcm_op_occs"]
    assert (code, err) == (130, f"The operation {one} continues in Tacker.\n")


def test_an_operation_that_fails(run, tacker, cluster):
    tacker.course = ["PROCESSING", "FAILED_TEMP"]
    code, out, err = run("heal", "my-cluster", WORKER)
    assert code == 1
    assert out.splitlines()[-1].startswith("FAILED_TEMP after ")
    assert err == f"Next: `tacker-k8s-mgmt cluster retry my-cluster` or {V1_FAIL}.\n"
    tacker.rows[cluster.root, "vnf_lcm_op_occs"].clear()
    # What the v2 API refuses while it is STARTING.
    tacker.course = ["STARTING", "ROLLED_BACK"]
    code, _, err = run("heal", "my-cluster", WORKER)
    assert (code, err) == (1, "")


def test_where_tacker_names_no_operation(run, tacker, cluster):
    path = f"{cluster.path}/heal"
    tacker.instead["POST", path] = [(202, {"Location": "http://x/../y"}, b"")]
    code, out, _ = run("heal", "my-cluster", WORKER)
    assert (code, out.endswith("(Tacker does not say which)\n")) == (0, True)


# --- scale


@pytest.mark.parametrize(
    ("given", "kind", "steps"),
    [("+2", "SCALE_OUT", 2), ("5", "SCALE_OUT", 3), ("9", "SCALE_OUT", 7)],
)
def test_scale_out(run, tacker, cluster, given, kind, steps):
    code, _, err = run("scale", "my-cluster", "--workers", given, "--no-wait")
    assert (code, err) == (0, "")
    wanted = {"type": kind, "aspectId": "worker_instance", "numberOfSteps": steps}
    assert body(tacker) == wanted


def test_scale_in(run, tacker, cluster):
    cluster.document["instantiatedVnfInfo"]["scaleStatus"][0]["scaleLevel"] = 1
    assert run("scale", "my-cluster", "--workers", "-1", "--no-wait")[0] == 0
    assert body(tacker)["type"] == "SCALE_IN"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            "+8",
            "worker_instance is 0, and goes from 0 to 7: +8 steps are too many. +0 to",
        ),
        ("-1", "worker_instance is 0, and goes from 0 to 7: -1 steps are too many"),
        ("2", "has 2 workers already"),
    ],
)
def test_what_tacker_would_refuse_of_a_scale(run, tacker, cluster, given, text):
    code, _, err = run("scale", "my-cluster", "--workers", given)
    assert (code, tacker.sent) == (1, [])
    assert text in err


@pytest.mark.parametrize(
    "given", ["+0", "-0", "two", "1.5", "+", "", "\u0665", "99999"]
)
def test_what_is_no_number_of_workers(run, cluster, given):
    code, _, err = run("scale", "my-cluster", "--workers", given)
    assert code == 2
    assert "is no number such as +2, -1 or 5" in err


def by_two(text):
    return text.replace(
        "delta_1:\n              number_of_instances: 1",
        "delta_1:\n              number_of_instances: 2",
    )


def only_package(tacker, content):
    tacker.packages = dict.fromkeys(tacker.packages, content)


def test_a_step_of_several_vms(run, tacker, cluster):
    only_package(tacker, vnfd(cluster.api, by_two))
    code, _, err = run("scale", "my-cluster", "--workers", "+1")
    assert (code, tacker.sent) == (1, [])
    assert err.startswith(
        "A step of worker_instance is 2 VMs: +1 is not possible. Scale"
    )
    assert run("scale", "my-cluster", "--workers", "+4", "--no-wait")[0] == 0
    assert body(tacker)["numberOfSteps"] == 2


def second_aspect(text):
    text = text.replace(
        "            worker_instance:\n              name: worker_instance\n",
        "            gpu: {name: gpu, max_scale_level: 2, step_deltas: [delta_1]}\n"
        "            worker_instance:\n              name: worker_instance\n",
    )
    return text.replace(
        "    - workerNode_scaling_aspect_deltas:",
        "    - gpu_deltas:\n"
        "        type: tosca.policies.nfv.VduScalingAspectDeltas\n"
        "        properties:\n"
        "          aspect: gpu\n"
        "          deltas: {delta_1: {number_of_instances: 1}}\n"
        "        targets: [ gpuNode ]\n\n"
        "    - workerNode_scaling_aspect_deltas:",
    )


def test_of_several_aspects_one_is_named(run, tacker, cluster):
    only_package(tacker, vnfd(cluster.api, second_aspect))
    for key in ("scaleStatus", "maxScaleLevels"):
        levels = cluster.document["instantiatedVnfInfo"].get(key, [])
        levels.append(
            {"aspectId": "gpu", "scaleLevel": 0 if key == "scaleStatus" else 2}
        )
    code, _, err = run("scale", "my-cluster", "--workers", "+1")
    assert (code, tacker.sent) == (1, [])
    assert "has several aspects of workers: gpu, worker_instance" in err
    words = ("scale", "my-cluster", "--workers", "+1", "--no-wait", "--aspect")
    code, _, err = run(*words, "cpu")
    assert code == 1
    assert (
        "has no scaling aspect cpu of workers; there are: gpu, worker_instance" in err
    )
    assert run(*words, "gpu")[0] == 0
    assert body(tacker)["aspectId"] == "gpu"


def test_a_vnfd_that_cannot_be_used(run, tacker, cluster):
    for content, text in (
        (b"no zip", "cannot be read as a zip"),
        (tacker_api.vnfd_zip({"../a.yaml": "a"}), "problem(s)"),
        (tacker_api.vnfd_zip({"a.yaml": "{a"}), "there are: none"),
        (tacker_api.vnfd_zip({}), "there are: none"),
    ):
        only_package(tacker, content)
        code, _, err = run("scale", "my-cluster", "--workers", "+1")
        assert (code, tacker.sent) == (1, [])
        assert text in err
    tacker.packages = {}
    code, _, err = run("scale", "my-cluster", "--workers", "+1")
    assert "Tacker shows 0 VNF packages with the VNFD" in err


# --- retry, rollback, fail

V1_FAIL = "`tacker-k8s-mgmt cluster fail my-cluster`"


def test_retry_waits_for_the_operation(run, tacker, cluster):
    one = failed(tacker, cluster, "HEAL")
    tacker.course = ["FAILED_TEMP"] * 2 + ["PROCESSING", "COMPLETED"]
    code, out, err = run("retry", "my-cluster")
    assert (code, err) == (0, "")
    ((method, path, _, sent),) = tacker.sent
    assert (method, path, sent) == (
        "POST",
        f"{cluster.root}/vnf_lcm_op_occs/{one}/retry",
        None,
    )
    states = [line.split()[0] for line in out.splitlines()[1:]]
    assert states == ["PROCESSING", "COMPLETED"]


def test_a_rollback_is_over_when_it_is_rolled_back(run, tacker, cluster):
    failed(tacker, cluster, "SCALE_OUT")
    tacker.course = ["FAILED_TEMP", "ROLLING_BACK", "ROLLED_BACK"]
    assert run("rollback", "my-cluster")[0] == 0


def test_fail_is_over_when_it_is_failed(run, tacker, cluster):
    failed(tacker, cluster, "HEAL")
    code, out, err = run("fail", "my-cluster")
    assert (code, err) == (0, "")
    assert out.splitlines()[1].startswith("FAILED after ")


def test_a_retry_that_fails_names_the_next_verbs(run, tacker, cluster):
    failed(tacker, cluster, "HEAL")
    tacker.course = ["FAILED_TEMP", "PROCESSING", "FAILED_TEMP"]
    code, _, err = run("retry", "my-cluster")
    assert code == 1
    assert err == (
        "Tacker: heal_start: step 2/9 (drain) failed: why.\n"
        f"Next: `tacker-k8s-mgmt cluster retry my-cluster` or {V1_FAIL}.\n"
    )


@pytest.mark.parametrize("verb", ["retry", "rollback", "fail"])
def test_without_a_failed_operation_there_is_nothing_to_do(run, tacker, cluster, verb):
    code, _, err = run(verb, "my-cluster")
    assert (code, tacker.sent) == (1, [])
    assert "has no operation in FAILED_TEMP: no operation is open" in err
    tacker.operation(cluster.root, cluster.id, "HEAL", operationState="PROCESSING")
    tacker.operation(cluster.root, cluster.id, "HEAL", operationState="COMPLETED")
    tacker.operation(cluster.root, "another", "HEAL")
    code, _, err = run(verb, "my-cluster")
    assert " is PROCESSING" in err
    assert (code, tacker.sent) == (1, [])


def test_of_several_failed_operations_one_is_named(run, tacker, cluster):
    first, second = (failed(tacker, cluster, "HEAL") for _ in range(2))
    code, _, err = run("fail", "my-cluster")
    assert (code, tacker.sent) == (1, [])
    assert first in err
    assert err.endswith("Name one with --operation.\n")
    assert run("fail", "my-cluster", "--operation", second)[0] == 0
    assert f"/{second}/fail" in tacker.sent[0][1]


@pytest.mark.parametrize("words", [("heal", WORKER), ("scale", "--workers", "+1")])
def test_an_open_operation_comes_first(run, tacker, cluster, words):
    verb, *rest = words
    one = failed(tacker, cluster, "HEAL")
    code, _, err = run(verb, "my-cluster", *rest)
    assert (code, tacker.sent) == (1, [])
    assert err == (
        f"HEAL {one} is FAILED_TEMP and has to be dealt with first. `tacker-k8s-mgmt "
        f"cluster retry my-cluster` or {V1_FAIL}\n"
    )
    row = tacker.rows[cluster.root, "vnf_lcm_op_occs"][one]
    row["operationState"] = "PROCESSING"
    code, _, err = run(verb, "my-cluster", *rest)
    assert (code, tacker.sent) == (1, [])
    assert f"Another operation is at work: HEAL {one} is PROCESSING." in err


def test_an_instance_that_is_not_instantiated(run, tacker, cluster):
    cluster.document["instantiationState"] = "NOT_INSTANTIATED"
    code, _, err = run("heal", "my-cluster", WORKER)
    assert (code, tacker.sent) == (1, [])
    assert "is NOT_INSTANTIATED, and not instantiated" in err


@pytest.mark.parametrize("api", ["v1"], indirect=True)
@pytest.mark.parametrize(
    ("verb", "kind", "ways"),
    [
        ("retry", "MODIFY_INFO", ["fail"]),
        ("rollback", "HEAL", ["retry", "fail"]),
        ("rollback", "SCALE_IN", ["retry", "fail"]),
        ("rollback", "MODIFY_INFO", ["fail"]),
    ],
)
def test_what_v1_has_no_verb_for(run, tacker, cluster, verb, kind, ways):
    one = failed(tacker, cluster, kind)
    code, _, err = run(verb, "my-cluster")
    assert (code, tacker.sent) == (1, [])
    listed = " or ".join(f"`tacker-k8s-mgmt cluster {w} my-cluster`" for w in ways)
    assert err == f"Tacker's v1 API has no {verb} of {kind} ({one}). {listed}.\n"


@pytest.mark.parametrize("api", ["v1"], indirect=True)
def test_v1_would_complete_the_retry_of_a_scale_out_in_vain(run, tacker, cluster):
    late = {"detail": "scale_end: step 5/9 (run scale.yml) failed: why."}
    failed(tacker, cluster, "SCALE_OUT", error=late)
    code, _, err = run("retry", "my-cluster")
    assert (code, tacker.sent) == (1, [])
    assert "has no retry of SCALE_OUT that the driver would see: it would be" in err
    assert "cluster rollback my-cluster` or `tacker-k8s-mgmt cluster fail" in err


@pytest.mark.parametrize("api", ["v2"], indirect=True)
@pytest.mark.parametrize("kind", ["HEAL", "TERMINATE", "SCALE_IN"])
def test_what_v2_does_not_roll_back(run, tacker, cluster, kind):
    failed(tacker, cluster, kind)
    code, _, err = run("rollback", "my-cluster")
    assert (code, tacker.sent) == (1, [])
    assert f"Tacker's v2 API has no rollback of {kind}" in err


@pytest.mark.parametrize("verb", ["heal", "retry", "scale"])
def test_without_a_login_the_ways_to_give_one_are_named(monkeypatch, run, verb):
    for name in ("OS_CLOUD", "OS_AUTH_URL"):
        monkeypatch.delenv(name, raising=False)
    words = {"heal": ("worker",), "scale": ("--workers", "+1")}.get(verb, ())
    code, _, err = run(verb, "my-cluster", *words)
    assert code == 2
    assert "no cloud is named: give --os-cloud, or set OS_CLOUD" in err
