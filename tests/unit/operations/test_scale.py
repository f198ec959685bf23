# SPDX-License-Identifier: Apache-2.0
"""Scale-out and scale-in on fakes: exact members, faults at every step, second runs."""

import copy

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.fakes.nodes import FakeNode, machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SEVEN,
    SIX,
    grown,
    instantiated,
    run,
    scale_in,
    scale_out,
    state,
)
from tests.helpers.requests import changed_params, params


def highly_available() -> FakeSite:
    """With three control planes, the first of which is ``server-4``."""
    site = FakeSite()
    others = (machine(Role.CONTROL_PLANE, number) for number in (30, 31))
    site.control_planes += others
    run(Instantiate, site)
    return site


def scale_out_until_joined(site: FakeSite, *faults: str) -> None:
    """Fail in the last step, when the worker has its route, and in the undoing."""
    site.faults.update({"workdir.write joined.json", *faults})
    with pytest.raises(errors.StepFailed, match="did not work completely"):
        scale_out(site, "server-6")


lost = pytest.mark.parametrize(
    "lose",
    [lambda site, vm: site.kill(vm), lambda site, vm: site.dead.add(vm)],
    ids=["dead", "ready and refuses logins"],
)


class TestScaleOut:
    def test_new_workers_are_members_with_routes(self):
        site = grown(6, 7)
        scale_out(site, "server-6", "server-7")
        everyone = [MASTER, FIVE, FIFTY_FIVE, SIX, SEVEN]
        assert site.members == sorted(everyone)
        assert site.listed == sorted(everyone)
        assert {name for name, _ in site.routes} == set(everyone) - {MASTER}

    def test_facts_of_all_come_before_one_run_for_the_new_ones_only(self):
        site = grown(6, 7)
        scale_out(site, "server-6", "server-7")
        assert [(one.playbook, one.limit) for one in site.runs] == [
            ("playbooks/facts.yml", ""),
            ("scale.yml", f"{SIX},{SEVEN}"),
        ]

    def test_routes_come_last(self):
        site = grown(6)
        scale_out(site, "server-6")
        assert site.calls.index("run scale") < site.calls.index("balancer.add-worker")

    def test_load_balancer_is_logged_in_to_before_it_is_needed(self):
        site = grown(6)
        site.expected.clear()
        scale_out(site, "server-6")
        scale_in(site, "server-6")
        assert site.expected == ["server-9", "server-9"]

    def test_second_run_changes_nothing(self):
        site = grown(6)
        scale_out(site, "server-6")
        site.changes.clear()
        scale_out(site, "server-6")
        assert site.changes == []

    def test_worker_that_an_earlier_operation_left_behind_joins_too(self):
        site = grown(6, 7)
        scale_out(site, "server-7")
        assert {SIX, SEVEN} <= set(site.members)
        assert site.runs[-1].limit == f"{SIX},{SEVEN}"

    def test_kubelet_of_a_worker_whose_node_object_is_gone_registers_it_again(self):
        site = grown(6)
        site.remove(FIVE)
        scale_out(site, "server-6")
        assert site.restarted == [FIVE]
        assert site.calls.index("restart_kubelets") < site.calls.index("run scale")
        assert site.members == sorted([MASTER, FIVE, FIFTY_FIVE, SIX])

    def test_kubelets_of_new_vms_are_left_alone(self):
        site = grown(6)
        scale_out(site, "server-6")
        assert site.restarted == []

    def test_orphan_that_does_not_answer_is_left_out(self, caplog):
        site = grown(6, 7)
        site.dead.add("server-6")
        scale_out(site, "server-7")
        assert SIX not in site.members
        assert SIX not in site.listed
        assert SEVEN in site.members
        assert SIX in caplog.text

    @lost
    def test_lost_member_is_left_out_of_the_facts_and_named(self, lose, caplog):
        site = grown(6)
        lose(site, "server-5")
        scale_out(site, "server-6")
        assert site.runs[0].limit == f"all:localhost:!{FIVE}"
        assert {FIVE, SIX} <= set(site.listed) & set(site.members)
        assert f"leave these nodes out: {FIVE} (No SSH connection" in caplog.text

    def test_new_worker_that_does_not_answer_fails_the_operation(self):
        site = grown(6)
        before = state(copy.deepcopy(site))
        site.dead.add("server-6")
        with pytest.raises(errors.StepFailed, match="no answer from server-6"):
            scale_out(site, "server-6")
        assert state(site) == before

    def test_member_that_vanished_with_a_rollback_is_cleared_away(self):
        site = grown(6)
        scale_out(site, "server-6")
        site.workers = [
            worker for worker in site.workers if worker.server_id != "server-6"
        ]
        site.workers.append(machine(Role.WORKER, 7))
        site.pods[SIX] = ["web"]
        scale_out(site, "server-7")
        assert SIX not in site.members
        assert SIX not in site.listed
        assert SIX not in {name for name, _ in site.routes}
        assert SIX not in site.pods
        assert SEVEN in site.members

    def test_vm_that_took_over_the_address_of_another_one_joins_as_itself(self):
        site = grown(6)
        scale_out(site, "server-6")
        site.workers = [one for one in site.workers if one.server_id != "server-6"]
        site.workers.append(machine(Role.WORKER, 6, server="another"))
        scale_out(site, "another")
        identities = {node.name: node.machine_id for node in site.cluster_nodes}
        assert identities[SIX] == "another"
        assert "192.0.2.106" in site.forgotten

    def test_node_object_of_another_machine_is_no_success(self):
        site = grown(6)
        site.cluster_nodes.append(FakeNode(SIX, machine_id="stranger"))

        def keep(name):
            return None

        site.remove = keep
        with pytest.raises(errors.StepFailed, match="another machine reports"):
            scale_out(site, "server-6")

    @pytest.mark.parametrize(
        "fault",
        [
            "machines",
            "wait_reachable",
            "workdir.write machines.json",
            "workdir.write hosts.yaml",
            "workdir.write vars.json",
            "run facts",
            "run scale",
            "balancer.add-worker",
            "workdir.write joined.json",
        ],
    )
    def test_fault_anywhere_leaves_nothing_that_a_rollback_would_not_remove(
        self, fault
    ):
        site = grown(6)
        before = state(copy.deepcopy(site))
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}") as caught:
            scale_out(site, "server-6")
        after = state(site)
        assert after[:4] == before[:4]
        for name in ("hosts.yaml", "vars.json", "joined.json"):
            assert after[4][name] == before[4][name]
        assert "There were " in str(caught.value)

    @pytest.mark.parametrize("fault", ["lock", "machines"])
    def test_without_the_list_of_vms_no_number_is_reported(self, fault):
        site = grown(6)
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}") as caught:
            scale_out(site, "server-6")
        assert "There were None workers." in str(caught.value)

    def test_nor_without_an_inventory(self):
        site = grown(6)
        del site.files[inventory.FILE_NAME], site.files["hosts.last.yaml"]
        with pytest.raises(errors.StepFailed, match="There is no inventory") as caught:
            scale_out(site, "server-6")
        assert "There were None workers." in str(caught.value)

    def test_with_one_it_is_that_without_the_new_vms(self):
        site = grown(6)
        before = len(site.workers) - 1
        site.faults.add("run scale")
        with pytest.raises(errors.StepFailed) as caught:
            scale_out(site, "server-6")
        assert f"There were {before} workers." in str(caught.value)

    def test_worker_of_a_failed_scale_out_joins_with_the_next_one(self):
        site = grown(6)
        site.faults.add("run scale")
        with pytest.raises(errors.StepFailed):
            scale_out(site, "server-6")
        site.workers.append(machine(Role.WORKER, 7))
        scale_out(site, "server-7")
        assert {SIX, SEVEN} <= set(site.members)

    def test_what_could_not_be_rolled_back_is_reported(self):
        site = grown(6)
        site.faults |= {"run scale", "balancer.remove-worker"}
        with pytest.raises(errors.StepFailed) as caught:
            scale_out(site, "server-6")
        text = str(caught.value)
        assert "fault in run scale" in text
        assert "did not work completely: fault in balancer.remove-worker" in text
        assert f"{SIX} stay in the inventory: the next scale-out or heal" in text

    @pytest.mark.parametrize(
        "fault",
        [
            "playbooks.stop",
            "balancer.remove-worker",
            "cluster.force_evict",
            "cluster.remove_nodes",
        ],
    )
    def test_next_operation_removes_it_when_the_vm_is_gone(self, fault):
        site = grown(6)
        scale_out_until_joined(site, fault)
        site.workers = [one for one in site.workers if one.server_id != "server-6"]
        scale_in(site, "server-55")
        assert site.members == site.listed == [MASTER, FIVE]
        assert {name for name, _ in site.routes} == {FIVE}

    def test_worker_whose_record_cannot_be_written_is_not_taken_apart(self):
        site = grown(6)
        scale_out_until_joined(site, "playbooks.stop")
        assert SIX in {name for name, _ in site.routes}
        scale_out(site, "server-6")
        assert SIX in site.members

    def test_rollback_of_an_earlier_operation_is_reported(self):
        site = grown(6)
        site.workers.append(machine(Role.WORKER, 7))
        site.faults.add("run scale")
        with pytest.raises(errors.StepFailed) as caught:
            scale_out(site, "server-6")
        text = str(caught.value)
        assert "inventory entries of worker-10-10-0-6, worker-10-10-0-7;" in text
        assert "scale-out or heal joins worker-10-10-0-7, left by" in text
        assert "as it was" not in text

    def test_a_playbook_that_failed_is_not_to_be_retried_where_none_follows(self):
        for takes_back in (True, False):
            site = grown(6)
            site.faults.add("run scale")
            site.error = errors.PlaybookFailed(
                playbook="scale.yml", host="h", rc=2, failures=["no room"], log="log"
            )
            with pytest.raises(errors.StepFailed) as caught:
                scale_out(site, "server-6", takes_back=takes_back)
            assert "no room" in str(caught.value)
            assert "retry" not in str(caught.value)

    def test_new_control_planes_are_refused(self):
        site = grown()
        site.control_planes += [
            machine(Role.CONTROL_PLANE, 30),
            machine(Role.CONTROL_PLANE, 31),
        ]
        with pytest.raises(errors.StepFailed, match="cannot be scaled") as caught:
            scale_out(site, "server-30", "server-31")
        assert site.listed == [MASTER, FIVE, FIFTY_FIVE]
        # What to send is said once, by what a rollback would do.
        assert "`" not in str(caught.value)
        assert str(caught.value).endswith("There were 2 workers.")

    def test_member_without_a_complete_vm_is_reported(self):
        site = grown(6)
        site.unfinished.add("server-6")
        with pytest.raises(errors.StepFailed, match="member-server-6"):
            scale_out(site, "server-6")

    def test_unfinished_member_stays_in_the_inventory(self):
        site = grown(6)
        site.unfinished.add("server-5")
        scale_out(site, "server-6")
        assert FIVE in site.listed
        assert FIVE in site.members

    def test_live_run_of_an_earlier_try_is_not_disturbed_by_facts(self):
        site = grown(6)
        probe = copy.deepcopy(site)
        scale_out(probe, "server-6")
        site.running = probe.runs[-1].digest
        scale_out(site, "server-6")
        assert [one.name for one in site.runs] == ["scale"]

    def test_next_control_plane_is_asked_when_the_first_is_dead(self):
        site = highly_available()
        site.workers.append(machine(Role.WORKER, 6))
        site.kill("server-4")
        site.calls.clear()
        scale_out(site, "server-6")
        assert SIX in site.members
        assert site.calls.count("login server-4") == 1

    def test_no_control_plane_answers(self):
        site = grown(6)
        site.kill("server-4")
        site.calls.clear()
        with pytest.raises(errors.StepFailed, match="No SSH connection"):
            scale_out(site, "server-6")
        # It may be a refused password, of which some hosts take a few only.
        assert site.calls.count("login server-4") == 1

    def test_control_plane_that_heat_knows_no_more_is_no_reason_to_stop(self):
        site = highly_available()
        site.workers.append(machine(Role.WORKER, 6))
        del site.control_planes[0]
        # The VM that has its address now accepts no login.
        site.dead.add("server-4")
        site.faults.add("login server-4")
        scale_out(site, "server-6")
        assert SIX in site.members

    def test_lost_inventory_is_reported(self):
        site = grown(6)
        del site.files["hosts.yaml"], site.files["hosts.last.yaml"]
        with pytest.raises(errors.StepFailed, match="no inventory"):
            scale_out(site, "server-6")

    def test_without_load_balancer(self):
        wanted = params(external_lb_param=None)
        site = instantiated(wanted, load_balancer=False)
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6", wanted=wanted)
        assert SIX in site.members
        assert "balancer.add-worker" not in site.calls
        assert site.expected == []


class TestScaleIn:
    def test_exactly_the_chosen_one_leaves(self):
        site = instantiated()
        scale_in(site, "server-5")
        assert site.members == [MASTER, FIFTY_FIVE]
        assert site.listed == [MASTER, FIFTY_FIVE]
        assert [name for name, _ in site.routes] == [FIFTY_FIVE]
        assert site.forgotten == ["192.0.2.105"]

    def test_order_is_routes_cordon_drain_remove_objects_inventory(self):
        site = instantiated()
        scale_in(site, "server-5")
        order = [
            "balancer.remove-worker",
            "cluster.cordon",
            "cluster.drain",
            "run remove-node",
            "cluster.remove_nodes",
            "workdir.write hosts.yaml",
        ]
        assert [call for call in site.calls if call in order] == order

    def test_several_leave_in_one_run(self):
        site = instantiated()
        scale_in(site, "server-5", "server-55")
        assert site.members == [MASTER]
        (run,) = site.runs
        assert run.extra_vars["node"] == f"{FIVE},{FIFTY_FIVE}"

    def test_second_run_changes_nothing(self):
        site = instantiated()
        scale_in(site, "server-5")
        site.changes.clear()
        scale_in(site, "server-5")
        assert site.changes == []
        assert len(site.runs) == 1

    def test_blocked_drain_takes_everything_back(self):
        site = instantiated()
        site.pods = {FIVE: ["web"], FIFTY_FIVE: []}
        before = state(copy.deepcopy(site))
        site.budget = "pod web is kept by budget web-pdb"
        with pytest.raises(errors.StepFailed) as caught:
            scale_in(site, "server-5")
        assert state(site) == before
        text = str(caught.value)
        assert "web-pdb" in text
        assert "No node was removed" in text
        site.budget = ""
        scale_in(site, "server-5")
        assert site.members == [MASTER, FIFTY_FIVE]

    def test_rollback_that_fails_is_reported(self):
        site = instantiated()
        site.budget = "kept"
        site.faults.add("cluster.uncordon")
        with pytest.raises(errors.StepFailed, match="still cordoned"):
            scale_in(site, "server-5")

    def test_cluster_that_cannot_be_asked_is_an_error(self):
        site = instantiated()
        before = state(copy.deepcopy(site))
        site.faults.add("cluster.nodes")
        with pytest.raises(errors.StepFailed, match=r"fault in cluster\.nodes"):
            scale_in(site, "server-5")
        assert state(site) == before

    @pytest.mark.parametrize(
        "fault",
        [
            "machines",
            "cluster.nodes",
            "balancer.remove-worker",
            "cluster.cordon",
            "cluster.drain",
            "run remove-node",
            "cluster.remove_nodes",
            "workdir.write hosts.yaml",
            "workdir.write vars.json",
            "workdir.write joined.json",
            "save_host_keys",
        ],
    )
    def test_retry_after_a_fault_anywhere_reaches_the_same_end(self, fault):
        whole = instantiated()
        scale_in(whole, "server-5")
        site = instantiated()
        site.faults.add(fault)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            scale_in(site, "server-5")
        scale_in(site, "server-5")
        assert state(site) == state(whole)

    def test_dead_worker_goes_without_a_drain(self):
        site = instantiated()
        site.pods = {FIVE: ["web"]}
        site.kill("server-5")
        scale_in(site, "server-5", "server-55")
        assert site.members == [MASTER]
        assert site.pods == {}
        variables = [dict(one.extra_vars) for one in site.runs]
        assert [variable["node"] for variable in variables] == [FIFTY_FIVE, FIVE]
        assert variables[1]["reset_nodes"] is False

    @lost
    def test_lost_worker_that_stays_does_not_hold_up_the_others(self, lose):
        site = instantiated()
        lose(site, "server-55")
        scale_in(site, "server-5")
        assert site.members == [MASTER, FIFTY_FIVE]
        assert site.runs[0].limit == f"all:localhost:!{FIFTY_FIVE}"

    def test_ready_worker_that_leaves_and_refuses_logins_is_drained(self):
        site = instantiated()
        site.pods = {FIVE: ["web"]}
        site.dead.add("server-5")
        scale_in(site, "server-5")
        assert "cluster.drain" in site.calls
        assert "cluster.force_evict" not in site.calls
        assert site.runs[0].extra_vars["reset_nodes"] is False
        assert site.members == [MASTER, FIFTY_FIVE]

    def test_worker_that_is_not_ready_and_answers_is_drained(self):
        site = instantiated()
        site.kill("server-5")
        site.dead.clear()
        scale_in(site, "server-5")
        assert "cluster.drain" in site.calls
        assert "cluster.force_evict" not in site.calls
        # Its pods stay, terminating, and kubespray drains it for this long once more.
        assert site.runs[0].extra_vars["allow_ungraceful_removal"] is True
        assert site.runs[0].extra_vars["drain_timeout"] == "300s"
        assert site.runs[0].extra_vars["drain_grace_period"] == -1
        assert "reset_nodes" not in site.runs[0].extra_vars

    def test_worker_that_never_joined_just_leaves_the_lists(self):
        site = instantiated()
        site.remove(FIVE)
        scale_in(site, "server-5")
        assert site.runs == []
        assert site.listed == [MASTER, FIFTY_FIVE]

    def test_vanished_worker_is_cleared_away_too(self):
        site = grown(6)
        scale_out(site, "server-6")
        site.workers = [one for one in site.workers if one.server_id != "server-6"]
        site.kill("server-6")
        scale_in(site, "server-5")
        assert site.members == [MASTER, FIFTY_FIVE]
        assert site.listed == [MASTER, FIFTY_FIVE]

    @pytest.mark.parametrize("has_node_object", [True, False])
    def test_worker_whose_address_another_vm_took_over_is_cleared_away(
        self, has_node_object
    ):
        site = instantiated()
        site.pods[FIFTY_FIVE] = ["web"]
        site.workers[0] = machine(Role.WORKER, 55, server="another")
        if not has_node_object:
            site.remove(FIFTY_FIVE)
        scale_in(site, "server-5")
        assert site.members == site.listed == [MASTER]
        assert site.routes == frozenset()
        assert site.runs[0].limit == f"all:localhost:!{FIFTY_FIVE}"
        site.workers = site.workers[:1]
        scale_out(site, "another")
        assert site.members == site.listed == [MASTER, FIFTY_FIVE]
        assert site.cluster_nodes[-1].machine_id == "another"

    def test_vm_that_took_over_an_address_leaves_as_a_dead_one(self):
        site = instantiated()
        site.workers[0] = machine(Role.WORKER, 55, server="another")
        site.pods[FIFTY_FIVE] = ["web"]
        scale_in(site, "another")
        assert site.members == site.listed == [MASTER, FIVE]
        assert site.pods == {}
        assert site.runs[0].extra_vars["reset_nodes"] is False

    def test_orphans_stay_and_are_named(self, caplog):
        site = grown(6)
        scale_in(site, "server-5")
        assert SIX not in site.members
        assert SIX in caplog.text

    def test_control_plane_is_refused(self):
        site = instantiated()
        with pytest.raises(errors.StepFailed, match="cannot be scaled"):
            scale_in(site, "server-4")
        assert site.changes == []

    def test_changed_credentials_reach_the_inventory(self):
        site = instantiated()
        wanted = changed_params(worker_node={"password": "another-one"})
        scale_in(site, "server-5", wanted=wanted)
        assert "another-one" in site.files["hosts.yaml"]
        assert len(inventory.parse(site.files["hosts.yaml"])) == 2
