# SPDX-License-Identifier: Apache-2.0
"""What a hook records of a playbook that is under way."""

import logging
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.model.playbooks import Former, Progress, RunSummary, TaskTime
from tacker_k8s_mgmt.operations.step import Step, Steps
from tests.helpers.requests import VNF
from tests.unit.hooks.plain_hook import PlainHook

RUNNING = Progress(
    plays=2,
    play_number=1,
    play="Install",
    tasks=3,
    task="etcd : Start",
    results=9,
    last_event=160,
    started=100,
    play_started=100,
    summary=RunSummary((TaskTime("etcd : Start", "Install", 41.26),)),
    former=Former(2, (120.0, 300.0)),
)


class Clock:
    def __init__(self):
        self.at = 1000.0

    def now(self):
        return self.at


@pytest.fixture
def hook(tmp_path):
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.set_override("state_path", str(tmp_path), config.GROUP)
    made = PlainHook(conf, "instantiate_end")
    made.clock = Clock()
    return made


def recorded(hook):
    records, _ = journal.read(journal.path_of(hook.state_path, VNF))
    return records


def changed(**fields):
    return Progress(**{**vars(RUNNING), **fields})


def test_the_journal_has_place_and_estimate(hook):
    hook.progress(RUNNING)
    (record,) = recorded(hook)
    assert record["text"] == 'play 1/2 "Install", task 3 "etcd : Start"'
    assert (record["left"], record["former_runs"]) == (360, 2)
    assert "slowest" not in record


def test_without_a_former_run_there_is_no_estimate(hook):
    hook.progress(changed(former=None))
    (record,) = recorded(hook)
    assert not {"left", "former_runs"} & record.keys()


def test_the_journal_has_what_delays_the_operation(hook):
    hook.note("a VM refuses the login")
    (record,) = recorded(hook)
    assert (record["event"], record["text"]) == ("note", "a VM refuses the login")


def test_the_journal_has_each_means_of_the_runs_once(hook):
    first = ("strategy k8s_linear",)
    for notes in (first, (*first, "downloads resolved"), first):
        hook.progress(changed(notes=notes))
    texts = [entry["text"] for entry in recorded(hook) if entry["event"] == "note"]
    assert texts == ["strategy k8s_linear", "downloads resolved"]


def test_the_end_has_the_slowest_tasks(hook):
    hook.progress(changed(recap={}))
    (record,) = recorded(hook)
    timed = {"task": "etcd : Start", "play": "Install", "seconds": 41.3}
    assert record["slowest"] == [timed]
    assert "left" not in record


def test_the_log_has_a_line_for_each_play_and_for_each_minute(hook, caplog):
    caplog.set_level(logging.INFO)
    for later, progress in (
        (0, RUNNING),
        (5, changed(task="etcd : Wait", tasks=4)),
        (60, changed(task="etcd : Wait", tasks=4, last_event=165)),
        (61, changed(play_number=2, play="Network", task="", play_started=160)),
    ):
        hook.clock.at = 1000.0 + later
        hook.progress(progress)
    texts = [
        'play 1/2 "Install", task 3 "etcd : Start"; about 6 min left',
        'play 1/2 "Install", task 4 "etcd : Wait"; about 6 min left',
        'play 2/2 "Network"; about 3 min left',
    ]
    assert [record.getMessage() for record in caplog.records] == [
        f"instantiate_end: {text} (two former runs)" for text in texts
    ]
    assert len(recorded(hook)) == 4


# Metrics


def options(hook, **changed):
    """The options of a hook, with some changed."""
    return SimpleNamespace(**{**dict(hook.options), **changed})


def text_of_metrics(directory):
    return (directory / "tacker_k8s_mgmt.prom").read_text()


def refuse():
    raise ValueError("no")


def test_each_end_of_a_hook_writes_metrics(hook, tmp_path):
    hook.options = options(hook, metrics_directory=str(tmp_path))
    hook.run(Steps(Step("rest", "rest", int)))
    text = text_of_metrics(tmp_path)
    assert (
        'hook="instantiate_end",operation="instantiate",outcome="completed"} 1.0'
        in (text)
    )


def test_a_failed_hook_writes_them_as_well(hook, tmp_path):
    hook.options = options(hook, metrics_directory=str(tmp_path))
    with pytest.raises(errors.StepFailed):
        hook.run(Steps(Step("rest", "rest", refuse)))
    assert 'outcome="failed"} 1.0' in text_of_metrics(tmp_path)
    assert 'step="rest"} 1.0' in text_of_metrics(tmp_path)


def test_metrics_that_cannot_be_written_fail_no_operation(hook, tmp_path, caplog):
    hook.options = options(hook, metrics_directory=str(tmp_path / "absent"))
    hook.run(Steps(Step("rest", "rest", int)))
    assert "No such file or directory" in caplog.text
    (tmp_path / "metrics" / "totals.json").mkdir()
    hook.run(Steps(Step("rest", "rest", int)))


def test_without_a_directory_no_metrics_are_kept(hook, tmp_path):
    hook.run(Steps(Step("rest", "rest", int)))
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]
