# SPDX-License-Identifier: Apache-2.0
"""Heal of one control plane of several: living, dead, first, refused, cut off."""

import json
import re

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Role
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.nodes import machine
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    SIX,
    heal_end,
    heal_start,
    scale_in,
    scale_out,
    silenced,
    state,
)

ONE, TWO, THREE = (f"control-plane-10-10-0-{n}" for n in (1, 2, 3))
FORTY_ONE = "control-plane-10-10-0-41"


def heal(site: AvailableSite, *servers: str) -> None:
    heal_start(site, *servers, wanted=site.wanted)
    heal_end(site, *site.rebuild(*servers), wanted=site.wanted)


def listed(site: AvailableSite) -> list[str]:
    """The control planes of the inventory, in their order."""
    nodes = inventory.parse(site.files["hosts.yaml"])
    return [node.name for node in nodes if node.role is Role.CONTROL_PLANE]


def whole(site: AvailableSite) -> tuple[object, ...]:
    """What an operator would look at."""
    balanced = dict(site.balanced.control_planes) if site.balanced else {}
    return (*state(site), site.etcd_members, balanced)


def assert_whole(site: AvailableSite, *order: str) -> None:
    assert listed(site) == list(order)
    assert site.members == site.listed == sorted((*order, FIVE, FIFTY_FIVE))
    assert len(site.etcd_members) == len(order)
    nodes = inventory.parse(site.files["hosts.yaml"])
    names = {n.address: n.etcd_member_name for n in nodes if n.etcd_member_name}
    assert site.etcd_members == names
    assert {name for name, _ in site.balanced.control_planes} == set(order)
    assert {name for name, _ in site.routes} == {FIVE, FIFTY_FIVE}
    assert json.loads(site.files["healing.json"]) == {}
    assert "ignore_assert_errors" not in site.files["vars.json"]
    identities = {node.name: node.machine_id for node in site.cluster_nodes}
    assert identities == {node.name: node.server_id for node in nodes}


class TestEach:
    @pytest.mark.parametrize(
        ("server", "order"),
        [
            ("server-1", (TWO, THREE, ONE)),
            ("server-2", (ONE, THREE, TWO)),
            ("server-3", (ONE, TWO, THREE)),
        ],
    )
    @pytest.mark.parametrize("dies", [False, True])
    def test_comes_back_behind_the_others_with_its_names(self, server, order, dies):
        site = AvailableSite()
        if dies:
            site.kill(server)
        heal(site, server)
        assert_whole(site, *order)
        assert site.etcd_members[f"10.10.0.{server[-1]}"] == f"etcd{server[-1]}"

    def test_all_in_turn_and_again(self):
        site = AvailableSite()
        for number in (1, 2, 3):
            heal(site, f"server-{number}")
        assert_whole(site, ONE, TWO, THREE)
        heal(site, "server-2-anew")
        assert_whole(site, ONE, THREE, TWO)

    def test_one_of_five(self):
        site = AvailableSite(planes=5)
        heal(site, "server-41")
        assert listed(site)[-1] == FORTY_ONE
        assert len(site.etcd_members) == 5

    def test_two_of_five_with_the_member_of_one_removed_by_hand(self):
        site = AvailableSite(planes=5)
        for server in ("server-41", "server-42"):
            site.kill(server)
        site.leave_etcd("10.10.0.42")
        heal(site, "server-41")
        assert site.runs[-1].limit.endswith(",!control-plane-10-10-0-42")
        assert len(site.etcd_members) == 4
        heal(site, "server-42")
        assert len(site.etcd_members) == 5
        assert len(listed(site)) == 5

    def test_out_of_the_load_balancer_first_and_behind_it_last(self):
        site = AvailableSite()
        heal_start(site, "server-2")
        calls = site.calls
        assert calls.index("balancer.install") < calls.index("cluster.cordon")
        assert calls.index("cluster.drain") < calls.index("run remove-node")
        assert {name for name, _ in site.balanced.control_planes} == {ONE, THREE}
        (new,) = site.rebuild("server-2")
        calls.clear()
        heal_end(site, new)
        assert calls.index("run cluster") < calls.index("balancer.install")

    def test_runs_of_another_one_than_the_first(self):
        site = AvailableSite()
        heal(site, "server-2")
        assert [one.name for one in site.runs] == ["remove-node", "facts", "cluster"]
        remove, _, join = site.runs
        assert remove.extra_vars["node"] == TWO
        assert join.limit == "etcd,kube_control_plane"
        assert join.extra_vars["etcd_retries"] == 10
        assert join.extra_vars["etcd_peer_addresses"] == (
            "etcd1=https://10.10.0.1:2380,etcd2=https://10.10.0.2:2380,"
            "etcd3=https://10.10.0.3:2380"
        )

    def test_living_first_one_is_put_behind_by_a_run_of_its_own(self):
        site = AvailableSite()
        heal(site, "server-1")
        names = [one.name for one in site.runs]
        assert names == ["facts", "cluster", "remove-node", "facts", "cluster"]
        first, joins = site.runs[1], site.runs[-1]
        assert first.limit == joins.limit == "etcd,kube_control_plane"
        # Nothing that the living members would be restarted for.
        assert first.extra_vars == joins.extra_vars

    def test_dead_first_one_is_put_behind_in_the_inventory(self):
        site = AvailableSite()
        site.kill("server-1")
        heal(site, "server-1")
        assert [one.name for one in site.runs] == ["remove-node", "facts", "cluster"]
        assert site.runs[0].extra_vars["reset_nodes"] is False
        assert site.calls.index("etcd.remove") < site.calls.index("run remove-node")

    def test_newcomers_look_for_the_api_elsewhere(self):
        site = AvailableSite()
        heal(site, "server-2")
        assert site.cluster_info == "https://10.10.0.1:6443"
        heal(site, "server-1")
        assert site.cluster_info == "https://10.10.0.3:6443"

    def test_dead_one_whose_kubelet_was_well_a_moment_ago_is_not_drained(self):
        site = AvailableSite()
        site.dead.add("server-2")
        heal(site, "server-2")
        assert "cluster.drain" not in site.calls
        assert_whole(site, ONE, THREE, TWO)

    def test_first_one_whose_api_server_is_down(self):
        site = AvailableSite()
        site.api_is_down.add("10.10.0.1")
        heal_start(site, "server-1")
        (new,) = site.rebuild("server-1")
        site.api_is_down.clear()
        heal_end(site, new)
        assert_whole(site, TWO, THREE, ONE)

    def test_ill_member_does_not_stop_the_first_ones_removal(self):
        """``cluster.yml`` would never find it well."""
        site = AvailableSite()
        site.etcd_is_down.add("10.10.0.1")
        heal_start(site, "server-1")
        assert [one.name for one in site.runs] == ["remove-node"]

    def test_member_that_kubespray_might_mistake_is_removed_by_its_id(self):
        site = AvailableSite()
        site.control_planes[2] = machine(Role.CONTROL_PLANE, 10)
        text = site.files["hosts.yaml"].replace("10.10.0.3", "10.10.0.10")
        site.files["hosts.yaml"] = text.replace("server-3", "server-10")
        joined = json.loads(site.files["joined.json"])
        joined[joined.index("server-3")] = "server-10"
        site.files["joined.json"] = json.dumps(joined)
        site.etcd_members["10.10.0.10"] = site.etcd_members.pop("10.10.0.3")
        site.changes.clear()
        heal_start(site, "server-1")
        assert set(site.etcd_members) == {"10.10.0.2", "10.10.0.10"}
        assert "etcd.remove" in site.calls

    def test_without_a_load_balancer(self):
        site = AvailableSite(load_balancer=False)
        heal(site, "server-1")
        assert listed(site) == [TWO, THREE, ONE]
        assert len(site.etcd_members) == 3


class TestLost:
    """Heat has another VM than the inventory, and no hook was called."""

    def lost(self, server: str) -> tuple[AvailableSite, str]:
        site = AvailableSite()
        address = f"10.10.0.{server[-1]}"
        silenced(site, f"control-plane-{address.replace('.', '-')}")
        site.etcd_is_down.add(address)
        site.api_is_down.add(address)
        (new,) = site.rebuild(server)
        return site, new

    @pytest.mark.parametrize("server", ["server-1", "server-2"])
    def test_workers_scale_without_it(self, server):
        site, _ = self.lost(server)
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        facts, _ = site.runs
        assert facts.limit.endswith(f":!control-plane-10-10-0-{server[-1]}")
        scale_in(site, "server-6")
        assert SIX not in site.members

    @pytest.mark.parametrize(
        ("server", "order"),
        [("server-1", (TWO, THREE, ONE)), ("server-2", (ONE, THREE, TWO))],
    )
    def test_its_heal_treats_it_as_dead(self, server, order):
        site, new = self.lost(server)
        heal_start(site, new)
        assert site.runs[0].extra_vars["reset_nodes"] is False
        (newer,) = site.rebuild(new)
        site.etcd_is_down.clear()
        site.api_is_down.clear()
        heal_end(site, newer)
        assert_whole(site, *order)

    def test_its_heal_when_there_is_no_vm_at_all(self):
        site = AvailableSite()
        silenced(site, TWO)
        del site.control_planes[1]
        heal_start(site, "server-2")
        site.control_planes.append(machine(Role.CONTROL_PLANE, 2, "server-2-anew"))
        heal_end(site, "server-2-anew")
        assert_whole(site, ONE, THREE, TWO)


class TestMixed:
    def test_with_a_worker_and_the_load_balancer(self):
        site = AvailableSite()
        site.pods = {FIVE: ["web"]}
        heal(site, "server-2", "server-5", "server-9")
        assert_whole(site, ONE, THREE, TWO)
        nodes = [
            one.extra_vars["node"] for one in site.runs if one.extra_vars.get("node")
        ]
        assert nodes == [FIVE, TWO]

    def test_with_a_load_balancer_that_is_silent(self):
        site = AvailableSite()
        site.faults.add("balancer.status")
        heal_start(site, "server-1", "server-9")
        assert site.runs == []
        assert set(site.etcd_members) == {"10.10.0.2", "10.10.0.3"}
        heal_end(site, *site.rebuild("server-1", "server-9"))
        assert_whole(site, TWO, THREE, ONE)

    def test_blocked_drain_makes_all_nodes_full_members_again(self):
        site = AvailableSite()
        before = whole(site)
        site.budget = "a budget"
        with pytest.raises(errors.StepFailed, match="a budget"):
            heal_start(site, "server-2", "server-5")
        assert site.runs == []
        assert whole(site) == before


class TestRefused:
    def refused(
        self,
        site: AvailableSite,
        *servers: str,
        touched: str = "No VM and no node was touched",
    ) -> str:
        site.changes.clear()
        with pytest.raises(errors.StepFailed) as caught:
            heal_start(site, *servers)
        assert site.changes == []
        assert site.runs == []
        assert touched in str(caught.value)
        return str(caught.value)

    def test_two_at_once(self):
        message = self.refused(AvailableSite(), "server-1", "server-3", "server-5")
        assert "only one at a time" in message
        assert f"vnfc-of-server-1, vnfc-of-server-3 ({ONE}, {THREE})" in message

    def test_living_one_while_another_is_dead(self):
        site = AvailableSite()
        site.kill("server-3")
        message = self.refused(site, "server-2", "server-55")
        assert "1 of 3 control planes would be left healthy" in message
        assert f"Unhealthy: {THREE} (etcd3)" in message
        heal(site, "server-3")
        assert_whole(site, ONE, TWO, THREE)

    def test_without_a_majority(self):
        site = AvailableSite()
        site.kill("server-1")
        site.kill("server-3")
        site.api_is_down = set()
        message = self.refused(site, "server-3")
        assert "etcd has no leader" in message
        assert "No operation restores etcd's majority." in message
        assert "one at a time" not in message

    def test_while_the_api_server_of_another_one_is_down(self):
        site = AvailableSite()
        site.api_is_down.add("10.10.0.3")
        assert "its API server: connection refused" in self.refused(site, "server-2")

    def test_member_without_a_control_plane_counts(self):
        site = AvailableSite()
        site.etcd_members["10.10.0.77"] = "etcd77"
        site.etcd_is_down.add("10.10.0.3")
        message = self.refused(site, "server-3")
        assert "etcd77" in message

    def test_one_of_five_while_another_member_is_ill(self):
        site = AvailableSite(planes=5)
        site.kill("server-41")
        site.kill("server-42")
        message = self.refused(site, "server-41")
        assert "etcd5 (10.10.0.42, id id-10.10.0.42)" in message
        assert "etcdctl member remove" in message

    def test_another_one_that_was_taken_out_and_is_not_back(self):
        site = AvailableSite(planes=5)
        heal_start(site, "server-41")
        site.rebuild("server-41")
        site.runs.clear()
        begun = f"; an earlier one has begun to take out {FORTY_ONE}."
        message = self.refused(site, "server-1", touched=begun)
        assert f"{FORTY_ONE} was taken out" in message

    @pytest.mark.parametrize("has_leader", [True, False])
    def test_retry_does_not_say_that_nothing_was_touched(self, has_leader):
        site = AvailableSite()
        site.faults.add("run remove-node")
        with pytest.raises(errors.StepFailed):
            heal_start(site, "server-3")
        site.runs.clear()
        site.etcd_is_down = {"10.10.0.2"} if has_leader else {"10.10.0.2", "10.10.0.1"}
        begun = f"This try touched no VM and no node; an earlier one .* {THREE}"
        message = self.refused(
            site, "server-3", touched="This try touched no VM and no"
        )
        assert re.search(begun, message)

    def test_etcd_that_cannot_be_asked(self):
        site = AvailableSite()
        site.faults.add("etcd.members")
        with pytest.raises(errors.StepFailed, match=r"fault in etcd\.members"):
            heal_start(site, "server-2")
        assert site.changes == []


FAULTS_BEFORE = [
    "etcd.members",
    "balancer.install",
    "cluster.cordon",
    "workdir.write healing.json",
    "run remove-node",
    "cluster.move_cluster_info",
    "cluster.remove_nodes",
    "workdir.write hosts.yaml",
    "workdir.write vars.json",
    "save_host_keys",
    "workdir.write joined.json",
]
FAULTS_AFTER = [
    "wait_reachable",
    "workdir.write hosts.yaml",
    "run facts",
    "run cluster",
    "etcd.members",
    "cluster.uncertified",
    "balancer.install",
    "workdir.write joined.json",
    "workdir.write healing.json",
]


class TestCutOff:
    """A fault at every step, then retry, or fail and another operation."""

    @pytest.mark.parametrize("dies", [False, True])
    @pytest.mark.parametrize("server", ["server-1", "server-2"])
    @pytest.mark.parametrize("fault", [*FAULTS_BEFORE, "run facts", "run cluster"])
    def test_retry_of_heal_start(self, server, fault, dies):
        sites = [AvailableSite(), AvailableSite()]
        for site in sites:
            if dies:
                site.kill(server)
        straight, broken = sites
        heal_start(straight, server)
        broken.faults.add(fault)
        if fault in straight.calls:
            with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
                heal_start(broken, server)
        heal_start(broken, server)
        assert whole(broken) == whole(straight)

    @pytest.mark.parametrize(
        "fault",
        [
            "workdir.write healing.json",
            "workdir.write hosts.yaml",
            "run cluster",
            "run remove-node",
            "cluster.move_cluster_info",
            "cluster.remove_nodes",
            "workdir.write joined.json",
        ],
    )
    def test_drained_nodes_are_named(self, fault):
        site = AvailableSite()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed) as caught:
            heal_start(site, "server-1")
        message = str(caught.value)
        assert (
            f"Left as they are: {ONE}, drained and out of the load balancer" in message
        )
        assert f"`kubectl uncordon {ONE}`" in message

    def test_a_removed_node_is_named_in_the_error(self):
        site = AvailableSite()
        for fault in ("workdir.write joined.json", "workdir.write healing.json"):
            site.faults.add(fault)
            with pytest.raises(errors.StepFailed, match=fault) as caught:
                heal_start(site, "server-2")
        assert f"Left as they are: {TWO}, drained and out of the load" in str(
            caught.value
        )

    @pytest.mark.parametrize("fault", ["cluster.cordon", "balancer.install"])
    def test_before_the_drain_no_node_is_named_as_drained(self, fault):
        site = AvailableSite()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed) as caught:
            heal_start(site, "server-1")
        assert "uncordon" not in str(caught.value)

    @pytest.mark.parametrize("server", ["server-1", "server-3"])
    @pytest.mark.parametrize("fault", FAULTS_AFTER)
    def test_retry_of_heal_end(self, server, fault):
        straight, broken = AvailableSite(), AvailableSite()
        heal(straight, server)
        heal_start(broken, server)
        (new,) = broken.rebuild(server)
        broken.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            heal_end(broken, new)
        heal_end(broken, new)
        assert whole(broken) == whole(straight)

    @pytest.mark.parametrize("fault", FAULTS_BEFORE[3:])
    def test_fail_of_heal_start_and_a_heal_that_goes_on(self, fault):
        site = AvailableSite()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed):
            heal_start(site, "server-1")
        heal(site, "server-1")
        assert_whole(site, TWO, THREE, ONE)

    @pytest.mark.parametrize("fault", FAULTS_AFTER[:4])
    @pytest.mark.parametrize("number", ["1", "2"])
    def test_fail_of_heal_end_and_operations_on_workers(self, number, fault):
        """They leave it out, and the next heal of whatever joins it."""
        site = AvailableSite()
        heal_start(site, f"server-{number}")
        (new,) = site.rebuild(f"server-{number}")
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed):
            heal_end(site, new)
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        plane = f"control-plane-10-10-0-{number}"
        assert SIX in site.members
        assert plane not in site.listed
        scale_in(site, "server-6")
        site.workers.pop()
        assert FIVE in site.members
        heal(site, "server-5")
        assert_whole(site, *sorted({ONE, TWO, THREE} - {plane}), plane)

    def test_silent_one_does_not_keep_workers_from_being_healed(self):
        site = AvailableSite()
        heal_start(site, "server-2")
        (new,) = site.rebuild("server-2")
        site.dead.add(new)
        heal(site, "server-5")
        assert listed(site) == [ONE, THREE]
        assert FIVE in site.members
        site.dead.clear()
        heal(site, "server-55")
        assert_whole(site, ONE, THREE, TWO)

    def failed_after_its_vm_was_built(self, fault=""):
        """A heal that has failed: the site and the new VM, silent without a fault."""
        site = AvailableSite()
        heal_start(site, "server-2")
        (new,) = site.rebuild("server-2")
        wrong = site.faults if fault else site.dead
        wrong.add(fault or new)
        why = fault or f"no answer from {new}"
        with pytest.raises(errors.StepFailed, match=why):
            heal_end(site, new)
        return site, new

    @pytest.mark.parametrize("fault", ["", "balancer.install"])
    def test_one_that_was_built_or_has_half_joined_is_healed_again(self, fault):
        site, new = self.failed_after_its_vm_was_built(fault)
        heal(site, new)
        assert_whole(site, ONE, THREE, TWO)

    def test_both_hooks_again_for_a_vm_that_is_not_built_again(self):
        """So does a retry in Tacker's v2 API, with the ids of both servers."""
        site, new = self.failed_after_its_vm_was_built("cluster.uncertified")
        heal_start(site, "server-2", new)
        heal_end(site, new)
        assert_whole(site, ONE, THREE, TWO)

    def test_member_without_a_node_is_removed_with_what_is_on_its_vm(self):
        site = AvailableSite()
        heal_start(site, "server-2")
        (new,) = site.rebuild("server-2")
        site.faults.add("run cluster")
        with pytest.raises(errors.StepFailed):
            heal_end(site, new)
        site.etcd_members["10.10.0.2"] = "etcd2"
        site.runs.clear()
        heal_start(site, "server-2", new)
        (run,) = site.runs
        assert (run.name, run.extra_vars["node"]) == ("remove-node", TWO)
        assert run.extra_vars.get("reset_nodes") is None
        heal_end(site, new)
        assert_whole(site, ONE, THREE, TWO)

    def test_one_that_heat_has_not_built(self):
        site = AvailableSite()
        heal_start(site, "server-2")
        del site.control_planes[1]
        with pytest.raises(errors.StepFailed, match=f"Heat has not .* {TWO}"):
            heal_end(site, "server-2")
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        assert listed(site) == [ONE, THREE]
        site.control_planes.append(machine(Role.CONTROL_PLANE, 2, "server-2-anew"))
        site.workers.pop()
        scale_in(site)
        heal(site, "server-5")
        assert_whole(site, ONE, THREE, TWO)

    @pytest.mark.parametrize("fault", FAULTS_BEFORE[4:])
    @pytest.mark.parametrize("server", ["server-1", "server-3"])
    def test_retry_for_one_that_heat_does_not_call_complete(self, server, fault):
        site = AvailableSite()
        site.unfinished.add(server)
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            heal_start(site, server)
        heal(site, server)
        plane = f"control-plane-10-10-0-{server[-1]}"
        assert_whole(site, *sorted({ONE, TWO, THREE} - {plane}), plane)

    def test_half_out_and_not_complete_it_stays_when_workers_scale(self):
        site = AvailableSite()
        site.unfinished.add("server-3")
        site.faults.add("run remove-node")
        with pytest.raises(errors.StepFailed):
            heal_start(site, "server-3")
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        assert listed(site) == [ONE, TWO, THREE]
        scale_in(site, "server-6")
        site.workers.pop()
        assert listed(site) == [ONE, TWO, THREE]
        heal(site, "server-3")
        assert_whole(site, ONE, TWO, THREE)

    @pytest.mark.parametrize("has_left_etcd", [True, False])
    def test_half_out_it_is_noted_as_long_as_etcd_has_no_member(self, has_left_etcd):
        site = AvailableSite()
        site.faults.add("run remove-node")
        with pytest.raises(errors.StepFailed):
            heal_start(site, "server-3")
        if has_left_etcd:
            site.leave_etcd("10.10.0.3")
        heal(site, "server-5")
        noted = json.loads(site.files["healing.json"])
        assert [one["name"] for one in noted.values()] == has_left_etcd * [THREE]
        heal(site, "server-3")
        assert_whole(site, ONE, TWO, THREE)

    @pytest.mark.parametrize("server", ["server-3", "server-3-anew"])
    def test_heat_fails_in_one_heal_after_the_other(self, server):
        """It may call the new server failed, or have none at all."""
        site = AvailableSite()
        heal_start(site, "server-3")
        if server == "server-3":
            gone = site.control_planes.pop()
        else:
            site.rebuild("server-3")
            site.unfinished.add(server)
        with pytest.raises(errors.StepFailed, match=f"Heat has not .* {THREE}"):
            heal_end(site, server)
        heal_start(site, server)
        with pytest.raises(errors.StepFailed, match=r"Heat has not .*control-plane"):
            heal_end(site, server)
        site.unfinished.clear()
        if server == "server-3":
            site.control_planes.append(gone)
        heal(site, server)
        assert_whole(site, ONE, TWO, THREE)

    def test_heat_fails_at_a_worker_in_one_heal_after_the_other(self):
        site = AvailableSite()
        heal_start(site, "server-5")
        (new,) = site.rebuild("server-5")
        site.unfinished.add(new)
        for _ in range(2):
            with pytest.raises(errors.StepFailed, match=r"Heat has not .*w_ssh is"):
                heal_end(site, new)
            heal_start(site, new)
        site.unfinished.clear()
        heal_end(site, new)
        assert_whole(site, ONE, TWO, THREE)

    def test_second_run_of_each_hook_changes_nothing(self):
        site = AvailableSite()
        heal_start(site, "server-1")
        before = whole(site)
        heal_start(site, "server-1")
        assert whole(site) == before
        (new,) = site.rebuild("server-1")
        heal_end(site, new)
        site.changes.clear()
        site.runs.clear()
        heal_end(site, new)
        assert site.changes == []
        assert site.runs == []


class TestVerified:
    @pytest.mark.parametrize(
        ("what", "value", "message"),
        [
            ("etcd_is_down", {"10.10.0.2"}, "its etcd member: no answer"),
            ("api_is_down", {"10.10.0.2"}, "its API server: connection refused"),
            ("not_certified", {"192.0.2.109"}, "is not for 192.0.2.109"),
        ],
    )
    def test_what_is_not_well_at_the_end_is_named(self, what, value, message):
        site = AvailableSite()
        heal_start(site, "server-2")
        (new,) = site.rebuild("server-2")
        setattr(site, what, value)
        with pytest.raises(errors.StepFailed, match=message):
            heal_end(site, new)
        setattr(site, what, set())
        heal_end(site, new)
        assert_whole(site, ONE, THREE, TWO)
