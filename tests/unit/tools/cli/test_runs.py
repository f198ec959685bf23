# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs``: what is said of operations, live and afterwards."""

import itertools
import json
import os
import pty
import pwd
import re
import select
import signal
import subprocess
import sys
import threading
import time
import types
import uuid
from pathlib import Path

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.tools.cli import host_records, main
from tacker_k8s_mgmt.tools.cli.commands import runs as runs_follow
from tests.unit.tools.cli.journals import (
    ERROR,
    OTHER,
    VNF,
    Recorder,
    completed,
    failed,
)

COMMAND = [sys.executable, "-m", "tacker_k8s_mgmt.tools.cli", "runs"]
LIMIT = 60
OCCURRENCE = "0c5fd2a1-6f0f-4f0e-8d0c-1b1f5a9e7d21"
OF_TACKER = {"lcm_op_occ_id": OCCURRENCE}


@pytest.fixture(autouse=True)
def short_polls(monkeypatch):
    monkeypatch.setattr(runs_follow, "_POLL_SECONDS", 0.01)


def unfinished(tmp_path):
    Recorder(tmp_path).begin(9).step_start("run cluster.yml")


def runs(state_path, verb, *arguments):
    return main(["runs", verb, "--state-path", str(state_path), *arguments])


# --- list and show


@pytest.mark.parametrize("verb", ["list", "show", "follow"])
def test_an_operation_is_shown(tmp_path, capsys, verb):
    completed(tmp_path)
    assert runs(tmp_path, verb) == 0
    out = capsys.readouterr().out
    assert "instantiate_end" in out
    assert "completed after 4.5 s" in out


@pytest.mark.parametrize(
    ("verb", "place"), [("list", f" {VNF} "), ("show", "instantiate_end: at step 1/9")]
)
def test_the_step_of_an_operation_is_shown(tmp_path, capsys, verb, place):
    unfinished(tmp_path)
    assert runs(tmp_path, verb) == 0
    out = capsys.readouterr().out
    assert place in out
    assert "at step 1/9 run cluster.yml, last sign of life " in out


@pytest.mark.parametrize("verb", ["list", "show"])
def test_progress_and_estimate_of_a_playbook_are_shown(tmp_path, capsys, verb):
    one = Recorder(tmp_path).begin(9)
    one.step_start("run cluster.yml")
    one.progress(left=380, former_runs=2)
    assert runs(tmp_path, verb) == 0
    out = capsys.readouterr().out
    assert "at step 1/9 run cluster.yml, play 1/3, task 7, about 6 min left " in out
    assert "left (two former runs), last sign of life " in out


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_steps_that_do_not_concern_the_operation_are_counted(tmp_path, capsys, verb):
    one = Recorder(tmp_path, "heal_end").begin(4)
    one.step("find the VMs")
    one.step("install the load balancer", "nothing to do")
    one.step("join the new VMs")
    one.step("register the cluster as a VIM", "nothing to do")
    one.end()
    assert runs(tmp_path, verb) == 0
    out = capsys.readouterr().out
    assert "   1/4 find the VMs" in out
    assert "   3/4 join the new VMs" in out
    assert "load balancer" not in out
    assert "VIM" not in out
    assert "heal_end completed after 4.5 s\n2 steps had nothing to do.\n" in out


def test_a_list_is_shown_again_with_watch(tmp_path, capsys, monkeypatch):
    def sleep(seconds):
        if (tmp_path / "journal" / f"{OTHER}.jsonl").exists():
            raise KeyboardInterrupt
        completed(tmp_path, vnf_id=OTHER)

    completed(tmp_path)
    monkeypatch.setattr(time, "sleep", sleep)
    assert runs(tmp_path, "list", "--watch") == 130
    first, second = capsys.readouterr().out.split("until Ctrl-C\n")[1:]
    assert (first.count(VNF), first.count(OTHER)) == (1, 0)
    assert (second.count(VNF), second.count(OTHER)) == (1, 1)


SLOW = [
    {"task": "kubeadm : Join", "play": "P", "seconds": 80.0},
    {"task": "etcd : Start", "play": "P", "seconds": 5.5},
    {"task": "ping", "play": "P", "seconds": 0.4},
]


def test_show_shows_the_slowest_tasks_of_a_playbook(tmp_path, capsys):
    Recorder(tmp_path).begin(1).step(slowest=SLOW)
    assert runs(tmp_path, "show") == 0
    out = capsys.readouterr().out
    line = "        slowest tasks: kubeadm : Join 1 min 20 s; etcd : Start 5.5 s\n"
    assert line in out


def test_the_slowest_tasks_of_several_playbooks_in_one_step_are_those_of_all(
    tmp_path, capsys
):
    one = Recorder(tmp_path).begin(1)
    one.step_start("run remove-node.yml")
    one.progress(slowest=[{"task": f"t{n}", "seconds": 2.0} for n in range(4)])
    one.progress(slowest=[{"task": "drain", "seconds": 300.0}])
    one.step_end()
    assert runs(tmp_path, "show") == 0
    out = capsys.readouterr().out
    assert "slowest tasks: drain 5 min; t0 2.0 s; t1 2.0 s\n" in out


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_what_delays_an_operation_is_shown(tmp_path, capsys, verb):
    one = Recorder(tmp_path).begin(1)
    one.step_start()
    one.note("worker VM 7 refuses the SSH login of ubuntu")
    one.step_end()
    one.end()
    assert runs(tmp_path, verb, VNF) == 0
    assert " worker VM 7 refuses the SSH login of ubuntu\n" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_a_failed_operation_is_shown_with_its_error(tmp_path, capsys, verb):
    error = "no [bold]brackets[/bold] are taken away"
    failed(tmp_path, error=error)
    assert runs(tmp_path, verb, VNF) == (0 if verb == "show" else 1)
    assert error in capsys.readouterr().out


@pytest.fixture
def three_operations(tmp_path):
    """An instantiation of two hooks, a failed scale-out and its retry, a heal."""
    completed(tmp_path, "instantiate_start", ended={"followed_by": "instantiate_end"})
    completed(tmp_path, "instantiate_end")
    failed(tmp_path, "scale_end")
    completed(tmp_path, "scale_end")
    one = Recorder(tmp_path, "heal_end").begin(lcm_op_occ_id=OCCURRENCE)
    one.step("join the new VMs")
    one.end()


@pytest.mark.parametrize(
    ("options", "hooks", "first"),
    [
        ([], ["heal_end"], "2 earlier operations are recorded; --last N or --all"),
        (
            ["--last", "2"],
            ["scale_end", "scale_end", "heal_end"],
            "1 earlier operation is recorded; --last N or --all",
        ),
        (
            ["--last", "3"],
            None,
            "Instantiate\n",
        ),
        (["--last", "99"], None, "Instantiate\n"),
        (["--all"], None, "Instantiate\n"),
    ],
)
def test_show_shows_the_last_operation_or_more(
    tmp_path, capsys, three_operations, options, hooks, first
):
    every = ["instantiate_start", "instantiate_end", "scale_end", "scale_end"]
    expected = hooks or [*every, "heal_end"]
    assert runs(tmp_path, "show", *options) == 0
    out = capsys.readouterr().out
    assert out.startswith(first)
    ended = re.findall(r"^(\w+) (?:completed|failed) after", out, re.MULTILINE)
    assert ended == expected
    assert f"Heal, LCM operation occurrence {OCCURRENCE}\n" in out
    assert runs(tmp_path, "show", "--json", *options) == 0
    document = json.loads(capsys.readouterr().out)
    starts = [one for one in document["records"] if one["event"] == "operation-start"]
    assert [one["operation"] for one in starts] == expected
    known = {name.partition("_")[0] for name in expected}
    assert document["earlier_operations"] == 3 - len(known)


def test_a_page_has_all_operations_or_the_last(tmp_path, three_operations):
    page = tmp_path / "page.html"
    assert runs(tmp_path, "show", "--html", str(page)) == 0
    assert "Instantiate" in page.read_text()
    again = ("--html", str(page), "--force", "--last", "1")
    assert runs(tmp_path, "show", *again) == 0
    assert "Instantiate" not in page.read_text()
    assert "Heal" in page.read_text()


@pytest.mark.parametrize("number", ["0", "-1", "two", "1.5"])
def test_a_number_of_operations_that_is_none_is_refused(tmp_path, capsys, number):
    completed(tmp_path)
    with pytest.raises(SystemExit) as ended:
        runs(tmp_path, "show", f"--last={number}")
    assert ended.value.code == 2
    assert "--last: must be a number, 1 or more\n" in capsys.readouterr().err


def test_show_json_gives_the_records(tmp_path, capsys):
    completed(tmp_path)
    assert runs(tmp_path, "show", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["vnf_instance_id"] == VNF
    assert len(document["records"]) == 8
    assert document["records"][2]["event"] == "progress"


@pytest.mark.parametrize("verb", ["list", "show", "follow"])
def test_without_records_the_directory_is_named(tmp_path, capsys, verb):
    assert runs(tmp_path, verb) == 1
    said = capsys.readouterr().err
    assert f"No operation is recorded below {tmp_path}; give --state-path" in said


@pytest.mark.parametrize("other", [str(uuid.UUID(int=7)), "../../etc/passwd"])
@pytest.mark.parametrize("verb", ["show", "follow"])
def test_an_unknown_id_or_name_is_reported_at_once(tmp_path, capsys, verb, other):
    completed(tmp_path)
    assert runs(tmp_path, verb, other) == 1
    assert f"No operation of the VNF instance {other} is" in capsys.readouterr().err


NAMED = {"vnf_name": "my-cluster", "lcm_op_occ_id": "0c5f"}


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_a_vnf_instance_may_be_named(tmp_path, capsys, verb):
    named = Recorder(tmp_path).begin(1, **NAMED)
    named.step()
    named.end()
    completed(tmp_path, "heal_end", vnf_id=str(uuid.uuid4()))
    assert runs(tmp_path, verb, "my-cluster") == 0
    out = capsys.readouterr().out
    assert "instantiate_end" in out
    assert "heal_end" not in out


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_a_name_of_several_is_refused_with_their_ids(tmp_path, capsys, verb):
    ids = VNF, str(uuid.uuid4())
    for vnf_id in ids:
        Recorder(tmp_path, vnf_id=vnf_id).begin(1, **NAMED).end()
    assert runs(tmp_path, verb, "my-cluster") == 2
    said = capsys.readouterr().err
    assert [vnf_id for vnf_id in ids if vnf_id not in said] == []


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_a_name_is_that_of_the_one_that_was_not_terminated(tmp_path, capsys, verb):
    former = Recorder(tmp_path, "terminate_end", vnf_id=str(uuid.uuid4()))
    former.begin(1, **NAMED).end()
    one = Recorder(tmp_path).begin(1, **NAMED)
    one.step()
    one.end()
    assert runs(tmp_path, verb, "my-cluster") == 0
    assert "instantiate_end" in capsys.readouterr().out


def test_follow_waits_for_a_name_that_is_not_there_yet(tmp_path, later):
    def work():
        one = Recorder(tmp_path).begin(1, **NAMED)
        one.step()
        one.end()

    later(work)
    assert runs(tmp_path, "follow", "my-cluster", "--wait", str(LIMIT)) == 0


def test_list_has_the_name_and_the_operation(tmp_path, capsys):
    Recorder(tmp_path).begin(1, **NAMED).end()
    assert runs(tmp_path, "list", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row.pop("State").startswith("completed")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", row.pop("Started"))
    assert row == {
        "Outcome": "completed",
        "VNF Instance ID": VNF,
        "VNF Name": "my-cluster",
        "Operation ID": "0c5f",
        "Hook": "instantiate_end",
    }


@pytest.mark.parametrize("end", [completed, failed, unfinished])
def test_list_has_the_outcome_in_a_word(tmp_path, capsys, end):
    end(tmp_path)
    assert runs(tmp_path, "list", "-f", "value", "-c", "Outcome") == 0
    assert capsys.readouterr().out == f"{end.__name__}\n"


def test_list_of_nothing_is_a_document_for_programs(tmp_path, capsys):
    assert runs(tmp_path, "list", "--json") == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert "No operation is recorded below" in captured.err


class TestConfiguration:
    @pytest.fixture
    def configured(self, tmp_path):
        def configured(text):
            path = tmp_path / "tacker.conf"
            path.write_text(text)
            return main(["runs", "list", "--config-file", str(path)])

        return configured

    def test_the_state_directory_is_the_drivers(self, tmp_path, configured, capsys):
        completed(tmp_path / "own")
        text = f"[DEFAULT]\nstate_path = /x\n[k8s_mgmt]\nstate_path = {tmp_path}/own\n"
        assert configured(text) == 0
        assert VNF in capsys.readouterr().out

    def test_the_state_directory_is_below_tackers(self, tmp_path, configured, capsys):
        completed(tmp_path / "k8s_mgmt")
        assert configured(f"[DEFAULT]\nstate_path = {tmp_path}\n") == 0
        assert VNF in capsys.readouterr().out

    def test_without_a_file_it_is_the_default(self, monkeypatch, capsys):
        monkeypatch.setattr(cfg, "find_config_files", lambda *_, **__: [])
        assert main(["runs", "list"]) == 1
        assert "below /var/lib/tacker/k8s_mgmt; give" in capsys.readouterr().err

    def test_the_conductors_own_file_is_read_beside_tackers(
        self, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setenv("HOME", str(tmp_path))
        completed(tmp_path / "k8s_mgmt")
        (tmp_path / ".tacker").mkdir()
        own = tmp_path / ".tacker" / "tacker-conductor.conf"
        own.write_text(f"[DEFAULT]\nstate_path = {tmp_path}\n")
        assert main(["runs", "list"]) == 0
        assert VNF in capsys.readouterr().out

    def test_the_files_of_the_environment_take_its_place(
        self, tmp_path, monkeypatch, capsys
    ):
        completed(tmp_path / "own")
        first, second = tmp_path / "tacker.conf", tmp_path / "more.conf"
        first.write_text("[k8s_mgmt]\nstate_path = /none\n")
        second.write_text(f"[k8s_mgmt]\nstate_path = {tmp_path}/own\n")
        monkeypatch.setenv("TACKER_K8S_MGMT_CONFIG", f"{first}:{second}")
        assert main(["runs", "list"]) == 0
        assert VNF in capsys.readouterr().out
        # A file that is given counts alone.
        assert main(["runs", "list", "--config-file", str(first)]) == 1
        assert "/none" in capsys.readouterr().err

    def test_a_file_that_is_not_there_is_named(self, tmp_path, capsys):
        path = str(tmp_path / "none.conf")
        assert main(["runs", "list", "--config-file", path]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert path in line
        assert "Be root or the conductor's user" in line

    def test_a_file_that_is_wrong_is_named(self, configured, capsys):
        assert configured("[k8s_mgmt\n") == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "tacker.conf" in line

    def test_it_is_not_read_without_need(self, tmp_path):
        completed(tmp_path)
        arguments = ("--state-path", str(tmp_path), "--config-file", "/none")
        assert main(["runs", "list", *arguments]) == 0


def test_journals_that_may_not_be_read_are_one_line(tmp_path, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert runs(tmp_path, "list") == 2
    owner = pwd.getpwuid(tmp_path.stat().st_uid).pw_name
    assert capsys.readouterr().err == (
        f"{tmp_path}/journal: Permission denied. It belongs to {owner}: use "
        "sudo, or be that user.\n"
    )
    # To root, sudo is no advice.
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert runs(tmp_path, "list") == 2
    assert capsys.readouterr().err == f"{tmp_path}/journal: Permission denied\n"


ODD_RECORDS = {
    "an empty one": b"{}\n",
    "fields of other types": b'{"time": "noon", "run": 7, "hook": null, '
    b'"event": ["step-end"], "seconds": {}, "steps": "many"}\n',
    "no number": b'{"event": "operation-start", "run": "r", "hook": "heal_end", '
    b'"time": NaN, "steps": Infinity}\n',
    "an end without a start": b'{"event": "step-end", "run": "r", "outcome": true}\n',
    "progress outside of a step": b'{"event": "progress", "run": "r", "play": 1}\n',
    "odd estimates": b'{"event": "step-start", "run": "r"}\n{"event": "progress", '
    b'"run": "r", "left": -1e300, "former_runs": 1e300, "slowest": [1, {}, '
    b'{"task": 7, "seconds": -1}]}\n{"event": "progress", "run": "r", "left": {}, '
    b'"former_runs": "two", "slowest": {"task": 1}}\n',
    "an unknown event": b'{"event": "tea", "run": "r", "hook": "heal_end"}\n',
    "half a line": b'{"event": "step-st',
}


@pytest.mark.parametrize("record", ODD_RECORDS.values(), ids=ODD_RECORDS.keys())
@pytest.mark.parametrize(
    "verb", [["list"], ["show"], ["show", "--html"], ["follow", "--wait", "0"]]
)
def test_records_of_any_shape_are_survived(tmp_path, capsys, verb, record):
    path = Path(completed(tmp_path))
    path.write_bytes(record + b"\n" + path.read_bytes() + record)
    page = [str(tmp_path / "page.html")] if verb[-1] == "--html" else []
    assert runs(tmp_path, *verb, *page) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_a_time_that_is_not_known_is_none_and_not_1970(tmp_path, capsys):
    """Such an operation has lost its beginning, as on a full disk."""
    path = Path(completed(tmp_path))
    path.write_bytes(ODD_RECORDS["no number"])
    assert runs(tmp_path, "list", "-f", "json") == 0
    text = capsys.readouterr().out
    assert "1970" not in text
    assert None in [value for row in json.loads(text) for value in row.values()]
    assert runs(tmp_path, "list") == 0
    assert "1970" not in capsys.readouterr().out


def test_a_text_cannot_steer_the_terminal(tmp_path, capsys):
    failed(tmp_path, error="\x1b]0;owned\x07\x1b[2J\u202egnp.exe and the reason")
    runs(tmp_path, "show")
    out = capsys.readouterr().out
    assert "and the reason" in out
    assert not set("\x1b\x07\u202e") & set(out)


# --- follow


@pytest.fixture
def later():
    """Do these things one after the other, while the test follows."""
    threads = []

    def do(*actions):
        def work():
            for action in actions:
                time.sleep(0.1)
                action()

        threads.append(threading.Thread(target=work))
        threads[-1].start()

    yield do
    for thread in threads:
        thread.join()


def test_follow_goes_on_from_instantiate_start_to_instantiate_end(
    tmp_path, capsys, later
):
    completed(tmp_path, "instantiate_start")
    later(lambda: completed(tmp_path, "instantiate_end"))
    assert runs(tmp_path, "follow") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("instantiate_start  ")
    meanwhile = "Tacker now has Heat create the VMs; instantiate_end follows."
    assert out.index(meanwhile) == 4
    assert out[-1] == "instantiate_end completed after 4.5 s"


def test_follow_ends_with_a_hook_that_failed(tmp_path, capsys):
    failed(tmp_path, "instantiate_start")
    assert runs(tmp_path, "follow") == 1
    out = capsys.readouterr().out
    assert ERROR in out
    assert "Tacker now" not in out


def test_follow_ends_with_the_only_hook_of_a_scale_in(tmp_path, capsys):
    completed(tmp_path, "scale_start")
    assert runs(tmp_path, "follow") == 0
    assert "change the number of VMs; no hook follows" in capsys.readouterr().out


def test_follow_goes_on_after_scale_start_in_the_api_that_calls_scale_end(
    tmp_path, later
):
    completed(tmp_path, "scale_start", api="v2")
    later(lambda: completed(tmp_path, "scale_end", api="v2"))
    assert runs(tmp_path, "follow") == 0


ALONE = {
    "v2: terminate_start": "Tacker now has Heat delete the VMs; no hook follows.",
    "v2: scale_start": "Tacker now has Heat change the number of VMs; no hook follows.",
    "v2: instantiate_rollback_start": "Tacker now has Heat delete the VMs; "
    "no hook follows.",
    "v2: scale_rollback_start": "Tacker now has Heat delete the new VMs; "
    "no hook follows.",
    "v1: modify_information_start": "modify_information_start completed after 4.5 s",
}


@pytest.mark.parametrize("hook", ALONE)
def test_follow_ends_with_a_hook_that_no_recorded_one_follows(tmp_path, capsys, hook):
    api, _, name = hook.partition(": ")
    completed(tmp_path, name, api=api, ended={"followed_by": ""})
    # The limit ends the test, with a failure, if another hook is waited for.
    assert runs(tmp_path, "follow", "--wait", "0.05") == 0
    out = capsys.readouterr().out
    assert ALONE[hook] in out.splitlines()
    assert ("Heat" in out) is ("modify" not in name)


def test_follow_goes_on_to_the_hook_that_is_recorded_as_the_next(
    tmp_path, capsys, later
):
    ended = {"followed_by": "modify_information_end"}
    completed(tmp_path, "modify_information_start", ended=ended)
    later(lambda: completed(tmp_path, "modify_information_end"))
    assert runs(tmp_path, "follow") == 0
    assert "modify_information_end follows." in capsys.readouterr().out.splitlines()


def test_follow_shows_the_last_operation_and_none_before_it(tmp_path, capsys):
    completed(tmp_path, "instantiate_end")
    completed(tmp_path, "terminate_start")
    completed(tmp_path, "terminate_end")
    assert runs(tmp_path, "follow") == 0
    out = capsys.readouterr().out
    assert "instantiate" not in out
    assert "terminate_start" in out
    assert "terminate_end" in out


def test_follow_shows_the_failed_try_before_the_one_that_is_followed(
    tmp_path, capsys, later
):
    failed(tmp_path)
    one = Recorder(tmp_path).begin(1)
    one.step_start()
    later(one.step_end, one.end)
    assert runs(tmp_path, "follow") == 0
    out = capsys.readouterr().out
    assert out.index("failed after") < out.index("completed after")


@pytest.mark.parametrize("words", [[VNF], []], ids=["an id", "the first of all"])
def test_follow_waits_for_what_is_not_there_yet(tmp_path, capsys, later, words):
    later(lambda: completed(tmp_path))
    assert runs(tmp_path, "follow", *words, "--wait", str(LIMIT)) == 0
    assert "completed" in capsys.readouterr().out


def test_follow_gives_up_waiting_for_an_id(tmp_path, capsys):
    assert runs(tmp_path, "follow", VNF, "--wait", "0.05") == 1
    said = capsys.readouterr()
    assert f"No operation of the VNF instance {VNF}" in said.err


def test_follow_gives_up_when_nothing_comes_any_more(tmp_path, capsys):
    Recorder(tmp_path).begin().step_start()
    assert runs(tmp_path, "follow", "--wait", "0.05") == 1
    assert "Nothing came for 0.1 s." in capsys.readouterr().out


def test_follow_with_a_limit_waits_for_what_comes_after_an_end(tmp_path, capsys, later):
    completed(tmp_path)
    later(lambda: failed(tmp_path, "heal_end"))
    assert runs(tmp_path, "follow", "--wait", str(LIMIT)) == 1
    out = capsys.readouterr().out
    assert out.index("instantiate_end completed") < out.index("heal_end failed")


def test_in_a_pipe_progress_is_a_line_now_and_then(tmp_path, capsys, later):
    one = Recorder(tmp_path).begin(1)
    one.step_start()
    later(one.progress, one.progress, one.progress, one.step_end, one.end)
    assert runs(tmp_path, "follow") == 0
    out = capsys.readouterr().out
    line = '    1/1 run cluster.yml: play 1/3 "Bootstrap hosts", task 7 "Gather facts"'
    assert out.splitlines().count(line) == 1


def test_in_a_pipe_progress_shows_what_is_left(tmp_path, capsys, later):
    one = Recorder(tmp_path).begin(1)
    one.step_start()
    later(lambda: one.progress(left=3600, former_runs=1), one.step_end, one.end)
    assert runs(tmp_path, "follow") == 0
    end = 'task 7 "Gather facts"; about 1 h left (one former run)'
    assert any(line.endswith(end) for line in capsys.readouterr().out.splitlines())


def test_waiting_for_less_than_no_time_is_a_wrong_command_line(tmp_path):
    for text in ("-1", "nan", "soon"):
        with pytest.raises(SystemExit) as caught:
            runs(tmp_path, "follow", "--wait", text)
        assert caught.value.code == 2


# --- as programs


def ends(process):
    return process.wait(timeout=LIMIT)


def piped(*words):
    argv = [*COMMAND, *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def is_quiet(process):
    assert process.stderr.read() == b""
    process.stderr.close()
    return ends(process) == 141


def test_a_broken_pipe_is_quiet(tmp_path):
    for _ in range(40):
        completed(tmp_path)
    process = piped("show", "--json", "--state-path", str(tmp_path))
    process.stdout.close()
    assert is_quiet(process)


def test_a_pipe_that_breaks_while_following_is_quiet(tmp_path):
    one = Recorder(tmp_path).begin(2)
    process = piped("follow", "--state-path", str(tmp_path))
    assert b"instantiate_end" in process.stdout.readline()
    process.stdout.close()
    one.step()
    assert is_quiet(process)


class Screen:
    """A command on a terminal of its own."""

    def __init__(self, *arguments, **environment):
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment},
            # A background job ignores it, and Python below it would not listen.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(theirs)
        self.text = ""

    def read(self, wanted=None):
        """Read until a text has come, or to the end."""
        until = time.monotonic() + LIMIT
        while wanted is None or wanted not in self.text:
            left = max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._ours], [], [], left)
            assert ready, self.text
            try:
                data = os.read(self._ours, 4096)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                assert wanted is None, self.text
                break
            self.text += data.decode(errors="replace")
        return self.text

    def close(self):
        os.close(self._ours)


@pytest.fixture
def screen():
    opened = []

    def start(*arguments, **environment):
        opened.append(Screen(*arguments, **environment))
        return opened[-1]

    yield start
    for one in opened:
        one.process.kill()
        one.process.wait()
        one.close()


def under_way(tmp_path):
    one = Recorder(tmp_path).begin(4)
    one.step("claim the cluster's directory")
    one.step_start()
    one.progress()
    return one


def test_a_terminal_shows_the_step_its_play_and_its_counters_live(tmp_path, screen):
    one = under_way(tmp_path)
    shown = screen("follow", "--state-path", str(tmp_path))
    shown.read("21 results of hosts")
    assert "instantiate_end 2/4 run cluster.yml" in shown.text
    assert "play 1/3, task 7, 21 results" in shown.text
    shown.read("Bootstrap hosts: Gather facts")
    one.progress(left=380, former_runs=2)
    shown.read("about 6 min left")
    one.step_end()
    one.end()
    assert "completed after" in shown.read()
    assert ends(shown.process) == 0


def test_ctrl_c_ends_following_without_a_traceback(tmp_path, screen):
    under_way(tmp_path)
    shown = screen("follow", "--state-path", str(tmp_path))
    shown.read("21 results of hosts")
    shown.process.send_signal(signal.SIGINT)
    assert "Traceback" not in shown.read()
    assert ends(shown.process) == 130
    assert "\x1b[?25h" in shown.text, "the cursor was not given back"


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_go_with_no_color(tmp_path, screen, no_color, coloured):
    completed(tmp_path)
    shown = screen("follow", "--state-path", str(tmp_path), NO_COLOR=no_color)
    assert "completed after" in shown.read()
    assert bool(COLOUR.search(shown.text)) is coloured


def test_a_dumb_terminal_gets_plain_lines(tmp_path, screen):
    completed(tmp_path)
    shown = screen("follow", "--state-path", str(tmp_path), TERM="dumb")
    assert "completed after" in shown.read()
    assert "\x1b" not in shown.text


def test_follow_prints_one_document_when_the_operation_has_ended(
    tmp_path, capsys, later
):
    completed(tmp_path, "instantiate_start")
    later(lambda: failed(tmp_path, "instantiate_end"))
    assert runs(tmp_path, "follow", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["vnf_instance_id"] == VNF
    assert document["hook"] == "instantiate_end"
    assert document["outcome"] == "failed"
    assert document["is_final"] is True
    assert document["error"] == ERROR


def test_what_has_failed_comes_first_with_its_verbs(tmp_path, capsys):
    one = Recorder(tmp_path, "scale_end").begin(1)
    one.end("failed", error=ERROR, verbs=["retry", "rollback", "fail"])
    completed(tmp_path, vnf_id=OTHER)
    assert runs(tmp_path, "list", "-f", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["VNF Instance ID"] for row in rows] == [VNF, OTHER]
    assert rows[0]["State"] == "failed after 4.5 s: retry or rollback or fail"
    assert rows[1]["State"] == "completed after 4.5 s"


def test_hooks_of_a_cnf_have_its_name(tmp_path, capsys):
    hooks = [f"instantiate_{part} of CNF {OTHER}" for part in ("start", "end")]
    start, end = Recorder(tmp_path, hooks[0]), Recorder(tmp_path, hooks[1])
    start.begin(0, cnf_name="web").end(followed_by=hooks[1])
    end.begin(0, cnf_name="web").end()
    for verb in ("show", "follow"):
        assert runs(tmp_path, verb) == 0
        out = capsys.readouterr().out
        assert OTHER not in out
        assert "instantiate_end of CNF web follows." in out
        assert "instantiate_end of CNF web completed after" in out
    assert runs(tmp_path, "list") == 0
    assert "instantiate_end of CNF web" in capsys.readouterr().out


class TestTackersEnd:
    """With tacker.conf, the database says when the operation itself has ended."""

    @pytest.fixture
    def begun(self):
        """What Tacker works on."""
        return types.SimpleNamespace(id="")

    @pytest.fixture
    def follow(self, tmp_path, monkeypatch, begun):
        monkeypatch.setattr(runs_follow, "_TACKER_SECONDS", 0.01)
        config = tmp_path / "tacker.conf"
        config.write_text(f"[k8s_mgmt]\nstate_path = {tmp_path}\n")

        def follow(states, *arguments):
            begun.id = begun.id or OCCURRENCE
            asked = iter(states)

            def operation_state(occurrence, files):
                assert (occurrence, files) == (begun.id, [str(config)])
                state = next(asked)
                if isinstance(state, Exception):
                    raise state
                return state

            lookup = types.SimpleNamespace(
                operation_state=operation_state, under_way=lambda *_: begun.id
            )
            monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
            code = main(["runs", "follow", "--config-file", str(config), *arguments])
            return code, list(asked)

        return follow

    @pytest.mark.parametrize(
        ("states", "code"),
        [
            (["PROCESSING", "PROCESSING", "COMPLETED"], 0),
            (["ROLLING_BACK", "ROLLED_BACK"], 0),
            # A hook that has completed says nothing of what Tacker does afterwards.
            (["PROCESSING", "FAILED_TEMP"], 1),
            (["FAILED"], 1),
        ],
    )
    def test_it_is_waited_for(self, tmp_path, follow, capsys, states, code):
        completed(
            tmp_path, "terminate_start", ended={"followed_by": ""}, begun=OF_TACKER
        )
        assert follow(states) == (code, [])
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == f"LCM operation occurrence {OCCURRENCE}: {states[-1]}"

    def test_also_after_a_hook_that_failed(self, tmp_path, follow, capsys):
        failed(tmp_path, "instantiate_end", begun=OF_TACKER)
        assert follow(["PROCESSING", "FAILED_TEMP"], "--json") == (1, [])
        assert json.loads(capsys.readouterr().out)["operation_state"] == "FAILED_TEMP"

    def test_no_longer_than_wanted(self, tmp_path, follow, capsys):
        completed(
            tmp_path, "terminate_start", ended={"followed_by": ""}, begun=OF_TACKER
        )
        code, _ = follow(itertools.repeat("PROCESSING", 1000), "--wait", "0.05")
        assert code == 0
        assert "Tacker has not ended it for 0.1 s." in capsys.readouterr().out

    def test_a_database_that_does_not_answer_is_no_failure(
        self, tmp_path, follow, capsys
    ):
        completed(
            tmp_path, "terminate_start", ended={"followed_by": ""}, begun=OF_TACKER
        )
        assert follow([errors.TackerError(detail="It is away.")]) == (0, [])
        assert "is not known: " in capsys.readouterr().out

    def test_one_that_tacker_does_not_have_any_more(self, tmp_path, follow, capsys):
        completed(
            tmp_path, "terminate_start", ended={"followed_by": ""}, begun=OF_TACKER
        )
        assert follow([""]) == (0, [])
        assert OCCURRENCE not in capsys.readouterr().out

    def test_one_that_has_begun_is_waited_for(
        self, tmp_path, follow, begun, capsys, later
    ):
        begun.id = OTHER
        completed(tmp_path, "scale_end", begun=OF_TACKER)
        new = {"lcm_op_occ_id": OTHER}
        later(lambda: completed(tmp_path, "heal_end", begun=new))
        code, _ = follow(itertools.chain(["PROCESSING"] * 500, ["COMPLETED"]))
        out = capsys.readouterr().out
        assert "heal_end completed after" in out
        assert out.splitlines()[-1] == f"LCM operation occurrence {OTHER}: COMPLETED"
        assert code == 0

    @pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("FAILED_TEMP", 1)])
    def test_one_of_which_nothing_is_recorded_ends_with_tackers(
        self, tmp_path, follow, begun, capsys, state, code
    ):
        begun.id = OTHER
        failed(tmp_path, "scale_end", begun=OF_TACKER)
        assert follow(["PROCESSING", state, state])[0] == code
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == f"LCM operation occurrence {OTHER}: {state}"

    def test_without_tackers_configuration_only_the_journal_counts(
        self, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setattr(cfg, "find_config_files", lambda *_, **__: [])
        monkeypatch.setattr(config, "state_path", lambda _: str(tmp_path))
        completed(
            tmp_path, "terminate_start", ended={"followed_by": ""}, begun=OF_TACKER
        )
        assert main(["runs", "follow"]) == 0
        assert "There is no tacker.conf" in capsys.readouterr().out

    def test_not_of_the_journals_of_another_directory(self, tmp_path, monkeypatch):
        completed(
            tmp_path, "terminate_start", ended={"followed_by": ""}, begun=OF_TACKER
        )
        monkeypatch.delattr(host_records, "lookup")
        assert runs(tmp_path, "follow") == 0


def test_document_of_an_operation_that_has_not_ended(tmp_path, capsys):
    unfinished(tmp_path)
    assert runs(tmp_path, "follow", "--wait", "0.1", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["outcome"], document["is_final"]) == (None, False)
