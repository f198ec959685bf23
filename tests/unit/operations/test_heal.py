# SPDX-License-Identifier: Apache-2.0
"""Heal of single VNFCs on fakes: living, dead, mixed, refused, failed by Heat."""

import copy
import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Role
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SIX,
    heal_end,
    heal_start,
    instantiated,
    rebuild,
    scale_in,
    silenced,
    state,
)

DEDICATED = {"key": "dedicated", "value": "cnf", "effect": "NoSchedule"}
WEB = ExposedService("web", 8080, 30080, ())


def heal(site: FakeSite, *servers: str) -> None:
    heal_start(site, *servers)
    heal_end(site, *rebuild(site, *servers))


class TestUnlistedControlPlane:
    """Heat has a VM of the control plane that the inventory lacks."""

    @staticmethod
    def refused(operation, site):
        site.control_planes += [
            machine(Role.CONTROL_PLANE, 30),
            machine(Role.CONTROL_PLANE, 31),
        ]
        with pytest.raises(errors.StepFailed) as caught:
            operation(site, "server-5")
        text = str(caught.value)
        assert "control-plane-10-10-0-30, control-plane-10-10-0-31" in text
        assert "restore hosts.yaml in" in text

    def test_is_reported_before_a_worker_leaves(self):
        site = instantiated()
        before = state(copy.deepcopy(site))
        self.refused(heal_start, site)
        assert state(site) == before

    def test_is_reported_at_the_end_when_it_has_come_meanwhile(self):
        site = instantiated()
        heal_start(site, "server-5")
        rebuild(site, "server-5")
        self.refused(heal_end, site)


class TestWorkers:
    def test_living_worker_is_drained_and_comes_back_as_the_new_machine(self):
        site = instantiated()
        site.pods = {FIVE: ["web"]}
        heal(site, "server-5")
        assert site.pods == {}
        assert site.members == site.listed == [MASTER, FIVE, FIFTY_FIVE]
        identities = {node.name: node.machine_id for node in site.cluster_nodes}
        assert identities[FIVE] == "server-5-anew"
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}
        assert [run.name for run in site.runs] == ["remove-node", "facts", "scale"]
        assert "192.0.2.105" in site.forgotten
        assert "192.0.2.155" not in site.forgotten

    def test_dead_worker_needs_no_drain_and_no_login(self):
        site = instantiated()
        site.pods = {FIVE: ["web"]}
        site.kill("server-5")
        heal(site, "server-5")
        assert "cluster.drain" not in site.calls
        assert site.runs[0].extra_vars["allow_ungraceful_removal"] is True
        assert site.pods == {}
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert all(node.ready for node in site.cluster_nodes)

    def test_two_workers_at_once(self):
        site = instantiated()
        site.kill("server-55")
        heal(site, "server-5", "server-55")
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert site.runs[-1].limit == f"{FIVE},{FIFTY_FIVE}"

    def test_second_run_of_either_hook_changes_nothing(self):
        site = instantiated()
        heal_start(site, "server-5")
        site.changes.clear()
        heal_start(site, "server-5")
        assert site.changes == []
        new = rebuild(site, "server-5")
        heal_end(site, *new)
        site.changes.clear()
        heal_end(site, *new)
        assert site.changes == []

    def test_blocked_drain_stops_before_the_vm_goes(self):
        site = instantiated()
        site.pods = {FIVE: ["web"]}
        before = state(copy.deepcopy(site))
        site.budget = "kept by web-pdb"
        with pytest.raises(errors.StepFailed, match="web-pdb"):
            heal_start(site, "server-5")
        assert state(site) == before

    def test_goes_on_where_no_other_worker_could_take_the_pods(self, caplog):
        site = instantiated()
        site.workers = site.workers[1:]
        site.kill("server-55")
        site.pods = {FIVE: ["web"]}
        site.budget = "kept by web-pdb"
        heal_start(site, "server-5")
        assert FIVE not in site.members
        assert "web-pdb" in caplog.text

    @pytest.mark.parametrize(
        ("spec", "leaves"),
        [
            pytest.param({}, True, id="no node accepts them"),
            pytest.param({"tolerations": [DEDICATED]}, False, id="tolerated"),
            pytest.param(
                {"tolerations": [{**DEDICATED, "value": "db"}]},
                True,
                id="another value",
            ),
            pytest.param(
                {"tolerations": [DEDICATED], "nodeSelector": {"disk": "ssd"}},
                True,
                id="a label is missing",
            ),
        ],
    )
    def test_a_budget_is_passed_over_only_for_pods_that_no_node_accepts(
        self, spec, leaves
    ):
        site = instantiated()
        site.cluster_nodes = [
            replace(node, taints=(*node.taints, DEDICATED))
            for node in site.cluster_nodes
        ]
        site.pods, site.pod_specs = {FIVE: ["web"]}, {"web": spec}
        site.budget = "PodDisruptionBudget web keeps default/web-1"
        before = state(copy.deepcopy(site))
        if leaves:
            heal_start(site, "server-5")
            assert FIVE not in site.members
            return
        with pytest.raises(errors.StepFailed, match="keeps default/web-1"):
            heal_start(site, "server-5")
        assert state(site) == before

    def test_one_pod_that_another_node_accepts_keeps_all_of_them(self):
        site = instantiated()
        site.marks[FIFTY_FIVE] = NodeMetadata(FIFTY_FIVE, labels={"disk": "ssd"})
        site.pods = {FIVE: ["db", "web"]}
        site.pod_specs = {
            "db": {"nodeSelector": {"disk": "nvme"}},
            "web": {"nodeSelector": {"disk": "ssd"}},
        }
        site.budget = "PodDisruptionBudget web keeps default/web-1"
        with pytest.raises(errors.StepFailed, match="keeps default/web-1"):
            heal_start(site, "server-5")
        site.pod_specs["web"] = site.pod_specs["db"]
        heal_start(site, "server-5")
        assert FIVE not in site.members

    def test_worker_that_heat_did_not_build_is_reported(self):
        site = instantiated()
        heal_start(site, "server-5")
        site.workers = [
            worker for worker in site.workers if worker.server_id != "server-5"
        ]
        with pytest.raises(errors.StepFailed, match="Heat has not rebuilt") as caught:
            heal_end(site, "server-5")
        assert FIVE in str(caught.value)
        # Tacker would update no stack that has failed.
        update = "`openstack stack update --existing --wait stack-of-the-vnf`"
        assert f"{update} (Tacker heals nothing" in str(caught.value)

    def test_worker_that_does_not_come_back_up_is_reported(self):
        site = instantiated()
        heal_start(site, "server-5")
        (new,) = rebuild(site, "server-5")
        site.dead.add(new)
        with pytest.raises(errors.StepFailed, match=f"no answer from {new}"):
            heal_end(site, new)
        site.dead.clear()
        heal_end(site, new)
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]

    def test_failed_join_is_gone_on_with(self):
        site = instantiated()
        heal_start(site, "server-5")
        new = rebuild(site, "server-5")
        site.faults.add("run scale")
        with pytest.raises(
            errors.StepFailed, match="stay in the inventory; if this heal is abandoned"
        ):
            heal_end(site, *new)
        assert FIVE in site.listed
        heal_end(site, *new)
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]

    def test_orphan_of_an_earlier_scale_out_joins_too(self):
        site = instantiated()
        site.workers.append(machine(Role.WORKER, 6))
        heal(site, "server-5")
        assert SIX in site.members

    @pytest.mark.parametrize(
        "fault",
        [
            "balancer.remove-worker",
            "cluster.cordon",
            "run remove-node",
            "cluster.remove_nodes",
            "workdir.write healing.json",
            "workdir.write hosts.yaml",
            "workdir.write joined.json",
        ],
    )
    def test_retry_of_heal_start_after_a_fault_anywhere(self, fault):
        whole = instantiated()
        heal_start(whole, "server-5")
        site = instantiated()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            heal_start(site, "server-5")
        heal_start(site, "server-5")
        assert state(site) == state(whole)

    @pytest.mark.parametrize(
        "fault",
        [
            "wait_reachable",
            "workdir.write hosts.yaml",
            "run facts",
            "run scale",
            "balancer.add-worker",
            "workdir.write joined.json",
            "workdir.write healing.json",
        ],
    )
    def test_retry_of_heal_end_after_a_fault_anywhere(self, fault):
        whole = instantiated()
        heal(whole, "server-5")
        site = instantiated()
        heal_start(site, "server-5")
        new = rebuild(site, "server-5")
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            heal_end(site, *new)
        heal_end(site, *new)
        assert state(site) == state(whole)


class TestControlPlane:
    @pytest.mark.parametrize("others", [(), ("server-5",), ("server-9", "server-55")])
    def test_refused_before_anything_is_touched(self, others):
        site = instantiated()
        with pytest.raises(errors.StepFailed, match="control plane") as caught:
            heal_start(site, "server-4", *others)
        assert site.changes == []
        assert "vnfc-of-server-4" in str(caught.value)
        assert "without vnfcInstanceId" in str(caught.value)


def built_anew(site: FakeSite, *servers: str) -> tuple[str, ...]:
    """Rebuild the load balancer's VM, among others: it has no HAProxy."""
    site.routes, site.exposed, site.balanced = frozenset(), (), None
    return rebuild(site, *servers)


class TestLoadBalancerThatAFailureLeft:
    """Tacker's v2 API calls both hooks at a retry, and rebuilds the VM once more."""

    @pytest.mark.parametrize("fault", ["wait_reachable", "balancer.expose"])
    def test_retry_exposes_what_the_first_one_did(self, fault):
        site = instantiated()
        site.exposed = (WEB,)
        heal_start(site, "server-9")
        new = built_anew(site, "server-9")
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            heal_end(site, *new)
        heal_start(site, *new)
        heal_end(site, *built_anew(site, *new))
        assert site.exposed == (WEB,)
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}
        assert json.loads(site.files["healing.json"]) == {}

    def test_retry_with_a_worker_needs_no_haproxy(self):
        site = instantiated()
        heal_start(site, "server-9", "server-5")
        new = built_anew(site, "server-9", "server-5")
        site.faults.add("wait_reachable")
        with pytest.raises(errors.StepFailed, match="fault in wait_reachable"):
            heal_end(site, *new)
        site.calls.clear()
        heal_start(site, *new)
        assert "balancer.remove-worker" not in site.calls
        heal_end(site, *built_anew(site, *new))
        assert site.members == site.listed == [MASTER, FIVE, FIFTY_FIVE]
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}

    def test_what_is_exposed_after_heat_refused_is_recorded_by_the_next_heal(self):
        site = instantiated()
        heal_start(site, "server-9")
        site.exposed = (WEB,)
        heal_start(site, "server-9")
        heal_end(site, *built_anew(site, "server-9"))
        assert site.exposed == (WEB,)

    @pytest.mark.parametrize("fault", ["wait_reachable", "balancer.expose"])
    def test_heal_of_a_worker_completes_it(self, fault):
        site = instantiated()
        site.exposed = (WEB,)
        heal_start(site, "server-9")
        new = built_anew(site, "server-9")
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            heal_end(site, *new)
        heal(site, "server-5")
        assert site.exposed == (WEB,)
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}

    def test_vm_that_heat_was_told_by_hand_to_build_is_completed(self):
        site = instantiated()
        site.exposed = (WEB,)
        heal_start(site, "server-9")
        # Tacker's v1 API knows the id of the server that could not be built.
        built_anew(site, "server-9")
        heal_end(site, "server-9-failed")
        assert site.exposed == (WEB,)
        assert site.balanced is not None

    def test_other_operations_do_not_take_what_it_lacks_for_what_is_wanted(self):
        site = instantiated()
        site.exposed = (WEB,)
        heal_start(site, "server-9")
        new = built_anew(site, "server-9")
        site.faults.add("balancer.expose")
        with pytest.raises(errors.StepFailed, match=r"fault in balancer\.expose"):
            heal_end(site, *new)
        scale_in(site, "server-5")
        site.workers = [one for one in site.workers if one.server_id != "server-5"]
        heal_end(site, *new)
        assert site.exposed == (WEB,)
        assert {name for name, _ in site.routes} == {FIFTY_FIVE}


class TestLoadBalancer:
    def test_gets_every_route_and_exposed_service_again(self):
        site = instantiated()
        site.exposed = (WEB,)
        heal_start(site, "server-9")
        site.routes, site.exposed = frozenset(), ()
        heal_end(site, *rebuild(site, "server-9"))
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}
        assert site.exposed == (WEB,)
        assert "192.0.2.109" in site.forgotten
        assert site.runs == []

    def test_nodes_that_lost_the_api_with_it_are_waited_for(self, monkeypatch):
        site = instantiated()
        heal_start(site, "server-9")
        well = site.cluster_nodes
        site.cluster_nodes = [replace(node, ready=False) for node in well]

        def later(self, seconds):
            site.cluster_nodes = well

        monkeypatch.setattr(FakeClock, "sleep", later)
        heal_end(site, *rebuild(site, "server-9"))
        assert site.cluster_nodes == well

    def test_nodes_that_do_not_come_back_are_named(self):
        site = instantiated()
        heal_start(site, "server-9")
        silenced(site, FIVE)
        with pytest.raises(errors.StepFailed, match=f"not Ready: {FIVE}: quiet"):
            heal_end(site, *rebuild(site, "server-9"))

    def test_node_that_was_not_ready_before_is_not_waited_for(self):
        site = instantiated()
        silenced(site, FIVE)
        heal_start(site, "server-9")
        heal_end(site, *rebuild(site, "server-9"))
        assert [node.name for node in site.cluster_nodes if not node.ready] == [FIVE]
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}

    def test_dead_one_gets_what_was_seen_last(self, caplog):
        site = instantiated()
        site.exposed = (WEB,)
        heal(site, "server-5")
        site.faults.add("balancer.status")
        heal_start(site, "server-9")
        assert "fault in balancer.status" in caplog.text
        site.routes, site.exposed = frozenset(), ()
        heal_end(site, *rebuild(site, "server-9"))
        assert site.exposed == (WEB,)

    def test_it_is_logged_in_to_beforehand_unless_it_is_healed_itself(self):
        site = instantiated()
        both = copy.deepcopy(site)
        heal_start(both, "server-9", "server-5")
        assert both.expected == []
        heal(site, "server-5")
        assert site.expected == ["server-9", "server-9"]

    def test_dead_one_together_with_a_worker(self):
        site = instantiated()
        site.kill("server-5")
        site.faults.add("balancer.status")
        heal_start(site, "server-9", "server-5")
        assert "balancer.remove-worker" not in site.calls
        assert site.members == [MASTER, FIFTY_FIVE]

    def test_together_with_a_worker(self):
        site = instantiated()
        site.exposed = (WEB,)
        heal_start(site, "server-9", "server-5")
        site.routes, site.exposed = frozenset(), ()
        heal_end(site, *rebuild(site, "server-9", "server-5"))
        assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}
        assert site.exposed == (WEB,)
        assert site.members == [MASTER, FIVE, FIFTY_FIVE]


def test_vnfcs_that_are_none_of_ours_are_left_alone():
    site = instantiated()
    before = state(copy.deepcopy(site))
    heal(site, "server-of-something-else")
    assert state(site)[:4] == before[:4]
    assert site.runs == []
