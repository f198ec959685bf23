# SPDX-License-Identifier: Apache-2.0
"""Requests' digests, and the fold from event lines to progress."""

import json

import pytest

from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import (
    Forks,
    Means,
    PlaybookRequest,
    Progress,
    TaskFailure,
)
from tests.helpers.samples import parsed


def line(event, **fields):
    return json.dumps({"event": event, **fields})


def failed(host, event="failed", **fields):
    return line(event, **({"host": host, "task": "T", "message": "M"} | fields))


def recap(**hosts):
    return line(
        "recap",
        hosts={h: {"failed": f, "unreachable": u} for h, (f, u) in hosts.items()},
    )


def folded(*lines):
    return playbooks.fold(Progress(), lines)


BASE = PlaybookRequest("scale.yml", {"a": 1, "b": 2}, "w1", ("all:", "{}"))


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(
            PlaybookRequest("scale.yml", {"b": 2, "a": 1}, "w1", ("all:", "{}")),
            True,
            id="order-of-variables",
        ),
        pytest.param(
            PlaybookRequest("cluster.yml", BASE.extra_vars, BASE.limit, BASE.inputs),
            False,
            id="playbook",
        ),
        pytest.param(
            PlaybookRequest("scale.yml", {"a": 1}, BASE.limit, BASE.inputs),
            False,
            id="variables",
        ),
        pytest.param(
            PlaybookRequest("scale.yml", BASE.extra_vars, "w1,w2", BASE.inputs),
            False,
            id="limit",
        ),
        pytest.param(
            PlaybookRequest("scale.yml", BASE.extra_vars, BASE.limit, ("all:{}", "")),
            False,
            id="inputs",
        ),
    ],
)
def test_digest_is_equal_only_for_the_same_wish(other, same):
    assert (BASE.digest == other.digest) is same


@pytest.mark.parametrize(
    ("path", "name"),
    [("cluster.yml", "cluster"), ("playbooks/facts.yml", "facts"), ("x", "x")],
)
def test_run_name_comes_from_the_playbook(path, name):
    assert PlaybookRequest(path).name == name


def test_progress_counts_plays_tasks_and_results():
    progress = folded(
        line("playbook", plays=3, time=1),
        line("play", name="Prepare", time=2),
        line("task", name="A", time=3),
        line("task", name="B", time=4, results=5),
        line("play", name="Install", time=5),
        line("alive", time=6.5, results=9),
    )
    assert (progress.plays, progress.play_number, progress.play) == (3, 2, "Install")
    assert (progress.tasks, progress.results, progress.last_event) == (2, 9, 6.5)
    assert progress.where() == 'play 2/3 "Install"'


def test_before_the_first_play_the_position_is_a_phrase():
    assert folded().where() == "no play was started"


def test_batches_of_hosts_are_one_play():
    again = line("play", name="P", number=2)
    progress = folded(line("play", name="O", number=1), again, again, again)
    assert (progress.play_number, progress.play) == (2, "P")


def at(time, event, **fields):
    return line(event, time=time, **fields)


TIMED = [
    at(100, "playbook", plays=2),
    at(101, "former", runs=2, plays=[100, 300]),
    at(102, "play", name="One", number=1),
    at(103, "task", name="quick"),
    at(105, "task", name="slow"),
    at(202, "play", name="Two", number=2),
    at(202, "task", name="slower"),
    at(205, "alive"),
]


def test_remaining_time_is_estimated_from_former_runs():
    progress = folded(*TIMED)
    assert progress.left == pytest.approx(297)
    assert progress.estimate() == "about 5 min left (two former runs)"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([one for one in TIMED if "former" not in one], id="no-former-run"),
        pytest.param(TIMED[:2], id="before-the-first-play"),
        pytest.param([*TIMED, recap()], id="at-the-end"),
        pytest.param(
            [*TIMED, at(9, "former", runs=1, plays=["x"])], id="not-understood"
        ),
    ],
)
def test_otherwise_nothing_is_known_of_what_is_left(lines):
    progress = folded(*lines)
    assert (progress.left, progress.estimate()) == (None, "")


def test_a_batch_goes_on_with_the_time_of_its_play():
    progress = folded(*TIMED, at(300, "play", name="Two", number=2), at(302, "alive"))
    assert progress.left == pytest.approx(200)


def test_tasks_are_timed_to_the_next_task_play_or_end():
    after = at(220, "play", name="Two", number=2), at(320, "task", name="last")
    progress = folded(*TIMED, *after, at(330, "recap", hosts={}))
    assert [(one.task, one.play, one.seconds) for one in progress.summary.slowest] == [
        ("slow", "One", 97),
        ("slower", "Two", 18),
        ("last", "Two", 10),
        ("quick", "One", 2),
    ]
    assert progress.task == "last"


def test_no_more_slow_tasks_are_kept_than_are_shown():
    lines = [at(n * n, "task", name=f"t{n}") for n in range(100)]
    summary = folded(line("play", name="P"), *lines, at(20_000, "recap")).summary
    slowest = summary.slowest
    assert [one.task for one in slowest[:2]] == ["t99", "t98"]
    assert len(slowest) == 8


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "not json",
        '{"time": "noon"}',
        '{"results": []}',
        '{"event": "play"',
        "[1]",
        "1",
        '{"event": "new"}',
        "{}",
    ],
)
def test_lines_that_are_not_understood_are_passed_over(bad):
    good = line("play", name="P")
    assert folded(good, bad, good).play_number == 2


@pytest.mark.parametrize(
    ("lines", "hosts"),
    [
        pytest.param([failed("a"), recap(a=(1, 0))], ["a"], id="failed"),
        pytest.param(
            [failed("a", "unreachable"), recap(a=(0, 1))], ["a"], id="unreachable"
        ),
        pytest.param(
            [failed("a", ignored=True), recap(a=(0, 0))], [], id="ignore_errors"
        ),
        pytest.param(
            [failed("a", ignored=True), failed("b"), recap(a=(0, 0), b=(1, 0))],
            ["b"],
            id="ignored-and-not",
        ),
        pytest.param([failed("a"), recap(a=(0, 0))], [], id="rescued"),
        pytest.param(
            [failed("a"), failed("b"), recap(a=(0, 0), b=(1, 0))],
            ["b"],
            id="rescued-and-not",
        ),
        pytest.param([failed("a")], ["a"], id="ended-without-recap"),
        pytest.param(
            [failed("a", "unreachable", ignored=True), failed("a"), recap(a=(0, 1))],
            [],
            id="ansible-2.9-counts-an-ignored-unreachable",
        ),
    ],
)
def test_which_failures_count(lines, hosts):
    assert [failure.host for failure in folded(*lines).failures] == hosts


def test_of_a_host_with_a_rescued_failure_the_last_one_counts():
    progress = folded(
        failed("a", task="Try"), failed("a", task="Again"), recap(a=(1, 0))
    )
    assert [failure.task for failure in progress.failures] == ["Again"]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (failed("a", message="x\n  y"), "a: T: x y"),
        (failed("a", message="secret?", no_log=True), "a: T: (censored by no_log)"),
        (failed("a", message=""), "a: T: no message"),
        (
            failed("a", "unreachable", message="timed out"),
            "a is unreachable (task T): timed out",
        ),
    ],
)
def test_how_a_failure_reads(event, text):
    assert str(folded(event).seen[0]) == text


def test_secrets_are_taken_out_of_what_is_shown_only():
    """Also where a secret is a word that the events themselves use."""
    lines = [line("task", name="use the task word"), failed("a", message="task")]
    progress = playbooks.fold(
        Progress(), lines, lambda text: text.replace("task", "***")
    )
    assert progress.task == "use the *** word"
    assert progress.seen == (TaskFailure("a", "T", "***"),)


def test_long_message_keeps_beginning_and_end():
    (failure,) = folded(failed("a", message="begin" + "x" * 5000 + "end")).seen
    assert len(failure.message) <= 300
    assert failure.message.startswith("begin")
    assert failure.message.endswith("end")


@pytest.mark.parametrize(
    ("count", "last"),
    [(1, "h1: T: M"), (3, "h3: T: M"), (4, "1 more: h4"), (20, "h12, h13, ...")],
)
def test_many_failures_are_counted_and_named(count, last):
    failures = [TaskFailure(f"h{n}", "T", "M") for n in range(1, count + 1)]
    lines = playbooks.described(failures)
    assert len(lines) == min(count, 4)
    assert lines[-1].endswith(last)


BASTION = {"ip_address": "192.0.2.1", "username": "jump", "password": "s3cret"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Forks()),
        ({"ansible.forks": 20}, Forks(20)),
        ({"bastion": BASTION}, Forks(most=8)),
        ({"bastion": BASTION, "ansible.forks": 20}, Forks(20, most=8)),
        ({"bastion": {**BASTION, "used_for": ["vms"]}}, Forks()),
    ],
)
def test_forks_of_a_request(changes, expected):
    assert parsed(changes).forks == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Means("configured", resolves=True)),
        ({"ansible.strategy": "linear"}, Means("linear", resolves=True)),
        ({"ansible.resolve_downloads": False}, Means("configured", resolves=False)),
    ],
)
def test_means_of_a_request(changes, expected):
    assert parsed(changes).means == expected


def test_repeated_run_begins_at_its_beginning():
    first = (line("playbook", plays=2), line("play", name="P", number=1), failed("h1"))
    notes = (line("note", message="first"), line("note", message="sec\nond"))
    repeated = folded(notes[0], *first, recap(h1=(1, 0)), notes[1], *first[:2])
    assert repeated.notes == ("first", "sec ond")
    assert (repeated.seen, repeated.recap, repeated.failures) == ((), None, ())
    assert (repeated.play_number, repeated.tasks) == (1, 0)
    assert len(folded(*notes * 100).notes) == 10
