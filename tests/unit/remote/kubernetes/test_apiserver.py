# SPDX-License-Identifier: Apache-2.0
"""One API server asked for its health, and the place where newcomers look for one."""

import json

import pytest
import yaml

from lab.kubeapi.etcd import Files
from lab.kubeapi.server import start, stop
from lab.kubeapi.settings import Listener, Replication
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import SUDO, needs_kubectl

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
    return ClusterApi(session, "https://10.10.0.4:6443")


def cluster_info(server: str) -> str:
    data = {"certificate-authority-data": "Q0E=", "server": server}
    config = {"kind": "Config", "clusters": [{"name": "", "cluster": data}]}
    return json.dumps({"kind": "ConfigMap", "data": {"kubeconfig": json.dumps(config)}})


def test_an_api_server_that_is_ready_has_no_problem(cluster, sshd):
    (sshd.home / "answer").write_text("ok")
    assert cluster.api_readiness() == ""
    (call,) = (sshd.home / "calls").read_text().splitlines()
    assert "--server https://10.10.0.4:6443 get --raw /readyz" in call


# It refuses twice, is too busy and not ready, each once, and then answers.
RESTARTING = """
echo x >>"$HOME/tries"
case $(wc -l <"$HOME/tries") in
1 | 2) echo "The connection to the server 10.10.0.4:6443 was refused - did you" >&2 ;;
3) echo "Unable to connect to the server: net/http: TLS handshake timeout" >&2 ;;
4) echo "Error from server (InternalError): an error on the server" >&2 ;;
5) echo 'Error from server (Forbidden): nodes is forbidden: User "kubernetes-admin"' \
    'cannot list resource "nodes" in API group "" at the cluster scope' >&2 ;;
*) echo '{"gitVersion": "v1.31.9"}'; exit ;;
esac
exit 1
"""


@pytest.fixture
def restarting(sshd, session):
    """An API server that restarts; how often it was asked is in ``tries``."""
    sshd.program("kubectl", RESTARTING)
    sshd.program("sudo", SUDO)
    return lambda patience: ClusterApi(session, "https://10.10.0.4:6443", patience)


def test_one_that_restarts_is_waited_for(restarting, sshd):
    assert restarting(600).version() == "1.31.9"
    assert (sshd.home / "tries").read_text().count("x") == 6


def test_one_that_restarts_is_no_longer_waited_for_than_it_may_take(restarting, sshd):
    with pytest.raises(errors.CommandFailed, match="was refused"):
        restarting(0).version()
    assert (sshd.home / "tries").read_text().count("x") == 1


def test_readiness_is_reported_at_once(restarting, sshd):
    assert "was refused" in restarting(600).api_readiness()
    assert (sshd.home / "tries").read_text().count("x") == 1


def test_any_other_failure_is_one_at_once(sshd, session):
    sshd.program("sudo", SUDO)
    sshd.program("kubectl", "echo x >>$HOME/tries; echo 'error: unknown' >&2; exit 1")
    with pytest.raises(errors.CommandFailed, match="error: unknown"):
        ClusterApi(session, patience=600).version()
    assert (sshd.home / "tries").read_text().count("x") == 1


def test_an_api_server_that_does_not_answer_is_reported_with_kubectls_error(cluster):
    assert cluster.api_readiness() == "The connection to the server was refused"


@pytest.fixture
def without_etcd(sshd, session):
    """The real kubectl against an API server whose etcd does not answer."""
    nobody = Replication("http://127.0.0.1:1", ("http://127.0.0.1:1",), Files())
    tokens = frozenset({bed.ADMIN_TOKEN})
    server = start(Listener(port=0, admin_tokens=tokens), replication=nobody)
    there = f"--server=http://127.0.0.1:{server.port} --token={bed.ADMIN_TOKEN}"
    sshd.program("kubectl", f'shift 5\nexec {bed.KUBECTL} {there} "$@"\n')
    sshd.program("sudo", SUDO)
    yield ClusterApi(session, "https://10.10.0.4:6443")
    stop(server)


@needs_kubectl
def test_an_api_server_that_is_not_ready_is_reported_with_its_failed_checks(
    without_etcd,
):
    assert without_etcd.api_readiness() == (
        "not ready: [-]etcd failed, [-]etcd-readiness failed"
    )


def test_a_node_that_cannot_be_reached_is_an_error(cluster, session):
    session.close()
    with pytest.raises(errors.RemoteError):
        cluster.api_readiness()


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
