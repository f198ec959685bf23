# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes on fakes: set, kept, maintenance, faults at every step."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure.cnf_operations import Expose
from tacker_k8s_mgmt.features.node_settings.feature import compare
from tacker_k8s_mgmt.features.node_settings.marks import NodeMetadata, Workload
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.model.nodes import MAINTENANCE_TAINT, Role
from tacker_k8s_mgmt.model.pods import Placement
from tacker_k8s_mgmt.model.services import Cnf
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.modify import ModificationRefused, Modify
from tacker_k8s_mgmt.operations.records import EXPOSURES_FILE
from tacker_k8s_mgmt.request import cnf_exposure
from tacker_k8s_mgmt.status.facts import Source
from tests.helpers.cnf import CNF, service
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.node_settings import (
    ALL,
    DISK,
    OUT,
    heals,
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
    grown,
    instantiated,
    run,
    scale_out,
)
from tests.helpers.requests import VNF, params

CALLS = [
    "lock",
    "machines",
    "cluster.nodes",
    "cluster.marks",
    "cluster.workloads",
    "cluster.mark",
    "balancer.status",
    "balancer.remove-worker",
    "cluster.cordon",
    "cluster.drain",
]


def problem(site, metadata, **changes):
    with pytest.raises(errors.StepFailed) as caught:
        modify(site, metadata, params(**changes))
    assert isinstance(caught.value.__cause__, ModificationRefused)
    assert "marks" not in site.changes
    return str(caught.value)


class TestSettings:
    def test_each_selector_means_its_nodes(self):
        site = instantiated()
        modify(site, ALL)
        assert {n: dict(marks(site, n).labels) for n in site.members} == {
            MASTER: {},
            FIVE: {"disk": "ssd"},
            FIFTY_FIVE: {"disk": "ssd"},
        }
        assert marks(site, MASTER).annotations["note"] == "hands off"
        assert marks(site, FIFTY_FIVE).values == {("gpu", "NoSchedule"): "a"}
        assert report(site) == []

    def test_an_aspect_without_labels_of_its_own(self):
        site = instantiated()
        worker = {"ssh_cp_name": "w", "username": "u", "password": "p"}
        wanted = params(worker_node={**worker, "aspect_id": "worker_instance"})
        modify(site, {"k8s_nodes:aspect:worker_instance:label:a": "b"}, wanted)
        assert marks(site, FIVE).labels == {"a": "b"}
        assert marks(site, MASTER).labels == {}

    def test_what_is_taken_back_goes_and_what_others_set_stays(self):
        site = instantiated()
        site.marks[FIVE] = NodeMetadata(FIVE, labels={"theirs": "1"})
        modify(site, ALL)
        modify(site, {})
        assert marks(site, FIVE).labels == {"theirs": "1"}
        for name in site.members:
            assert marks(site, name).annotations == {}
            assert marks(site, name).taints == ()
        assert routes(site) == {FIVE, FIFTY_FIVE}
        assert report(site) == []

    def test_host_keys_that_were_trusted_anew_are_kept(self):
        site = instantiated()
        site.stored = {}
        modify(site, ALL)
        assert site.stored == site.known

    def test_a_second_time_changes_nothing(self):
        site = instantiated()
        modify(site, ALL)
        site.changes.clear()
        journal = modify(site)
        assert site.changes == []
        ends = [one for one in journal.records if one["event"] == "step-end"]
        assert {one["outcome"] for one in ends[1:]} == {"nothing to do"}

    def test_others_may_change_a_node_meanwhile(self):
        site = instantiated()
        site.conflicts = 3
        modify(site, DISK)
        assert marks(site, FIVE).labels == {"disk": "ssd"}
        site.conflicts = 1000
        with pytest.raises(errors.StepFailed, match="again and again"):
            modify(site, {})

    def test_a_failed_one_is_taken_back_by_its_rollback(self):
        site = instantiated()
        modify(site, DISK)
        site.budget = "PodDisruptionBudget a/b"
        with pytest.raises(errors.StepFailed, match="PodDisruptionBudget a/b"):
            modify(site, ALL)
        site.budget = ""
        modify(site, DISK, checked=False)
        assert marks(site, FIFTY_FIVE).taints == ()
        assert marks(site, FIVE).labels == {"disk": "ssd"}
        assert report(site) == []


class TestRefused:
    def test_every_problem_in_one_error(self):
        site = instantiated()
        site.marks[FIVE] = NodeMetadata(FIVE, labels={"zone": "a"})
        site.workloads = [
            Workload("Deployment", "apps", "web", Placement({"disk": "hdd"}))
        ]
        site.marks[FIFTY_FIVE] = NodeMetadata(FIFTY_FIVE, labels={"disk": "hdd"})
        text = problem(
            site,
            {
                **DISK,
                "k8s_nodes:vnfc:gone:label:a": "b",
                "k8s_nodes:aspect:none:label:a": "b",
                "k8s_nodes:worker:label:k8s.io/a": "b",
                "k8s_nodes:vnfc:plane:maintenance": "true",
            },
        )
        assert "The metadata of the VNF instance have 5 problem(s): (1) " in text
        assert "k8s_nodes:worker:label:k8s.io/a has a key of k8s.io" in text
        assert "k8s_nodes:vnfc:gone:label:a is of a VNFC that has no node" in text
        assert "k8s_nodes:aspect:none:label:a is of an unknown scaling aspect" in text
        assert f"one of {MASTER} has to stay in service" in text
        assert "Deployment apps/web could start on no node any more" in text
        assert "Nothing was changed." in text

    def test_a_label_that_a_workload_needs_stays_while_no_other_node_has_it(self):
        site = instantiated()
        modify(site, DISK)
        site.workloads = [
            Workload("StatefulSet", "apps", "db", Placement({"disk": "ssd"}))
        ]
        site.changes.clear()
        assert "StatefulSet apps/db could start" in problem(site, {})
        five = {"k8s_nodes:vnfc:five:label:disk": "ssd"}
        out = {"k8s_nodes:vnfc:five:maintenance": "true"}
        assert "db could start" in problem(site, {**five, **out})
        modify(site, five)
        assert marks(site, FIFTY_FIVE).labels == {}

    def test_what_is_left_of_a_vnfc_that_is_gone_is_no_fault_of_a_request(self):
        site = instantiated()
        metadata = {**DISK, "k8s_nodes:vnfc:gone:maintenance": "true"}
        site.metadata, site.vnfc_servers = metadata, {"five": "server-5"}
        site.patch = DISK
        modify(site)
        assert labels(site, FIVE) == {"disk": "ssd"}

    def test_keys_that_the_parameters_set(self):
        site = instantiated()
        worker = {"ssh_cp_name": "w", "username": "u", "password": "p"}
        own = {"node_labels": ["disk=hdd"], "node_taints": ["a=b:NoSchedule"]}
        metadata = {**DISK, "k8s_nodes:worker:taint:a:NoSchedule": ""}
        text = problem(site, metadata, worker_node={**worker, **own})
        assert "have 2 problem(s)" in text
        assert "set by the parameters of the instantiation" in text

    def test_other_operations_refuse_metadata_that_are_no_settings(self):
        site = grown(6)
        wants(site, {"k8s_nodes:worker:label:-": "b"})
        with pytest.raises(errors.StepFailed, match="has no valid key"):
            scale_out(site, "server-6")
        site = FakeSite()
        wants(site, {"k8s_nodes:worker:label:-": "b"})
        with pytest.raises(errors.StepFailed, match="has no valid key"):
            run(Instantiate, site)

    def test_the_first_hook_changes_nothing(self):
        site = instantiated()
        wants(site, ALL)

        class Start(Modify):
            steps = Modify.start_steps

        run(Start, site, patch=["k8s_nodes"])
        assert site.changes == []


class TestMaintenance:
    def test_out_of_service_in_the_order_of_a_scale_in(self):
        site = instantiated()
        site.pods = {FIVE: ["web"], FIFTY_FIVE: ["db"]}
        modify(site, OUT)
        order = ["balancer.remove-worker", "cluster.cordon", "cluster.drain"]
        calls = [call for call in site.calls if call in {*order, "cluster.mark"}]
        assert calls == [*order, "cluster.mark"]
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE}, {FIVE})
        assert site.pods == {FIFTY_FIVE: ["db"]}
        assert MAINTENANCE_TAINT in marks(site, FIVE).values
        assert report(site) == []

    def test_cluster_check_shows_it_as_wanted(self):
        site = instantiated()
        modify(site, OUT)
        rows = (
            ClusterInspection(
                params(), VNF, site, site.metadata, heals(site), features=FEATURES
            )
            .take()
            .rows
        )
        (five,) = (row for row in rows if row.name == FIVE)
        assert five.cells[Source.CLUSTER].text == "Ready, maintenance"
        assert five.cells[Source.BALANCER].text == "maintenance"

    def test_cluster_check_shows_what_differs(self):
        site = instantiated()
        modify(site, {**OUT, **DISK})
        wants(site, {"k8s_nodes:vnfc:fiftyfive:maintenance": "true"})
        found = report(site)
        assert (FIVE, "label disk is set, and no request wants it any more") in found
        assert (FIVE, "maintenance is set, and no request wants it any more") in found
        assert (FIFTY_FIVE, "maintenance is missing") in found
        text = "in maintenance, and the load balancer routes to it"
        assert (FIFTY_FIVE, text) in found

    def test_a_drain_that_fails_takes_it_back_into_service(self):
        site = instantiated()
        site.budget = "PodDisruptionBudget a/b"
        with pytest.raises(errors.StepFailed, match="have their routes") as caught:
            modify(site, OUT)
        assert "PodDisruptionBudget a/b" in str(caught.value)
        assert (routes(site), site.cordoned) == ({FIVE, FIFTY_FIVE}, set())
        site.budget = ""
        modify(site, OUT)
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE}, {FIVE})

    @pytest.mark.parametrize("metadata", [{}, OUT])
    @pytest.mark.parametrize("fault", ["cluster.cordon", "cluster.uncordon"])
    def test_what_a_failure_left_is_mended_by_the_next(self, fault, metadata):
        site = instantiated()
        site.faults.add(fault)
        site.budget = "PodDisruptionBudget a/b"
        with pytest.raises(errors.StepFailed):
            modify(site, OUT)
        assert routes(site) == {FIFTY_FIVE}
        site.budget = ""
        modify(site, metadata)
        out = {FIVE} if metadata else set()
        assert (routes(site), site.cordoned) == ({FIVE, FIFTY_FIVE} - out, out)
        assert report(site) == []

    def test_it_takes_back_a_route_that_was_added_by_hand(self):
        site = instantiated()
        modify(site, OUT)
        site.routes |= {(FIVE, "10.10.0.5")}
        assert report(site) != []
        modify(site, OUT)
        assert (routes(site), report(site)) == ({FIFTY_FIVE}, [])

    def test_what_is_exposed_stays_so_by_the_other_nodes(self):
        site = instantiated()
        site.services = [service("web", (80, "TCP", 30080))]
        run(Expose, site, cnf=Cnf(CNF, "default"), params=cnf_exposure.parse(None))
        exposed, record = list(site.exposed), site.files[EXPOSURES_FILE]
        modify(site, OUT)
        assert (list(site.exposed), site.files[EXPOSURES_FILE]) == (exposed, record)
        modify(site, {})
        assert (list(site.exposed), site.files[EXPOSURES_FILE]) == (exposed, record)
        assert routes(site) == {FIVE, FIFTY_FIVE}

    def test_a_node_that_is_not_ready_is_not_drained(self):
        site = instantiated()
        site.kill("server-5")
        modify(site, OUT)
        assert "cluster.drain" not in site.calls
        assert (routes(site), site.cordoned) == ({FIFTY_FIVE}, {FIVE})

    def test_a_control_plane_of_several(self):
        site = FakeSite()
        site.control_planes += [machine(Role.CONTROL_PLANE, n) for n in (30, 31)]
        run(Instantiate, site)
        modify(site, {"k8s_nodes:vnfc:plane:maintenance": "true"})
        names = {name for name, _ in site.balanced.control_planes}
        assert names == {"control-plane-10-10-0-30", "control-plane-10-10-0-31"}
        assert routes(site) == {FIVE, FIFTY_FIVE}
        modify(site, {})
        assert len(site.balanced.control_planes) == 3
        assert site.cordoned == set()

    @pytest.mark.parametrize("fault", CALLS)
    def test_a_second_try_after_a_fault_reaches_the_same_end(self, fault):
        expected = instantiated()
        modify(expected, ALL)
        site = instantiated()
        site.faults.add(fault)
        wants(site, ALL)
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            modify(site)
        modify(site)
        assert (site.marks, site.routes) == (expected.marks, expected.routes)
        assert site.cordoned == expected.cordoned

    @pytest.mark.parametrize("fault", ["cluster.mark", "balancer.add-worker"])
    def test_a_second_try_of_the_return(self, fault):
        site = instantiated()
        modify(site, ALL)
        site.faults.add(fault)
        wants(site, {})
        with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
            modify(site)
        modify(site)
        assert (routes(site), site.cordoned) == ({FIVE, FIFTY_FIVE}, set())
        assert report(site) == []


def test_wanted_and_actual_are_listed():
    site = instantiated()
    modify(site, {**DISK, "k8s_nodes:vnfc:five:label:disk": "nvme"})
    wants(site, {**DISK, "k8s_nodes:vnfc:gone:label:a": "b", **OUT})
    done = compare(ClusterInspection(params(), VNF, site, site.metadata, heals(site)))
    rows = [(row.node, row.setting, row.wanted, row.actual) for row in done.rows]
    assert sorted(rows) == sorted(
        [
            (FIFTY_FIVE, "label disk", "ssd", "ssd"),
            (FIVE, "label disk", "ssd", "nvme"),
            (FIVE, "maintenance", "true", None),
            ("", "label a", "b", None),
        ]
    )
    assert done.differs
