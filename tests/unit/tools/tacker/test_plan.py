# SPDX-License-Identifier: Apache-2.0
"""``--plan`` of the verbs: the request that they would send is planned, not sent."""

import json
import types

import pytest

from tacker_k8s_mgmt.hooks.planning import ClusterPlan
from tacker_k8s_mgmt.model.plan import LEAVES, TO_DO, NodeChange, Plan, PlannedStep
from tacker_k8s_mgmt.tools.cli import host_records

WORKER = "worker-10-10-0-5"
STEP = PlannedStep("h", "k", "n", TO_DO, (NodeChange(WORKER, LEAVES),))


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What is planned: VNF instance, operation, body, files of configuration."""
    found = []

    def plan(*arguments):
        found.append(arguments)
        return ClusterPlan(
            arguments[0], "my-cluster", "v1", str(tmp_path), Plan((STEP,))
        )

    lookup = types.SimpleNamespace(plan=plan)
    monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
    return found


@pytest.mark.parametrize(
    ("words", "operation"),
    [
        (("heal", "my-cluster", WORKER), "heal"),
        (("scale", "my-cluster", "--workers", "+1"), "scale"),
        (("label", "my-cluster", WORKER, "disk=ssd"), "modify"),
        (("taint", "my-cluster", WORKER, "a:NoSchedule"), "modify"),
        (("maintenance", "begin", "my-cluster", WORKER), "modify"),
    ],
)
def test_the_body_is_that_of_the_request(run, tacker, cluster, asked, words, operation):
    code, out, err = run(*words, "--plan", "--config-file", "tacker.conf")
    assert (code, err, tacker.sent) == (0, "", [])
    assert out.splitlines()[1:3] == ["Nodes:", f"  {WORKER}  leaves"]
    run(*words, "--no-wait")
    ((_, _, _, sent),) = tacker.sent
    assert asked == [(cluster.id, operation, sent, ["tacker.conf"])]


def test_a_document(run, cluster, asked):
    code, out, _ = run("heal", "my-cluster", WORKER, "--plan", "-f", "json")
    assert code == 0
    assert [one["node"] for one in json.loads(out)["nodes"]] == [WORKER]
    assert json.loads(out)["operation"] == "heal"


def test_what_tacker_would_refuse_has_no_plan(run, cluster, asked):
    code, _, err = run("scale", "my-cluster", "--workers", "+99", "--plan")
    assert (code, asked) == (1, [])
    assert "steps are too many" in err


@pytest.mark.parametrize("verb", ["retry", "rollback", "fail"])
def test_verbs_for_a_failed_operation_have_none(run, cluster, verb):
    code, _, err = run(verb, "my-cluster", "--plan")
    assert code == 2
    assert "--plan" in err
