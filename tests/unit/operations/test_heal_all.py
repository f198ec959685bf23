# SPDX-License-Identifier: Apache-2.0
"""Heal of the whole VNF: nothing is removed before Heat has replaced the VMs."""

import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.modify import Modify
from tacker_k8s_mgmt.operations.records import WHOLE_FILE
from tacker_k8s_mgmt.operations.upgrade import UpgradeStart
from tests.helpers import operations
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SIX,
    heal_all_end,
    heal_all_start,
    instantiated,
    replace_all,
    servers_of,
)
from tests.helpers.requests import VNF

NO_TENANTS = {"k8s_tenants": "[]"}
NAMES = [MASTER, FIVE, FIFTY_FIVE]


@pytest.fixture
def site() -> FakeSite:
    return instantiated()


def kept(site: FakeSite) -> tuple[object, ...]:
    """What describes the cluster; the note of the heal aside."""
    files = {name: text for name, text in site.files.items() if name != WHOLE_FILE}
    return site.owner, files, site.vim, site.known


def recorded(site: FakeSite) -> set[str]:
    nodes = json.loads(site.files["machines.json"])
    return {*nodes, *json.loads(site.files["joined.json"])}


def verify_new(site: FakeSite) -> None:
    """The cluster is that of the servers in Heat, and of no other."""
    assert site.members == NAMES
    assert recorded(site) == set(servers_of(site))
    assert site.vim is not None
    assert {node.machine_id for node in site.cluster_nodes} < recorded(site)
    assert json.loads(site.files[WHOLE_FILE]) == {"former": [], "cleared": False}


def test_start_removes_nothing(site):
    before = kept(site)
    heal_all_start(site)
    assert kept(site) == before
    assert "playbooks.stop" not in site.calls
    assert site.changes == [f"write {WHOLE_FILE}"]


def test_start_is_repeated_without_a_change(site):
    heal_all_start(site)
    site.changes.clear()
    heal_all_start(site)
    assert site.changes == []


def test_cluster_goes_on_after_heat_has_stopped(site):
    heal_all_start(site)
    site.workers.append(machine(Role.WORKER, 6))
    operations.scale_out(site, "server-6")
    assert site.members == [*NAMES, SIX]


def test_end_installs_the_new_cluster(site):
    heal_all_start(site)
    replace_all(site)
    heal_all_end(site)
    verify_new(site)


@pytest.mark.parametrize("number", [4, 5, 9])
def test_end_refuses_while_a_former_vm_is_there(site, number):
    """A control plane, a worker, the load balancer."""
    heal_all_start(site)
    before = [*site.control_planes, *site.workers, site.load_balancer]
    replace_all(site)
    (former,) = (one for one in before if one.server_id == f"server-{number}")
    if former == before[-1]:
        site.load_balancer = former
    else:

        def formerly(one):
            return former if one.address == former.address else one

        site.control_planes = [formerly(one) for one in site.control_planes]
        site.workers = [formerly(one) for one in site.workers]
    before = kept(site)
    site.calls.clear()
    with pytest.raises(errors.StepFailed) as caught:
        heal_all_end(site)
    assert isinstance(caught.value.__cause__, errors.UnsupportedOperation)
    assert f"server server-{number}" in str(caught.value)
    assert kept(site) == before
    changing = ("vims.remove", "workdir.clear", "playbooks.stop", "balancer.install")
    assert not {*changing, "run cluster"} & set(site.calls)
    assert number == 9 or f"10-10-0-{number} (server" in str(caught.value)


def test_end_refuses_the_cluster_as_it_was_with_all_names(site):
    heal_all_start(site)
    with pytest.raises(errors.StepFailed) as caught:
        heal_all_end(site)
    for name in NAMES:
        assert f"{name} (server " in str(caught.value)


def test_end_refuses_without_a_start(site):
    """A package need not name heal_start."""
    with pytest.raises(errors.StepFailed, match="has not replaced these VMs"):
        heal_all_end(site)
    replace_all(site)
    heal_all_end(site)
    verify_new(site)
    # The record of the heal that has ended says nothing of this one.
    with pytest.raises(errors.StepFailed, match="has not replaced these VMs"):
        heal_all_end(site)
    replace_all(site, "newer")
    heal_all_end(site)
    verify_new(site)


@pytest.mark.parametrize("starts", [True, False])
def test_new_vms_keep_the_recorded_addresses_of_their_ports(site, starts):
    """Where Heat keeps the ports; Neutron orders their addresses as text."""
    before = {one.name for one in site.cluster_nodes}
    address = site.load_balancer.address
    if starts:
        heal_all_start(site)
    replace_all(site)

    def with_another(one):
        first = one.address.replace("10.10.0.", "10.10.0.1")
        return replace(one, address=first, addresses=(first, one.address))

    site.control_planes = [with_another(one) for one in site.control_planes]
    site.workers = [with_another(one) for one in site.workers]
    site.load_balancer = with_another(site.load_balancer)
    heal_all_end(site)
    assert {one.name for one in site.cluster_nodes} == before
    assert address in site.files["vars.json"]


STEPS = (
    "machines",
    "vims.remove",
    "workdir.clear",
    f"workdir.write {WHOLE_FILE}",
    "lock",
    "wait_reachable",
    "workdir.write hosts.yaml",
    "workdir.write machines.json",
    "balancer.install",
    "run cluster",
    "workdir.write joined.json",
    "vims.register",
)


@pytest.mark.parametrize("fault", STEPS)
@pytest.mark.parametrize("named", [True, False], ids=["heal_start", "without"])
def test_retry_of_the_end_goes_on(site, fault, named):
    """Also when what is recorded is the new cluster's."""
    if named:
        heal_all_start(site)
    replace_all(site)
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match=f"fault in {fault}"):
        heal_all_end(site)
    site.calls.clear()
    heal_all_end(site)
    verify_new(site)
    if fault in STEPS[5:]:
        assert not {"vims.remove", "workdir.clear"} & set(site.calls)


@pytest.mark.parametrize(
    "operation",
    [
        lambda site: operations.heal_start(site, site.workers[0].server_id),
        lambda site: operations.scale_in(site, site.workers[0].server_id),
        operations.scale_out,
        lambda site: operations.run(Modify, site, patch=NO_TENANTS),
    ],
    ids=["heal", "scale-in", "scale-out", "modify"],
)
@pytest.mark.parametrize("registered", [False, True])
def test_only_a_heal_of_the_whole_continues_an_abandoned_one(
    site, operation, registered
):
    """Unless the new cluster has its VIM already."""
    heal_all_start(site)
    replace_all(site)
    site.faults.add("vims.register")
    with pytest.raises(errors.StepFailed, match=r"fault in vims\.register"):
        heal_all_end(site)
    if registered:
        note = site.files[WHOLE_FILE]
        heal_all_end(site)
        site.files[WHOLE_FILE] = note
        operation(site)
        return
    before = kept(site)
    with pytest.raises(errors.StepFailed, match="Heal the whole VNF"):
        operation(site)
    assert kept(site) == before


def test_an_upgrade_does_not_continue_it_either(site):
    heal_all_start(site)
    replace_all(site)
    site.faults.add("vims.register")
    with pytest.raises(errors.StepFailed, match=r"fault in vims\.register"):
        heal_all_end(site)
    with pytest.raises(errors.StepFailed, match="Heal the whole VNF"):
        operations.run(UpgradeStart, site)


@pytest.mark.parametrize("fault", STEPS)
def test_retry_of_both_hooks_goes_on(site, fault):
    """As in the v2 API; Heat replaces the VMs once more."""
    heal_all_start(site)
    replace_all(site)
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed):
        heal_all_end(site)
    heal_all_start(site)
    replace_all(site, "newer")
    heal_all_end(site)
    verify_new(site)


@pytest.mark.parametrize("fault", STEPS)
def test_next_heal_refuses_the_half_made_cluster_that_heat_has_kept(site, fault):
    """Heat has stopped in a second heal, after the first was abandoned."""
    heal_all_start(site)
    replace_all(site)
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed):
        heal_all_end(site)
    heal_all_start(site)
    with pytest.raises(errors.StepFailed, match="has not replaced"):
        heal_all_end(site)
    replace_all(site, "newer")
    heal_all_end(site)
    verify_new(site)


@pytest.mark.parametrize("name", ["hosts.yaml", "machines.json", "joined.json"])
@pytest.mark.parametrize("text", [None, "", "{", "\ufffd"])
def test_lost_and_spoiled_records_are_no_obstacle(site, name, text):
    del site.files[name]
    if text is not None:
        site.files[name] = text
    heal_all_start(site)
    with pytest.raises(errors.StepFailed, match="has not replaced"):
        heal_all_end(site)
    replace_all(site)
    heal_all_end(site)
    verify_new(site)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"former": 1, "cleared": "no"}'])
def test_spoiled_note_is_no_obstacle(site, text):
    heal_all_start(site)
    site.files[WHOLE_FILE] = text
    with pytest.raises(errors.StepFailed, match="has not replaced"):
        heal_all_end(site)
    replace_all(site)
    heal_all_end(site)
    verify_new(site)


def test_directory_that_is_lost_is_claimed_again(site):
    site.files, site.owner = {}, None
    heal_all_start(site)
    assert site.owner == VNF
    with pytest.raises(errors.StepFailed, match="these VMs: server server-4"):
        heal_all_end(site)
    replace_all(site)
    heal_all_end(site)
    verify_new(site)


@pytest.mark.parametrize("refused", ["vim_in_use", "locked", "foreign"])
def test_start_refuses_without_a_change(site, refused):
    before = kept(site)
    if refused == "vim_in_use":
        site.vim_in_use = True
    elif refused == "locked":
        site.faults.add("lock")
    else:
        site.owner, before = "another", ("another", *before[1:])
    with pytest.raises(errors.StepFailed):
        heal_all_start(site)
    assert kept(site) == before
    assert WHOLE_FILE not in site.files


def test_start_refuses_a_recorded_vm_that_tacker_leaves_as_it_is(site):
    """One of a scale-out that was abandoned, which Tacker does not list."""
    listed = servers_of(site)
    site.workers.append(machine(Role.WORKER, 6))
    operations.scale_out(site, "server-6")
    before = kept(site)
    with pytest.raises(errors.StepFailed) as caught:
        heal_all_start(site, listed=listed, kept=lambda: ["server-6", "a-port"])
    assert f"{SIX} (server server-6)" in str(caught.value)
    assert '"all": true' in str(caught.value)
    assert kept(site) == before


def test_new_vm_that_tacker_leaves_as_it_is_becomes_a_node(site):
    """It is recorded nowhere, so no cluster has it."""
    listed = servers_of(site)
    heal_all_start(site, listed=listed, kept=lambda: ["server-6"])
    new = machine(Role.WORKER, 6)
    replace_all(site)
    site.workers.append(replace(new))
    heal_all_end(site)
    assert site.members == [*NAMES, SIX]
