# SPDX-License-Identifier: Apache-2.0
"""Names that the package does not have are refused before Heat makes a VM."""

import types
from typing import Any

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored.common import exceptions as sol_ex

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import feature
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.hooks.v1 import vim_registry
from tacker_k8s_mgmt.hooks.v1.hook import V1Site
from tacker_k8s_mgmt.operations import preconditions
from tests.contract.v1_instances import hook, instance, steps_of
from tests.contract.v2_operations import instantiate
from tests.helpers.heat_stacks import template
from tests.helpers.requests import params

NAMED = {
    "lcm-operation-user-data": "./UserData/own.py",
    "lcm-operation-user-data-class": "Own",
}
#: What the sample request names, in one stack.
VMS = {
    name: {"type": "OS::Neutron::Port"}
    for name in ("m_ssh", "m_nic", "w_ssh", "w_nic", "lb_ssh", "lb_nic")
}


@pytest.fixture
def first_step(tmp_path, monkeypatch):
    """Return a function: the first step of v1's instantiate_start."""

    def made(given=NAMED, flavour_id="own", **resources):
        place = tmp_path / "BaseHOT" / "own"
        place.mkdir(parents=True)
        (place / "top.yaml").write_bytes(template(**resources))
        request = types.SimpleNamespace(additional_params=given, flavour_id=flavour_id)
        options = types.SimpleNamespace(
            boot_timeout=1, connect_timeout=1, key_directory="", login_timeout=1
        )
        one: Any = hook(instance(), options, tmp_path)
        monkeypatch.setattr(vim_registry, "_plugin", lambda: None)
        site = V1Site(one, params())
        monkeypatch.setattr(site, "_package_root", lambda: str(tmp_path))
        monkeypatch.setattr(site, "package_findings", lambda: ())
        monkeypatch.setattr(site, "server_findings", lambda: ())
        monkeypatch.setattr(preconditions, "names_taken", lambda _: ())
        monkeypatch.setattr(feature, "package_problems", lambda *_: ())
        deps: Any = types.SimpleNamespace(
            metadata={},
            patch=(),
            vnfcs={},
            params=params(),
            site=site,
            features=FEATURES,
        )
        one = instance()
        return steps_of(monkeypatch, "instantiate_start", deps, one, request)[0]

    return made


def test_v1_refuses_what_is_not_in_the_package(first_step):
    resources = {name: port for name, port in VMS.items() if name != "w_ssh"}
    with pytest.raises(errors.PreflightError) as caught:
        first_step(**resources).take()
    assert "worker_node.ssh_cp_name: there is no w_ssh in the stack" in str(
        caught.value
    )


def test_v1_takes_what_is(first_step):
    first_step(**VMS).take()


@pytest.mark.parametrize("given", [None, {}, {"lcm-operation-user-data": "a.py"}])
def test_v1_without_user_data_makes_a_template_of_its_own(first_step, given):
    first_step(given, vm={"type": "OS::Nova::Server"}).take()


def test_v1_of_a_flavour_without_base_hot_only_warns(first_step):
    first_step(flavour_id="other", vm={"type": "OS::Nova::Server"}).take()


@pytest.mark.usefixtures("quick_hooks")
def test_v2_refuses_in_instantiate_start(tacker):
    problem = "worker_node.ssh_cp_name: there is no w_ssh in the stack"
    with tacker.world() as site:
        site.base_hot = (problem,)
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        instantiate(tacker)
    assert caught.value.detail.startswith("instantiate_start failed")
    assert problem in caught.value.detail
    with tacker.world() as site:
        site.base_hot = ()
    instantiate(tacker)
