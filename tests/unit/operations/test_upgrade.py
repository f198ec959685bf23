# SPDX-License-Identifier: Apache-2.0
"""The upgrade of a cluster on fakes: whole, refused, failed at every step, resumed."""

import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations import upgrade_plan as versions
from tacker_k8s_mgmt.request.reader import RequestReader
from tests.helpers.fakes.nodes import machine
from tests.helpers.operations import heal_start, scale_out
from tests.helpers.upgrades import (
    NEW,
    OLD,
    UpgradingSite,
    check,
    stored,
    upgrade,
    wanted,
)

PLANE, SECOND, THIRD = (f"control-plane-10-10-0-{n}" for n in (4, 5, 6))
FIRST_WORKER, OTHER_WORKER = "worker-10-10-0-50", "worker-10-10-0-51"
PLANES = "etcd,kube_control_plane"


def routed(site: UpgradingSite) -> list[str]:
    return sorted(name for name, _ in site.routes)


def record(site: UpgradingSite) -> dict:
    return json.loads(site.files[versions.FILE_NAME])


def is_complete(site: UpgradingSite) -> bool:
    """Every node has the version and is in use, and nothing is left to be done."""
    return (
        site.versions == {NEW}
        and not any(site.is_closed(name) for name in site.members)
        and routed(site) == [n for n in site.members if n.startswith("worker")]
        and record(site) == {"version": NEW}
    )


def failure(site: UpgradingSite, params=None) -> str:
    with pytest.raises(errors.StepFailed) as caught:
        upgrade(site, params)
    return str(caught.value)


CNF = {"key": "dedicated", "value": "cnf", "effect": "NoSchedule"}


def taint(site, names, added):
    """Taint the nodes whose name begins so."""
    site.cluster_nodes = [
        replace(node, taints=(*node.taints, added))
        if node.name.startswith(names)
        else node
        for node in site.cluster_nodes
    ]


def cordon(site, names):
    found = {node.name for node in site.cluster_nodes if node.name.startswith(names)}
    site.by_operator = frozenset(found)


class TestWhole:
    def test_control_planes_come_first_and_workers_batch_by_batch(self):
        site = UpgradingSite(planes=3, workers=10)
        site.pods = {FIRST_WORKER: ["web"]}
        upgrade(site)
        assert is_complete(site)
        assert [run.name for run in site.runs] == ["facts"] + 6 * ["upgrade-cluster"]
        assert site.batches[0] == PLANES
        assert [len(batch.split(",")) for batch in site.batches[1:]] == 5 * [2]
        assert site.runs[1].extra_vars["upgrade_node_confirm"] is False
        assert site.runs[2].extra_vars["serial"] == 2
        assert site.pods == {}

    def test_a_batch_is_no_larger_than_the_drain_policy_allows(self):
        site = UpgradingSite(workers=10)
        upgrade(site, wanted(drain={"parallel": 1}))
        assert [len(one.split(",")) for one in site.batches[1:]] == 10 * [1]

    def test_the_journal_counts_all_steps(self):
        records = upgrade(UpgradingSite()).records
        steps = [one for one in records if one["event"] == "step-end"]
        assert [step["number"] for step in steps] == list(range(1, 13))
        assert steps[-1]["total"] == 12
        assert {one["outcome"] for one in steps} == {"done"}

    def test_a_second_one_changes_nothing(self):
        site = UpgradingSite(planes=3, workers=3)
        upgrade(site)
        site.start_again()
        upgrade(site)
        assert (site.changes, site.runs) == ([], [])

    def test_what_has_the_version_already_is_left_alone(self):
        site = UpgradingSite()
        site.servers[PLANE] = site.kubelets[PLANE] = NEW
        site.kubelets[FIRST_WORKER] = NEW
        upgrade(site)
        assert site.batches == [OTHER_WORKER]
        assert is_complete(site)

    def test_a_node_that_an_operator_has_cordoned_stays_so(self):
        site = UpgradingSite(planes=3)
        site.by_operator = frozenset({FIRST_WORKER, SECOND})
        upgrade(site)
        assert site.versions == {NEW}
        assert site.by_operator == {FIRST_WORKER, SECOND}
        assert site.cordoned == site.by_kubespray == frozenset()

    def test_without_a_load_balancer(self):
        site = UpgradingSite(load_balancer=False)
        upgrade(site, wanted(load_balancer=False))
        assert site.versions == {NEW}

    def test_patch_releases_may_be_skipped(self):
        site = UpgradingSite()
        upgrade(site, wanted("1.34.9"))
        assert site.versions == {"1.34.9"}

    def test_later_operations_make_nodes_of_the_new_version(self):
        site = UpgradingSite()
        upgrade(site)
        site.kubelets["worker-10-10-0-99"] = NEW
        site.workers.append(machine(Role.WORKER, 99))
        scale_out(site, "server-99", wanted=RequestReader().update(stored(), None))
        made = json.loads(site.files["vars.json"])["kube_version"]
        assert made.endswith(NEW)


class TestChecks:
    def test_they_change_nothing(self):
        site = UpgradingSite(planes=3)
        check(site)
        assert (site.changes, site.runs) == ([], [])

    @pytest.mark.parametrize("look", [check, upgrade])
    @pytest.mark.parametrize(
        ("version", "reason"),
        [
            ("1.36.1", "more than one minor release"),
            ("1.33.9", "Kubernetes never goes down"),
        ],
    )
    def test_versions_that_may_not_follow(self, look, version, reason):
        site = UpgradingSite()
        with pytest.raises(errors.StepFailed, match=reason):
            look(site, wanted(version))
        assert (site.changes, site.runs) == ([], [])

    def test_everything_that_is_not_well_is_reported_at_once(self):
        site = UpgradingSite(planes=3, workers=3)
        site.quiet = {FIRST_WORKER}
        site.silent = {SECOND}
        site.dead = {"server-51"}
        site.workers.pop()
        message = failure(site)
        assert f"{FIRST_WORKER}: it is not Ready (quiet)" in message
        assert f"the API server of {SECOND}: refused" in message
        assert f"{OTHER_WORKER} cannot be used over SSH (No SSH connection" in message
        assert "worker-10-10-0-52 is in the inventory, and its VM is gone" in message
        assert "No node was touched" in message
        assert (site.changes, site.runs) == ([], [])

    def test_a_worker_that_has_not_joined_is_reported(self):
        site = UpgradingSite()
        site.workers.append(machine(Role.WORKER, 60))
        assert "worker-10-10-0-60 is a worker VM that is not in" in failure(site)

    def test_node_that_heat_would_build_again_is_reported(self):
        site = UpgradingSite()
        site.group_status = "CHECK_FAILED"
        with pytest.raises(errors.StepFailed, match="Heat would also build the VM of"):
            check(site)
        assert site.changes == []

    def test_what_the_ansible_server_lacks_is_reported_first(self):
        site = UpgradingSite()
        site.server = ("kubespray 2.30.0 cannot install Kubernetes 1.35.4",)
        assert "cannot install Kubernetes 1.35.4" in failure(site)
        assert site.calls == []

    def test_etcd_has_to_keep_its_majority(self):
        site = UpgradingSite(planes=3)
        site.without_etcd = {"server-6"}
        message = failure(site)
        assert "without control-plane-10-10-0-4, 1 of 3 control planes" in message
        assert "Fix or heal those that are not healthy" in message
        assert (site.changes, site.runs) == ([], [])

    def test_without_a_leader_no_heal_of_a_control_plane_is_named(self):
        site = UpgradingSite(planes=3)
        site.without_etcd = {"server-4", "server-5"}
        message = failure(site)
        assert "etcd has no leader" in message
        assert "recover-control-plane.yml" in message
        assert "Fix or heal" not in message

    @pytest.mark.parametrize("look", [check, upgrade])
    def test_kubeadms_health_check_needs_a_node(self, look):
        """The first control plane is cordoned, and nobody tolerates the workers."""
        site = UpgradingSite(planes=1, workers=3)
        taint(site, "worker", CNF)
        with pytest.raises(errors.StepFailed) as caught:
            look(site)
        message = str(caught.value)
        assert (
            f"while {PLANE} is cordoned, and no other node accepts its pod" in message
        )
        assert f"{FIRST_WORKER}: dedicated=cnf:NoSchedule; {OTHER_WORKER}: " in message
        assert (
            'kubespray_vars.kubeadm_ignore_preflight_errors: ["CreateJob"]' in message
        )
        assert (site.changes, site.runs) == ([], [])

    @pytest.mark.parametrize(
        ("planes", "prepare"),
        [
            pytest.param(3, lambda site: taint(site, "worker", CNF), id="planes"),
            pytest.param(1, lambda site: taint(site, FIRST_WORKER, CNF), id="worker"),
            pytest.param(
                1,
                lambda site: taint(
                    site, "worker", {**CNF, "effect": "PreferNoSchedule"}
                ),
                id="preference",
            ),
            pytest.param(1, lambda site: cordon(site, "worker"), id="all-cordoned"),
        ],
    )
    def test_kubeadms_health_check_that_can_run_or_is_left_out(self, planes, prepare):
        site = UpgradingSite(planes=planes, workers=3)
        prepare(site)
        upgrade(site)
        assert set(site.servers.values()) == {NEW}

    @pytest.mark.parametrize("name", ["CreateJob", "createjob", "all"])
    def test_kubeadms_health_check_that_is_ignored(self, name):
        site = UpgradingSite(planes=1, workers=3)
        taint(site, "worker", CNF)
        ignored = {"kubeadm_ignore_preflight_errors": [name]}
        check(site, wanted(kubespray_vars=ignored))

    def test_kubeadms_health_check_needs_no_node_for_workers_alone(self):
        site = UpgradingSite(planes=1, workers=3)
        site.kubelets[PLANE] = site.servers[PLANE] = NEW
        taint(site, "worker", CNF)
        upgrade(site)
        assert site.versions == {NEW}

    def test_nothing_to_upgrade_asks_etcd_nothing(self):
        site = UpgradingSite(planes=3)
        site.kubelets = dict.fromkeys(site.kubelets, NEW)
        site.servers = dict.fromkeys(site.servers, NEW)
        site.without_etcd = {"server-6"}
        upgrade(site)
        assert site.runs == []


def taken_calls(**options) -> list[str]:
    """Everything that a whole upgrade asks of its site, each kind once."""
    site = UpgradingSite(**options)
    upgrade(site)
    return list(dict.fromkeys(site.calls))


class TestFailures:
    @pytest.mark.parametrize("planes", [1, 3])
    @pytest.mark.parametrize("call", taken_calls(planes=3))
    def test_a_retry_ends_what_failed_at_any_call(self, call, planes):
        site = UpgradingSite(planes=planes)
        site.faults = {call}
        message = ""
        try:
            upgrade(site)
        except errors.StepFailed as failed:
            message = str(failed)
        if "failed too" not in message:
            assert not any(site.is_closed(name) for name in site.members)
            assert len(routed(site)) == 2
        upgrade(site)
        assert is_complete(site)
        site.start_again()
        upgrade(site)
        assert (site.changes, site.runs) == ([], [])

    @pytest.mark.parametrize("node", [PLANE, SECOND, THIRD, FIRST_WORKER, OTHER_WORKER])
    def test_a_node_at_which_the_playbook_fails_is_taken_up_again(self, node):
        site = UpgradingSite(planes=3)
        site.breaks_at = node
        message = failure(site)
        assert f"{node}: Start kubelet: no" in message
        assert not any(site.is_closed(name) for name in site.members)
        assert routed(site) == [FIRST_WORKER, OTHER_WORKER]
        assert "Kubernetes cannot go back" in message
        site.start_again()
        upgrade(site)
        assert is_complete(site)
        if node.startswith("worker"):
            assert PLANES not in site.batches
            assert site.batches[0] == node

    def test_versions_are_reported_by_node(self):
        site = UpgradingSite(planes=3)
        site.breaks_at = SECOND
        assert (
            f"Kubernetes by now: {NEW}: {PLANE}; {NEW} (API server {OLD}): {SECOND}; "
            f"{OLD}: {THIRD}, {FIRST_WORKER}, {OTHER_WORKER}." in failure(site)
        )

    def test_of_many_nodes_some_are_named(self):
        site = UpgradingSite(workers=30)
        site.breaks_at = PLANE
        assert "worker-10-10-0-59 and 20 more. Kubernetes cannot" in failure(site)

    def test_a_blocked_drain_upgrades_no_worker_and_gives_it_back(self):
        site = UpgradingSite()
        site.pods = {FIRST_WORKER: ["web"]}
        site.budget = "kept by web-pdb"
        message = failure(site)
        assert "web-pdb" in message
        assert f"{FIRST_WORKER} can be scheduled again" in message
        assert site.batches == [PLANES]
        assert routed(site) == [FIRST_WORKER, OTHER_WORKER]
        site.budget = ""
        upgrade(site)
        assert is_complete(site)

    @pytest.mark.parametrize("runs", [0, 1])
    def test_a_retry_attaches_to_the_run_that_goes_on(self, runs):
        site = UpgradingSite(planes=3)
        if runs:
            site.breaks_at = FIRST_WORKER
            failure(site)
        site.breaks_off = True
        message = failure(site)
        assert "The run continues with" in message
        attached, seen = site.running, site.runs[-1].digest
        assert attached == seen
        site.start_again()
        upgrade(site)
        assert is_complete(site)
        assert site.runs[0].digest == attached
        if runs:
            assert site.calls.count("cluster.drain") == 1

    def test_a_playbook_that_brings_another_version_is_reported(self):
        site = UpgradingSite()
        moved = site.move
        site.move = lambda known, name, version: moved(known, name, "1.35.0")
        message = failure(site)
        assert f"these nodes have not got Kubernetes {NEW}" in message
        assert f"{PLANE}: 1.35.0" in message

    @pytest.mark.parametrize("plane", [PLANE, SECOND, THIRD])
    def test_an_api_server_that_died_half_way_is_brought_back(self, plane):
        site = UpgradingSite(planes=3)
        site.breaks_at = plane
        failure(site)
        site.silent = {plane}
        upgrade(site)
        assert is_complete(site)

    def test_two_sick_control_planes_are_not_touched(self):
        site = UpgradingSite(planes=3)
        site.breaks_at = SECOND
        failure(site)
        site.silent = {SECOND, THIRD}
        site.start_again()
        assert "cannot be upgraded one by one" in failure(site)
        assert site.runs == []

    def test_a_newer_version_may_follow_on_what_was_given_up(self):
        site = UpgradingSite(planes=3)
        site.breaks_at = SECOND
        failure(site)
        site.by_kubespray = frozenset({SECOND})
        upgrade(site, wanted("1.35.5"))
        assert site.versions == {"1.35.5"}
        assert not any(site.is_closed(name) for name in site.members)


class TestAmongPlanes:
    """An upgrade that has stopped while the control planes have two versions."""

    def stopped(self) -> UpgradingSite:
        site = UpgradingSite(planes=3)
        site.breaks_at = SECOND
        failure(site)
        site.start_again()
        return site

    def test_none_of_them_is_healed(self):
        site = self.stopped()
        with pytest.raises(errors.StepFailed) as caught:
            heal_start(site, "server-6", wanted=RequestReader().update(stored(), None))
        message = str(caught.value)
        assert f"an upgrade to Kubernetes {NEW} has stopped between" in message
        assert "continue with the upgrade, or heal without vnfcInstanceId" in message
        assert (site.changes, site.runs) == ([], [])

    def test_workers_are_healed(self):
        site = self.stopped()
        heal_start(site, "server-50", wanted=RequestReader().update(stored(), None))
        assert FIRST_WORKER not in site.members

    @pytest.mark.parametrize("look", [check, upgrade])
    @pytest.mark.parametrize("ill", ["dead", "server"])
    def test_checks_that_fail_do_not_say_that_nothing_was_touched(self, look, ill):
        site = self.stopped()
        setattr(site, ill, {"dead": {"server-6"}, "server": ("no venv",)}[ill])
        with pytest.raises(errors.StepFailed) as caught:
            look(site, wanted("1.35.5"))
        message = str(caught.value)
        assert "No node was touched" not in message
        assert f"an earlier one has begun an upgrade to Kubernetes {NEW}." in message

    def test_no_hint_names_a_heal_of_the_silent_one(self):
        site = self.stopped()
        site.dead = {"server-6"}
        message = failure(site)
        assert f"{THIRD} cannot be used over SSH (No SSH connection" in message
        assert "groups): make it answer again" in message
        assert "heal it" not in message

    def test_no_hint_names_a_heal_of_those_that_are_not_well(self):
        site = self.stopped()
        site.silent = {SECOND, THIRD}
        message = failure(site)
        assert "Fix those that are not healthy" in message
        assert "Fix or heal" not in message

    @pytest.mark.parametrize("kind", ["control_planes", "workers"])
    def test_no_hint_names_a_heal_of_one_whose_vm_is_gone(self, kind):
        site = self.stopped()
        getattr(site, kind).pop()
        message = failure(site)
        assert "heal or scale" not in message
        remedy = {
            "control_planes": "VM back, to continue with the upgrade to 1.35.4, or "
            "heal without vnfcInstanceId",
            "workers": "scale in first, which takes it out",
        }
        assert remedy[kind] in message
