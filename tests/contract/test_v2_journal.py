# SPDX-License-Identifier: Apache-2.0
"""What the hooks of Tacker's v2 API record, as ``tacker-k8s-mgmt runs`` reads it."""

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from prometheus_client.parser import text_string_to_metric_families
from tacker.sol_refactored.common import exceptions as sol_ex

from tacker_k8s_mgmt import journal, metrics
from tacker_k8s_mgmt.model.timeline import Timeline
from tests.contract.v2_operations import heal, instantiate, scale, terminate
from tests.helpers.requests import VNF

pytestmark = pytest.mark.usefixtures("quick_hooks")


def occurrences(tacker):
    """The hooks of each operation; all operations are over."""
    records, _ = journal.read(journal.path_of(str(tacker.state), VNF))
    listed = Timeline(records).occurrences()
    assert all(hooks[-1].final for hooks in listed)
    return [[hook.hook for hook in hooks] for hooks in listed]


def test_hooks_with_nothing_to_record_are_not_waited_for(tacker):
    instantiate(tacker)
    scale(tacker, "SCALE_OUT")
    scale(tacker, "SCALE_IN")
    scale(tacker, "SCALE_OUT")
    terminate(tacker)
    assert occurrences(tacker) == [
        ["instantiate_start", "instantiate_end"],
        ["scale_start", "scale_end"],
        ["scale_start"],
        ["scale_start", "scale_end"],
        ["terminate_start"],
    ]
    records, _ = journal.read(journal.path_of(str(tacker.state), VNF))
    assert [operation.scale for operation in Timeline(records).operations] == [
        *("", ""),
        *("out by 1 step of worker_instance",) * 2,
        "in by 1 step of worker_instance",
        *("out by 1 step of worker_instance",) * 2,
        "",
    ]


def test_the_operation_and_the_vnf_are_named(tacker):
    instantiate(tacker)
    records, _ = journal.read(journal.path_of(str(tacker.state), VNF))
    timeline = Timeline(records)
    assert {operation.occurrence for operation in timeline.operations} == {"occ"}
    assert timeline.vnf_name == "my-cluster"


def test_heals_say_what_they_are_about(tacker):
    instantiate(tacker)
    heal(tacker, "workerNode-server-5")
    records, _ = journal.read(journal.path_of(str(tacker.state), VNF))
    titles = [operation.title for operation in Timeline(records).operations]
    assert titles[2:] == ["Heal: workerNode"] * 2


def test_rollbacks_end_with_their_first_hook(tacker):
    with tacker.world() as site:
        site.faults.add("run cluster")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
        instantiate(tacker)
    tacker.rollback()
    instantiate(tacker)
    with tacker.world() as site:
        site.faults.add("balancer.add-worker")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
        scale(tacker, "SCALE_OUT")
    tacker.rollback()
    assert occurrences(tacker) == [
        ["instantiate_start", "instantiate_end"],
        ["instantiate_rollback_start"],
        ["instantiate_start", "instantiate_end"],
        ["scale_start", "scale_end"],
        ["scale_rollback_start"],
    ]


def test_heat_that_fails_at_the_first_look_of_a_heal_is_a_failed_step(tacker):
    instantiate(tacker)
    with tacker.world() as site:
        site.faults.add("resources")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        heal(tacker, "workerNode-server-5")
    text, step = str(caught.value), "find the rebuilt servers"
    assert "heal_start" in text
    assert f"step 1/11 ({step}) failed" in text
    assert "`retry` continues from here; `fail` gives the operation up." in text
    records, _ = journal.read(journal.path_of(str(tacker.state), VNF))
    failed = [
        one["step"]
        for one in records
        if one.get("outcome") == "failed" and one["event"] == "step-end"
    ]
    assert failed == [step]
    tacker.retry()
    assert occurrences(tacker)[-1] == ["heal_start", "heal_start", "heal_end"]


def test_hooks_write_metrics_that_another_user_may_read(
    tacker, v2_environment, tmp_path
):
    with v2_environment.open("a") as config:
        config.write(f"metrics_directory = {tmp_path}\n")
    with tacker.world() as site:
        site.faults.add("run cluster")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
        instantiate(tacker)
    path = tmp_path / metrics.FILE
    # The process of a hook has a umask of its own.
    assert path.stat().st_mode & 0o777 == 0o644
    found = {
        (sample.name.removeprefix("tacker_k8s_mgmt_"), sample.labels.get("hook")): (
            sample.value
        )
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
        if sample.labels.get("outcome") in (None, "failed")
    }
    assert found["hook_runs_total", "instantiate_end"] == 1
    assert found["hook_runs_total", "instantiate_start"] == 0
    assert found["last_hook_failed", None] == 1
