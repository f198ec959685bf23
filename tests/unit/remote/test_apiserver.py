"""One API server asked for its health, and the place where newcomers look for one."""

import json

import pytest
import yaml

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubectl import KubeControl
from tests.unit.remote.kube import SUDO

# `get` answers with a file of the test; what is patched is kept.
KUBECTL = """
printf '%s\\n' "$*" >>"$HOME/calls"
while [ $# -gt 0 ]; do
    case $1 in
    get | patch) verb=$1 ;;
    -p) printf '%s' "$2" >"$HOME/patched" ;;
    esac
    shift
done
[ "$verb" = get ] || exit 0
[ -e "$HOME/answer" ] && exec cat "$HOME/answer"
echo "The connection to the server was refused" >&2
exit 1
"""
SERVER = "https://10.10.0.1:6443"
OTHER = "https://10.10.0.2:6443"


@pytest.fixture
def cluster(sshd, session):
    sshd.program("kubectl", KUBECTL)
    sshd.program("sudo", SUDO)
    return KubeControl(session, "https://10.10.0.4:6443")


def cluster_info(server: str) -> str:
    data = {"certificate-authority-data": "Q0E=", "server": server}
    config = {"kind": "Config", "clusters": [{"name": "", "cluster": data}]}
    return json.dumps({"kind": "ConfigMap", "data": {"kubeconfig": json.dumps(config)}})


def test_an_api_server_that_is_ready_has_no_problem(cluster, sshd):
    (sshd.home / "answer").write_text("ok")
    assert cluster.api_problem() == ""
    (call,) = (sshd.home / "calls").read_text().splitlines()
    assert "--server https://10.10.0.4:6443 get --raw /readyz" in call


def test_one_that_does_not_answer_is_told_in_kubectls_words(cluster):
    assert cluster.api_problem() == "The connection to the server was refused"


def test_a_node_that_cannot_be_reached_is_an_error(cluster, session):
    session.close()
    with pytest.raises(errors.RemoteError):
        cluster.api_problem()


def test_cluster_info_is_moved_and_keeps_everything_else(cluster, sshd):
    (sshd.home / "answer").write_text(cluster_info(SERVER))
    assert cluster.move_cluster_info("10.10.0.1", OTHER)
    patched = json.loads((sshd.home / "patched").read_text())
    config = yaml.safe_load(patched["data"]["kubeconfig"])
    assert config == {
        "kind": "Config",
        "clusters": [
            {
                "name": "",
                "cluster": {"certificate-authority-data": "Q0E=", "server": OTHER},
            }
        ],
    }


@pytest.mark.parametrize(
    "answer",
    [cluster_info("https://10.10.0.11:6443"), cluster_info("https://lb:443"), ""],
    ids=["a longer address", "a load balancer", "none"],
)
def test_cluster_info_of_another_server_stays(cluster, sshd, answer):
    (sshd.home / "answer").write_text(answer)
    assert not cluster.move_cluster_info("10.10.0.1", OTHER)
    assert not (sshd.home / "patched").exists()


def test_an_api_server_that_fails_is_no_missing_cluster_info(cluster):
    with pytest.raises(errors.CommandFailed):
        cluster.move_cluster_info("10.10.0.1", OTHER)
