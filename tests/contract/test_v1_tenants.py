# SPDX-License-Identifier: Apache-2.0
"""The VIMs of tenants in Tacker's registry, and tenants by a modification (v1 API)."""

import dataclasses
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker import objects

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import vim
from tests.contract.v1_instances import saved_instance
from tests.contract.v1_vims import FakePlugin, spec

CONTEXT = tacker_context.get_admin_context()


@pytest.fixture
def plugin(monkeypatch):
    fake = FakePlugin()
    monkeypatch.setattr(vim, "_plugin", lambda: fake)
    return fake


def of(tenant, **changes):
    return dataclasses.replace(spec(f"of-{tenant}"), tenant=tenant, **changes)


def registry(instance):
    return vim.VimRegistry(CONTEXT, instance)


def test_each_has_its_own_beside_the_clusters(plugin):
    one = saved_instance()
    ours = registry(one).register(spec())
    blue, red = (registry(one).register(of(name)) for name in ("blue", "red"))
    assert registry(one).register(of("blue")) == blue
    assert set(plugin.vims) == {ours, blue, red}
    found = registry(one).of_tenants()
    assert {name: found[name].vim_id for name in found} == {"blue": blue, "red": red}
    assert [found.vim_id for found in registry(one).registered()] == [ours]
    # Tacker needs no more of it than of any other VIM.
    assert [info.vim_id for info in one.vim_connection_info] == ["openstack", ours]
    assert plugin.vims[blue]["vim_project"] == {"name": "blue"}
    assert plugin.vims[blue]["extra"] == {}


def test_exposures_find_the_cluster_and_no_tenant(plugin, monkeypatch):
    one = saved_instance()
    ours = registry(one).register(spec())
    registry(one).register(of("blue"))
    found = types.SimpleNamespace(get_by_id=lambda *_: one)
    monkeypatch.setattr(objects, "VnfInstance", found)
    assert list(vim.registered(CONTEXT)) == [(one.id, plugin.vims[ours]["auth_url"])]


def test_names_are_taken_by_others_only(plugin):
    one = saved_instance()
    registry(one).register(of("blue"))
    assert not registry(one).name_taken("of-blue", "blue")
    assert registry(one).name_taken("of-blue", "red")
    assert registry(one).name_taken("of-blue")


def test_one_in_use_keeps_the_cluster(plugin):
    one = saved_instance()
    registry(one).register(spec())
    blue, _ = (registry(one).register(of(name)) for name in ("blue", "red"))
    plugin.used.add(blue)
    assert registry(one).in_use()
    assert registry(one).in_use("blue")
    assert not registry(one).in_use("red")
    with pytest.raises(errors.VimError, match="of tenant blue is still used"):
        registry(one).remove_tenant("blue")


def test_a_former_address_is_replaced(plugin):
    one = saved_instance()
    first = registry(one).register(of("blue"))
    second = registry(one).register(of("blue", auth_url="https://192.0.2.10:6443"))
    assert list(plugin.vims) == [second] != [first]


def test_the_end_of_the_cluster_takes_all_along(plugin):
    one, other = saved_instance(), saved_instance()
    for name in ("blue", "red"):
        registry(one).register(of(name))
    theirs = registry(other).register(of("blue"))
    registry(one).register(spec())
    assert registry(one).remove()
    assert list(plugin.vims) == [theirs]
    registry(other).remove_tenant("blue")
    assert plugin.vims == {}
