# SPDX-License-Identifier: Apache-2.0
"""How much longer a run takes, judged by former ones."""

import pytest

from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import Former

#: Three plays of 100, 300 and 600 seconds.
FORMER = Former(2, (100.0, 300.0, 600.0))


@pytest.mark.parametrize(
    ("play", "elapsed", "in_play", "expected"),
    [
        pytest.param(1, 0, 0, 1000, id="at-the-start"),
        pytest.param(2, 100, 0, 900, id="as-before"),
        pytest.param(3, 400, 0, 600, id="as-before-in-the-last-play"),
        pytest.param(3, 900, 500, 100, id="as-before-within-a-play"),
        # 200 s in place of 100, with a tenth of a run as before: one and a half.
        pytest.param(2, 200, 0, 1350, id="slower"),
        pytest.param(2, 50, 0, 675, id="faster"),
        pytest.param(3, 2000, 1600, 0, id="longer-than-ever"),
    ],
)
def test_the_pace_of_this_run_counts(play, elapsed, in_play, expected):
    assert FORMER.left(play, elapsed, in_play) == pytest.approx(expected)


def test_a_play_that_takes_longer_slows_what_follows():
    later = FORMER.left(2, 1100, 1000)
    # 1100 s in place of 400: the last play is not expected in its usual 600 s.
    assert later == pytest.approx(600 * 1200 / 500)


@pytest.mark.parametrize("play", [0, 4])
def test_of_a_play_that_former_runs_had_not_nothing_is_known(play):
    assert FORMER.left(play, 10, 0) is None


def test_runs_that_took_no_time_leave_none():
    assert Former(1, (0.0, 0.0)).left(1, 5, 5) == 0


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"runs": 2},
        {"runs": 0, "plays": [1]},
        {"runs": "2", "plays": [1]},
        {"runs": 2, "plays": []},
        {"runs": 2, "plays": 7},
        {"runs": 2, "plays": "12"},
        {"runs": 2, "plays": [1, None]},
        {"runs": 2, "plays": [1, -1]},
        {"runs": 2, "plays": [1, float("nan")]},
    ],
)
def test_without_understanding_there_is_no_estimate(event):
    assert Former.read(event) is None


def test_what_the_plugin_reports_is_understood():
    event = {"event": "former", "runs": 2, "plays": [100, 300.0, 600]}
    assert Former.read(event) == FORMER


@pytest.mark.parametrize(
    ("left", "runs", "told"),
    [
        (0, 1, "less than a minute left (one former run)"),
        (49, 2, "less than a minute left (two former runs)"),
        (50, 3, "about 1 min left (three former runs)"),
        (380, 2, "about 6 min left (two former runs)"),
        (3600, 5, "about 1 h left (five former runs)"),
        (5100, 12, "about 1 h 25 min left (12 former runs)"),
    ],
)
def test_an_estimate_says_what_it_rests_on(left, runs, told):
    assert playbooks.in_words(left, runs) == told
