# SPDX-License-Identifier: Apache-2.0
"""What a seed will do, on every machine."""

import subprocess
import sys
from itertools import islice

import pytest

from tests.chaos import catalogue, faults, operations, plan
from tests.chaos.pace import PACES
from tests.tree import ROOT


def some(seed, count=200, clusters=plan.DEFAULT, only=(), lab=catalogue.QUICK):
    return list(islice(plan.endless(seed, clusters, only, lab), count))


def test_same_seed_gives_the_same_plan():
    assert some(5) == some(5)
    assert some(5) != some(6)


def test_other_process_gives_the_same_plan():
    command = [sys.executable, "-m", "lab", "chaos", "--plan", "--seed", "5"]
    done = subprocess.run(
        [*command, "--steps", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == list(plan.lines(some(5, 20)))


def test_cluster_has_the_same_plan_whatever_is_beside_it():
    alone = [step.document() for step in some(5, 50, ("v1",))]
    beside = [one.document() for one in some(5, 100) if one.cluster == "v1"]
    for step in (*alone, *beside):
        del step["number"]
    assert alone == beside


@pytest.mark.parametrize(("words", "lab"), [([], "quick"), (["--real"], "real")])
def test_length_is_that_of_the_minutes(words, lab, tmp_path):
    command = [sys.executable, "-m", "lab", "--state", str(tmp_path), "chaos", "--plan"]
    done = subprocess.run(
        [*command, "--minutes", "26", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    printed = done.stdout.splitlines()
    assert len(printed) == 26 * 60 / PACES[lab].usual
    assert printed == list(plan.lines(some(1, len(printed), lab=lab)))


def test_clusters_take_turns():
    assert [one.cluster for one in some(1, 4)] == ["v1", "v2", "v1", "v2"]


def test_each_operation_suits_what_was_planned_before_it():
    workers, exists, maintained, has_cnf = 2, False, False, False
    begin, *later = operations.CNF
    for step in some(3, 2000, ("v1",)):
        assert step.operation not in (later if not has_cnf else (begin, "heal VNF"))
        has_cnf = step.operation == begin or (has_cnf and step.operation != later[-1])
        assert exists == (step.operation != "instantiate")
        assert maintained == (step.operation == "end of maintenance")
        exists = step.operation != "terminate"
        maintained = step.operation == "maintenance"
        workers += operations.OPERATIONS[step.operation].workers
        if not exists:
            workers = 2
        assert 2 <= workers <= 5


def test_every_fault_comes_before_many_come_twice():
    known = catalogue.of_lab(catalogue.QUICK)
    found = [step.fault for step in some(1, 2 * len(known), ("v1",))]
    assert len(set(found)) > 0.8 * len(known)


@pytest.mark.parametrize(("lab", "count"), [("quick", 14000), ("real", 4000)])
def test_every_suitable_pair_comes_at_last(lab, count):
    steps = some(1, count, ("v1-ha",), lab=lab)
    pairs = {(one.operation, one.fault) for one in steps}
    assert pairs == {
        (operation, fault)
        for operation in operations.OPERATIONS
        for fault in catalogue.of_lab(lab)
        if catalogue.suits(fault, operation)
        and (lab == catalogue.QUICK or operation not in operations.ONLY_QUICK)
    }


def test_operations_that_take_long_are_rare_in_the_real_laboratory():
    done = [step.operation for step in some(1, 1000, ("v1",), lab="real")]
    seldom = sum(one in operations.SELDOM for one in done)
    playbooks = sum(one in operations.PLAYBOOK_OPERATIONS for one in done)
    assert 0 < seldom < 50
    assert 100 < playbooks < 300


@pytest.mark.parametrize("lab", PACES)
def test_every_fault_of_a_laboratory_strikes(lab):
    every = [faults.strike_of(fault, lab) for fault in catalogue.of_lab(lab)]
    assert all(callable(strike) for strike in every)


def test_faults_that_stop_pods_are_in_the_catalogue():
    assert set(catalogue.DISRUPTING) <= set(catalogue.FAULTS)


def test_faults_are_chosen_by_name():
    chosen = some(1, 100, only=("route deleted",))
    assert {step.fault for step in chosen} == {"none", "route deleted"}


def test_cluster_without_a_load_balancer_has_none_of_its_faults():
    steps = some(1, 2000, ("v1-plain",))
    assert not {one.fault for one in steps} & {*catalogue.BALANCER_FAULTS}
    assert not {one.operation for one in steps} & {*operations.BALANCED}


def test_cluster_with_one_control_plane_is_spared_what_takes_several():
    steps = some(1, 2000, ("v2",))
    assert not {one.fault for one in steps} & {*catalogue.QUORUM_FAULTS}
    assert not {one.operation for one in steps} & {*operations.AVAILABLE}


@pytest.mark.parametrize("step", some(4, 100))
def test_moment_is_one_of_the_fault_and_has_what_it_needs(step):
    fault = catalogue.FAULTS[step.fault]
    assert step.moment in fault.moments
    assert step.seconds in fault.seconds
    steps = operations.OPERATIONS[step.operation].steps
    named = step.moment in (catalogue.AT, catalogue.PAST)
    assert step.at in steps if named else not step.at
    assert plan.of_document(step.document()) == step
    assert step.fault == "none" or step.when() in next(plan.lines([step]))


def test_steps_are_those_of_the_driver():
    source = ROOT / "tacker_k8s_mgmt"
    text = "".join(path.read_text() for path in source.rglob("*.py"))
    # Names that a line break would split are written in two parts.
    missing = {
        step
        for operation in operations.OPERATIONS.values()
        for step in operation.steps
        if step not in text and step.rsplit(" ", 2)[0] not in text
    }
    assert missing == set()


@pytest.mark.parametrize("fault", catalogue.FAULTS)
def test_every_fault_is_documented(fault):
    page = (ROOT / "doc" / "source" / "reliability.rst").read_text()
    parts = fault.rpartition(" ")[::2]
    together = f"``{fault}``" in page
    assert together or all(f"``{part}``" in page for part in parts) or fault == "none"
