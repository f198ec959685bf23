# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes in operations other than their own, on fakes."""

import copy
import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.modify import Modify
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.node_settings import (
    ALL,
    DISK,
    OUT,
    labels,
    marks,
    modify,
    report,
    routes,
    wants,
)
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SIX,
    grown,
    heal_end,
    heal_start,
    instantiated,
    rebuild,
    run,
    scale_in,
    scale_out,
)
from tests.helpers.upgrades import NEW, UpgradingSite, upgrade

PLANE_OUT = {"k8s_nodes:vnfc:plane:maintenance": "true"}


class TestOtherOperations:
    def test_instantiation_sets_them(self):
        site = FakeSite()
        wants(site, DISK)
        run(Instantiate, site)
        assert marks(site, FIVE).labels == {"disk": "ssd"}

    def test_without_settings_no_operation_asks_for_them(self):
        site = grown(6)
        scale_out(site, "server-6")
        assert not {"cluster.marks", "cluster.mark"} & set(site.calls)

    def test_new_workers_get_them_and_others_stay_in_maintenance(self):
        site = instantiated()
        modify(site, {**OUT, **DISK})
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        assert marks(site, SIX).labels == {"disk": "ssd"}
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE, SIX}, {FIVE})

    def test_a_healed_node_gets_them_again(self):
        site = instantiated()
        modify(site, ALL)
        heal_start(site, "server-55")
        new = rebuild(site, "server-55")
        heal_end(site, *new)
        assert marks(site, FIFTY_FIVE).labels == {"disk": "ssd"}
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE}, {FIVE})

    def test_a_node_that_is_healed_in_maintenance_stays_in_it(self):
        site = instantiated()
        modify(site, OUT)
        heal_start(site, "server-5")
        (new,) = rebuild(site, "server-5")
        wants(site, OUT, five=new)
        heal_end(site, new)
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE}, {FIVE})
        assert marks(site, FIVE).in_maintenance

    def test_no_other_operation_begins_a_maintenance_that_was_blocked(self):
        """In the v1 API the metadata want it, although the request has failed."""
        site = instantiated()
        site.budget = "PodDisruptionBudget a/b"
        with pytest.raises(errors.StepFailed):
            modify(site, {**OUT, **DISK})
        site.budget, site.pods = "", {FIVE: ["web"]}
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        assert labels(site, SIX) == {"disk": "ssd"}
        assert (site.cordoned, site.pods) == (set(), {FIVE: ["web"]})
        assert not marks(site, FIVE).in_maintenance
        assert routes(site) == {FIVE, FIFTY_FIVE, SIX}
        assert (FIVE, "maintenance is missing") in report(site)

    def test_the_pod_network_is_measured_without_it(self):
        site = instantiated()
        modify(site, OUT)
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        assert site.pod_probes == [(FIFTY_FIVE, [SIX])]

    def test_a_new_load_balancer_gets_no_route_to_it(self):
        site = instantiated()
        modify(site, OUT)
        heal_start(site, "server-9")
        new = rebuild(site, "server-9")
        heal_end(site, *new)
        assert routes(site) == {FIFTY_FIVE}

    def test_a_scale_in_takes_it(self):
        site = instantiated()
        modify(site, OUT)
        scale_in(site, "server-5")
        assert site.members == sorted([MASTER, FIFTY_FIVE])

    def test_a_scale_in_that_fails_leaves_it_in_maintenance(self):
        site = instantiated()
        modify(site, OUT)
        site.faults.add("cluster.drain")
        before = copy.deepcopy(site.marks)
        with pytest.raises(errors.StepFailed):
            scale_in(site, "server-5")
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE}, {FIVE})
        assert site.marks == before


class TestControlPlanes:
    """Three of them, of which the second is in maintenance."""

    @pytest.fixture
    def site(self):
        made = AvailableSite()
        wants(made, PLANE_OUT, plane="server-2")
        run(Modify, made, made.wanted, patch=["k8s_nodes"])
        assert balanced(made) == {1, 3}
        return made

    def heal(self, site, server):
        heal_start(site, server, wanted=site.wanted)
        (new,) = site.rebuild(server)
        if server == "server-2":
            wants(site, PLANE_OUT, plane=new)
        heal_end(site, new, wanted=site.wanted)

    @pytest.mark.parametrize("server", ["server-1", "server-2", "server-3"])
    def test_a_heal_leaves_it_in_maintenance(self, site, server):
        self.heal(site, server)
        assert (balanced(site), cordoned(site)) == ({1, 3}, {2})
        assert len(site.etcd_members) == 3

    def test_a_fault_after_it_has_joined_does_not_put_it_into_service(self, site):
        heal_start(site, "server-2", wanted=site.wanted)
        (new,) = site.rebuild("server-2")
        wants(site, PLANE_OUT, plane=new)
        site.faults.add("cluster.mark")
        with pytest.raises(errors.StepFailed, match="of the control plane"):
            heal_end(site, new, wanted=site.wanted)
        heal_end(site, new, wanted=site.wanted)
        assert (balanced(site), cordoned(site)) == ({1, 3}, {2})

    def test_the_api_keeps_a_route_while_the_last_one_in_service_is_healed(self, site):
        entry = "k8s_nodes:vnfc:third:maintenance"
        both = {**PLANE_OUT, entry: "true"}
        wants(site, both, plane="server-2", third="server-3")
        run(Modify, site, site.wanted, patch=["k8s_nodes"])
        assert balanced(site) == {1}
        heal_start(site, "server-1", wanted=site.wanted)
        assert balanced(site) == {2, 3}
        heal_end(site, *site.rebuild("server-1"), wanted=site.wanted)
        assert (balanced(site), cordoned(site)) == ({1}, {2, 3})


class TestUpgrade:
    @pytest.fixture
    def site(self):
        made = UpgradingSite(planes=3)
        servers = {"plane": "server-4", "five": "server-50"}
        wants(made, {**OUT, **PLANE_OUT}, **servers)
        run(Modify, made, patch=["k8s_nodes"])
        made.start_again()
        return made

    def test_a_node_in_maintenance_is_upgraded_and_stays_in_it(self, site):
        upgrade(site)
        assert site.versions == {NEW}
        assert (balanced(site), cordoned(site)) == ({5, 6}, {4, 50})
        assert routes(site) == {"worker-10-10-0-51"}

    @pytest.mark.parametrize("at", ["control-plane-10-10-0-4", "worker-10-10-0-50"])
    def test_a_failure_there_leaves_it_in_maintenance(self, site, at):
        site.breaks_at = at
        with pytest.raises(errors.StepFailed):
            upgrade(site)
        assert cordoned(site) >= {4, 50}
        assert routes(site) == {"worker-10-10-0-51"}
        upgrade(site)
        assert (site.versions, cordoned(site)) == ({NEW}, {4, 50})

    def test_one_that_began_between_two_tries_of_an_upgrade(self):
        site = UpgradingSite(planes=3)
        site.breaks_at = "control-plane-10-10-0-6"
        with pytest.raises(errors.StepFailed):
            upgrade(site)
        wants(site, PLANE_OUT, plane="server-4")
        run(Modify, site, patch=["k8s_nodes"])
        upgrade(site)
        assert (site.versions, cordoned(site)) == ({NEW}, {4})


def balanced(site):
    """Numbers of the control planes that the load balancer has."""
    return {number(name) for name, _ in site.balanced.control_planes}


def cordoned(site):
    return {number(name) for name in site.cordoned}


def number(name):
    return int(name.rpartition("-")[2])


def test_damaged_records_of_other_features_are_rebuilt_all_the_same():
    site = instantiated()
    site.files["exposures.json"] = "{"
    modify(site, DISK)
    assert json.loads(site.files["exposures.json"]) == []
