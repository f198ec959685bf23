# SPDX-License-Identifier: Apache-2.0
"""What is made of etcdctl's answers, which are as real ones are."""

import json
import shlex

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.quorum import EtcdMember
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tests.helpers.kubectl_server import SUDO

# Answers are files: ANSWERS/<what it is asked>-<whom>, beside it <...>.rc.
ETCDCTL = """
printf '%s|%s\\n' "$ETCDCTL_ENDPOINTS" "$*" >>"$HOME/calls"
[ "$ETCDCTL_CACERT" = /etc/ssl/etcd/ssl/ca.pem ] || exit 9
case $ETCDCTL_ENDPOINTS in https://127.0.0.1:2379) whom=own ;; *) whom=all ;; esac
answer=$HOME/$1-$2-$whom
[ -e "$answer" ] || answer=$HOME/$1-$2
[ -e "$answer" ] || { echo "Error: context deadline exceeded" >&2; exit 1; }
cat "$answer"
grep -q false "$answer" && exit 1
exit 0
"""
# `grep` is told where this test has the file.
GREP = """
set -- "${@/#\\/etc\\/etcd.env/$HOME/etcd.env}"
exec /usr/bin/grep "$@"
"""
ENV = """\
ETCD_NAME=etcd1
ETCD_INITIAL_CLUSTER=etcd1=https://10.10.0.1:2380,etcd2=https://10.10.0.2:2380
ETCD_CIPHER_SUITES=
# CLI settings
ETCDCTL_ENDPOINTS=https://127.0.0.1:2379
ETCDCTL_CACERT=/etc/ssl/etcd/ssl/ca.pem
ETCDCTL_KEY=/etc/ssl/etcd/ssl/admin-cp1-key.pem
ETCDCTL_CERT=/etc/ssl/etcd/ssl/admin-cp1.pem
"""
BIG = 0xF0E1D2C3B4A59687  # ids are 64 bits without a sign
IDS = {1: BIG, 2: 2, 3: 3}


def url(number, port=2379):
    return f"https://10.10.0.{number}:{port}"


def listed(*numbers, **more):
    return [
        {
            "ID": IDS[n],
            "name": f"etcd{n}",
            "peerURLs": [url(n, 2380)],
            "clientURLs": [url(n)],
            **more,
        }
        for n in numbers
    ]


def status(*numbers, leader=1):
    return [
        {
            "Endpoint": url(n),
            "Status": {
                "header": {"member_id": IDS[n], "raft_term": 3},
                "version": "3.5.21",
                **({"leader": IDS[leader]} if leader else {}),
                "raftTerm": 3,
            },
        }
        for n in numbers
    ]


def health(*numbers, dead=()):
    error = {"error": "context deadline exceeded"}
    return [
        {"endpoint": url(n), "health": n not in dead, **(error if n in dead else {})}
        for n in numbers
    ]


@pytest.fixture
def etcd(sshd, session):
    sshd.program("sudo", SUDO)
    sshd.program("etcdctl", ETCDCTL)
    sshd.program("grep", GREP)
    (sshd.home / "etcd.env").write_text(ENV)
    return EtcdClient(session)


@pytest.fixture
def tell(sshd):
    def put(name, answer):
        text = answer if isinstance(answer, str) else json.dumps(answer)
        (sshd.home / name).write_text(text)

    return put


def calls(sshd):
    return (sshd.home / "calls").read_text().splitlines()


def test_members_with_health_and_leader(etcd, tell, sshd):
    tell("member-list", {"header": {}, "members": listed(2, 1, 3)})
    tell("endpoint-status", status(1, 2, leader=2))
    tell("endpoint-health", health(1, 2, 3, dead=[3]))
    assert etcd.members() == (
        EtcdMember("etcd1", "f0e1d2c3b4a59687", "10.10.0.1", healthy=True),
        EtcdMember("etcd2", "2", "10.10.0.2", healthy=True, leader=True),
        EtcdMember(
            *("etcd3", "3", "10.10.0.3"),
            healthy=False,
            problem="context deadline exceeded",
        ),
    )
    first, *others = calls(sshd)
    assert first.startswith("https://127.0.0.1:2379|member list")
    everybody = ",".join(url(n) for n in (2, 1, 3))
    assert [line.split("|")[0] for line in others] == [everybody] * 2


def test_nothing_secret_and_no_endpoints_beside_the_variable(etcd, tell, sshd):
    """etcdctl ends when an option shadows a variable of its environment."""
    tell("member-list", {"members": listed(1)})
    tell("endpoint-status", status(1))
    tell("endpoint-health", health(1))
    etcd.members()
    assert not [line for line in calls(sshd) if "--endpoints" in line]
    words = shlex.split(sshd.commands[-1])
    assert "-w" in words
    assert "--cluster" not in words


def test_another_member_is_asked_when_the_nodes_own_is_down(etcd, tell, sshd):
    tell("member-list-all", {"members": listed(1, 2)})
    tell("endpoint-status", status(2, leader=2))
    tell("endpoint-health", health(1, 2, dead=[1]))
    found = etcd.members()
    assert [(one.member_id, one.healthy, one.leader) for one in found] == [
        ("f0e1d2c3b4a59687", False, False),
        ("2", True, True),
    ]
    assert calls(sshd)[1].startswith(f"{url(1)},{url(2)}|member list")


def test_without_a_majority_the_nodes_file_says_who_there_is(etcd, tell):
    tell("endpoint-status", status(1, leader=0))
    tell("endpoint-health", health(1, 2, dead=[1, 2]))
    assert etcd.members() == (
        EtcdMember(
            *("etcd1", "f0e1d2c3b4a59687", "10.10.0.1"),
            healthy=False,
            problem="it answers, but knows no leader (context deadline exceeded)",
        ),
        EtcdMember(
            *("etcd2", "", "10.10.0.2"),
            healthy=False,
            problem="context deadline exceeded",
        ),
    )


def test_a_member_that_never_started_and_one_that_learns(etcd, tell):
    never = {"ID": 9, "peerURLs": [url(9, 2380)]}
    tell("member-list", {"members": [*listed(1, isLearner=True), never]})
    tell("endpoint-status", status(1))
    tell("endpoint-health", health(1))
    new, learner = etcd.members()
    assert (new.name, new.member_id, new.address) == ("", "9", "10.10.0.9")
    assert (new.healthy, new.problem) == (False, "it was added and never started")
    assert learner.learner


def test_addresses_of_version_6_are_written_as_the_inventory_has_them(etcd, tell):
    long = "https://[fd00:0:0::0005]:2380"
    one = {"ID": 1, "name": "etcd1", "peerURLs": [long], "clientURLs": [url(1)]}
    tell("member-list", {"members": [one]})
    assert etcd.members()[0].address == "fd00::5"


def test_nodes_that_do_not_answer_are_each_reported(etcd):
    assert {member.problem for member in etcd.members()} == {"it does not answer"}


def test_a_node_without_etcd_is_reported_with_the_reason(etcd, sshd):
    (sshd.home / "etcd.env").unlink()
    with pytest.raises(errors.ClusterError) as raised:
        etcd.members()
    assert "names no members of etcd" in str(raised.value)
    assert "etcd_deployment_type" in str(raised.value)


def test_a_node_without_etcdctl_is_reported(etcd, sshd):
    sshd.hide("etcdctl")
    with pytest.raises(errors.ClusterError, match="no etcdctl on 127"):
        etcd.members()


@pytest.mark.parametrize("answer", ["nonsense", "{}", "[]", "7"])
def test_an_answer_that_is_none_is_an_error(etcd, tell, answer):
    tell("member-list", answer)
    with pytest.raises(errors.ClusterError, match="could not be understood"):
        etcd.members()


def test_a_command_is_for_the_nodes_own_member(etcd, tell, sshd):
    tell("member-remove", "Member f0e1d2c3b4a59687 removed from cluster")
    output = etcd.run("member", "remove", "f0e1d2c3b4a59687")
    assert output == "Member f0e1d2c3b4a59687 removed from cluster"
    assert calls(sshd) == [
        "https://127.0.0.1:2379|member remove f0e1d2c3b4a59687 --command-timeout=60s"
    ]


def test_etcd_gets_longer_for_a_command_if_it_needs_that(etcd, tell, sshd):
    tell("defrag---command-timeout=600s", "Finished defragmenting")
    assert etcd.run("defrag", limit=600) == "Finished defragmenting"
    limit = float(sshd.commands[-1].split("timeout -k 5 ")[1].split()[0])
    assert limit > 600


def test_a_command_that_etcd_refuses_is_an_error(etcd):
    with pytest.raises(errors.CommandFailed, match="context deadline exceeded"):
        etcd.run("member", "remove", "2")
