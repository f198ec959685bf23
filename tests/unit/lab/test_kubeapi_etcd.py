# SPDX-License-Identifier: Apache-2.0
"""The stand-in for etcd: majorities, elections, members that come and go, etcdctl."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lab.kubeapi.etcd.document import Disk, Document, Peer
from lab.kubeapi.etcd.errors import EtcdError
from lab.kubeapi.etcd.node import configuration
from tests.helpers.kubeapi import wait_for
from tests.unit.lab.etcd_ensemble import Ensemble

ONE, OTHER = "https://10.10.0.1:6443", "https://10.10.0.2:6443"


@pytest.fixture
def etcd(tmp_path) -> Iterator[Ensemble]:
    ensemble = Ensemble(tmp_path, 3)
    yield ensemble
    ensemble.stop(*ensemble.nodes)


def test_all_agree_on_one_leader_and_know_each_other(etcd):
    etcd.leader()
    wait_for(lambda: all(one["client_url"] for one in etcd.members()))
    assert sorted(one["name"] for one in etcd.members()) == etcd.names


def test_a_write_survives_the_loss_of_any_one_member(etcd):
    epoch = etcd.lease(ONE)["epoch"]
    etcd.ask("/v3/put", epoch=epoch, value="kept")
    etcd.stop(etcd.leader())
    assert etcd.ask("/v3/state")["value"] == "kept"


def test_without_a_majority_there_is_no_answer_and_with_it_there_is_again(etcd):
    epoch = etcd.lease(ONE)["epoch"]
    etcd.ask("/v3/put", epoch=epoch, value="kept")
    leader = etcd.leader()
    others = [name for name in etcd.names if name != leader]
    etcd.stop(*others)
    with pytest.raises(EtcdError, match=r"no leader|timed out"):
        etcd.client().ask("/v3/put", {"epoch": epoch, "value": "lost"})
    wait_for(lambda: not etcd.nodes[leader].member.status()["leader"])
    with pytest.raises(EtcdError, match="no leader"):
        etcd.client().ask("/v3/health")
    etcd.start(others[0])
    assert etcd.ask("/v3/state")["holder"] == ONE


def test_a_member_that_was_away_gets_what_it_missed(etcd):
    away = next(name for name in etcd.names if name != etcd.leader())
    etcd.stop(away)
    epoch = etcd.lease(ONE)["epoch"]
    etcd.ask("/v3/put", epoch=epoch, value="news")
    etcd.start(away)
    wait_for(lambda: etcd.nodes[away].member.newest().value == "news")


def test_one_that_was_cut_off_does_not_unseat_the_leader(etcd):
    leader = etcd.leader()
    term = etcd.nodes[leader].member.status()["raft_term"]
    away = next(name for name in etcd.names if name != leader)
    etcd.stop(away)
    etcd.start(away)
    wait_for(lambda: etcd.nodes[away].member.status()["leader"])
    assert etcd.leader() == leader
    assert etcd.nodes[leader].member.status()["raft_term"] == term


def test_the_api_is_served_by_one_at_a_time(etcd):
    first = etcd.lease(ONE)
    assert first["holder"] == ONE
    assert etcd.lease(OTHER) == first
    assert etcd.lease(ONE) == first
    second = wait_for(lambda: (got := etcd.lease(OTHER))["holder"] == OTHER and got)
    assert second["epoch"] > first["epoch"]
    with pytest.raises(EtcdError, match=f"served by {OTHER}"):
        etcd.client().ask("/v3/put", {"epoch": first["epoch"], "value": "late"})


def test_a_lease_that_is_given_back_is_free_at_once(etcd):
    etcd.lease(ONE)
    etcd.lease(ONE, release=True)
    assert etcd.lease(OTHER)["holder"] == OTHER


def test_a_member_is_removed_for_good_and_added_again(etcd):
    name = next(name for name in etcd.names if name != etcd.leader())
    before = next(member for member in etcd.members() if member["name"] == name)
    etcd.ask("/v3/member-remove", id=before["id"])
    assert len(etcd.members()) == 2
    wait_for(etcd.nodes[name].member.stopped.is_set)
    etcd.stop(name)
    with pytest.raises(EtcdError, match="permanently removed"):
        etcd.start(name, new=False)
    etcd.wipe(name)
    with pytest.raises(EtcdError, match="member count is unequal"):
        etcd.start(name, new=False)
    added = etcd.ask("/v3/member-add", peer_url=etcd.peer(name))["members"]
    (new,) = [one for one in added if one["peer_url"] == etcd.peer(name)]
    assert (new["name"], new["id"] == before["id"]) == ("", False)
    other = next(one for one in etcd.names if one != name)
    with pytest.raises(EtcdError, match="member count is unequal"):
        etcd.start(name, new=False, without=other)
    etcd.start(name, new=False)
    wait_for(lambda: name in [one["name"] for one in etcd.members()])
    assert len(etcd.members()) == 3


def test_two_members_of_one_name_are_one():
    """As etcd takes them: kubespray tells a member that joins such names."""
    values = dict.fromkeys(
        (
            *("ETCD_NAME", "ETCD_DATA_DIR", "ETCD_ADVERTISE_CLIENT_URLS"),
            *("ETCD_INITIAL_ADVERTISE_PEER_URLS", "ETCD_LISTEN_CLIENT_URLS"),
            *("ETCD_LISTEN_PEER_URLS", "ETCD_INITIAL_CLUSTER_STATE"),
        ),
        "",
    )
    told = configuration({**values, "ETCD_INITIAL_CLUSTER": "a=1,b=2,a=3"})
    assert told.cluster == {"a": "3", "b": "2"}


def test_a_rebuilt_machine_whose_member_was_not_removed_does_not_start(etcd):
    """As etcd: it has promised things that the empty one does not know."""
    wait_for(lambda: all(one["client_url"] for one in etcd.members()))
    name = next(name for name in etcd.names if name != etcd.leader())
    etcd.stop(name)
    etcd.wipe(name)
    with pytest.raises(EtcdError, match="already been bootstrapped"):
        etcd.start(name, new=False)


def test_a_member_that_is_there_is_not_added_and_a_strange_one_not_removed(etcd):
    etcd.leader()
    url = etcd.peer("etcd1")
    with pytest.raises(EtcdError, match="already exists"):
        etcd.client().ask("/v3/member-add", {"peer_url": url})
    with pytest.raises(EtcdError, match="member not found"):
        etcd.client().ask("/v3/member-remove", {"id": 7})


@pytest.mark.parametrize("count", [1, 5])
def test_other_numbers_of_members(tmp_path, count):
    ensemble = Ensemble(tmp_path, count)
    assert len(ensemble.members()) == count
    ensemble.stop(*ensemble.names[: (count - 1) // 2])
    assert ensemble.ask("/v3/health")
    ensemble.stop(*ensemble.nodes)


def test_data_on_disk_is_read_back_and_private_to_its_user(tmp_path):
    document = Document(term=3, revision=9, members=(Peer(1, "u", "n"),), value="v")
    disk = Disk.open(tmp_path)
    disk.id, disk.term, disk.voted, disk.document = 1, 4, 2, document
    disk.save()
    assert Disk.open(tmp_path) == disk
    assert disk.path.stat().st_mode & 0o077 == 0


# --- etcdctl


def etcdctl(etcd: Ensemble, *words: str, **variables: str):
    endpoints = ",".join(etcd.endpoint(name) for name in etcd.names)
    return subprocess.run(
        [sys.executable, "-m", "lab.kubeapi.etcd.etcdctl", *words],
        env={**os.environ, "ETCDCTL_ENDPOINTS": endpoints, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_etcdctl_lists_members_as_the_real_one(etcd):
    wait_for(lambda: all(one["client_url"] for one in etcd.members()))
    told = json.loads(etcdctl(etcd, "member", "list", "-w", "json").stdout)
    assert {"member_id", "raft_term"} <= set(told["header"])
    assert [sorted(one) for one in told["members"]] == [
        ["ID", "clientURLs", "name", "peerURLs"]
    ] * 3
    lines = etcdctl(etcd, "member", "list").stdout.splitlines()
    assert {line.split(", ")[2] for line in lines} == set(etcd.names)


def test_etcdctl_reports_health_and_status_of_each_member(etcd):
    wait_for(lambda: all(one["client_url"] for one in etcd.members()))
    etcd.stop(next(name for name in etcd.names if name != etcd.leader()))
    done = etcdctl(etcd, "endpoint", "health", "--cluster", "-w", "json")
    assert done.returncode == 1
    assert "unhealthy cluster" in done.stderr
    health = json.loads(done.stdout)
    assert sorted(one["health"] for one in health) == [False, True, True]
    done = etcdctl(etcd, "endpoint", "status", "--cluster", "-w", "json")
    assert done.returncode == 1
    status = [member["Status"] for member in json.loads(done.stdout)]
    assert len(status) == 2
    leader = etcd.nodes[etcd.leader()].member.id
    assert {one["leader"] for one in status} == {leader}


def test_etcdctl_prints_tables_as_the_real_one(etcd):
    wait_for(lambda: all(one["client_url"] for one in etcd.members()))
    rule, heads, under, *rows, last = etcdctl(
        etcd, "member", "list", "-w", "table"
    ).stdout.splitlines()
    assert rule == under == last
    assert heads.split()[1:6:2] == ["ID", "STATUS", "NAME"]
    assert sorted(row.split("|")[3].strip() for row in rows) == sorted(etcd.names)
    words = ("endpoint", "status", "--cluster", "-w", "table")
    _, heads, _, *rows, _ = etcdctl(etcd, *words).stdout.splitlines()
    assert "| RAFT TERM |" in heads
    assert all(row.startswith("| http://") for row in rows)
    assert len(rows) == len(etcd.names)


def test_etcdctl_removes_and_adds(etcd):
    name = next(name for name in etcd.names if name != etcd.leader())
    number = next(one["id"] for one in etcd.members() if one["name"] == name)
    done = etcdctl(etcd, "member", "remove", f"{number:x}")
    assert f"Member {number:x} removed" in done.stdout, done.stderr
    url = f"--peer-urls={etcd.peer(name)}"
    assert "added to cluster" in etcdctl(etcd, "member", "add", name, url).stdout
    done = etcdctl(etcd, "member", "add", name, url)
    assert done.returncode == 1
    assert "Peer URLs already exists" in done.stderr


def test_etcdctl_refuses_an_option_beside_its_variable_as_the_real_one(etcd):
    done = etcdctl(etcd, "--endpoints", "x", "member", "list")
    assert done.returncode == 1
    assert "is shadowed by" in done.stderr
