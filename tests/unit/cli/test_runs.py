"""``tacker-k8s-mgmt runs``, and the journals that it reads."""

import os
import uuid

import pytest

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import main

VNF = "7b5e0f0a-5a0a-4f0e-9a55-3a1c1f1d2e3f"


def nobody_warns(text):
    raise AssertionError(text)


def recorded(state_path, outcome="completed", vnf_id=VNF, **fields):
    one = journal.Journal(str(state_path), vnf_id, "instantiate_end", nobody_warns)
    step = {"number": 1, "total": 1, "step": "run cluster.yml"}
    one.record("operation-start", operation="instantiate_end", steps=1)
    one.record("step-start", **step)
    one.record("progress", text="play 1/2")
    one.record("step-end", **step, outcome=outcome, seconds=4.2)
    one.record("operation-end", outcome=outcome, seconds=4.5, **fields)
    return journal.path_of(str(state_path), vnf_id)


def runs(state_path, verb, *arguments):
    return main(["runs", verb, "--state-path", str(state_path), *arguments])


def test_journal_is_for_its_owner_only(tmp_path):
    path = recorded(tmp_path)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


def test_journal_that_cannot_be_written_is_told_once_and_harms_nothing(tmp_path):
    (tmp_path / "journal").write_text("in the way")
    told = []
    one = journal.Journal(str(tmp_path), VNF, "terminate_end", told.append)
    one.record("operation-start")
    one.record("operation-end")
    assert len(told) == 1


def test_half_a_line_is_left_for_the_next_look(tmp_path):
    path = tmp_path / "j"
    path.write_text('{"event": "a"}\n{"eve')
    records, offset = journal.read(str(path))
    assert [one["event"] for one in records] == ["a"]
    path.write_text('{"event": "a"}\n{"event": "b"}\n')
    records, _ = journal.read(str(path), offset)
    assert [one["event"] for one in records] == ["b"]


def test_newest_instance_comes_first_and_other_files_are_passed_over(tmp_path):
    other = str(uuid.uuid4())
    os.utime(recorded(tmp_path, vnf_id=other), (1, 1))
    recorded(tmp_path)
    for name in (f"{VNF}.jsonl~", "notes.jsonl", VNF):
        (tmp_path / "journal" / name).write_text("")
    assert journal.instances(str(tmp_path)) == [VNF, other]


@pytest.mark.parametrize("verb", ["list", "show", "follow"])
def test_an_operation_is_told(tmp_path, capsys, verb):
    recorded(tmp_path)
    assert runs(tmp_path, verb) == 0
    told = capsys.readouterr().out
    assert "instantiate_end" in told
    assert "completed" in told


def test_a_failed_operation_is_shown_with_its_error(tmp_path, capsys):
    recorded(tmp_path, "failed", error="no [bold]brackets[/bold] are taken away")
    assert runs(tmp_path, "show", VNF) == 0
    assert "no [bold]brackets[/bold] are taken away" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["list", "show", "follow"])
def test_nothing_recorded_says_where_it_looked(tmp_path, capsys, verb):
    assert runs(tmp_path, verb) == 1
    assert "give --state-path" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("verb", ["show", "follow"])
def test_what_is_no_id_is_a_wrong_command_line(tmp_path, verb):
    with pytest.raises(SystemExit) as caught:
        runs(tmp_path, verb, "../../etc/passwd")
    assert caught.value.code == 2


def test_journals_that_may_not_be_read_are_one_line(tmp_path, capsys, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert runs(tmp_path, "list") == 1
    assert "Permission denied" in capsys.readouterr().err
