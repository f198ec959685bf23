# SPDX-License-Identifier: Apache-2.0
"""``cluster plan``: what is shown of a plan; its document; exit codes."""

import json
import types

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.planning import ClusterPlan, Planning
from tacker_k8s_mgmt.journal import Journal
from tacker_k8s_mgmt.model.plan import Plan, Refusal
from tacker_k8s_mgmt.operations.heal import HealStart
from tacker_k8s_mgmt.operations.plan import plan_of
from tacker_k8s_mgmt.operations.scale import ScaleIn
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.tools.cli import host_records, main
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.operations import FIVE, dependencies, instantiated
from tests.helpers.requests import VNF, params

SCALE_IN = {"type": "SCALE_IN", "aspectId": "worker_instance", "numberOfSteps": 1}


@pytest.fixture
def planned(monkeypatch, tmp_path):
    """Return a function: the plan that the command is to show."""

    def instead(plan):
        asked = types.SimpleNamespace(plan=plan)

        def found(vnf, operation, body, files):
            asked.vnf, asked.operation, asked.body = vnf, operation, body
            if isinstance(plan, Exception):
                raise plan
            return ClusterPlan(VNF, "my-cluster", "v1", str(tmp_path), plan)

        lookup = types.SimpleNamespace(plan=found)
        monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
        return asked

    return instead


@pytest.fixture
def run(tmp_path, capsys):
    def command(body, *words):
        path = tmp_path / "request.json"
        path.write_text(json.dumps(body))
        code = main(["cluster", "plan", VNF, str(path), *words])
        return code, *capsys.readouterr()

    return command


def scale_in(site):
    deps = dependencies(params(), site, FakeClock())
    site.group_status = "UPDATE_COMPLETE"
    operation = ScaleIn(deps, stacks=["member-server-5"], size=1)
    return plan_of(operation, "scale_start", Redactor(()))


def test_a_scale_in_as_people_see_it(planned, run):
    site = instantiated()
    site.pods = {FIVE: ["web-1", "web-2"]}
    asked = planned(scale_in(site))
    code, out, err = run(SCALE_IN)
    assert (code, err) == (0, "")
    assert (asked.vnf, asked.operation, asked.body) == (VNF, "scale", SCALE_IN)
    assert out.splitlines() == [
        "Scale-in of my-cluster (v1): a plan, nothing is changed.",
        "Nodes:",
        "  worker-10-10-0-5  leaves",
        "Pods that have to move:",
        "  web-1 from worker-10-10-0-5",
        "  web-2 from worker-10-10-0-5",
        "Steps:",
        "  checked     compare Heat, inventory and cluster",
        "  to do       remove routes to the leaving nodes",
        "  to do       cordon the leaving nodes",
        "  to do       drain the leaving nodes",
        "  to do       run remove-node.yml",
        "  to do       delete their Node objects",
        "  to do       remove them from the inventory",
        "The operation would be done.",
    ]


def test_a_budget_that_forbids_it(planned, run):
    site = instantiated()
    site.pods = {FIVE: ["web-1"]}
    site.budget = "PodDisruptionBudget s/web (minAvailable 2, currentHealthy 2)"
    planned(scale_in(site))
    code, out, _ = run(SCALE_IN)
    assert code == 1
    assert out.splitlines()[4:7] == [
        "  web-1 from worker-10-10-0-5; may not leave now: PodDisruptionBudget s/web",
        "    (minAvailable 2, currentHealthy 2)",
        "Steps:",
    ]
    assert "As things are the operation would fail: 1 of the pods may not" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_refusal_is_a_part_of_the_plan(planned, run):
    site = instantiated()
    site.kill("server-4")
    planned(scale_in(site))
    code, out, err = run(SCALE_IN)
    assert (code, err) == (1, "")
    assert "  refused     compare Heat, inventory and cluster" in out.splitlines()
    verdict = out.partition("The operation would be refused at the step ")[2]
    assert verdict.startswith("`compare Heat, inventory and cluster`:\n  No SSH")


def test_the_document(planned, run):
    site = instantiated()
    site.pods = {FIVE: ["web-1"]}
    planned(scale_in(site))
    code, out, _ = run(SCALE_IN, "-f", "json")
    found = json.loads(out)
    assert code == 0
    assert found["nodes"] == [{"node": FIVE, "change": "leaves", "why": ""}]
    assert found["pods"] == [
        {
            "node": FIVE,
            "pod": "web-1",
            "kept_by": [],
            "blocks": False,
            "lost": False,
            "stranded": False,
        }
    ]
    others = {name: found[name] for name in found if name not in ("nodes", "pods")}
    assert len(others.pop("steps")) == 7
    assert others == {
        "vnf_instance_id": VNF,
        "vnf_instance_name": "my-cluster",
        "api": "v1",
        "operation": "scale",
        "fails": False,
        "refusal": None,
        "differences": [],
        "notes": [],
    }
    assert found["steps"][0] == {
        "hook": "scale_start",
        "kind": "compare",
        "name": "compare Heat, inventory and cluster",
        "outcome": "checked",
        "former_seconds": None,
    }


def test_how_long_former_steps_took(planned, run, tmp_path):
    planned(scale_in(instantiated()))
    journal = Journal(str(tmp_path), VNF, "scale_start", print)
    for number, (kind, seconds) in enumerate(
        [("drain", 7.0), ("remove-nodes", 200.0)], 1
    ):
        named = {"number": number, "total": 2, "step": kind, "kind": kind}
        journal.record("step-start", **named)
        journal.record("step-end", **named, outcome="done", seconds=seconds)
    _, out, _ = run(SCALE_IN)
    assert "  to do       run remove-node.yml (3 min 20 s formerly)" in out
    assert out.splitlines()[-1] == (
        "The operation would be done. Its steps took 3 min 27 s formerly."
    )


def test_a_node_that_does_not_answer(planned, run):
    site = instantiated()
    site.kill("server-5")
    deps = dependencies(params(), site, FakeClock())
    heal = HealStart(deps, servers={"server-5": "vnfc-5"})
    planned(plan_of(heal, "heal_start", Redactor(())))
    code, out, _ = run({"vnfcInstanceId": ["vnfc-5"]})
    assert code == 0
    assert f"  {FIVE}  is rebuilt: no drain: it does not answer" in out.splitlines()


def test_new_workers(planned, run):
    planning = Planning()
    planning.create(2)
    planned(planning.plan)
    _, out, _ = run({**SCALE_IN, "type": "SCALE_OUT"})
    assert "  2 new  joins: Heat creates VM and address" in out.splitlines()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"flavourId": "simple"}, "is a request for instantiate; there are plans for"),
        ({"nothing": 1}, "there is neither a request nor"),
        ({**SCALE_IN, "numberOfSteps": "x"}, "numberOfSteps"),
    ],
)
def test_what_has_no_plan(planned, run, body, said):
    planned(Plan())
    code, out, err = run(body)
    assert (code, out) == (2, "")
    assert said in err


def test_a_package(planned, capsys, monkeypatch):
    asked = planned(Plan())
    lookup = host_records.lookup(())
    lookup.change_of_package = lambda *given: {"given": given}
    words = ("cluster", "plan", VNF, "--package", "vnfd")
    assert main([*words, "--kubernetes-version", "1.35.4"]) == 0
    assert asked.operation == "change_vnfpkg"
    assert asked.body == {"given": (VNF, "vnfd", "1.35.4", [])}
    assert capsys.readouterr().out.splitlines() == [
        "Change of the package of my-cluster (v1): a plan, nothing is changed.",
        "The operation would be done; the driver has no work in it.",
    ]


@pytest.mark.parametrize(
    "words", [(), ("a.json", "--package", "b"), ("a.json", "--kubernetes-version", "1")]
)
def test_a_request_or_a_package(planned, capsys, words):
    planned(Plan())
    assert main(["cluster", "plan", VNF, *words]) == 2
    assert "--package" in capsys.readouterr().err


def test_what_cannot_be_asked(planned, run):
    planned(errors.TackerError(detail="Tacker has no VNF instance one."))
    assert run(SCALE_IN) == (2, "", "Tacker has no VNF instance one.\n")


def test_a_plan_of_an_open_operation(planned, run):
    planned(Plan(refusal=Refusal("", "Tacker has not ended an operation on it.")))
    code, out, _ = run(SCALE_IN)
    assert code == 1
    assert out.splitlines()[1:] == [
        "The operation would be refused:",
        "  Tacker has not ended an operation on it.",
    ]
