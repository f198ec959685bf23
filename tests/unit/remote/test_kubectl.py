"""kubectl on a control-plane node: the argument list, the answers, the failures."""

import base64
import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubectl import ACCOUNT, KubeControl

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
*" get secret "*)
    n=$(cat "$HOME/asked" 2>/dev/null); n=$((${n:-0} + 1)); echo $n >"$HOME/asked"
    [ $n -ge "$(cat "$HOME/token-after")" ] && file=secret || file=early
    cat "$HOME/$file" ;;
esac
"""
FAKE_SUDO = """
while [ "$1" != -- ]; do shift; done
shift 3  # --, env, PATH=
exec "$@"
"""
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
TOKEN = "eyJhbGciOi.token"


@pytest.fixture
def home(sshd):
    sshd.program("kubectl", FAKE_KUBECTL)
    sshd.program("sudo", FAKE_SUDO)
    data = {"token": encoded(TOKEN), "ca.crt": encoded(CA)}
    (sshd.home / "secret").write_text(json.dumps({"data": data}))
    (sshd.home / "early").touch()
    (sshd.home / "token-after").write_text("1")
    return sshd.home


@pytest.fixture
def cluster(home, session):
    return KubeControl(session)


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def node(name, ready="True", conditions=None, **fields):
    if conditions is None:
        conditions = [{"type": "MemoryPressure", "status": "False"}]
        conditions.append({"type": "Ready", "status": ready} | fields)
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": conditions,
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": "10.10.0.5"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.33.1"},
        },
    }


def test_nodes_are_read_as_json_with_the_admins_credentials(cluster, home):
    (home / "nodes").write_text(json.dumps({"items": [node("w2"), node("w1")]}))
    (home / "stderr").write_text("Warning: something is old\n")
    found = cluster.nodes()
    assert [one.name for one in found] == ["w1", "w2"]
    assert (found[0].ready, found[0].reason) == (True, "")
    assert (found[0].internal_ip, found[0].kubelet_version) == ("10.10.0.5", "v1.33.1")
    (call,) = (home / "calls").read_text().splitlines()
    assert call.startswith("--kubeconfig /etc/kubernetes/admin.conf --request-timeout=")
    assert call.endswith("get nodes -o json")


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        pytest.param(
            node("w", "False", reason="KubeletNotReady", message="cni not ready"),
            "KubeletNotReady: cni not ready",
            id="not-ready",
        ),
        pytest.param(node("w", "Unknown"), "Ready is Unknown", id="unknown"),
        pytest.param(
            node("w", conditions=[]), "its kubelet has not reported yet", id="new"
        ),
    ],
)
def test_node_that_is_not_ready_says_why(cluster, home, item, reason):
    (home / "nodes").write_text(json.dumps({"items": [item]}))
    (found,) = cluster.nodes()
    assert (found.ready, found.reason) == (False, reason)


def test_empty_cluster_has_no_nodes(cluster, home):
    (home / "nodes").write_text(json.dumps({"items": []}))
    assert cluster.nodes() == ()


@pytest.mark.parametrize("text", ["", "not json", "{}", "[]", '{"items": [{}]}'])
def test_answer_that_is_not_understood_is_an_error_and_not_no_nodes(
    cluster, home, text
):
    (home / "nodes").write_text(text)
    with pytest.raises(errors.ClusterError, match="kubectl get nodes"):
        cluster.nodes()


def test_failing_kubectl_is_an_error_with_its_words(cluster, home):
    (home / "stderr").write_text("The connection to the server was refused\n")
    (home / "fails").touch()
    with pytest.raises(errors.CommandFailed, match="server was refused"):
        cluster.nodes()
    with pytest.raises(errors.CommandFailed, match="server was refused"):
        cluster.admin_access()


def test_admin_access_applies_account_binding_and_secret(cluster, home):
    access = cluster.admin_access()
    assert access.token.get_secret_value() == TOKEN
    assert access.ca_certificate == CA
    assert TOKEN not in repr(access)
    items = json.loads((home / "applied").read_text())["items"]
    assert [item["kind"] for item in items] == [
        "ServiceAccount",
        "ClusterRoleBinding",
        "Secret",
    ]
    assert {item["metadata"]["name"] for item in items} == {ACCOUNT}
    assert items[1]["roleRef"]["name"] == "cluster-admin"
    assert items[2]["type"] == "kubernetes.io/service-account-token"
    account = items[2]["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    assert account == ACCOUNT


@pytest.mark.parametrize(
    "early",
    [
        pytest.param("", id="controller-removed-it"),
        pytest.param('{"data": null}', id="no-data"),
        pytest.param(json.dumps({"data": {"ca.crt": encoded(CA)}}), id="no-token"),
        pytest.param(json.dumps({"data": {"token": encoded(TOKEN)}}), id="no-ca"),
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
