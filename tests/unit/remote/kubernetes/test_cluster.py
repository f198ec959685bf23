# SPDX-License-Identifier: Apache-2.0
"""kubectl on a control-plane node: the argument list, the answers, the failures."""

import base64
import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import NodeObject
from tacker_k8s_mgmt.operations.readiness import readiness_problem
from tacker_k8s_mgmt.remote.kubernetes.api import ACCOUNT, ClusterApi
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import SUDO, needs_kubectl, pod

# Keeps what it was given; answers with what the test has put there.
FAKE_KUBECTL = """
printf '%s\\n' "$*" >>"$HOME/calls"
case " $* " in
*" apply "*) cat >"$HOME/applied"; echo "Warning: deprecated" >&2
    echo x >>"$HOME/applies" ;;
esac
[ -e "$HOME/stderr" ] && cat "$HOME/stderr" >&2
[ -e "$HOME/fails" ] && exit 1
case " $* " in
*" get nodes "*) cat "$HOME/nodes" ;;
*" get secret/"*" namespace/kube-system "*)
    n=$(cat "$HOME/asked" 2>/dev/null); n=$((${n:-0} + 1)); echo $n >"$HOME/asked"
    [ $n -ge "$(cat "$HOME/token-after")" ] && file=secret || file=early
    namespace='{"kind": "Namespace", "metadata": {"uid": "uid-1"}}'
    secret=$(cat "$HOME/$file")
    printf '{"kind": "List", "items": [%s]}' "$namespace${secret:+, $secret}" ;;
esac
"""
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
TOKEN = "eyJhbGciOi.token"


@pytest.fixture
def home(sshd):
    sshd.program("kubectl", FAKE_KUBECTL)
    sshd.expected_warnings.append("deprecated")
    sshd.program("sudo", SUDO)
    (sshd.home / "secret").write_text(secret_with(token=TOKEN, **{"ca.crt": CA}))
    (sshd.home / "early").touch()
    (sshd.home / "token-after").write_text("1")
    return sshd.home


@pytest.fixture
def cluster(home, session):
    return ClusterApi(session)


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def secret_with(**data):
    """A Secret with this content."""
    content = {name: encoded(text) for name, text in data.items()}
    return json.dumps({"kind": "Secret", "data": content})


def nodes(*rows):
    """What kubectl prints for these nodes: an array for each result of the template."""
    values = [["List"], *(value for row in rows for value in row), ["List"]]
    return "".join(f"{json.dumps(value, indent=4)}\n" for value in values)


def node(name, unschedulable=None, labels=None, taints=None, **ready):
    info = ready.pop("info", None) or {}
    optional = (unschedulable, "openstack:///1", labels, taints)
    about = ["uid-1", "2026-01-01T00:00:00Z", None, *optional, "10.10.0.5"]
    condition = [ready.get(key) for key in ("status", "reason", "message")]
    kubelet = [info.get(key) for key in ("kubeletVersion", "machineID", "bootID")]
    row = ["v1", "Node", None, name, *about, *condition, *kubelet]
    return [[] if value is None else [value] for value in row]


def test_nodes_are_read_with_the_admins_credentials(cluster, home, sshd):
    info = {"kubeletVersion": "v1.33.1", "machineID": "m", "bootID": "b"}
    rows = (node("w2", status="True"), node("w1", status="True", info=info))
    (home / "nodes").write_text(nodes(*rows))
    (home / "stderr").write_text("Warning: something is old\n")
    sshd.expected_warnings.append("something is old")
    found = cluster.nodes()
    assert [one.name for one in found] == ["w1", "w2"]
    assert found[0] == NodeObject(
        name="w1",
        ready=True,
        reason="",
        internal_ip="10.10.0.5",
        kubelet_version="v1.33.1",
        machine_id="m",
        boot_id="b",
        provider_id="openstack:///1",
        uid="uid-1",
        created="2026-01-01T00:00:00Z",
    )
    (call,) = (home / "calls").read_text().splitlines()
    assert call.startswith("--kubeconfig /etc/kubernetes/admin.conf --request-timeout=")
    assert " get nodes -o jsonpath-as-json=" in call


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param(
            node("w", status="False", reason="KubeletNotReady", message="no\ncni\t!"),
            "KubeletNotReady: no cni !",
            id="not-ready",
        ),
        pytest.param(node("w", status="Unknown"), "Ready is Unknown", id="unknown"),
        pytest.param(node("w"), "its kubelet has not reported yet", id="new"),
    ],
)
def test_node_that_is_not_ready_says_why(cluster, home, row, reason):
    (home / "nodes").write_text(nodes(row))
    (found,) = cluster.nodes()
    assert (found.ready, found.reason) == (False, reason)


def test_labels_and_taints_of_a_node(cluster, home):
    taints = [{"key": "dedicated", "value": "cnf", "effect": "NoSchedule"}]
    labels = {"disk": "ssd"}
    row = node("w", unschedulable=True, labels=labels, taints=taints)
    (home / "nodes").write_text(nodes(row))
    (found,) = cluster.nodes()
    about = (found.unschedulable, found.labels, found.taints)
    assert about == (True, labels, tuple(taints))


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (
            "node.cloudprovider.kubernetes.io/uninitialized",
            "the cloud controller has not initialized it",
        ),
        ("node.kubernetes.io/network-unavailable", "its network is not set up"),
        ("node.kubernetes.io/not-ready", "it is still marked as not Ready"),
        ("node.kubernetes.io/unreachable", "it is still marked as unreachable"),
        ("node.kubernetes.io/memory-pressure", ""),
        ("node.kubernetes.io/unschedulable", ""),
        ("gpu", ""),
    ],
)
def test_a_ready_node_may_be_unfinished(cluster, home, key, why):
    taints = [{"key": key, "effect": "NoSchedule"}]
    (home / "nodes").write_text(nodes(node("w", taints=taints, status="True")))
    (found,) = cluster.nodes()
    assert readiness_problem(found) == (
        f"Ready, but {why} (taint {key})" if why else ""
    )


def test_empty_cluster_has_no_nodes(cluster, home):
    (home / "nodes").write_text(nodes())
    assert cluster.nodes() == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("not a list\n", id="something-else"),
        pytest.param(nodes(node("w1")[:-1]), id="fields-are-missing"),
        pytest.param(nodes(node("w1")) + "[}", id="no-json"),
        pytest.param(nodes(node("w1")).rpartition("[")[0], id="cut-off"),
        pytest.param(nodes(node("w1"), node("w1")), id="a-node-twice"),
        pytest.param(nodes([*node("w1")[:3], ["a", "b"], *node("w1")[4:]]), id="two"),
    ],
)
def test_answer_that_is_not_understood_is_an_error_and_not_no_nodes(
    cluster, home, text
):
    (home / "nodes").write_text(text)
    with pytest.raises(errors.ClusterError, match="kubectl get nodes"):
        cluster.nodes()


def test_failing_kubectl_is_an_error_with_its_words(cluster, home):
    (home / "stderr").write_text("The connection to the server was refused\n")
    (home / "fails").touch()
    with pytest.raises(errors.CommandFailed, match="server was refused") as caught:
        cluster.nodes()
    assert "`kubectl get nodes` ended with exit code 1" in str(caught.value)
    with pytest.raises(errors.CommandFailed, match="server was refused"):
        cluster.admin_access()


def test_admin_access_applies_account_binding_and_secret(cluster, home):
    access = cluster.admin_access()
    assert access.token.get_secret_value() == TOKEN
    assert access.ca_certificate == CA
    assert access.uid == "uid-1"
    assert TOKEN not in repr(access)
    items = json.loads((home / "applied").read_text())["items"]
    kinds = ["ServiceAccount", "ClusterRoleBinding", "Secret"]
    assert [item["kind"] for item in items] == kinds
    assert {item["metadata"]["name"] for item in items} == {ACCOUNT}
    assert items[1]["roleRef"]["name"] == "cluster-admin"
    assert items[2]["type"] == "kubernetes.io/service-account-token"
    account = items[2]["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    assert account == ACCOUNT


@pytest.mark.parametrize(
    "early",
    [
        pytest.param("", id="controller-removed-it"),
        pytest.param('{"kind": "Secret", "data": null}', id="no-data"),
        pytest.param(secret_with(**{"ca.crt": CA}), id="no-token"),
        pytest.param(secret_with(token=TOKEN), id="no-ca"),
    ],
)
def test_token_is_waited_for(cluster, home, early):
    (home / "early").write_text(early)
    (home / "token-after").write_text("3")
    assert cluster.admin_access().token.get_secret_value() == TOKEN
    assert (home / "asked").read_text() == "3\n"
    # Applied each time: the controller may have removed the Secret.
    assert len((home / "applies").read_text().splitlines()) == 3


def test_no_token_within_the_limit_is_an_error(cluster, home):
    (home / "token-after").write_text("1000")
    with pytest.raises(errors.ClusterError, match=r"no token after 0\.3 s"):
        cluster.admin_access(limit=0.3)


@pytest.fixture
def control(site, session):
    """The real kubectl and the stand-in's cluster: m1, w1, w10, w2."""
    return ClusterApi(session)


def schedulable(control):
    return {node.name for node in control.nodes() if not node.unschedulable}


@needs_kubectl
def test_real_nodes_say_which_machine_they_are(control, site):
    found = {node.name: node for node in control.nodes()}
    assert set(found) == {"m1", "w1", "w10", "w2"}
    worker, seen = found["w1"], site.node("w1")
    about = (worker.ready, worker.taints, worker.internal_ip)
    assert about == (True, (), "10.10.0.11")
    assert worker.labels == seen["metadata"]["labels"] != {}
    info = seen["status"]["nodeInfo"]
    assert (worker.machine_id, worker.boot_id) == (info["machineID"], info["bootID"])
    assert (worker.uid, worker.created) == (
        seen["metadata"]["uid"],
        seen["metadata"]["creationTimestamp"],
    )
    assert found["m1"].taints == tuple(site.node("m1")["spec"]["taints"]) != ()


@needs_kubectl
def test_the_version_is_that_of_the_api_server(control, site):
    assert control.version() == bed.QUICK.version.removeprefix("v")
    assert {node.kubelet_version for node in control.nodes()} == {bed.QUICK.version}


def test_a_version_that_is_not_understood_is_an_error(cluster):
    with pytest.raises(errors.ClusterError, match="get --raw /version"):
        cluster.version()


@needs_kubectl
def test_cordon_returns_the_nodes_to_uncordon(control, site):
    site.kube.kubectl("cordon", "w2")
    assert control.cordon(["w1", "w2", "w", "gone"]) == ("w1",)
    assert schedulable(control) == {"m1", "w10"}
    control.uncordon(["w1", "w", "gone"])
    assert schedulable(control) == {"m1", "w10", "w1"}
    assert control.cordon([]) == ()


@needs_kubectl
def test_a_cordon_of_an_operation_that_was_cut_off_is_still_ours(control, site):
    control.cordon(["w1"])
    site.kube.kubectl("cordon", "w2")
    assert control.cordon(["w1", "w2"]) == ("w1",)
    control.uncordon(["w1"])
    site.kube.kubectl("cordon", "w1")
    assert control.cordon(["w1"]) == (), "the mark went with the cordon"


@needs_kubectl
def test_cordoned_nodes_take_no_pods(control, site):
    control.cordon(["w1", "w2"])
    site.run(bed.deployment("web", 4))
    assert site.pods_on("w1") == site.pods_on("w2") == set()


@needs_kubectl
@pytest.mark.parametrize("verb", ["cordon", "uncordon", "force_evict", "remove_nodes"])
def test_an_api_that_is_away_is_an_error_and_changes_nothing(control, site, verb):
    """Nothing is taken for "there is no such node" but its absence from the list."""
    site.run(pod("bare", "w1"))
    site.take_api_away()
    with pytest.raises(errors.CommandFailed, match=r"server \S+ was refused"):
        getattr(control, verb)(["w1"])
    assert site.pods_on("w1") == {"bare"}
    assert site.node("w1")["spec"] == {}


@needs_kubectl
def test_a_kubectl_that_is_missing_is_an_error(control, site):
    (site.sshd.bin / "kubectl").write_text("#!/bin/bash\nexit 127\n")
    with pytest.raises(errors.CommandFailed, match="exit code 127"):
        control.remove_nodes(["w1"])


OTHER_NAME = (
    "Unable to connect to the server: tls: failed to verify certificate: x509: {}\n"
)


class TestCertificate:
    def test_the_server_is_asked_in_the_name_of_each_address(self, cluster, home):
        assert cluster.uncertified(["192.0.2.4", "192.0.2.9"]) == ()
        asked = (home / "calls").read_text().splitlines()
        names = [line.partition("--tls-server-name ")[2] for line in asked]
        assert names == ["192.0.2.4", "192.0.2.9"]

    @pytest.mark.parametrize(
        "said",
        [
            "certificate is valid for 10.10.0.4, 127.0.0.1, not 192.0.2.9",
            "cannot validate certificate for 192.0.2.9 because it doesn't contain any "
            "IP SANs",
        ],
    )
    def test_an_address_that_it_has_no_certificate_for(self, cluster, home, said):
        (home / "stderr").write_text(OTHER_NAME.format(said))
        (home / "fails").touch()
        assert cluster.uncertified(["192.0.2.9"]) == ("192.0.2.9",)

    @pytest.mark.parametrize(
        "said",
        [
            OTHER_NAME.format("certificate signed by unknown authority"),
            "The connection to the server 10.10.0.4:6443 was refused\n",
        ],
    )
    def test_any_other_failure_is_no_answer(self, cluster, home, said):
        (home / "stderr").write_text(said)
        (home / "fails").touch()
        with pytest.raises(errors.CommandFailed):
            cluster.uncertified(["192.0.2.9"])
