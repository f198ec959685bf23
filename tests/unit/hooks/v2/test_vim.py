# SPDX-License-Identifier: Apache-2.0
"""The cluster as an entry of a VNF instance's ``vimConnectionInfo``."""

import copy
from dataclasses import replace

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt.hooks.v2 import connections
from tacker_k8s_mgmt.hooks.v2.call import cluster_vim_id
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.model.vim import ClusterIdentity, HelmLogin, VimSpec

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"
OPENSTACK = {"vimId": "openstack", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}


def instance(vnf_id=VNF, key="vim1"):
    return {"id": vnf_id, "vimConnectionInfo": {key: copy.deepcopy(OPENSTACK)}}


def spec(name="cluster", address="192.0.2.9"):
    return VimSpec(name, f"https://{address}:6443", SecretStr("t0ken"), "CA")


def as_mysql_orders(one):
    """The keys of a JSON column as MySQL 8 returns them."""
    names = one["vimConnectionInfo"]
    return sorted(names, key=lambda name: (len(name.encode()), name.encode()))


@pytest.mark.parametrize(
    "key", ["vim1", "k8s_cluster", "~~~~~~~~~~~", "openstack-" * 20, "ü" * 9]
)
def test_cluster_sorts_behind_every_other_key(key):
    one = instance(key=key)
    VimEntry(one).register(spec())
    assert as_mysql_orders(one)[0] == key
    assert list(one["vimConnectionInfo"]) == as_mysql_orders(one)


def test_an_entry_with_a_key_that_is_too_short_gets_a_longer_one():
    one = instance(key="openstack-of-the-site")
    vim_id = VimEntry(one).register(spec())
    ours = one["vimConnectionInfo"].popitem()[1]
    infos = {"k8s_cluster": ours, **one["vimConnectionInfo"], "other": OPENSTACK}
    one["vimConnectionInfo"] = infos
    VimEntry(one).settle()
    first, _, last = as_mysql_orders(one)
    assert first == "other"
    assert one["vimConnectionInfo"][last] == ours
    assert list(one["vimConnectionInfo"])[-1] == last
    assert VimEntry(one).registered()[0].vim_id == vim_id
    settled = copy.deepcopy(one)
    VimEntry(one).settle()
    assert one == settled


@pytest.mark.parametrize("infos", [{}, {"vimConnectionInfo": {}}])
def test_where_no_cluster_is_named_nothing_is_settled(infos):
    one = {"id": VNF, **infos}
    VimEntry(one).settle()
    assert one == {"id": VNF, **infos}


def test_cluster_stands_behind_the_openstack_and_can_be_used():
    one = instance()
    vim_id = VimEntry(one).register(spec())
    assert list(one["vimConnectionInfo"]) == ["vim1", "k8s_cluster"]
    assert one["vimConnectionInfo"]["k8s_cluster"] == {
        "vimId": vim_id,
        "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {"endpoint": "https://192.0.2.9:6443", "ssl_ca_cert": "CA"},
        "accessInfo": {"bearer_token": "t0ken"},
    }


def test_what_a_vim_has_beside_its_login_is_kept():
    one = instance()
    login = HelmLogin(("192.0.2.4",), SecretStr("pass"))
    wanted = replace(spec(), helm=login)
    VimEntry(one).register(wanted)
    info = {
        "masternode_ip": ["192.0.2.4"],
        "masternode_username": "tacker-helm",
        "masternode_password": "pass",
    }
    entry = one["vimConnectionInfo"]["k8s_cluster"]
    assert entry["extra"] == wanted.extra == {"helm_info": info}


def test_registering_again_replaces_it_and_keeps_its_id():
    one = instance()
    first = VimEntry(one).register(spec())
    assert VimEntry(one).register(spec("renamed", "192.0.2.10")) == first
    assert list(one["vimConnectionInfo"]) == ["vim1", "k8s_renamed"]
    (found,) = VimEntry(one).registered()
    assert (found.vim_id, found.auth_url) == (first, "https://192.0.2.10:6443")
    assert found.named


def test_ids_of_two_instances_differ():
    other = instance("7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e40")
    assert VimEntry(instance()).register(spec()) != VimEntry(other).register(spec())


def test_a_users_entry_of_that_name_is_left_alone():
    one = instance(key="k8s_cluster")
    VimEntry(one).register(spec())
    assert one["vimConnectionInfo"]["k8s_cluster"] == OPENSTACK
    assert len(one["vimConnectionInfo"]) == 2
    assert as_mysql_orders(one)[0] == "k8s_cluster"
    assert VimEntry(one).remove()
    assert one["vimConnectionInfo"] == {"k8s_cluster": OPENSTACK}


def test_what_is_not_there_can_be_removed():
    one = instance()
    assert not VimEntry(one).remove()
    assert VimEntry(one).registered() == ()
    empty = {"id": VNF}
    assert not VimEntry(empty).remove()


def test_which_cluster_it_is_is_recorded_where_no_user_writes(tmp_path):
    one, made = instance(), replace(spec(), uid="of kube-system")
    state = str(tmp_path / "state")
    VimEntry(one, state).register(made)
    known = ClusterIdentity("https://192.0.2.9:6443", "CA", "of kube-system")
    assert connections.read(state, VNF) == known
    assert {p.stat().st_mode & 0o077 for p in (tmp_path / "state").rglob("*")} == {0}
    # Registered again, elsewhere: by another conductor's hook, or after a move.
    VimEntry(one, state).register(spec(address="192.0.2.10"))
    assert connections.read(state, VNF).endpoint == "https://192.0.2.10:6443"
    assert VimEntry(one, state).remove()
    assert connections.read(state, VNF) is None
    assert not VimEntry(one, state).remove()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"endpoint": 1}', "null"])
def test_a_damaged_record_is_none(tmp_path, text):
    connections.write(str(tmp_path), VNF, ClusterIdentity("a", "b", "c"))
    (path,) = tmp_path.rglob("*.json")
    path.write_text(text)
    assert connections.read(str(tmp_path), VNF) is None


@pytest.mark.parametrize(
    "entry",
    [None, [], "x", {}, {"interfaceInfo": None}, {"interfaceInfo": {"endpoint": None}}],
)
def test_an_entry_that_a_user_wrote_breaks_nothing(entry):
    one = instance()
    if isinstance(entry, dict):
        entry = {"vimId": cluster_vim_id(VNF), **entry}
    one["vimConnectionInfo"]["x"] = entry
    assert VimEntry(one).registered() == ()
    assert VimEntry(one).entry() == {}
    VimEntry(one).register(spec())
    (found,) = VimEntry(one).registered()
    assert found.auth_url == "https://192.0.2.9:6443"
