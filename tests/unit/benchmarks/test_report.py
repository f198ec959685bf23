# SPDX-License-Identifier: Apache-2.0
"""Figures beside the targets."""

import io

import pytest
from rich.console import Console

from benchmarks import report
from benchmarks.figures import Row


def row(case="1+2", name="instantiate", own=1.5, heat_calls=4, logins=1):
    return Row(
        case=case,
        name=name,
        runs=3,
        seconds=26.0,
        tacker=12.0,
        hooks=14.0,
        ansible=12.0,
        waits=0.5,
        own=own,
        heat_calls=heat_calls,
        logins=logins,
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(2.0, "2.0 ✓"), (2.01, "2.0 ✗")], ids=["met", "missed"]
)
def test_target_has_a_tick_or_a_cross(value, shown):
    assert report.judged(value, report.OWN_LIMIT, f"{value:.1f}") == shown


def test_target_of_the_small_case_is_not_held_against_others():
    assert report.own(row(own=3.0)) == "3.00 ✗"
    assert report.own(row(case="1+10", own=3.0)) == "3.00"


def test_fakes_have_no_logins_to_judge():
    assert report.logins(row(case="fakes 3+500", logins=0)) == "-"
    assert report.logins(row(logins=2)) == "2 ✗"


def test_growth_is_per_further_node_and_of_what_both_cases_have():
    rows = [
        row(own=1.0),
        row(case="1+10", own=1.8),
        row(case="1+10", name="heal 1", own=9.0),
    ]
    (one,) = report.growths(rows, "1+2", "1+10")
    assert (one.case, one.name) == ("1+2 to 1+10", "instantiate")
    assert one.per_node == pytest.approx(0.1)


def test_workers_of_a_case_of_fakes():
    assert report.workers("fakes 3+500") == 500


def test_pipe_gets_a_line_for_each_row_and_the_targets(capsys):
    rows = [row(), row(case="1+10", logins=2)]
    growing = report.growths(rows, "1+2", "1+10")
    report.tell(Console(file=io.StringIO()), rows, growing)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split("\t")[-3:] == ["1.50 ✓", "4 ✓", "1 ✓"]
    assert lines[2].split("\t")[-1] == "2 ✗"
    assert lines[3].startswith("growth 1+2 to 1+10\tinstantiate\t0.000 ✓")
    assert lines[4].startswith("targets: own at 1+2 <= 2 s")


def test_terminal_gets_tables():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=140)
    rows = [row(), row(case="1+10")]
    report.tell(console, rows, report.growths(rows, "1+2", "1+10"))
    assert "instantiate" in screen.getvalue()
    assert "Growth of our own overhead" in screen.getvalue()
