# SPDX-License-Identifier: Apache-2.0
"""The installed Tacker's own classes load the driver and call it."""

import copy
import dataclasses
import hashlib
import inspect
import traceback
import types
from pathlib import Path
from unittest import mock

import pytest

from tacker_k8s_mgmt.hooks.v1.hook import V1Hook

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker import objects
from tacker.common import driver_manager
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnflcm import vnflcm_driver
from tacker.vnfm.infra_drivers.kubernetes import kubernetes_driver

import tacker_k8s_mgmt.kubespray_mgmt
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import driver, vim_registry
from tacker_k8s_mgmt.hooks.v1.instance import VIM_KEY, V1Instance
from tacker_k8s_mgmt.model.vim import HelmLogin
from tests.contract.v1_instances import GOOD, NAME, instance, saved_instance
from tests.contract.v1_vims import FakePlugin, spec

objects.register_all()

#: Never change this: packages in the field carry a file with exactly this hash.
SHIM_SHA256 = "541dfb1b44cd1d1c1158d16d37f80beb79668f235ab6ce46a894ae068ae00d70"

HOOKS = {
    "instantiate": "instantiate_vnf_request",
    "terminate": "terminate_vnf_request",
    "scale": "scale_vnf_request",
    "heal": "heal_vnf_request",
    "change_external_connectivity": "change_ext_conn_request",
    "modify_information": "modify_vnf_request",
}


@pytest.fixture(scope="module")
def manager():
    return driver_manager.DriverManager(
        "tacker.tacker.mgmt.drivers", ["vnflcm_noop", NAME]
    )


def bad_params():
    return {"k8s_cluster_installation_param": {"ansible": {"password": "pa55-word"}}}


class TestLoading:
    def test_tacker_loads_it_by_its_entry_point(self, manager):
        assert NAME in manager

    def test_all_four_names_are_equal(self):
        driver = tacker_k8s_mgmt.kubespray_mgmt.KubesprayMgmtDriver()
        assert driver.get_type() == driver.get_name() == NAME

    def test_shim_is_frozen(self):
        path = inspect.getfile(tacker_k8s_mgmt.kubespray_mgmt.KubesprayMgmtDriver)
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        assert Path(path).name == "kubespray_mgmt.py"
        assert digest == SHIM_SHA256

    def test_tacker_hashes_the_shim_and_not_what_is_behind_it(self, manager):
        owner = types.SimpleNamespace(
            _mgmt_manager=manager,
            _get_file_hash=lambda path: hashlib.sha256(
                Path(path).read_text("utf-8").encode("utf-8")
            ).hexdigest(),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                vnflcm_driver.CONF.tacker, "vnflcm_mgmt_driver", [NAME], raising=False
            )
            found = vnflcm_driver.VnfLcmDriver._init_mgmt_driver_hash(owner)
        assert found[NAME] == SHIM_SHA256


class TestHooks:
    @pytest.fixture
    def begin(self, monkeypatch):
        """What a hook calls before it works; mocked."""
        mocked = mock.Mock()
        monkeypatch.setattr(V1Hook, "begin", mocked)
        return mocked

    @pytest.mark.parametrize("phase", ["start", "end"])
    @pytest.mark.parametrize("operation", HOOKS)
    def test_every_hook_is_dormant_without_our_parameters(
        self, manager, begin, operation, phase
    ):
        vnf_instance = instance({"other": 1})
        before = copy.deepcopy(vnf_instance)
        request = types.SimpleNamespace(additional_params={"other": 1})
        kwargs = {HOOKS[operation]: request, "grant": None, "grant_request": None}
        if operation == "modify_information":
            kwargs = {HOOKS[operation]: None}
        manager.invoke(
            NAME,
            f"{operation}_{phase}",
            context=None,
            vnf_instance=vnf_instance,
            vnf={},
            **kwargs,
        )
        assert not begin.called
        assert vnf_instance == before

    def test_terminate_end_without_request_or_parameters(self, manager, begin):
        vnf_instance = instance()
        before = copy.deepcopy(vnf_instance)
        manager.invoke(
            NAME,
            "terminate_end",
            context=None,
            vnf_instance=vnf_instance,
            terminate_vnf_request=None,
            grant=None,
            grant_request=None,
        )
        assert not begin.called
        assert vnf_instance == before

    @pytest.mark.parametrize("hook", ["instantiate_start", "instantiate_end"])
    def test_bad_parameters_are_one_error_with_all_problems(self, manager, hook):
        request = types.SimpleNamespace(additional_params=bad_params())
        with pytest.raises(errors.ParamError) as caught:
            manager.invoke(
                NAME,
                hook,
                context=None,
                vnf_instance=instance(),
                instantiate_vnf_request=request,
                grant=None,
                grant_request=None,
            )
        text = str(caught.value)
        assert "ansible.username" in text
        assert "worker_node" in text
        assert "pa55-word" not in text
        assert ("Nothing was changed" in text) is (hook == "instantiate_start")
        assert "`rollback`" in text

    @pytest.mark.parametrize(
        ("hook", "word"),
        [
            ("scale_start", "fail"),
            ("scale_end", "rollback"),
            ("heal_start", "fail"),
            ("heal_end", "fail"),
        ],
    )
    def test_wrong_overrides_are_one_error_with_the_way_out(self, manager, hook, word):
        given = {"k8s_cluster_installation_param": {"vim_name": "x", "wrong": 1}}
        request = types.SimpleNamespace(additional_params=given)
        with pytest.raises(errors.ParamError, match=f"`{word}`") as caught:
            manager.invoke(
                NAME,
                hook,
                context=None,
                vnf_instance=instance(GOOD),
                **{HOOKS[hook.split("_")[0]]: request},
                grant=None,
                grant_request=None,
            )
        assert "vim_name" in str(caught.value)
        assert "wrong" in str(caught.value)


CONTEXT = tacker_context.get_admin_context()


@pytest.fixture
def plugin(monkeypatch):
    fake = FakePlugin()
    monkeypatch.setattr(vim_registry, "_plugin", lambda: fake)
    return fake


class TestVims:
    def test_registering_twice_makes_one_vim_and_one_entry_never_first(self, plugin):
        one = saved_instance()
        first = vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        assert (
            vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec()) == first
        )
        assert list(plugin.vims) == [first]
        assert [info.vim_id for info in one.vim_connection_info] == ["openstack", first]
        assert one.vnf_metadata == {VIM_KEY: first}
        assert one.saved

    def test_tacker_gets_what_it_needs_to_verify_the_certificate(self, plugin):
        ours = vim_registry.VimRegistry(V1Instance(CONTEXT, saved_instance())).register(
            spec()
        )
        # Without the CA's certificate Tacker would switch the verification off.
        assert plugin.vims[ours]["auth_cred"] == {
            "bearer_token": "t0ken",
            "ssl_ca_cert": "CA",
        }

    def test_vim_has_what_tacker_reads_of_helm(self, plugin):
        one = saved_instance()
        registry = vim_registry.VimRegistry(V1Instance(CONTEXT, one))
        login = HelmLogin(("192.0.2.4", "192.0.2.5"), registry.helm_password())
        ours = registry.register(dataclasses.replace(spec(), helm=login))
        given = types.SimpleNamespace(extra=plugin.vims[ours]["extra"])
        driver = kubernetes_driver.Kubernetes
        ips, user, password = driver._get_helm_info(object(), given)
        assert (ips, user) == (["192.0.2.4", "192.0.2.5"], "tacker-helm")
        assert password == login.password.get_secret_value()
        assert len(password) >= 32
        # The same as long as there is the VIM, and one of its own for each.
        assert (
            vim_registry.VimRegistry(V1Instance(CONTEXT, one)).helm_password()
            == login.password
        )
        assert vim_registry.VimRegistry(
            V1Instance(CONTEXT, saved_instance())
        ).helm_password() != (login.password)
        # One that an operator has put there instead is none of the driver's.
        plugin.vims[ours]["extra"]["helm_info"]["masternode_username"] = "another"
        assert (
            vim_registry.VimRegistry(V1Instance(CONTEXT, one)).helm_password()
            != login.password
        )
        # What Tacker shows of the cluster itself has no password.
        assert one.vim_connection_info[-1].extra == {}

    def test_addresses_of_helm_are_those_of_today(self, plugin, monkeypatch):
        one = saved_instance()
        registry = vim_registry.VimRegistry(V1Instance(CONTEXT, one))
        login = HelmLogin(("192.0.2.4",), registry.helm_password())
        ours = registry.register(dataclasses.replace(spec(), helm=login))
        plugin.used.add(ours)
        before = copy.deepcopy(plugin.vims[ours])
        assert registry.update_helm_hosts(("192.0.2.7", "192.0.2.8"))
        assert not registry.update_helm_hosts(("192.0.2.7", "192.0.2.8"))
        before["extra"]["helm_info"]["masternode_ip"] = ["192.0.2.7", "192.0.2.8"]
        assert plugin.vims[ours] == before

        def refuse(context, vim_id, body):
            raise ValueError(f"wrong: {plugin.vims}")

        monkeypatch.setattr(plugin, "update_vim", refuse)
        with pytest.raises(errors.VimError) as caught:
            registry.update_helm_hosts(("192.0.2.9",))
        assert login.password.get_secret_value() not in str(caught.value)
        # Another login there, or none, is none of the driver's.
        plugin.vims[ours]["extra"]["helm_info"]["masternode_username"] = "another"
        assert not registry.update_helm_hosts(("192.0.2.9",))
        plugin.vims[ours]["extra"] = {}
        assert not registry.update_helm_hosts(("192.0.2.9",))

    def test_error_has_no_password_of_helm(self, plugin, monkeypatch):
        registry = vim_registry.VimRegistry(V1Instance(CONTEXT, saved_instance()))
        login = HelmLogin(("192.0.2.4",), registry.helm_password())

        def refuse(context, body):
            raise ValueError(f"wrong: {body}")

        monkeypatch.setattr(plugin, "create_vim", refuse)
        with pytest.raises(errors.VimError) as caught:
            registry.register(dataclasses.replace(spec(), helm=login))
        assert "wrong" in str(caught.value)
        assert login.password.get_secret_value() not in str(caught.value)

    def test_vim_is_found_again_when_its_id_was_never_saved(self, plugin):
        one = saved_instance()
        first = vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        one.vnf_metadata, one.vim_connection_info = {}, one.vim_connection_info[:1]
        assert (
            vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec()) == first
        )

    def test_after_a_rollback_the_first_entry_is_the_default_vim(
        self, plugin, monkeypatch
    ):
        def default(context, infos):
            assert not infos
            return {"vim_id": "openstack", "vim_type": "openstack", "extra": {}}

        monkeypatch.setattr(vnflcm_utils, "_get_vim", default)
        one = saved_instance()
        one.vim_connection_info = []  # as Tacker's _term_resource_update leaves it
        ours = vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        assert [info.vim_id for info in one.vim_connection_info] == ["openstack", ours]

    def test_vim_of_a_cluster_that_is_gone_is_replaced(self, plugin):
        one = saved_instance()
        first = vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        moved = dataclasses.replace(spec(), auth_url="https://192.0.2.10:6443")
        second = vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(moved)
        assert second != first
        assert [v["auth_url"] for v in plugin.vims.values()] == [moved.auth_url]
        assert one.vim_connection_info[-1].vim_id == second
        assert one.vnf_metadata == {VIM_KEY: second}

    def test_metadata_is_a_new_dict(self, plugin):
        one = saved_instance()
        before = one.vnf_metadata
        vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        assert before == {}

    def test_another_vnf_with_the_same_name_is_not_ours(self, plugin):
        theirs = saved_instance()
        vim_registry.VimRegistry(V1Instance(CONTEXT, theirs)).register(spec())
        ours = vim_registry.VimRegistry(V1Instance(CONTEXT, saved_instance()))
        assert ours.name_taken("cluster")
        assert not ours.remove()
        assert len(plugin.vims) == 1

    def test_vim_of_another_project_with_our_mark_is_not_ours(self, plugin):
        one = saved_instance()
        foreign = types.SimpleNamespace(**{**vars(one), "tenant_id": "elsewhere"})
        foreign.save = lambda: None
        theirs = vim_registry.VimRegistry(V1Instance(CONTEXT, foreign)).register(spec())
        assert not vim_registry.VimRegistry(V1Instance(CONTEXT, one)).remove()
        assert list(plugin.vims) == [theirs]

    def test_name_in_another_project_is_free(self, plugin):
        theirs = saved_instance()
        theirs.tenant_id = "elsewhere"
        vim_registry.VimRegistry(V1Instance(CONTEXT, theirs)).register(spec())
        assert not vim_registry.VimRegistry(
            V1Instance(CONTEXT, saved_instance())
        ).name_taken("cluster")

    def test_own_name_is_free(self, plugin):
        one = saved_instance()
        vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        assert not vim_registry.VimRegistry(V1Instance(CONTEXT, one)).name_taken(
            "cluster"
        )

    def test_remove_takes_registry_entry_and_instance_entry(self, plugin):
        one = saved_instance()
        vim_registry.VimRegistry(V1Instance(CONTEXT, one)).register(spec())
        assert vim_registry.VimRegistry(V1Instance(CONTEXT, one)).remove()
        assert plugin.vims == {}
        assert one.vnf_metadata == {}
        assert [info.vim_id for info in one.vim_connection_info] == ["openstack"]
        assert not vim_registry.VimRegistry(V1Instance(CONTEXT, one)).remove()

    def test_vim_in_use_is_known_before_and_refused_after(self, plugin):
        one = saved_instance()
        registry = vim_registry.VimRegistry(V1Instance(CONTEXT, one))
        assert not registry.users()
        plugin.used.add(registry.register(spec()))
        assert registry.users()
        with pytest.raises(errors.VimError, match="still used"):
            registry.remove()

    def test_refusal_of_tacker_says_what_to_do(self, plugin):
        def refuse(context, vim):
            raise RuntimeError("unreachable")

        plugin.create_vim = refuse
        with pytest.raises(errors.VimError, match="use_barbican"):
            vim_registry.VimRegistry(V1Instance(CONTEXT, saved_instance())).register(
                spec()
            )

    def test_refusal_that_quotes_the_token_does_not_reach_tackers_log(self, plugin):
        def refuse(context, vim):
            token = vim["vim"]["auth_cred"]["bearer_token"]
            raise ValueError(f"Invalid header value b'Bearer {token}'")

        plugin.create_vim = refuse
        with pytest.raises(errors.VimError) as caught:
            vim_registry.VimRegistry(V1Instance(CONTEXT, saved_instance())).register(
                spec()
            )
        logged = "".join(traceback.format_exception(caught.value))
        assert "Invalid header value b'Bearer ***'" in logged
        assert "t0ken" not in logged


def test_driver_keeps_no_state():
    assert vars(driver.MgmtDriver()) == {}
