# SPDX-License-Identifier: Apache-2.0
"""Each source is read on its own, nothing is changed, and no secret is shown."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure.cnf_operations import Expose
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.model.nodes import Count, Role
from tacker_k8s_mgmt.model.services import Cnf
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.request import cnf_exposure
from tacker_k8s_mgmt.status.facts import Source
from tests.helpers.cnf import CNF, service
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import MASTER, instantiated, run
from tests.helpers.requests import BALANCER, VNF, params

LIMIT = 60  # seconds for threads that must meet
CALLS = {
    Source.HEAT: "machines",
    Source.INVENTORY: "workdir.owner",
    Source.CLUSTER: "cluster.nodes",
    Source.BALANCER: "balancer.status",
    Source.VIM: "vims.registered",
}


def survey(site, wanted=None):
    return ClusterInspection(wanted or params(), VNF, site, features=FEATURES).take()


def differences(report):
    return [(row.name, finding.text) for row in report.rows for finding in row.findings]


def test_a_cluster_that_stands_agrees_and_nothing_is_changed():
    site = instantiated()
    report = survey(site)
    assert (report.differs, report.failures, differences(report)) == (False, {}, [])
    assert list(report.sources) == list(Source)
    assert site.changes == []
    tenants = ["vims.of_tenants", "manifests.get namespaces"]
    tenants.append("manifests.get serviceaccounts")
    assert sorted(site.calls) == sorted([*CALLS.values(), "cluster.marks", *tenants])


def test_services_of_exposed_cnfs_are_looked_for():
    site = instantiated(params(external_lb_param=BALANCER), load_balancer=True)
    site.services = [service("dns", (53, "UDP", 30053))]
    wanted = params(external_lb_param=BALANCER)
    cnf = {"cnf": Cnf(CNF, "default"), "params": cnf_exposure.parse(None)}
    run(Expose, site, wanted, **cnf)
    gone = "its Service is not in the cluster"
    assert gone not in [text for _, text in differences(survey(site, wanted))]
    site.services = []
    assert gone in [text for _, text in differences(survey(site, wanted))]


@pytest.mark.parametrize("seconds", [-5.1, 5.1, 3600.0])
def test_a_clock_that_differs_has_a_row(seconds):
    site = instantiated()
    site.ahead |= {"server-5": seconds, "server-55": 4.9, "server-4": -4.9}
    report = survey(site)
    how = f"{abs(seconds):.1f} s {'ahead' if seconds > 0 else 'behind'}"
    found = [("clock of worker-10-10-0-5", f"its clock is {how} of that of this host")]
    assert differences(report) == found
    (row,) = (row for row in report.rows if row.name.startswith("clock"))
    assert "chrony" in next(iter(row.findings)).remedy.text
    assert site.changes == []


def test_a_node_that_cannot_be_asked_has_none():
    site = instantiated()
    site.ahead["server-5"] = 60.0
    site.dead.add("server-5")
    assert [row.name for row in survey(site).rows if row.name.startswith("clock")] == []


@pytest.mark.parametrize("source", CALLS)
def test_one_that_does_not_answer_hides_no_other(source):
    site = instantiated()
    site.faults.add(CALLS[source])
    report = survey(site)
    assert source in report.failures
    assert f"fault in {CALLS[source]}" in report.failures[source]
    # Where the load balancer's VM is, only Heat tells.
    others = {Source.BALANCER} if source is Source.HEAT else set()
    assert set(report.failures) == {source, *others}
    assert len(report.rows) == 4
    unknown = {
        column
        for row in report.rows
        for column, cell in row.cells.items()
        if cell.text == "?"
    }
    assert unknown == {source, *others}


def test_all_differences_are_reported_although_a_source_does_not_answer():
    site = instantiated()
    site.routes = frozenset(list(site.routes)[:1])
    site.faults.add("cluster.nodes")
    report = survey(site)
    assert set(report.failures) == {Source.CLUSTER}
    assert report.differs
    assert [text for _, text in differences(report)] == [
        "the load balancer has no route to it"
    ]


def test_a_group_that_tacker_counts_otherwise_differs():
    site = instantiated()
    site.counted = (Count("worker_instance", heat=3, tacker=2, remedy="Scale."),)
    report = survey(site)
    assert differences(report) == [
        ("worker_instance", "Heat has 3 VMs of it, and Tacker counts 2")
    ]
    assert report.differs


def test_without_a_load_balancer_none_is_asked():
    wanted = params(external_lb_param=None)
    site = instantiated(wanted, load_balancer=False)
    report = survey(site, wanted)
    assert (report.differs, report.failures) == (False, {})
    assert Source.BALANCER not in report.sources
    assert "balancer.status" not in site.calls


def test_a_directory_of_another_vnf_is_no_inventory_of_this_one():
    site = instantiated()
    site.owner = "another-vnf"
    report = survey(site)
    assert (
        "belongs to the VNF instance another-vnf" in report.failures[Source.INVENTORY]
    )


@pytest.mark.parametrize("name", ["hosts.yaml", "joined.json"])
def test_a_damaged_file_is_reported_without_its_content(name):
    site = instantiated()
    site.files[name] = "password: n0de-secret: {"
    text = survey(site).failures[Source.INVENTORY]
    assert "n0de-secret" not in text


def test_secrets_are_kept_out_of_what_failed():
    site = instantiated()
    site.faults.add("cluster.nodes")
    site.error = errors.RemoteError(detail="sudo: n0de-secret was refused")
    assert survey(site).failures == {Source.CLUSTER: "sudo: *** was refused"}


def test_an_unforeseen_error_is_shown_with_its_kind():
    site = instantiated()
    site.faults.add("machines")
    site.error = KeyError("links")
    assert survey(site).failures[Source.HEAT] == "KeyError: 'links'"


def test_a_file_that_may_not_be_read_is_named():
    site = instantiated()
    site.faults.add("balancer.status")
    site.error = PermissionError(13, "Permission denied", "/csar/lb.sh")
    text = survey(site).failures[Source.BALANCER]
    assert text == "/csar/lb.sh cannot be read: Permission denied."


def test_a_system_error_without_a_file_is_reported_as_it_is():
    site = instantiated()
    site.faults.add("vims.registered")
    site.error = ConnectionRefusedError(111, "Connection refused")
    text = survey(site).failures[Source.VIM]
    assert text == "[Errno 111] Connection refused"


def test_the_next_control_plane_is_asked_when_one_does_not_answer():
    site = FakeSite()
    site.control_planes = [machine(Role.CONTROL_PLANE, n) for n in (4, 6, 7)]
    asked = []
    ask = site.cluster

    def cluster(node):
        asked.append(node.ssh_address)
        if len(asked) == 1:
            raise errors.ConnectError(
                user="u", host="h", port=22, seconds=1, reason="no route"
            )
        return ask(node)

    site.cluster = cluster
    report = survey(site)
    # The settings of nodes are read through the one that answered.
    assert asked == ["192.0.2.104", "192.0.2.106", "192.0.2.106"]
    assert Source.CLUSTER not in report.failures


def test_without_an_inventory_the_cluster_is_found_by_heat():
    site = instantiated()
    del site.files["hosts.yaml"]
    report = survey(site)
    assert report.failures == {}
    texts = {text for _, text in differences(report)}
    assert texts == {"in no inventory, for there is none"}


def test_no_control_plane_is_known():
    site = instantiated()
    site.faults |= {"machines", "workdir.owner"}
    text = survey(site).failures[Source.CLUSTER]
    assert text == "Neither the inventory nor Heat has a control plane."


def test_two_vms_with_one_address_are_heats_failure_and_the_rest_is_shown():
    site = instantiated()
    site.workers.append(replace(site.workers[0], server_id="twin"))
    report = survey(site)
    assert "the same address" in report.failures[Source.HEAT]
    assert len(report.rows) == 4


def test_the_slow_ones_are_asked_side_by_side():
    site = instantiated()
    first, second = threading.Barrier(2), threading.Barrier(2)
    meetings = {
        "workdir.owner": first,
        "machines": first,
        "cluster.nodes": second,
        "balancer.status": second,
    }
    touch = site.touch

    def meet(call):
        touch(call)
        if call in meetings:
            meetings[call].wait(LIMIT)

    site.touch = meet
    assert survey(site).failures == {}


def test_only_one_thread_asks_tacker():
    site = instantiated()
    threads = {}
    touch = site.touch

    def note(call):
        touch(call)
        threads.setdefault(call, threading.current_thread())

    site.touch = note
    survey(site)
    by_database = ("machines", "vims.registered", "balancer.status")
    assert {threads[call] for call in by_database} == {threading.current_thread()}


def test_nothing_is_written_whatever_differs():
    site = instantiated()
    site.workers.append(machine(Role.WORKER, 7))
    site.workers[0] = replace(site.workers[0], server_id="rebuilt")
    site.routes = frozenset()
    site.kill("server-5")
    before = dict(site.files)
    assert survey(site).differs
    assert (site.changes, site.files) == ([], before)
    assert "lock" not in site.calls


def test_the_silence_of_one_feature_hides_no_other(monkeypatch):
    site, asked = instantiated(), []

    def silent(control_plane):
        raise errors.RemoteError(detail="no answer")

    def applications(control_plane):
        asked.append(control_plane.name)
        return SimpleNamespace(records=SimpleNamespace(read=dict))

    monkeypatch.setattr(site, "manifests", silent)
    monkeypatch.setattr(site, "applications", applications)
    report = survey(site)
    assert asked == [MASTER]
    assert report.failures == {Source.CLUSTER: "no answer"}
    seen = [row.cells[Source.CLUSTER].text for row in report.rows]
    assert seen.count("Ready") == 3
