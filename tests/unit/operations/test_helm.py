# SPDX-License-Identifier: Apache-2.0
"""Tacker's login for Helm on fakes: where it is made, kept, and left out."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.vim import ClusterAccess
from tacker_k8s_mgmt.operations import registration
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.state import ClusterState
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    dependencies,
    heal_end,
    heal_start,
    instantiated,
    run,
)
from tests.helpers.requests import BALANCER, params

HELM = {"helm": True}
WANTED = params(cluster=HELM)
ACCESS = ClusterAccess(SecretStr("t0ken"), "CA")


MOVED = "198.51.100.4"


def move(site, server):
    """The server has another outer address."""
    site.control_planes = [
        replace(one, ssh_address=MOVED) if one.server_id == server else one
        for one in site.control_planes
    ]


def login_of(site):
    return site.vim.helm


def test_vim_has_the_login_that_every_control_plane_has():
    site = FakeSite()
    run(Instantiate, site, WANTED)
    (plane,) = site.control_planes
    assert login_of(site).hosts == (plane.ssh_address,)
    assert login_of(site).password == site.helm_password
    assert set(site.helm_hosts) == {plane.server_id}
    assert "helm.verify" in site.calls


def bastion(*used_for):
    host = {"ip_address": "203.0.113.77", "username": "jump", "password": "secret"}
    return params(cluster=HELM, bastion={**host, "used_for": list(used_for)})


@pytest.mark.parametrize(
    ("wanted", "password"),
    [
        pytest.param(params(), FakeSite().helm_password, id="not asked for"),
        pytest.param(WANTED, None, id="v2 API"),
        pytest.param(bastion("vms"), FakeSite().helm_password, id="behind a bastion"),
    ],
)
def test_nothing_is_made_where_tacker_has_no_use_for_it(wanted, password):
    site = FakeSite()
    site.helm_password = password
    run(Instantiate, site, wanted)
    assert login_of(site) is None
    assert site.helm_hosts == {}


def test_bastion_before_other_hosts_does_not_matter():
    site = FakeSite()
    run(Instantiate, site, bastion("ansible"))
    assert login_of(site) is not None


@pytest.mark.parametrize("fault", ["helm.prepare", "helm.verify"])
def test_refusal_ends_the_operation_and_it_goes_on_by_retry(fault):
    site = FakeSite()
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match="register the cluster as a VIM"):
        run(Instantiate, site, WANTED)
    assert site.vim is None
    run(Instantiate, site, WANTED)
    assert login_of(site) is not None


class TestControlPlanes:
    @pytest.fixture
    def site(self):
        made = AvailableSite()
        made.wanted = WANTED
        made.control_planes = [machine(Role.CONTROL_PLANE, n) for n in (1, 2, 3)]
        run(Instantiate, made, WANTED)
        return made

    def heal(self, site, *servers):
        heal_start(site, *servers, wanted=WANTED)
        heal_end(site, *site.rebuild(*servers), wanted=WANTED)

    def test_healed_one_gets_login_and_charts(self, site):
        assert len(site.helm_hosts) == len(login_of(site).hosts) == 3
        site.helm_hosts = dict.fromkeys(site.helm_hosts, "charts")
        former = set(site.helm_hosts)
        self.heal(site, site.control_planes[0].server_id)
        (new,) = set(site.helm_hosts) - former
        assert site.helm_hosts[new] == "charts"

    def test_vim_follows_a_healed_one_that_has_another_address(self, site):
        site.vim_in_use = True
        former = login_of(site)
        server = site.control_planes[1].server_id
        heal_start(site, server, wanted=WANTED)
        (new,) = site.rebuild(server)
        move(site, new)
        heal_end(site, new, wanted=WANTED)
        assert set(login_of(site).hosts) - set(former.hosts) == {MOVED}
        assert len(login_of(site).hosts) == 3
        assert login_of(site).password == former.password

    @pytest.mark.parametrize("balancer", [BALANCER, None])
    def test_vim_follows_one_that_is_moved_while_it_is_used(self, balancer):
        wanted = params(cluster=HELM, external_lb_param=balancer)
        site = instantiated(wanted, load_balancer=balancer is not None)
        site.known = dict(site.stored)
        site.vim_in_use = balancer is not None
        move(site, site.control_planes[0].server_id)
        run(ConnectivityEnd, site, wanted)
        assert login_of(site).hosts == (MOVED,)
        site.calls.clear()
        run(ConnectivityEnd, site, wanted)
        assert login_of(site).hosts == (MOVED,)

    def test_charts_that_cannot_be_had_do_not_end_the_heal(self, site, caplog):
        site.faults.add("helm.charts")
        self.heal(site, site.control_planes[0].server_id)
        assert "/var/tacker/helm" in caplog.text

    def test_another_one_that_does_not_answer_is_left_to_its_own_heal(self, site):
        silent = site.control_planes[1].server_id
        former = set(site.helm_hosts)
        state = ClusterState(dependencies(WANTED, site, FakeClock()))
        state.nodes = state.require_inventory()
        site.dead.add(silent)
        site.helm_hosts.clear()
        login = registration.prepare(state, ACCESS)
        assert set(site.helm_hosts) == former - {silent}
        # Tacker goes to it again when it is healed.
        assert len(login.hosts) == 3

    def test_error_names_why_none_answers(self, site):
        state = ClusterState(dependencies(WANTED, site, FakeClock()))
        state.nodes = state.require_inventory()
        site.dead = {plane.server_id for plane in site.control_planes}
        with pytest.raises(errors.ClusterError, match="No control plane answers"):
            registration.prepare(state, ACCESS)
