# SPDX-License-Identifier: Apache-2.0
"""The cases themselves: the large package, and operations on fakes."""

import pytest

from benchmarks import commands, many_nodes, package
from benchmarks.__main__ import CASES, parser
from benchmarks.measure import FAKES, LAB
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.tools.cli.commands import COMMANDS
from tacker_k8s_mgmt.tools.csar.package_check import check


def test_command_line_and_measurements_know_the_same_cases():
    assert {name for name, in_lab in CASES.items() if in_lab} == LAB.keys()
    assert {name for name, in_lab in CASES.items() if not in_lab} == {FAKES}


def test_unknown_case_is_refused(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["--only", "2+2"])
    assert "1+10" in capsys.readouterr().err


def test_large_package_is_a_sound_one(tmp_path):
    csar = package.make(tmp_path)
    assert check(csar).problems == ()


def test_levels_of_the_cases_are_in_the_package():
    assert {level for level, _ in LAB.values()} <= package.LEVELS.keys()


def test_machines_have_addresses_of_their_own():
    made = [many_nodes.machine(role, n) for role in Role for n in range(600)]
    assert len({one.address for one in made}) == len(made)
    assert len({one.ssh_address for one in made}) == len(made)


@pytest.mark.parametrize("size", [(1, 2), (3, 20)], ids=["small", "larger"])
def test_life_on_fakes_keeps_to_the_targets_that_no_clock_measures(size):
    control_planes, workers = size
    found = many_nodes.measure(control_planes, workers, runs=1)
    names = [one.name for one in found]
    assert names == [
        "instantiate",
        "scale out 1",
        "scale in 1",
        "scale out 10",
        "scale in 10",
        "heal 1",
    ]
    calls = {one.name: [hook.heat_calls for hook in one.hooks] for one in found}
    assert calls["heal 1"] == [2, 2]
    assert all(hooks == [2] for name, hooks in calls.items() if name != "heal 1")


def test_calls_do_not_grow_with_the_cluster():
    def calls(workers):
        found = many_nodes.measure(1, workers, runs=1)
        return [[dict(hook.calls) for hook in one.hooks] for one in found]

    assert calls(30) == calls(3)


def test_each_command_that_is_measured_is_one():
    known = {start.name.removesuffix(" --help") for start in commands.starts("", "")}
    named = {name for name in known if not name.startswith(("imports", "--"))}
    assert {name for name in named if name not in COMMANDS} == {
        *("cluster chek", "runs list /none"),
    }


def test_a_start_has_its_medians():
    found = commands.measured(commands.Start("x", ("-c", "pass")), 3)
    assert found.processor > 0
    assert found.clock > 0
