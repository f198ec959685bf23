# SPDX-License-Identifier: Apache-2.0
"""The lab's namespaces, seen from the machine."""

import os

import pytest

from lab import LabError, namespace
from lab.namespace import Namespace, start_time
from lab.settings import PATH, Settings

STAT = "17 (a (strange) name) {state} 1 " + " ".join(map(str, range(5, 23)))


@pytest.fixture
def lab(tmp_path):
    return Settings(tmp_path, tmp_path / "cache")


def own_record():
    return f"{os.getpid()} {start_time(os.getpid())}"


@pytest.mark.parametrize(
    ("state", "expected"),
    [("S", "22"), ("R", "22"), ("Z", None), ("X", None)],
    ids=["sleeping", "running", "zombie", "dead"],
)
def test_start_time_of_a_process(tmp_path, state, expected):
    process = tmp_path / "17"
    process.mkdir()
    (process / "stat").write_text(STAT.format(state=state))
    assert start_time(17, tmp_path) == expected


def test_a_process_that_ended_has_no_start_time(tmp_path):
    assert start_time(17, tmp_path) is None


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(None, id="no record"),
        pytest.param("", id="empty record"),
        pytest.param("4194305 1", id="ended"),
        pytest.param(f"{os.getpid()} 1", id="number used again"),
    ],
)
def test_a_stopped_lab_is_not_entered_and_kills_no_process(lab, monkeypatch, record):
    if record is not None:
        lab.init.write_text(record)
    killed = []
    monkeypatch.setattr(os, "kill", lambda *args: killed.append(args))
    assert Namespace(lab).pid() is None
    with pytest.raises(LabError, match="lab up") as caught:
        Namespace(lab).argv(["true"])
    assert caught.value.code == 3
    Namespace(lab).end()
    assert killed == []


def test_a_lab_whose_namespaces_the_kernel_refuses_says_why(lab, monkeypatch, tmp_path):
    unshare = tmp_path / "bin" / "unshare"
    unshare.parent.mkdir()
    unshare.write_text("#!/bin/sh\necho 'Operation not permitted' >&2\nexit 1\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", f"{unshare.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(namespace, "PATH", f"{unshare.parent}:{PATH}")
    with pytest.raises(LabError, match=r"not permitted.*privileged") as caught:
        Namespace(lab).start()
    assert caught.value.code == 2
