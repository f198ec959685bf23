# SPDX-License-Identifier: Apache-2.0
"""Clusters whose Ansible server is the operator's, through both APIs of Tacker."""

import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from oslo_config import cfg
from tacker import context as tacker_context

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.hooks.advice import SEND_FAIL
from tacker_k8s_mgmt.hooks.v1 import driver
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tests.contract import v2_operations
from tests.contract.v2_operations import FIFTY_FIVE, FIVE, MASTER
from tests.helpers.requests import VNF, additional_params

SECRET = "0perators-s3cret"
READ = (
    lambda hook: driver._request_of_termination(hook, forced=False),
    driver._server_login_if_any,
)
GIVEN = additional_params(ansible=None)


def options(tmp_path):
    secret = tmp_path / "operators"
    secret.write_text(f"{SECRET}\n")
    return {
        "ansible_host": "192.0.2.77",
        "ansible_host_key": f"SHA256:{'k' * 43}",
        "ansible_username": "tenants",
        "ansible_password_file": str(secret),
        "ansible_kubespray_root_path": "/opt/kubespray",
        "ansible_inventory_root": "/srv/clusters",
    }


class TestV1:
    @pytest.fixture
    def hook(self, tmp_path):
        """Makes a hook of a stored request, with a later one."""
        config.register(cfg.CONF)
        given = options(tmp_path)
        for name, value in given.items():
            cfg.CONF.set_override(name, value, config.GROUP)

        def made(later=None, name="heal_start", **more):
            info = types.SimpleNamespace(additional_params=GIVEN, vnfc_resource_info=[])
            instance = types.SimpleNamespace(
                id=VNF,
                tenant_id="project",
                vim_connection_info=[],
                instantiated_vnf_info=info,
                vnf_metadata={},
            )
            request = types.SimpleNamespace(additional_params=later, **more)
            context = tacker_context.get_admin_context()
            return V1Hook(name, context, instance, request)

        yield made
        for name in given:
            cfg.CONF.clear_override(name, config.GROUP)

    def test_instantiation_and_later_operations_find_it(self, hook):
        for read in (
            hook(GIVEN, "instantiate_start").request(wrong=SEND_FAIL),
            hook().request(wrong=SEND_FAIL),
            hook().request(wrong=SEND_FAIL, server_only=True),
        ):
            assert read.operators_server
            assert read.ansible.directory == f"/srv/clusters/{VNF}"
            assert read.server_account.password.get_secret_value() == SECRET

    def test_a_changed_default_holds_from_the_next_operation_on(self, hook):
        cfg.CONF.set_override("ansible_host", "192.0.2.88", config.GROUP)
        assert hook().request(wrong=SEND_FAIL).ansible.host == "192.0.2.88"

    def test_a_termination_finds_it_too(self, hook):
        graceful = hook({}, "terminate_start", termination_type="GRACEFUL")
        for read in READ:
            found = read(graceful)
            assert found is not None
            assert found.operators_server
            assert found.ansible.host == "192.0.2.77"

    def test_a_termination_waits_for_a_right_configuration(self, hook):
        cfg.CONF.set_override("ansible_host_key", "", config.GROUP)
        graceful = hook({}, "terminate_start", termination_type="GRACEFUL")
        for read in READ:
            with pytest.raises(errors.TackerConfigError, match="ansible_host_key"):
                read(graceful)

    def test_without_the_default_a_cluster_goes_nevertheless(self, hook):
        cfg.CONF.set_override("ansible_host", "", config.GROUP)
        graceful = hook({}, "terminate_end", termination_type="GRACEFUL")
        assert driver._server_login_if_any(graceful) is None


class TestV2:
    def test_the_whole_life_of_a_cluster(self, tacker, v2_environment, tmp_path):
        lines = [f"{name} = {value}\n" for name, value in options(tmp_path).items()]
        v2_environment.write_text(v2_environment.read_text() + "".join(lines))
        v2_operations.instantiate(tacker, ansible=None)
        v2_operations.scale(tacker, "SCALE_OUT", params=GIVEN)
        v2_operations.heal(tacker, "workerNode-server-5", params=GIVEN)
        v2_operations.scale(tacker, "SCALE_IN", params=GIVEN)
        v2_operations.heal(tacker, params=GIVEN)
        assert tacker.site.members == [MASTER, FIVE, FIFTY_FIVE]
        v2_operations.no_secrets(tacker)
        kept = tacker.instance["metadata"]["k8s_mgmt"]["parameters"]
        assert "ansible" not in kept
        assert SECRET not in str(tacker.instance)
        v2_operations.terminate(tacker, params=GIVEN)
        assert tacker.site.owner is None
