# SPDX-License-Identifier: Apache-2.0
"""Operations on a cluster of which one VM cannot be used, or has another address."""

import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.scale import ScaleOut
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.heat_site import HeatSite, delete_in_nova, heat_rebuilds
from tests.helpers.fakes.nodes import machine
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SEVEN,
    dependencies,
    heal_end,
    heal_start,
    instantiated,
    rebuild,
    run,
    scale_in,
    scale_out,
    state,
)
from tests.helpers.requests import VNF, params

WORKER, OTHER, PLANE, BALANCER = "server-5", "server-55", "server-4", "server-9"


@pytest.fixture
def site():
    return instantiated(kind=HeatSite)


def healed(site, *servers):
    """Both hooks, with what Heat does between them."""
    heal_start(site, *servers)
    new = rebuild(site, *servers)
    heat_rebuilds(site, servers)
    for server in new:
        site.known.pop(server, None)
    heal_end(site, *new)
    return new


def refused(operation, *arguments):
    with pytest.raises(errors.StepFailed) as caught:
        operation(*arguments)
    return str(caught.value)


def lose(how, site, server):
    if how == "deleted in Nova":
        delete_in_nova(site, server)
    else:
        site.kill(server)
        site.lost_stacks.add(server)


LOSSES = ["deleted in Nova", "its stack is not there"]


class TestWorker:
    @pytest.mark.parametrize("how", LOSSES)
    def test_its_own_heal(self, site, how):
        lose(how, site, WORKER)
        healed(site, WORKER)
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert site.listed == [MASTER, FIVE, FIFTY_FIVE]
        before = state(site)
        heal_end(site, f"{WORKER}-anew")
        assert state(site) == before

    @pytest.mark.parametrize("how", LOSSES)
    def test_scale_out(self, site, how):
        lose(how, site, WORKER)
        site.workers.append(machine(Role.WORKER, 7))
        scale_out(site, "server-7")
        assert SEVEN in site.members

    def test_scale_in_of_another(self, site):
        delete_in_nova(site, WORKER)
        scale_in(site, OTHER)
        assert FIFTY_FIVE not in site.members

    def test_scale_in_of_another_while_heat_has_failed_at_it(self, site):
        """Heat would delete what is left of it, and build the other one again."""
        lose("its stack is not there", site, WORKER)
        before = state(site)
        text = refused(scale_in, site, OTHER)
        assert "member-server-5 (CREATE_FAILED)" in text
        assert state(site) == before

    def test_its_own_scale_in(self, site):
        delete_in_nova(site, WORKER)
        scale_in(site, WORKER)
        assert site.members == [MASTER, FIFTY_FIVE]

    def test_a_new_one_is_missed_by_scale_out(self, site):
        site.workers.append(machine(Role.WORKER, 7))
        delete_in_nova(site, "server-7")
        text = refused(scale_out, site, "server-7")
        assert "member-server-7 (the port w_nic is not attached to a VM)" in text

    def test_cluster_check(self, site):
        delete_in_nova(site, WORKER)
        report = ClusterInspection(params(), VNF, site, features=FEATURES).take()
        (row,) = [row for row in report.rows if row.name == FIVE]
        texts = [finding.text for finding in row.findings]
        unusable = "its VM cannot be used: the port w_nic is not attached to a VM"
        assert unusable in texts
        assert not report.failures


class TestControlPlane:
    """The only one, so that with it the cluster is lost."""

    @pytest.mark.parametrize(
        ("operation", "server"),
        [(heal_start, WORKER), (scale_in, WORKER), (scale_out, "server-7")],
    )
    def test_what_needs_it_is_refused_before_anything(self, site, operation, server):
        lose("its stack is not there", site, PLANE)
        site.workers.append(machine(Role.WORKER, 7))
        before = state(site)
        text = refused(operation, site, server)
        assert f"all were replaced: {MASTER}. With them the cluster is lost." in text
        assert "Heal the whole VNF" in text
        assert state(site) == before


class TestLoadBalancer:
    @pytest.mark.parametrize("how", LOSSES)
    def test_its_own_heal(self, site, how):
        before = site.files["vars.json"], site.files["hosts.yaml"]
        routes = site.routes
        lose(how, site, BALANCER)
        heal_start(site, BALANCER)
        # The record of its address is what its new VM is compared with.
        assert (site.files["vars.json"], site.files["hosts.yaml"]) == before
        site.balanced, site.routes = None, frozenset()
        new = rebuild(site, BALANCER)
        heat_rebuilds(site, [BALANCER])
        heal_end(site, *new)
        assert site.balanced is not None
        assert site.routes == routes
        assert (site.files["vars.json"], site.files["hosts.yaml"]) == before

    def test_with_a_worker(self, site):
        delete_in_nova(site, BALANCER, WORKER)
        site.balanced, site.routes = None, frozenset()
        healed(site, BALANCER, WORKER)
        assert sorted(name for name, _ in site.routes) == [FIVE, FIFTY_FIVE]
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]

    @pytest.mark.parametrize(
        ("operation", "server"),
        [(heal_start, WORKER), (scale_in, WORKER), (scale_out, "server-7")],
    )
    def test_operations_that_need_it_are_refused_before_anything(
        self, site, operation, server
    ):
        delete_in_nova(site, BALANCER)
        site.workers.append(machine(Role.WORKER, 7))
        before = state(site)
        text = refused(operation, site, server)
        assert "The load balancer has no VM that can be used: the port lb_nic" in text
        assert "Heal its VNFC first." in text
        assert state(site) == before

    def test_heal_that_heat_has_not_done(self, site):
        delete_in_nova(site, BALANCER)
        heal_start(site, BALANCER)
        text = refused(heal_end, site, BALANCER)
        assert "Heat has not rebuilt the VMs of these nodes: load-balancer" in text

    def test_cluster_check(self, site):
        delete_in_nova(site, BALANCER)
        report = ClusterInspection(params(), VNF, site, features=FEATURES).take()
        (row,) = [row for row in report.rows if row.name == "load balancer"]
        assert row.server_id == BALANCER
        assert row.findings


class TestNewCluster:
    @pytest.mark.parametrize("server", [WORKER, PLANE, BALANCER])
    def test_every_vm_has_to_be_usable(self, server):
        site = HeatSite()
        site.deleted.add(server)
        text = refused(run, Instantiate, site)
        assert "is not attached to a VM" in text
        assert site.changes == []

    def test_control_planes_are_an_odd_number(self):
        site = HeatSite()
        site.control_planes.append(machine(Role.CONTROL_PLANE, 3))
        assert "odd number" in refused(run, Instantiate, site)


class TestSecondAddress:
    """Neutron orders the addresses of a port as text: 10.10.0.100 before 10.10.0.4."""

    PORTS = {PLANE: "10.10.0.4", WORKER: "10.10.0.5", BALANCER: "10.10.0.9"}

    @pytest.fixture(params=[PLANE, WORKER, BALANCER])
    def second(self, site, request):
        self.records = dict(site.files)
        site.addresses[request.param] = ("10.10.0.100", self.PORTS[request.param])
        return site

    def entries(self, site):
        return {
            node.name: (node.address, node.ssh_address)
            for node in inventory.parse(site.files["hosts.yaml"])
        }

    def test_scale_out(self, second):
        before = self.entries(second)
        second.workers.append(machine(Role.WORKER, 7))
        scale_out(second, "server-7")
        after = self.entries(second)
        assert after.pop(SEVEN)
        assert after == before
        assert second.files["vars.json"] == self.records["vars.json"]

    def test_scale_in(self, second):
        before = self.entries(second)
        del before[FIFTY_FIVE]
        scale_in(second, OTHER)
        assert self.entries(second) == before

    def test_heal_of_another(self, second):
        before = self.entries(second)
        healed(second, OTHER)
        assert self.entries(second) == before
        assert second.files["vars.json"] == self.records["vars.json"]

    def test_heal_of_itself(self, second):
        (server,) = second.addresses
        if server == PLANE:
            pytest.skip("the only control plane is not healed")
        before = self.entries(second)
        healed(second, server)
        assert self.entries(second) == before
        assert second.files["vars.json"] == self.records["vars.json"]

    def test_change_of_connectivity(self, second):
        run(ConnectivityEnd, second)
        assert self.entries(second)[MASTER][0] == "10.10.0.4"
        assert second.files["vars.json"] == self.records["vars.json"]

    def test_cluster_check(self, second):
        rows = ClusterInspection(params(), VNF, second, features=FEATURES).take().rows
        findings = [finding for row in rows for finding in row.findings]
        assert [f.text for f in findings if "10.10.0.100" in f.text] == []


class TestOtherAddress:
    """The recorded address is no longer one of the port's."""

    @pytest.fixture(params=[PLANE, WORKER, BALANCER])
    def moved(self, site, request):
        site.addresses[request.param] = ("10.10.0.100",)
        return site

    @pytest.mark.parametrize(
        ("operation", "servers"),
        [(scale_out, ["server-7"]), (scale_in, [OTHER]), (heal_start, [OTHER])],
    )
    def test_is_refused_before_anything(self, moved, operation, servers):
        moved.workers.append(machine(Role.WORKER, 7))
        before = state(moved)
        text = refused(operation, moved, *servers)
        assert "to 10.10.0.100" in text
        assert "Have the ports get these addresses back" in text
        assert state(moved) == before

    def test_its_worker_can_be_healed(self, site):
        site.addresses[WORKER] = ("10.10.0.100",)
        new = "worker-10-10-0-100"
        healed(site, WORKER)
        assert site.members == [MASTER, new, FIFTY_FIVE]
        assert site.listed == [MASTER, new, FIFTY_FIVE]
        assert json.loads(site.files["healing.json"]) == {}

    def test_its_worker_can_be_scaled_in(self, site):
        site.addresses[WORKER] = ("10.10.0.100",)
        scale_in(site, WORKER)
        assert site.members == [MASTER, FIFTY_FIVE]

    def test_the_load_balancers_heal_is_refused(self, site):
        """The nodes reach the API at its former address."""
        site.addresses[BALANCER] = ("10.10.0.100",)
        text = refused(heal_start, site, BALANCER)
        assert "the load balancer from 10.10.0.9 to 10.10.0.100" in text


class TestFailedMember:
    """Heat removes failed members first, whichever Tacker announces."""

    @pytest.fixture
    def failed(self):
        """The older worker is a member whose VM runs, marked unhealthy."""
        made = instantiated()
        made.unfinished.add(OTHER)
        return made

    @pytest.mark.parametrize(
        ("size", "text"),
        [
            # v2: the announced one is marked, too, and the group set to one.
            (1, "Heat would delete server-55 (CHECK_FAILED) and rebuild server-5 ("),
            # v1: a signal takes one from those that have not failed.
            (None, "Heat would delete server-55 (CHECK_FAILED), server-5 (CREATE_"),
        ],
    )
    def test_scale_in_of_another_is_refused_before_anything(self, failed, size, text):
        before = state(failed)
        error = refused(lambda: scale_in(failed, WORKER, size=size))
        assert text in error
        assert "are deleted: server-5 (CREATE_COMPLETE)" in error
        assert f"Heal the VNFC of {FIFTY_FIVE} first" in error
        assert state(failed) == before

    def test_scale_in_of_fewer_than_tacker_counts_is_refused(self, failed):
        """Tacker's v1 API counts no failed members, and keeps as many as min_size."""
        before = state(failed)
        error = refused(lambda: scale_in(failed, WORKER, size=None, steps=2))
        assert (
            "counts 2 steps of this scale-in, and announces fewer members: 1." in error
        )
        assert "Failed: server-55 (CHECK_FAILED)." in error
        assert state(failed) == before

    def test_scale_in_below_what_there_is(self):
        """Tacker counts more VMs than Heat has."""
        site = instantiated()
        assert "No member has failed." in refused(
            lambda: scale_in(site, OTHER, steps=2)
        )
        scale_in(site, OTHER, steps=1)
        assert site.members == [MASTER, FIVE]

    def test_it_may_be_removed_itself(self, failed):
        scale_in(failed, OTHER)
        assert failed.members == [MASTER, FIVE]

    def test_one_that_never_joined_may_be_deleted_with_it(self, site):
        """What is left of a scale-out that was abandoned."""
        site = instantiated()
        site.workers.append(machine(Role.WORKER, 7))
        site.unfinished.add("server-7")
        scale_in(site, OTHER, size=1)
        assert site.members == [MASTER, FIVE]

    @pytest.mark.parametrize("size", [1, None])
    def test_oldest_of_healthy_ones(self, size):
        site = instantiated()
        scale_in(site, OTHER, size=size)
        assert site.members == [MASTER, FIVE]

    def test_signal_to_a_group_that_has_failed_is_ignored(self):
        site = instantiated()
        site.group_status = "UPDATE_FAILED"
        before = state(site)
        error = refused(lambda: scale_in(site, OTHER, size=None))
        assert "The group worker_instance is UPDATE_FAILED in Heat, which" in error
        assert state(site) == before
        # An update of the stack, as the v2 API sends it, is not.
        scale_in(site, OTHER, size=1)
        assert site.members == [MASTER, FIVE]

    def test_group_that_was_marked_unhealthy_is_replaced(self):
        site = instantiated()
        site.group_status = "CHECK_FAILED"
        error = refused(lambda: scale_in(site, OTHER, size=1))
        assert "rebuild server-5 (CREATE_COMPLETE)" in error

    def test_heal_of_one_that_is_marked_as_a_whole(self):
        """Its VM would have other ports, and Tacker would not find it."""
        site = instantiated()
        site.marked.add(OTHER)
        before = state(site)
        text = refused(heal_start, site, WORKER, OTHER)
        reset = "`openstack stack resource mark unhealthy --reset group of-server-55`"
        assert "Heat would build all of of-server-55 again" in text
        assert f"the VNFC vnfc-of-{OTHER}." in text
        assert reset in text
        assert state(site) == before
        heal_start(site, WORKER)
        assert site.members == [MASTER, FIFTY_FIVE]

    @pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CHECK_FAILED"])
    def test_heal_of_another_is_refused_while_it_is_ready(self, failed, status):
        failed.group_status = status
        before = state(failed)
        text = refused(heal_start, failed, WORKER)
        assert f"Heat would also build the VM of {FIFTY_FIVE} again" in text
        assert state(failed) == before

    def test_heal_of_both(self, failed):
        heal_start(failed, WORKER, OTHER)
        assert failed.members == [MASTER]

    def test_worker_that_only_misses_the_load_balancer_is_not_dead(self, failed):
        """All are NotReady then, and their pods run."""
        failed.cluster_nodes = [
            replace(node, ready=False) for node in failed.cluster_nodes
        ]
        text = refused(heal_start, failed, BALANCER)
        assert f"Heat would also build the VM of {FIFTY_FIVE} again" in text

    def test_heal_of_another_while_it_is_dead(self, failed):
        failed.kill(OTHER)
        heal_start(failed, WORKER)
        assert FIVE not in failed.members


class TestOtherVdu:
    """A VNF with a VDU beside the cluster."""

    @pytest.fixture
    def mixed(self, site):
        site.others = ["gw-1"]
        return site

    def test_scale_out(self, mixed):
        before = state(mixed)
        mixed.others.append("gw-2")
        scale_out(mixed, "gw-2")
        assert state(mixed) == before

    def test_the_size_before_a_scale_out_is_that_of_its_group(self, mixed):
        """A rollback of Tacker's v1 API is compared with it."""
        mixed.workers.append(machine(Role.WORKER, 7))
        new = ["member-server-7", "member-gw-2"]
        mixed.others.append("gw-2")
        work = ScaleOut(dependencies(params(), mixed, FakeClock()), stacks=new)
        assert work.members_before("w_group") is None
        work.steps()[0].act()
        assert work.members_before("w_group") == 2
        assert work.members_before("gw_group") == 1

    def test_scale_out_of_one_that_is_gone(self, mixed):
        text = refused(scale_out, mixed, "gw-3")
        assert "member-gw-3 (it is gone)" in text

    def test_scale_out_joins_what_an_earlier_one_has_left(self, mixed):
        mixed.workers.append(machine(Role.WORKER, 7))
        mixed.others.append("gw-2")
        scale_out(mixed, "gw-2")
        assert SEVEN in mixed.members

    def test_scale_in(self, mixed):
        before = mixed.members, mixed.listed, mixed.routes
        scale_in(mixed, "gw-1")
        assert (mixed.members, mixed.listed, mixed.routes) == before

    def test_heal(self, mixed):
        before = mixed.members, mixed.listed, mixed.routes
        heal_start(mixed, "gw-1")
        heal_end(mixed, "gw-1")
        assert (mixed.members, mixed.listed, mixed.routes) == before


@pytest.fixture
def rebuilt(site):
    """Heat's stack update has rebuilt a worker; the port has got a second address."""
    site.addresses[f"{WORKER}-anew"] = ("10.10.0.100", "10.10.0.5")
    site.workers = [
        replace(one, server_id=f"{WORKER}-anew") if one.server_id == WORKER else one
        for one in site.workers
    ]
    return site


class TestRebuiltWithoutAHeal:
    """It keeps its recorded address."""

    def test_scale_out(self, rebuilt):
        rebuilt.workers.append(machine(Role.WORKER, 7))
        scale_out(rebuilt, "server-7")
        assert rebuilt.members == [MASTER, FIVE, FIFTY_FIVE, SEVEN]

    def test_heal_of_another(self, rebuilt):
        healed(rebuilt, OTHER)
        assert rebuilt.members == [MASTER, FIVE, FIFTY_FIVE]
