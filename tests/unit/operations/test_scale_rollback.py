# SPDX-License-Identifier: Apache-2.0
"""A scale-out that continues after a failure, or is taken back by a hook of its own."""

import copy

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations.scale import ScaleOutRollback
from tests.helpers.operations import FIFTY_FIVE, SIX, grown, run, scale_out, state

KNOWN = ("server-4", "server-5", "server-55", "server-9")
FAULTS = [
    "machines",
    "wait_reachable",
    "workdir.write hosts.yaml",
    "workdir.write vars.json",
    "run facts",
    "run scale",
    "balancer.add-worker",
    "workdir.write joined.json",
]
STEPS = [
    "playbooks.stop",
    "lock",
    "machines",
    "balancer.remove-worker",
    "cluster.force_evict",
    "cluster.remove_nodes",
    "workdir.write hosts.yaml",
    "save_host_keys",
    "workdir.write machines.json",
    "workdir.write joined.json",
]


def failed(fault):
    """A site on which a scale-out has failed that takes nothing back."""
    site = grown(6)
    before = state(copy.deepcopy(site))
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match=f"fault in {fault}") as caught:
        scale_out(site, "server-6", takes_back=False)
    return site, before, str(caught.value)


def roll_back(site):
    return run(ScaleOutRollback, site, known=KNOWN)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_begun_stays_for_a_retry_to_go_on_with(fault):
    site, _, text = failed(fault)
    assert "Taken back" not in text
    assert "There were " in text
    scale_out(site, "server-6", takes_back=False)
    assert SIX in site.members
    assert SIX in site.listed
    assert SIX in {name for name, _ in site.routes}


def test_retry_runs_no_playbook_again_that_went_well():
    site, _, text = failed("balancer.add-worker")
    assert f"{SIX} stay in the inventory" in text
    site.runs.clear()
    scale_out(site, "server-6", takes_back=False)
    assert site.runs == []


@pytest.mark.parametrize("fault", FAULTS)
def test_rollback_leaves_what_was_before(fault):
    site, before, _ = failed(fault)
    roll_back(site)
    assert state(site) == before


@pytest.mark.parametrize("step", STEPS)
def test_rollback_that_fails_anywhere_can_be_sent_again(step):
    site, before, _ = failed("workdir.write joined.json")
    site.faults.add(step)
    with pytest.raises(errors.StepFailed, match="No VM was deleted"):
        roll_back(site)
    roll_back(site)
    assert state(site) == before


def test_second_rollback_changes_nothing():
    site, _, _ = failed("run scale")
    roll_back(site)
    site.changes.clear()
    roll_back(site)
    assert site.changes == []


def test_whole_members_are_not_touched():
    site = grown()
    before = state(copy.deepcopy(site))
    roll_back(site)
    assert state(site) == before
    assert "cluster.remove_nodes" not in site.calls


def test_rollback_keeps_what_a_deleted_vm_has_left_for_the_next_operation():
    site = grown(6)
    site.workers = [vm for vm in site.workers if vm.server_id != "server-55"]
    roll_back(site)
    assert FIFTY_FIVE in site.members
    assert FIFTY_FIVE in site.listed
    scale_out(site, takes_back=False)
    assert FIFTY_FIVE not in site.members
    assert FIFTY_FIVE not in site.listed
