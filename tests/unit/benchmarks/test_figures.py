# SPDX-License-Identifier: Apache-2.0
"""Figures computed from journals and logs as they are written."""

import pytest

from benchmarks import figures
from benchmarks.figures import HookFigures, OperationFigures, PlaybookRun
from tacker_k8s_mgmt.model.timeline import Timeline

SCALE_OUT = (
    ("compare", 0.5),
    ("wait-for-logins", 2.0),
    ("gather-facts", 3.0),
    ("join-workers", 10.0),
    ("wait-for-nodes", 1.0),
    ("add-routes", 0.25),
)


#: A time of day; what is long before it counts as none.
ERA = 1_800_000_000.0


def operation(steps, hook="scale_end", began=ERA + 100.0):
    """One hook whose steps follow each other without a gap."""
    at, stamp = began, {"run": hook, "hook": hook, "api": "v1"}
    records = [{"event": "operation-start", "time": at, **stamp}]
    for number, (kind, seconds) in enumerate(steps, 1):
        step = {"number": number, "total": len(steps), "kind": kind, **stamp}
        records.append({"event": "step-start", "time": at, **step})
        at += seconds
        # The journal's own seconds are rounded, and must not be what is counted.
        end = {"outcome": "done", "seconds": round(seconds), **step}
        records.append({"event": "step-end", "time": at, **end})
    records.append({"event": "operation-end", "time": at, **stamp})
    (found,) = Timeline(records).operations
    return found


def hook(**changes):
    given = {
        "hook": "scale_end",
        "seconds": 10.0,
        "playbooks": 6.0,
        "ansible": 5.5,
        "waits": 2.0,
    }
    return HookFigures(**given | changes)


class TestHook:
    def test_playbooks_and_waits_are_not_our_own(self):
        found = figures.hook_figures(operation(SCALE_OUT))
        assert found.seconds == pytest.approx(16.75)
        assert found.playbooks == pytest.approx(13.0)
        assert found.waits == pytest.approx(3.0)
        assert found.own == pytest.approx(0.75)

    def test_drain_is_a_wait(self):
        found = figures.hook_figures(operation([("drain", 4.0)]))
        assert (found.waits, found.own) == (pytest.approx(4.0), pytest.approx(0.0))

    def test_starting_a_run_and_noticing_its_end_is_our_own(self):
        runs = [
            PlaybookRun(ERA + 50.0, ERA + 90.0),  # of an earlier hook
            PlaybookRun(ERA + 102.75, ERA + 105.0),
            PlaybookRun(ERA + 105.75, ERA + 115.0),
            PlaybookRun(ERA + 200.0, ERA + 210.0),  # of a later one
        ]
        found = figures.hook_figures(operation(SCALE_OUT), runs)
        assert found.ansible == pytest.approx(2.25 + 9.25)
        assert found.own == pytest.approx(0.75 + 1.5)

    def test_calls_of_heat_are_those_while_it_ran(self):
        answered = [ERA + at for at in (99.9, 100.1, 116.7, 116.8)]
        found = figures.hook_figures(operation(SCALE_OUT), answered=answered)
        assert found.heat_calls == 2

    def test_hook_that_was_cut_off_ends_with_its_last_record(self):
        records = [
            {
                "event": "operation-start",
                "time": ERA + 10.0,
                "run": "r",
                "hook": "heal_end",
            },
            {
                "event": "step-start",
                "time": ERA + 12.0,
                "run": "r",
                "kind": "join-workers",
            },
        ]
        (cut,) = Timeline(records).operations
        found = figures.hook_figures(cut)
        assert (found.seconds, found.playbooks) == (2.0, 0.0)


class TestOperation:
    def test_what_is_not_in_hooks_is_tackers(self):
        one = OperationFigures("heal 1", 30.0, (hook(seconds=6.0), hook(seconds=9.0)))
        assert one.tacker == pytest.approx(15.0)

    def test_counts_are_those_of_the_worst_hook_and_host(self):
        hooks = (
            hook(heat_calls=2, logins={"a": 1, "b": 1}),
            hook(heat_calls=4, logins={"a": 3}),
        )
        one = OperationFigures("heal 1", 30.0, hooks)
        assert (one.heat_calls, one.logins) == (4, 3)

    def test_operation_without_a_hook_has_no_figures_of_ours(self):
        one = OperationFigures("scale in 1", 3.0, ())
        assert (one.tacker, one.total("own"), one.logins) == (3.0, 0.0, 0)


class TestRows:
    def test_times_are_medians_and_counts_the_most(self):
        runs = [
            OperationFigures("heal 1", seconds, (hook(ansible=5.0, heat_calls=calls),))
            for seconds, calls in ((20.0, 2), (99.0, 4), (21.0, 2))
        ]
        other = OperationFigures("instantiate", 7.0, ())
        heal, instantiate = figures.rows("1+2", [*runs, other])
        assert (heal.case, heal.name, heal.runs) == ("1+2", "heal 1", 3)
        assert (heal.seconds, heal.tacker, heal.own) == (21.0, 11.0, 3.0)
        assert heal.heat_calls == 4
        assert (instantiate.name, instantiate.runs) == ("instantiate", 1)

    def test_json_has_every_hook(self):
        one = OperationFigures("heal 1", 30.0, (hook(logins={"a": 1}),))
        told = figures.as_json(one)
        assert told["tacker_seconds"] == 20.0
        assert [one["own_seconds"] for one in told["hooks"]] == [2.5]
        assert told["hooks"][0]["logins"] == {"a": 1}


class TestLogs:
    SSHD = (
        "Server listening on 0.0.0.0 port 22.\n"
        "Accepted password for ubuntu from 10.99.0.1 port 40022 ssh2\n"
        "Failed password for ubuntu from 10.99.0.1 port 40023 ssh2\n"
        "Accepted publickey for ubuntu from 10.99.0.1 port 40024 ssh2: ED25519\n"
        "Accepted password for ubuntu from 10.99.0.10 port 40025 ssh2\n"
    )

    def test_logins_are_those_accepted_from_one_address(self):
        assert figures.accepted(self.SSHD, "10.99.0.1") == 2
        assert figures.accepted(self.SSHD, "10.99.0.10") == 1

    def test_growth_names_the_grown_figures(self):
        before, after = {"a": 2, "gone": 9}, {"a": 3, "same": 0, "new": 1}
        assert figures.growth(before, after) == {"a": 1, "new": 1}

    def test_access_log_is_read_among_other_lines(self):
        log = (
            "2026-11-21 19:02:43.599 61 INFO heat.common.wsgi Processing request\n"
            '1795287763.612 "GET /v1/t/stacks/s/resources HTTP/1.1" 302\n'
            '1795287763.632 "GET /v1/t/stacks/n/s/resources?a=b HTTP/1.1" 200\n'
        )
        assert figures.answers(log) == [1795287763.612, 1795287763.632]

    def test_runs_that_have_not_ended_are_left_out(self):
        listing = (
            "431 98765 f00f-boot 1795287700.125 0 1795287711.5\n"
            "432 98766 f00f-boot 1795287720.000\n"
        )
        assert figures.playbook_runs(listing) == [
            PlaybookRun(1795287700.125, 1795287711.5)
        ]
