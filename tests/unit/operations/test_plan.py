# SPDX-License-Identifier: Apache-2.0
"""The plan of an operation, and the operation after it, on fakes.

``tests/contract/test_plan.py`` does so for scaling, heals of workers and settings of
nodes, from whatever states. Here are upgrades, control planes and tenants.
"""

import copy

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.plan import CHECKED, TO_DO, Plan
from tacker_k8s_mgmt.operations.heal import HealStart
from tacker_k8s_mgmt.operations.instantiate import WholeHealStart
from tacker_k8s_mgmt.operations.modify import Modify
from tacker_k8s_mgmt.operations.plan import plan_of
from tacker_k8s_mgmt.operations.step import Step, Steps
from tacker_k8s_mgmt.operations.upgrade import Upgrade
from tacker_k8s_mgmt.request.reader import TENANTS
from tacker_k8s_mgmt.text import Redactor
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    dependencies,
    heal_all_start,
    heal_start,
    instantiated,
    run,
    servers_of,
    silenced,
)
from tests.helpers.requests import params
from tests.helpers.upgrades import NEW, OLD, UpgradingSite, upgrade, wanted

#: What a plan may have changed of the copy: files that the command keeps in memory.
FILES = "write "
WRITES = (
    *("run ", "upgrade ", "cluster.cordon", "cluster.uncordon", "cluster.remove_nodes"),
    *("cluster.force_evict", "cluster.publish", "vims.register", "vims.remove"),
    *(
        "manifests.apply",
        "manifests.delete",
        "balancer.call",
        "restart",
        "workdir.clear",
    ),
)
BLUE = {"name": "blue", "quota": {"pods": 3}}


def plan(kind, site, asked=None, **arguments) -> Plan:
    """The plan of an operation, on a copy of the site, which it may not change."""
    copied = copy.deepcopy(site)
    copied.start = len(copied.calls), len(copied.changes)
    operation = kind(dependencies(asked or params(), copied, FakeClock()), **arguments)
    found = plan_of(operation, "hook", Redactor(()))
    calls, changes = (
        record[start:]
        for record, start in zip(
            (copied.calls, copied.changes), copied.start, strict=True
        )
    )
    assert all(change.startswith(FILES) for change in changes), changes
    written = {c for c in calls if c.startswith(WRITES) or c in MORE_WRITES}
    assert not written
    return found


MORE_WRITES = ("cluster.drain", "cluster.mark")


def nodes(found, change="is upgraded"):
    return [one.node for one in found.nodes if one.change == change]


def failure(act):
    with pytest.raises(errors.StepFailed) as caught:
        act()
    return str(caught.value)


class TestSteps:
    def test_of_a_step_that_changes_something_only_its_probe_is_asked(self):
        done = []
        steps = Steps(
            Step("a", "look", lambda: done.append("look"), reads=True),
            Step("b", "change", lambda: done.append("change")),
            Step("c", "done", lambda: done.append("done"), probe=lambda: True),
            Step("d", "write", lambda: done.append("write"), rehearsed=True),
        )
        found = plan_of(steps, "hook", Redactor(()))
        assert done == ["look", "write"]
        outcomes = [step.outcome for step in found.steps]
        assert outcomes == [CHECKED, TO_DO, "nothing to do", TO_DO]

    def test_it_ends_where_a_step_would_fail_and_says_no_secret(self):
        def fail():
            raise errors.ClusterError(detail="wrong: s3cret", hint="Fix it.")

        steps = Steps(Step("a", "look", fail, reads=True), Step("b", "b", fail))
        found = plan_of(steps, "hook", Redactor(["s3cret"]))
        assert [step.outcome for step in found.steps] == ["refused"]
        assert found.refusal.step == "look"
        assert found.refusal.text == "wrong: *** Fix it."


def upgraded(site):
    """The nodes in the order in which the playbook took them."""
    calls = (call.split() for call in site.calls)
    return [words[1] for words in calls if words[0] == "upgrade"]


class TestUpgrade:
    @pytest.mark.parametrize(("planes", "workers"), [(1, 2), (3, 11)])
    def test_nodes_in_their_order_in_batches(self, planes, workers):
        site = UpgradingSite(planes, workers)
        site.pods = {"worker-10-10-0-50": ["web-1"]}
        found = plan(Upgrade, site, wanted())
        assert [(pod.node, pod.pod) for pod in found.pods] == [
            ("worker-10-10-0-50", "web-1")
        ]
        upgrade(site)
        assert nodes(found) == upgraded(site)
        batches = [step for step in found.steps if step.kind == "upgrade-batch"]
        limits = [",".join(one.node for one in step.effects) for step in batches]
        assert limits == site.batches[1:]
        assert found.nodes[0].why == f"one by one, {OLD} to {NEW}"
        assert found.nodes[-1].why == (
            f"batch {len(batches)}/{len(batches)} of workers, {OLD} to {NEW}"
        )

    @pytest.mark.parametrize("at", ["control-plane-10-10-0-5", "worker-10-10-0-51"])
    def test_one_that_has_stopped_continues_with_the_rest(self, at):
        site = UpgradingSite(3, 3)
        site.breaks_at = at
        failure(lambda: upgrade(site))
        found = plan(Upgrade, site, wanted())
        site.start_again()
        upgrade(site)
        # kubespray has all control planes in one run, also those that are done.
        assert nodes(found) == list(dict.fromkeys(upgraded(site)))

    def test_a_run_that_is_under_way_is_known(self):
        site = UpgradingSite(1, 2)
        failure(lambda: broken_off(site))
        found = plan(Upgrade, site, wanted())
        facts = [step for step in found.steps if step.kind == "gather-facts"]
        assert [step.outcome for step in facts] == ["nothing to do"]

    def test_nothing_is_left_to_do(self):
        site = UpgradingSite(1, 2)
        upgrade(site)
        found = plan(Upgrade, site, wanted())
        assert (found.nodes, found.refusal) == ((), None)

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda site: site.quiet.add("worker-10-10-0-50"),
            lambda site: site.kill("server-50"),
            lambda site: site.silent.add("control-plane-10-10-0-4"),
            lambda site: site.dead.add("server-4"),
            lambda site: site.workers.pop(),
            lambda site: site.without_etcd.add("server-5"),
            lambda site: site.kubelets.update({"worker-10-10-0-50": "1.31.1"}),
        ],
        ids=["NotReady", "dead", "API", "plane", "VM gone", "etcd", "too old"],
    )
    def test_refusals_are_those_of_the_operation(self, spoil):
        site = UpgradingSite(3, 3)
        spoil(site)
        found = plan(Upgrade, site, wanted())
        text = failure(lambda: upgrade(site))
        assert found.refusal.text in text
        assert found.nodes == ()

    def test_a_version_too_far(self):
        site = UpgradingSite()
        found = plan(Upgrade, site, wanted("1.37.0"))
        assert found.refusal.text in failure(lambda: upgrade(site, wanted("1.37.0")))

    def test_a_budget_that_forbids_it(self):
        site = UpgradingSite()
        site.pods = {"worker-10-10-0-50": ["web-1"]}
        site.budget = "a budget"
        found = plan(Upgrade, site, wanted())
        assert [pod.kept_by for pod in found.held] == [("a budget",)]
        assert "could not be drained" in failure(lambda: upgrade(site))


def broken_off(site):
    site.breaks_off = True
    upgrade(site)


class TestControlPlanes:
    @pytest.mark.parametrize("number", [1, 2, 3])
    @pytest.mark.parametrize("dies", [False, True])
    def test_one_of_several(self, number, dies):
        site, server = AvailableSite(), f"server-{number}"
        if dies:
            site.kill(server)
        servers = {server: "vnfc"}
        found = plan(HealStart, site, site.wanted, servers=servers)
        assert found.refusal is None
        (one,) = found.nodes
        before = set(site.members)
        heal_start(site, server, wanted=site.wanted)
        assert before - set(site.members) == {one.node}
        steps = {step.kind: step.outcome for step in found.steps}
        # The first one of the inventory has to be behind another before.
        moved = steps["reorder-control-planes"] == TO_DO
        assert moved is (number == 1)

    @pytest.mark.parametrize("servers", [["server-1", "server-2"], ["server-3"]])
    def test_what_would_cost_the_majority_is_refused(self, servers):
        site = AvailableSite()
        if len(servers) == 1:
            site.kill("server-1")
        found = plan(
            HealStart, site, site.wanted, servers=dict.fromkeys(servers, "vnfc")
        )
        text = failure(lambda: heal_start(site, *servers, wanted=site.wanted))
        assert found.refusal.text.replace("vnfc", "") in text.replace(
            "vnfc-of-server-1", ""
        ).replace("vnfc-of-server-2", "").replace("vnfc-of-server-3", "")


class TestHeal:
    def test_pods_with_nowhere_to_go_do_not_keep_a_node(self):
        site = instantiated()
        silenced(site, FIFTY_FIVE)
        site.pods, site.budget = {FIVE: ["web"]}, "a budget"
        servers = {"server-5": "vnfc"}
        found = plan(HealStart, site, servers=servers)
        (pod,) = found.pods
        assert (pod.stranded, pod.blocks, pod.kept_by) == (True, False, ("a budget",))
        heal_start(site, "server-5")
        assert FIVE not in site.members

    def test_a_control_plane_that_cannot_be_reached(self):
        site = instantiated()
        site.dead.add("server-4")
        found = plan(HealStart, site, servers={"server-5": "vnfc"})
        assert found.refusal.text in failure(lambda: heal_start(site, "server-5"))

    def test_the_whole_vnf(self):
        site = instantiated()
        found = plan(WholeHealStart, site, listed=servers_of(site))
        assert nodes(found, "is rebuilt") == site.listed
        site.vim_in_use = True
        found = plan(WholeHealStart, site, listed=servers_of(site))
        assert found.refusal.text in failure(lambda: heal_all_start(site))


def wanting(*tenants):
    return params(tenants=list(tenants))


def modified(site, *tenants):
    run(Modify, site, wanting(*tenants), patch=[TENANTS])


def plan_tenants(site, *tenants):
    found = plan(Modify, site, wanting(*tenants), patch=[TENANTS])
    return found, [(one.what, one.former, one.wanted) for one in found.differences]


class TestTenants:
    def test_a_new_one(self):
        site = instantiated()
        _, changes = plan_tenants(site, BLUE)
        assert changes == [
            ("tenant blue", None, "namespace with its rights and limits"),
            ("tenant blue: VIM", None, changes[1][2]),
        ]
        modified(site, BLUE)
        vim = site.tenant_vims["blue"]
        assert changes[1][2] == f"{vim.name} at {vim.auth_url}"
        assert plan_tenants(site, BLUE)[1] == []

    def test_another_quota(self):
        site = instantiated(wanting(BLUE))
        _, changes = plan_tenants(site, {**BLUE, "quota": {"pods": 7}})
        ((what, former, _),) = changes
        assert what == "tenant blue"
        assert former.startswith("ResourceQuota blue/tacker-k8s-mgmt-tenant is other")
        modified(site, {**BLUE, "quota": {"pods": 7}})
        quota = site.objects["ResourceQuota", "blue", "tacker-k8s-mgmt-tenant"]
        assert quota["spec"]["hard"] == {"pods": "7"}

    def test_one_that_leaves(self):
        site = instantiated(wanting(BLUE))
        _, changes = plan_tenants(site)
        assert changes == [("tenant blue", "namespace and VIM", None)]
        modified(site)
        assert site.tenant_vims == {}
        assert ("Namespace", "", "blue") not in site.objects

    def test_one_that_is_in_use_is_kept_by_both(self):
        site = instantiated(wanting(BLUE))
        site.tenants_in_use = {"blue"}
        found, _ = plan_tenants(site)
        assert "tenant blue cannot leave: VNFs use its VIM" in found.refusal.text
        assert found.refusal.text in failure(lambda: modified(site))
