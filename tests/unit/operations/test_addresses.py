# SPDX-License-Identifier: Apache-2.0
"""The address of the API, as the VIM gets it."""

import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import run
from tests.helpers.requests import params


def test_without_a_load_balancer_the_vim_is_the_first_control_plane():
    site = FakeSite(load_balancer=False)
    site.control_planes = [machine(Role.CONTROL_PLANE, number) for number in (1, 2, 3)]
    run(Instantiate, site, params(external_lb_param=None))
    first = site.control_planes[0].ssh_address
    assert site.vim.auth_url == f"https://{first}:6443"
    variables = json.loads(site.files["vars.json"])
    assert len(variables["supplementary_addresses_in_ssl_keys"]) == 3
    assert "loadbalancer_apiserver" not in variables


@pytest.mark.parametrize("balanced", [True, False])
def test_the_vims_url_has_the_address_in_brackets(balanced):
    site = FakeSite(load_balancer=balanced)
    wanted = params() if balanced else params(external_lb_param=None)
    if balanced:
        site.load_balancer = replace(site.load_balancer, ssh_address="2001:db8::9")
    else:
        leader, *_ = site.control_planes
        site.control_planes = [replace(leader, ssh_address="2001:db8::9")]
    run(Instantiate, site, wanted)
    assert site.vim.auth_url == "https://[2001:db8::9]:6443"
