"""IPv6 addresses where texts are made of them."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tests.unit.lifecycle.fakes import FakeSite, params
from tests.unit.lifecycle.operations import run


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
