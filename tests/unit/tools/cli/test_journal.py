# SPDX-License-Identifier: Apache-2.0
"""Journals: what is written, what stays, and reading while others write."""

import json
import os
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from tacker_k8s_mgmt import journal
from tests.unit.tools.cli.journals import OTHER, VNF, nobody_warns


def a_journal(state_path, hook="instantiate_end", vnf_id=VNF, **limits):
    return journal.Journal(str(state_path), vnf_id, hook, nobody_warns, **limits)


def operation(state_path, number, progress=0, **limits):
    """Record one operation whose records carry a number."""
    one = a_journal(state_path, **limits)
    one.record("operation-start", number=number)
    for count in range(progress):
        one.record("progress", number=number, count=count)
    one.record("operation-end", number=number, outcome="completed")


def path_in(state_path, vnf_id=VNF):
    return Path(journal.path_of(str(state_path), vnf_id))


def numbers(records):
    return list(dict.fromkeys(record["number"] for record in records))


def test_it_is_for_its_owner_only(tmp_path):
    operation(tmp_path, 1)
    assert path_in(tmp_path).stat().st_mode & 0o777 == 0o600
    assert path_in(tmp_path).parent.stat().st_mode & 0o777 == 0o700


def test_a_write_error_is_logged_once_and_harms_nothing(tmp_path):
    (tmp_path / "journal").write_text("in the way")
    events = []
    one = journal.Journal(str(tmp_path), VNF, "terminate_end", events.append)
    one.record("operation-start")
    one.record("operation-end")
    assert len(events) == 1


def test_half_a_line_is_left_for_the_next_look(tmp_path):
    path = tmp_path / "j"
    path.write_text('{"event": "a"}\n{"eve')
    records, offset = journal.read(str(path))
    assert [one["event"] for one in records] == ["a"]
    path.write_text('{"event": "a"}\n{"event": "b"}\n')
    records, _ = journal.read(str(path), offset)
    assert [one["event"] for one in records] == ["b"]


NOT_RECORDS = {
    "half a line": b'{"event": "prog',
    "no JSON": b"\x00\x00\xff\n",
    "another JSON": b'42\n["event"]\nnull\n',
    "deep JSON": b"[" * 100_000 + b"\n",
    "nothing": b"\n\n",
}


@pytest.mark.parametrize("garbage", NOT_RECORDS.values(), ids=NOT_RECORDS.keys())
def test_what_is_no_record_is_passed_over_and_loses_no_other(tmp_path, garbage):
    operation(tmp_path, 1)
    with path_in(tmp_path).open("ab") as file:
        file.write(garbage)
    operation(tmp_path, 2)
    records, _ = journal.read(str(path_in(tmp_path)))
    assert [(one["number"], one["event"]) for one in records] == [
        (1, "operation-start"),
        (1, "operation-end"),
        (2, "operation-start"),
        (2, "operation-end"),
    ]


def test_the_newest_instance_comes_first_and_other_files_are_passed_over(tmp_path):
    for vnf_id in (OTHER, VNF):
        a_journal(tmp_path, vnf_id=vnf_id).record("operation-start")
    os.utime(path_in(tmp_path, OTHER), (1, 1))
    for name in (f"{VNF}.jsonl~", "notes.jsonl", VNF, ".journal-x"):
        (tmp_path / "journal" / name).write_text("")
    assert journal.instances(str(tmp_path)) == [VNF, OTHER]


# --- what stays


def test_the_newest_operations_stay_whole(tmp_path):
    for number in range(7):
        operation(tmp_path, number, progress=2, keep=3)
    records, _ = journal.read(str(path_in(tmp_path)))
    assert numbers(records) == [4, 5, 6]
    assert len(records) == 3 * 4


def test_the_new_file_is_for_its_owner_only_and_alone(tmp_path):
    for number in range(3):
        operation(tmp_path, number, keep=1)
    (only,) = (tmp_path / "journal").iterdir()
    assert only == path_in(tmp_path)
    assert only.stat().st_mode & 0o777 == 0o600


def test_the_oldest_operations_go_when_there_are_too_many_bytes(tmp_path):
    for number in range(9):
        operation(tmp_path, number, progress=20, limit=10_000)
    records, _ = journal.read(str(path_in(tmp_path)))
    assert path_in(tmp_path).stat().st_size <= 10_000
    assert 1 < len(numbers(records)) < 9
    assert numbers(records)[-1] == 8


def test_one_long_operation_loses_progress_and_nothing_else(tmp_path):
    one = a_journal(tmp_path, limit=10_000)
    one.record("operation-start", number=0)
    for count in range(1000):
        one.record("progress", number=0, count=count)
        if count % 100 == 0:
            one.record("step-end", number=0, count=count)
    one.record("operation-end", number=0, outcome="completed")
    records, _ = journal.read(str(path_in(tmp_path)))
    assert path_in(tmp_path).stat().st_size <= 10_000
    others = [one for one in records if one["event"] != "progress"]
    assert len(others) == 12
    counts = [one["count"] for one in records if one["event"] == "progress"]
    assert counts == sorted(counts)
    assert counts[-1] > 990


def test_journals_of_vnf_instances_that_are_long_gone_are_deleted(tmp_path):
    last, followed = {"followed_by": ""}, {"followed_by": "terminate_end"}
    ends = {
        "terminated": ("terminate_end", "completed", 0, last),
        "terminated in the v2 API": ("terminate_start", "completed", 0, last),
        "terminated by a former release": ("terminate_end", "completed", 0, {}),
        "terminated lately": ("terminate_end", "completed", None, last),
        "not terminated": ("terminate_end", "failed", 0, {}),
        "not terminated in the v2 API": ("terminate_start", "failed", 0, {}),
        "being terminated": ("terminate_start", "completed", 0, followed),
        "so by a former release": ("terminate_start", "completed", 0, {}),
        "at rest": ("instantiate_end", "completed", 0, last),
        "damaged": (["terminate_end"], "completed", 0, last),
    }
    paths = {}
    for what, (hook, outcome, changed, more) in ends.items():
        one = a_journal(tmp_path, hook, vnf_id=str(uuid.uuid4()))
        one.record("operation-end", outcome=outcome, **more)
        paths[what] = Path(one._path)
        if changed is not None:
            os.utime(paths[what], (changed, changed))
    operation(tmp_path, 1)
    assert {what for what, path in paths.items() if not path.exists()} == {
        "terminated",
        "terminated in the v2 API",
        "terminated by a former release",
    }


# --- many at once

WRITER = """
import sys, threading
from tacker_k8s_mgmt import journal

def work():
    for turn in range(6):
        one = journal.Journal(sys.argv[1], sys.argv[2], "h", sys.exit, keep=40)
        one.record("operation-start")
        for count in range(20):
            one.record("progress", count=count)
        one.record("operation-end")

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_two_conductors_lose_no_record_while_the_file_is_replaced(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path), VNF]
    conductors = [subprocess.Popen(command) for _ in range(2)]
    seen = []
    with journal.JournalReader(str(path_in(tmp_path))) as reader:
        while any(one.poll() is None for one in conductors):
            seen += reader.read()
        seen += reader.read()
    assert [conductor.returncode for conductor in conductors] == [0, 0]
    counted = {}
    for line in path_in(tmp_path).read_text().splitlines():
        one = json.loads(line)
        counted.setdefault(one["run"], []).append(one.get("count"))
    # 8 threads with 6 operations each, and all that stayed are whole.
    assert len(counted) == 40
    assert all(c == [None, *range(20), None] for c in counted.values())
    # What is read on meanwhile is read once.
    keys = [(one["run"], one["event"], one.get("count")) for one in seen]
    assert len(keys) == len(set(keys))
    assert {run for run, _, _ in keys} >= set(counted)


def test_threads_that_append_lose_nothing_but_what_is_too_old(tmp_path, monkeypatch):
    dropped: list[bytes] = []
    newest = journal._newest

    def noted(lines, keep, limit):
        kept = newest(lines, keep, limit)
        dropped.extend(set(lines) - set(kept))
        return kept

    monkeypatch.setattr(journal, "_newest", noted)

    def work(who):
        one = a_journal(tmp_path, limit=30_000)
        one.record("operation-start", who=who)
        for count in range(100):
            one.record("progress", who=who, count=count)

    seen, done = [], threading.Event()

    def read():
        with journal.JournalReader(str(path_in(tmp_path))) as reader:
            while not done.is_set():
                seen.extend(reader.read())
            seen.extend(reader.read())

    watcher = threading.Thread(target=read)
    writers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    watcher.start()
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    watcher.join()
    assert dropped
    every = [*seen, *map(json.loads, dropped)]
    counts = {(r["who"], r["count"]) for r in every if r["event"] == "progress"}
    assert counts == {(who, count) for who in range(4) for count in range(100)}


# --- reading on


def test_a_reader_waits_for_a_file_that_is_not_there_yet(tmp_path):
    with journal.JournalReader(str(path_in(tmp_path))) as reader:
        assert reader.read() == []
        operation(tmp_path, 1)
        assert numbers(reader.read()) == [1]
        assert reader.read() == []


def test_a_reader_goes_on_after_older_operations_were_taken_out(tmp_path):
    operation(tmp_path, 1)
    operation(tmp_path, 2)
    with journal.JournalReader(str(path_in(tmp_path))) as reader:
        assert numbers(reader.read()) == [1, 2]
        operation(tmp_path, 3, keep=2)
        operation(tmp_path, 4, keep=2)
        assert numbers(reader.read()) == [3, 4]


def test_a_reader_goes_on_where_its_last_record_was_taken_out(tmp_path):
    operation(tmp_path, 1)
    with journal.JournalReader(str(path_in(tmp_path))) as reader:
        assert numbers(reader.read()) == [1]
        for number in (2, 3, 4):
            operation(tmp_path, number, keep=1)
        # The start of the second came before the file was replaced.
        assert [(r["number"], r["event"]) for r in reader.read()] == [
            (2, "operation-start"),
            (4, "operation-start"),
            (4, "operation-end"),
        ]


def test_a_reader_reads_what_came_just_before_the_file_was_replaced(tmp_path):
    operation(tmp_path, 1)
    with journal.JournalReader(str(path_in(tmp_path))) as reader:
        reader.read()
        operation(tmp_path, 2)
        operation(tmp_path, 3, keep=1)
        assert numbers(reader.read()) == [2, 3]


def test_a_link_in_place_of_a_journal_is_not_followed(tmp_path):
    target = tmp_path / "elsewhere"
    target.write_text("of someone else\n")
    path_in(tmp_path).parent.mkdir(mode=0o700)
    path_in(tmp_path).symlink_to(target)
    warnings = []
    made = journal.Journal(str(tmp_path), VNF, "heal_end", warnings.append)
    made.record("operation-start", steps=1)
    made.record("operation-end", outcome="completed")
    assert target.read_text() == "of someone else\n"
    assert len(warnings) == 1
    assert "cannot be written" in warnings[0]
