# SPDX-License-Identifier: Apache-2.0
"""Heat and Keystone that accept a connection and never answer, or fail for a moment."""

import threading
import types

import pytest
from tacker.vnflcm import utils as vnflcm_utils

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.hooks.v1.hook import V1Site
from tacker_k8s_mgmt.hooks.v2 import stack as v2_heat
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.remote import heat
from tests.contract.openstack_api import OpenStack, silent
from tests.contract.v1_instances import hook
from tests.helpers.samples import parsed

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"
LIMIT = 60  # seconds; what has no limit of its own takes longer


def v1(keystone, monkeypatch, tmp_path):
    """The servers of a stack, asked for as the hooks of the v1 API do."""
    names = ("username", "password", "project_name")
    access = {name: "x" for name in names} | {"auth_url": keystone, "region": "here"}
    access |= {"user_domain_name": "d", "project_domain_name": "d"}
    monkeypatch.setattr(vnflcm_utils, "_get_vim", lambda *_: {"access_info": access})
    monkeypatch.setattr(vim_registry, "_plugin", lambda: None)
    instance = types.SimpleNamespace(
        id=VNF,
        tenant_id="tenant",
        vnf_metadata={},
        vim_connection_info=[],
        instantiated_vnf_info=types.SimpleNamespace(instance_id="top"),
    )
    options = types.SimpleNamespace(key_directory="", connect_timeout=1)
    context = tacker_context.get_admin_context()
    of = hook(instance, options, tmp_path, context)
    return V1Site(of, parsed()).attachments()


def v2(keystone, monkeypatch, tmp_path):
    """The same in the v2 API."""
    names = ("username", "password", "project", "userDomain", "projectDomain")
    vim = {
        "interfaceInfo": {"endpoint": keystone},
        "accessInfo": {name: "x" for name in names},
    }
    instance = {"id": VNF, "vimConnectionInfo": {"openstack": vim}}
    return v2_heat.resources_of(HookCall("heal_end", {}, instance, {}, package=""))


@pytest.fixture(params=[v1, v2], ids=["v1", "v2"])
def listed(request, monkeypatch, tmp_path):
    """A function that lists a stack's resources; raises what that raises.

    An answer that never comes fails the test, and does not hold it.
    """
    monkeypatch.setattr(heat, "_LIMIT", 0.3)
    monkeypatch.setattr(heat, "_RETRIES", 1)

    def ask(keystone):
        outcome = types.SimpleNamespace(value=None, error=None)

        def run():
            try:
                outcome.value = request.param(keystone, monkeypatch, tmp_path)
            except Exception as error:
                outcome.error = error

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(LIMIT)
        assert not thread.is_alive(), "it waits for ever"
        if outcome.error:
            raise outcome.error
        return outcome.value

    return ask


def test_a_keystone_that_never_answers_is_an_error(listed):
    with silent() as url, pytest.raises(errors.RemoteError, match="could not be read"):
        listed(f"{url}/v3")


def test_a_heat_that_never_answers_is_an_error(listed):
    with silent() as url, OpenStack().running() as openstack:
        openstack.heat = f"{url}/v1/p"
        with pytest.raises(errors.RemoteError, match="could not be read"):
            listed(openstack.url)


def test_a_heat_that_fails_for_a_moment_is_asked_again(listed):
    with OpenStack().running() as openstack:
        openstack.statuses = [503]
        assert listed(openstack.url) == ()
        assert len(openstack.heard()) >= 3
        openstack.statuses = [500]
        assert listed(openstack.url) == ()


def test_a_heat_that_keeps_failing_is_an_error(listed):
    with OpenStack().running() as openstack:
        openstack.statuses = [500] * 9
        with pytest.raises(errors.RemoteError, match="could not be read"):
            listed(openstack.url)
