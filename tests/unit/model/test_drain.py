# SPDX-License-Identifier: Apache-2.0
"""How the end of a drain is told, and whether pods have somewhere to go."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.nodes import NodeObject
from tacker_k8s_mgmt.model.pods import (
    Budget,
    DrainOutcome,
    Placement,
    Pod,
    no_other_node,
    report,
)

WEB = {"app": "web"}
BUDGET = Budget(
    "default",
    "web",
    {"matchLabels": WEB},
    min_available=2,
    current_healthy=2,
    desired_healthy=2,
)
TOLD = (
    "default/web (minAvailable 2, currentHealthy 2, desiredHealthy 2, "
    "disruptionsAllowed 0)"
)


def node(name, **fields):
    facts = {"ready": True, "reason": "", "internal_ip": "", "kubelet_version": ""}
    return NodeObject(name, **{**facts, **fields})


CNF = {"key": "dedicated", "value": "cnf", "effect": "NoSchedule"}
PLAIN, OWN = Placement(), Placement(tolerations=(CNF,))


@pytest.mark.parametrize(
    ("placements", "others", "nowhere"),
    [
        ([PLAIN], [], True),
        ([PLAIN], [node("w2")], False),
        ([PLAIN], [node("w10")], False),
        ([PLAIN], [node("w2", ready=False)], True),
        ([PLAIN], [node("w2", unschedulable=True)], True),
        ([PLAIN], [node("w2", taints=(CNF,)), node("w4")], False),
        ([PLAIN], [node("w2", taints=(CNF,))], True),
        ([OWN], [node("w2", taints=(CNF,))], False),
        ([PLAIN, OWN], [node("w2", taints=(CNF,))], False),
        ([OWN], [node("w2", taints=(CNF,), unschedulable=True)], True),
    ],
    ids=str,
)
def test_nowhere_to_go(placements, others, nowhere):
    leaving = [node("w1"), node("w3", unschedulable=True)]
    pods = [web(placement=placement) for placement in placements]
    assert no_other_node(pods, ["w1", "w3"], [*leaving, *others]) is nowhere


def web(name="web-1", **fields):
    return Pod("default", name, WEB, **fields)


def left(*pods, budgets=(), words="timeout"):
    return DrainOutcome("w1", 300.4, pods, tuple(budgets), words)


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (DrainOutcome("w1", 4.2), "w1 was drained in 4 s"),
        (
            left(web(), budgets=[BUDGET]),
            "w1 was not drained after 300 s: still there: default/web-1; "
            f"PodDisruptionBudget {TOLD} keeps default/web-1",
        ),
        (
            left(web(), web("web-2"), web("x", terminating=True), budgets=[BUDGET]),
            "w1 was not drained after 300 s: still there: default/web-1, "
            "default/web-2, default/x (being deleted); "
            f"PodDisruptionBudget {TOLD} keeps default/web-1, default/web-2",
        ),
        (
            left(web(), Pod("default", "db", {}), budgets=[BUDGET]),
            "w1 was not drained after 300 s: still there: default/web-1, default/db; "
            f"PodDisruptionBudget {TOLD} keeps default/web-1; kubectl: timeout",
        ),
        (left(words="refused"), "w1 was not drained after 300 s: kubectl: refused"),
        (
            left(*(web(f"web-{n}") for n in range(10)), words="w"),
            "w1 was not drained after 300 s: still there: default/web-0, "
            "default/web-1, default/web-2, default/web-3, default/web-4, "
            "default/web-5, default/web-6, default/web-7 and 2 more; kubectl: w",
        ),
    ],
    ids=["drained", "blocked", "several", "unexplained", "not-asked", "many"],
)
def test_report(outcome, text):
    assert report(outcome) == text


def test_not_every_budget_is_in_the_text():
    pods = [Pod("default", f"p{n}", {"n": str(n)}) for n in range(10)]
    budgets = [
        Budget("default", f"b{n}", {"matchLabels": {"n": str(n)}}) for n in range(10)
    ]
    text = report(left(*pods, budgets=budgets))
    assert "default/b7 (" in text
    assert "default/b8 (" not in text
    assert text.endswith("; 2 more budgets keep others")


def test_the_error_has_every_nodes_outcome_and_what_to_do():
    outcomes = [DrainOutcome("w0", 1), left(web(), budgets=[BUDGET])]
    error = errors.DrainError(
        failed=1, outcomes=[report(one) for one in outcomes], hint="Do that."
    )
    assert str(error) == (
        "1 of 2 node(s) could not be drained: (1) w0 was drained in 1 s; (2) w1 was "
        "not drained after 300 s: still there: default/web-1; PodDisruptionBudget "
        f"{TOLD} keeps default/web-1. Do that."
    )
    assert isinstance(error, errors.ClusterError)
