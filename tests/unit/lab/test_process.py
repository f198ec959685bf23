# SPDX-License-Identifier: Apache-2.0
"""A service as a process."""

import sys
import time

import pytest

from lab import LabError
from lab.namespace import start_time
from lab.services.process import Processes, Service
from lab.settings import Settings

TALKER = "import time; print('ready', flush=True); time.sleep(60)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('ready', flush=True); time.sleep(60)"
)


def service(program=TALKER, **attributes):
    values = {"name": "talker", "limit": 10.0, "patience": 0.2, **attributes}
    ready = values.pop("ready", lambda said: "ready" in said)
    return Service(argv=(sys.executable, "-c", program), ready=ready, **values)


@pytest.fixture
def lab(tmp_path):
    settings = Settings(tmp_path, tmp_path / "cache")
    settings.run.mkdir()
    settings.log.mkdir()
    return settings


@pytest.fixture
def processes(lab):
    found = Processes(lab)
    yield found
    found.stop("talker", 0)


def test_a_service_is_started_once(processes):
    processes.start(service())
    first = processes.record("talker")
    processes.start(service())
    assert first is not None
    assert processes.record("talker") == first


def test_a_service_knows_where_the_lab_is_and_no_proxy(processes, lab, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy")
    program = "import os; print('ready', sorted(os.environ), flush=True);" + TALKER
    processes.start(service(program))
    said = processes.log("talker").read_text()
    assert "LAB_CLOUD_STATE" in said
    assert "http_proxy" not in said


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda file: {"environment": {"A": "2"}}, id="environment"),
        pytest.param(lambda file: {"program": TALKER + " "}, id="program"),
        pytest.param(lambda file: file.write_text("2") and {}, id="file"),
    ],
)
def test_a_service_is_started_anew_when_it_changed(processes, tmp_path, change):
    file = tmp_path / "talker.conf"
    file.write_text("1")
    processes.start(service(files=(file,)))
    first = processes.record("talker")
    changed = service(files=(file,), **change(file))
    assert not processes.is_current(changed)
    processes.start(changed)
    assert processes.is_current(changed)
    assert processes.record("talker").pid != first.pid


def test_output_of_a_former_run_does_not_make_a_service_ready(processes):
    processes.start(service())
    processes.stop("talker", 1)
    with pytest.raises(LabError, match="ended"):
        processes.start(service("print('no')"))


def test_a_service_that_ends_is_shown_with_its_last_words(processes):
    with pytest.raises(LabError, match="no such table") as caught:
        processes.start(service("raise SystemExit('no such table')"))
    assert str(processes.log("talker")) in str(caught.value)


def test_a_service_that_falls_silent_before_it_is_ready_is_an_error(processes):
    with pytest.raises(LabError, match="not ready, and silent for 0 s"):
        processes.start(service(ready=lambda said: False, limit=0.0))


def test_a_slow_start_is_awaited_while_the_service_speaks(processes):
    words = "import time\nfor n in range(8): print(n, flush=True); time.sleep(0.25)\n"
    slow = service(f"{words}time.sleep(60)", ready=lambda said: "7" in said, limit=1.5)
    processes.start(slow)
    assert processes.record("talker")


def test_what_is_left_of_a_former_process_goes_before_the_next_one_starts(processes):
    left, seen = [3], []

    def vacant():
        seen.append(processes.record("talker"))
        left[0] -= 1
        return not left[0]

    processes.start(service(vacant=vacant))
    assert seen == []
    processes.stop("talker", 1)
    processes.start(service(vacant=vacant))
    assert seen == [None] * 3
    assert processes.record("talker")


def test_what_stays_of_a_former_process_is_an_error(processes):
    processes.start(service())
    processes.stop("talker", 1)
    with pytest.raises(LabError, match="former process"):
        processes.start(service(vacant=lambda: False, limit=0.0))
    assert processes.record("talker") is None


def test_a_service_that_does_not_stop_is_killed(processes):
    processes.start(service(STUBBORN))
    pid = processes.record("talker").pid
    processes.stop("talker", 0.1)
    assert processes.record("talker") is None
    assert start_time(pid) is None


def test_memory_and_time_of_a_service(processes):
    processes.start(service())
    time.sleep(0.05)
    usage = processes.usage("talker")
    assert usage.processes == 1
    assert usage.memory > 1
    assert 0 <= usage.seconds < 60
    assert processes.usage("nobody") is None
