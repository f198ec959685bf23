# SPDX-License-Identifier: Apache-2.0
"""How the site asks Heat."""

import threading
import types

import pytest
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import heat

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context

from tacker_k8s_mgmt.hooks.v1 import stack, vim_registry
from tacker_k8s_mgmt.hooks.v1.hook import V1Site
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.contract.v1_instances import hook
from tests.helpers.heat_stacks import SIMPLE, workers_of
from tests.helpers.samples import parsed

CONTEXT = tacker_context.get_admin_context()


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The site of a stack, and the regions in which it asked for it."""
    regions = []
    access = {"username": "u", "password": "p", "region": "RegionTwo"}

    class Client:
        resources = None

        def __init__(self, access, region):
            regions.append((access["username"], region))

    monkeypatch.setattr(vim_registry, "_plugin", lambda: None)
    monkeypatch.setattr(vnflcm_utils, "_get_vim", lambda *_: {"access_info": access})
    monkeypatch.setattr(stack, "Heat", Client)
    instance = types.SimpleNamespace(
        id="vnf",
        tenant_id="tenant",
        vnf_metadata={},
        vim_connection_info=[],
        instantiated_vnf_info=types.SimpleNamespace(instance_id="top"),
    )
    options = types.SimpleNamespace(key_directory="", connect_timeout=1)
    made = V1Site(hook(instance, options, tmp_path, CONTEXT), parsed())
    return made, regions


def test_the_vims_region_is_asked(asked, monkeypatch):
    one, regions = asked
    monkeypatch.setattr(heat, "list_resources", lambda *_: SIMPLE)
    assert len(workers_of(one.machines())) == 2
    assert regions == [("u", "RegionTwo")]


def test_vms_that_no_parameter_leads_to_are_named_in_the_log(
    asked, monkeypatch, caplog
):
    one, _ = asked
    stray = StackResource("top", "stray", "OS::Nova::Server", "s", "CREATE_COMPLETE")
    monkeypatch.setattr(heat, "list_resources", lambda *_: [*SIMPLE, stray])
    one.machines()
    assert "no parameter leads to the VMs stray" in caplog.text


class TestExpected:
    """The stack is listed while something else is done."""

    def test_it_is_asked_once(self, asked, monkeypatch):
        one, regions = asked
        listings = []

        def listed(*_):
            listings.append(threading.current_thread())
            return SIMPLE

        monkeypatch.setattr(heat, "list_resources", listed)
        one.expect_stack()
        assert len(workers_of(one.machines())) == 2
        assert len(one.group_sizes()) == 1
        one.expect_stack()
        assert len(listings) == len(regions) == 1
        assert listings[0] is not threading.current_thread()

    def test_its_error_is_that_of_the_first_use(self, asked, monkeypatch):
        one, _ = asked

        def silent(*_):
            raise errors.RemoteError(detail="Heat is silent")

        monkeypatch.setattr(heat, "list_resources", silent)
        one.expect_stack()
        with pytest.raises(errors.RemoteError, match="Heat is silent"):
            one.machines()

    def test_without_a_login_it_is_asked_later(self, asked, monkeypatch):
        """Tacker's database, where the login is, is not asked in another thread."""
        one, _ = asked
        threads = []

        def refuse(*_):
            threads.append(threading.current_thread())
            raise LookupError("no VIM")

        monkeypatch.setattr(vnflcm_utils, "_get_vim", refuse)
        one.expect_stack()
        with pytest.raises(errors.RemoteError, match="no VIM"):
            one.machines()
        assert threads == [threading.current_thread()] * 2
