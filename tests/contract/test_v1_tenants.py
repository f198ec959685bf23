# SPDX-License-Identifier: Apache-2.0
"""The VIMs of tenants in Tacker's registry, and tenants by a modification (v1 API)."""

import copy
import dataclasses
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_serialization import jsonutils
from pydantic import SecretStr
from tacker import context as tacker_context
from tacker import manager, objects
from tacker.common.container import kubernetes_utils as translate_inputs
from tacker.db.nfvo import nfvo_db_plugin
from tacker.extensions import nfvo
from tacker.nfvo import nfvo_plugin
from tacker.nfvo.drivers.vim import kubernetes_driver
from tacker.plugins.common import constants
from tacker.vnfm import vim_client

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import VIM_KEY, V1Instance
from tacker_k8s_mgmt.model.vim import ClusterAccess, HelmLogin
from tests.contract.v1_instances import saved_instance
from tests.contract.v1_vims import FakePlugin, spec

CONTEXT = tacker_context.get_admin_context()
objects.register_all()


@pytest.fixture
def plugin(monkeypatch):
    fake = FakePlugin()
    monkeypatch.setattr(vim_registry, "_plugin", lambda: fake)
    plugins = {constants.NFVO: fake}
    monkeypatch.setattr(manager.TackerManager, "get_service_plugins", lambda: plugins)
    # Tacker's own plugin encrypts them when it creates a VIM.
    monkeypatch.setattr(vim_client.VimClient, "_decode_vim_auth", lambda *a: a[-1])
    return fake


def of(tenant, **changes):
    return dataclasses.replace(spec(f"of-{tenant}"), tenant=tenant, **changes)


def registry(instance):
    return vim_registry.VimRegistry(V1Instance(CONTEXT, instance))


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


def stranger(plugin, description="", **changes):
    """A VIM that is none of the driver's, in the same project; its id."""
    body = {
        "name": "mine",
        "description": description,
        "type": "kubernetes",
        "tenant_id": saved_instance().tenant_id,
        "auth_url": "https://192.0.2.77:6443",
        "auth_cred": {"bearer_token": "theirs"},
        "extra": {},
        **changes,
    }
    return plugin.create_vim(CONTEXT, {"vim": body})["id"]


@pytest.mark.parametrize("changes", [{"tenant_id": "another"}, {"type": "openstack"}])
@pytest.mark.parametrize("url", [spec().auth_url, "https://192.0.2.77:6443"])
def test_metadata_that_name_a_vim_of_others_have_it_neither_changed_nor_removed(
    plugin, changes, url
):
    """Users may write them, and an administrator, who sees all VIMs, may heal."""
    one = saved_instance()
    theirs = stranger(plugin, auth_url=url, **changes)
    before = copy.deepcopy(plugin.vims[theirs])
    one.vnf_metadata = {VIM_KEY: theirs}
    plugin.used.add(theirs)
    assert registry(one).registered() == ()
    assert not registry(one).users()
    assert registry(one).register(spec()) != theirs
    one.vnf_metadata = {VIM_KEY: theirs}
    registry(one).remove()
    assert plugin.vims == {theirs: before}


@pytest.mark.parametrize(
    "changes",
    [
        {"tenant_id": "another"},
        {"type": "openstack"},
        {"whose": "00000000-0000-4000-8000-000000000000"},
        {"whose": "{}0"},
    ],
    ids=str,
)
def test_tenants_of_others_are_none_of_this_cluster(plugin, changes):
    one = saved_instance()
    whose = changes.pop("whose", "{}").format(one.id)
    mark = f"Tenant blue of Kubernetes cluster of VNF instance {whose}"
    stranger(plugin, mark, **changes)
    assert registry(one).of_tenants() == {}
    made = registry(one).register(of("blue"))
    assert registry(one).of_tenants()["blue"].vim_id == made


def test_the_clusters_own_stays_when_a_tenants_is_removed(plugin):
    one = saved_instance()
    ours = registry(one).register(spec())
    registry(one).register(of("blue"))
    registry(one).remove_tenant("blue")
    assert one.vnf_metadata == {VIM_KEY: ours}
    assert [info.vim_id for info in one.vim_connection_info] == ["openstack", ours]


def test_what_is_not_there_is_not_in_use(plugin, monkeypatch):
    monkeypatch.setattr(plugin, "is_vim_still_in_use", None)
    assert not registry(saved_instance()).users()


def test_present_token_is_written_into_a_vim_also_while_it_is_in_use(plugin):
    one = saved_instance()
    blue, red = (registry(one).register(of(name)) for name in ("blue", "red"))
    plugin.used.add(blue)
    former = plugin.vims[red].copy()
    new = ClusterAccess(SecretStr("n3w"), "CA")
    assert registry(one).has_login("blue", ClusterAccess(SecretStr("t0ken"), "CA"))
    assert not registry(one).has_login("blue", new)
    assert not registry(one).has_login("green", new)
    assert registry(one).register(of("blue", token=new.token)) == blue
    assert registry(one).has_login("blue", new)
    assert plugin.vims[blue]["auth_cred"] == {
        "bearer_token": "n3w",
        "ssl_ca_cert": "CA",
    }
    assert plugin.vims[red] == former


@pytest.mark.parametrize("changed", ["token", "ca_certificate", "both"])
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("tenant", ["", "blue"])
def test_another_cluster_at_the_same_address_has_its_own_login(
    plugin, changed, used, tenant
):
    """After `fail`, the next instantiation may get the same address."""
    one = saved_instance()
    former = dataclasses.replace(spec(), tenant=tenant)
    first = registry(one).register(former)
    if used:
        plugin.used.add(first)
    values = {"token": SecretStr("n3w"), "ca_certificate": "NEW-CA"}
    if changed != "both":
        values = {changed: values[changed]}
    new = dataclasses.replace(former, **values)
    for _ in range(2):
        assert registry(one).register(new) == first
        assert plugin.vims[first]["auth_cred"] == {
            "bearer_token": new.token.get_secret_value(),
            "ssl_ca_cert": new.ca_certificate,
        }
    assert list(plugin.vims) == [first]


@pytest.mark.parametrize("tenant", ["", "blue"])
@pytest.mark.parametrize(
    ("former", "now", "same"),
    [
        ("https://[2001:DB8:0::9]:6443/", "https://[2001:db8::9]:6443", True),
        ("https://K8S.example.org.:6443", "https://k8s.example.org:6443", True),
        ("https://k8s.example.org:443", "https://k8s.example.org", True),
        ("https://[2001:db8::9]:6443", "https://[2001:db8::90]:6443", False),
        ("https://k8s.example.org:6443", "https://k8s.example.org", False),
    ],
)
def test_a_vim_in_use_at_the_same_address_stays_however_that_is_written(
    plugin, former, now, same, tenant
):
    one = saved_instance()
    known = dataclasses.replace(spec(), tenant=tenant, auth_url=former)
    first = registry(one).register(known)
    plugin.used.add(first)
    wanted = dataclasses.replace(known, auth_url=now)
    if same:
        assert registry(one).register(wanted) == first
    else:
        with pytest.raises(errors.VimError, match="is still used by another VNF"):
            registry(one).register(wanted)
    assert list(plugin.vims) == [first]


HELM = HelmLogin(("192.0.2.4",), SecretStr("of-helm"))
MOVED = HelmLogin(("192.0.2.5", "192.0.2.6"), SecretStr("another"))


@pytest.mark.parametrize("before", [None, HELM])
@pytest.mark.parametrize("after", [None, HELM, MOVED])
def test_another_cluster_at_the_same_address_has_its_own_helm(plugin, before, after):
    one = saved_instance()
    registry(one).register(dataclasses.replace(spec(), helm=before))
    wanted = dataclasses.replace(spec(), helm=after)
    vim_id = registry(one).register(wanted)
    assert list(plugin.vims) == [vim_id]
    assert plugin.vims[vim_id]["extra"] == wanted.extra
    assert [info.vim_id for info in one.vim_connection_info] == ["openstack", vim_id]


def test_an_operators_login_for_helm_stays(plugin):
    one = saved_instance()
    vim_id = registry(one).register(spec())
    theirs = {"helm_info": {"masternode_username": "somebody"}}
    plugin.vims[vim_id]["extra"] = theirs
    for helm in (HELM, None):
        wanted = dataclasses.replace(spec(), helm=helm)
        assert registry(one).register(wanted) == vim_id
        assert plugin.vims[vim_id]["extra"] == theirs


def test_login_that_cannot_be_read_is_written_anew(plugin, monkeypatch, caplog):
    one = saved_instance()
    blue = registry(one).register(of("blue"))

    def lost(*_):
        raise ValueError("t0ken cannot be decoded")

    monkeypatch.setattr(vim_client.VimClient, "_decode_vim_auth", lost)
    updates = []
    note = lambda self, context, *given: updates.append(given)  # noqa: E731
    monkeypatch.setattr(FakePlugin, "update_vim", note)
    assert registry(one).register(of("blue")) == blue
    login = {"bearer_token": "t0ken", "ssl_ca_cert": "CA"}
    assert updates == [(blue, {"vim": {"auth_cred": login}})]
    assert "ValueError" in caplog.text
    assert "t0ken" not in caplog.text


def test_tacker_encrypts_the_new_login_and_reads_it_back(monkeypatch):
    """By the code of its plugin, its driver and its client, with a Barbican of ours."""
    keys = {}

    class Barbican:
        def __init__(self, *_):
            pass

        def store(self, context, key):
            keys[str(len(keys))] = key
            return str(len(keys) - 1)

        def get(self, context, secret):
            return types.SimpleNamespace(payload=keys[secret])

        def delete(self, context, secret):
            del keys[secret]

    driver = object.__new__(kubernetes_driver.Kubernetes_Driver)
    driver.kubernetes = translate_inputs.KubernetesHTTPAPI()
    made = {"name": "of-blue", "type": "kubernetes", "id": "blue", "tenant_id": "p"}
    stored = {**made, "auth_url": "https://192.0.2.9:6443", "vim_project": {}}
    stored["auth_cred"] = vim_registry.of(ClusterAccess(SecretStr("0ld"), "CA"))

    def write(self, context, vim_id, vim):
        # As the database keeps it.
        stored.update(jsonutils.loads(jsonutils.dumps(vim)))
        return stored

    configured = types.SimpleNamespace(
        ext_oauth2_auth=types.SimpleNamespace(use_ext_oauth2_auth=False),
        keystone_authtoken=types.SimpleNamespace(auth_url="of Keystone"),
        k8s_vim=types.SimpleNamespace(use_barbican=True),
    )
    nobody = "generate_tacker_service_context"
    monkeypatch.setattr(tacker_context, nobody, lambda: None)
    for module in (kubernetes_driver, vim_client):
        monkeypatch.setattr(module, "KEYMGR_API", Barbican)
        monkeypatch.setattr(module, "CONF", configured)
    vim_client.reset_keymgr_apis()
    monkeypatch.setattr(driver, "authenticate_vim", lambda vim_obj: None)
    monkeypatch.setattr(driver, "discover_placement_attr", lambda vim_obj: None)
    driver.encode_vim_auth("blue", stored["auth_cred"])
    write(None, CONTEXT, "blue", stored)
    plugin = object.__new__(nfvo_plugin.NfvoPlugin)
    plugin._vim_drivers = types.SimpleNamespace(
        invoke=lambda kind, method, **given: getattr(driver, method)(**given)
    )
    used = nfvo.VimInUseException(vim_id="blue")

    def in_use(*_):
        raise used

    base = nfvo_db_plugin.NfvoPluginDb
    monkeypatch.setattr(base, "is_vim_still_in_use", in_use)
    monkeypatch.setattr(base, "get_vim", lambda *_, **__: copy.deepcopy(stored))
    monkeypatch.setattr(base, "update_vim", write)
    plugins = {constants.NFVO: plugin}
    monkeypatch.setattr(manager.TackerManager, "get_service_plugins", lambda: plugins)
    old, new = (ClusterAccess(SecretStr(one), "CA") for one in ("0ld", "n3w token"))
    assert vim_registry.is_current(CONTEXT, "blue", old)
    login = {"auth_cred": vim_registry.of(new)}
    with pytest.raises(nfvo.VimInUseException):
        plugin.update_vim(CONTEXT, "blue", {"vim": login})
    assert vim_registry.is_current(CONTEXT, "blue", old)
    vim_registry.update(plugin, CONTEXT, "blue", login)
    assert vim_registry.is_current(CONTEXT, "blue", new)
    assert not vim_registry.is_current(CONTEXT, "blue", old)
    assert "n3w token" not in str(stored)
    assert list(keys) == ["1"]


def test_exposures_find_the_cluster_and_no_tenant(plugin, monkeypatch):
    one = saved_instance()
    ours = registry(one).register(spec())
    registry(one).register(of("blue"))
    found = types.SimpleNamespace(get_by_id=lambda *_: one)
    monkeypatch.setattr(objects, "VnfInstance", found)
    assert list(vim_registry.registered(CONTEXT)) == [
        (one.id, plugin.vims[ours]["auth_url"])
    ]


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
    assert registry(one).users()
    assert registry(one).users("blue")
    assert not registry(one).users("red")
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
