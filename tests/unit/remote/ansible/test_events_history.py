# SPDX-License-Identifier: Apache-2.0
"""The callback plugin's durations of former runs; Ansible itself is a stand-in here."""

import importlib.util
import json
import stat
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from tacker_k8s_mgmt.model import playbooks
from tacker_k8s_mgmt.model.playbooks import Progress
from tacker_k8s_mgmt.remote.ansible import playbook_runner

PLUGIN = Path(playbook_runner.__file__).parent / "run_files/k8s_mgmt_events.py"


class Play:
    """A play of a run that is about some hosts."""

    def __init__(self, name, hosts=("a", "b", "c")):
        self._uuid = name
        self._inventory = self
        self._hosts = hosts

    def get_name(self):
        return self._uuid

    def get_variable_manager(self):
        return self

    def get_hosts(self):
        return self._hosts


class Stats:
    def __init__(self, failures=0, unreachable=0):
        self._numbers = {"failures": failures, "unreachable": unreachable}
        self.processed = {"a": 1}

    def summarize(self, host):
        return self._numbers


class Named:
    def __init__(self, name):
        self._name = name

    def get_name(self):
        return self._name


@pytest.fixture
def plugin(monkeypatch):
    """The plugin's module, with a clock that tests set."""
    callback: Any = types.ModuleType("ansible.plugins.callback")
    callback.CallbackBase = object
    for name in ("ansible", "ansible.plugins"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "ansible.plugins.callback", callback)
    spec = importlib.util.spec_from_file_location("k8s_mgmt_events", PLUGIN)
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.now = 1000.0
    # The clock may be set meanwhile; it says nothing about how long a play takes.
    clock = types.SimpleNamespace(
        time=lambda: -module.now, monotonic=lambda: module.now
    )
    monkeypatch.setattr(module, "time", clock)
    return module


@pytest.fixture
def server(plugin, tmp_path, monkeypatch):
    return Server(plugin, tmp_path, monkeypatch)


class Server:
    """An Ansible server on which playbooks are run."""

    def __init__(self, plugin, path, monkeypatch):
        self._plugin = plugin
        self._environment = monkeypatch.setenv
        self._events = path / "events.jsonl"
        self.history = path / "cache" / "ours" / "durations.jsonl"
        self.kind("cluster.yml, kubespray 2.31.0")
        monkeypatch.setenv("K8S_MGMT_HISTORY", str(self.history))
        monkeypatch.setenv("K8S_MGMT_EVENTS", str(self._events))

    def kind(self, kind):
        self._environment("K8S_MGMT_KIND", kind)

    def run(self, *seconds, hosts=("a", "b", "c"), stats=None):
        """A run whose plays take so long; its events as the driver folds them."""
        self._events.unlink(missing_ok=True)
        callback = self._plugin.CallbackModule()
        plays = [Play(f"play {n}", hosts) for n in range(len(seconds))]
        callback.v2_playbook_on_start(types.SimpleNamespace(get_plays=lambda: plays))
        for play, took in zip(plays, seconds, strict=True):
            callback.v2_playbook_on_play_start(play)
            self._plugin.now += took
        callback.v2_playbook_on_stats(stats or Stats())
        events = self._events.read_text().splitlines()
        return playbooks.fold(Progress(), events)

    def records(self):
        return [json.loads(line) for line in self.history.read_text().splitlines()]


def test_a_message_is_cut_between_words(plugin):
    text = "".join(f"word{n} " for n in range(100)).strip()
    parts = plugin.shortened(text, 60).split(" ... ")
    assert set(" ".join(parts).split()) < set(text.split())
    assert plugin.shortened("x" * 61, 60) == " ... "


def test_later_runs_know_the_former_ones(server):
    assert server.run(10, 20, 30).former is None
    former = server.run(10, 40, 30).former
    assert (former.runs, former.plays) == (1, (10, 20, 30))
    former = server.run(1, 1, 1).former
    assert (former.runs, former.plays) == (2, (10, 30, 30))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"hosts": ("a", "b")}, id="other-number-of-hosts"),
        pytest.param({"kind": "cluster.yml, kubespray 2.30.0"}, id="other-release"),
        pytest.param({"kind": "scale.yml, kubespray 2.31.0"}, id="other-playbook"),
        pytest.param({"kind": ""}, id="unknown-release"),
        pytest.param({"hosts": ()}, id="unknown-hosts"),
    ],
)
def test_only_runs_of_the_same_kind_count(server, other):
    server.run(10, 20, 30)
    server.kind(other.get("kind", "cluster.yml, kubespray 2.31.0"))
    again = {"hosts": other.get("hosts", ("a", "b", "c"))}
    assert server.run(10, 20, 30, **again).former is None


def test_runs_with_other_plays_do_not_count(server):
    server.run(10, 20, 30)
    assert server.run(10, 20).former is None


@pytest.mark.parametrize("stats", [Stats(failures=1), Stats(unreachable=1)])
def test_a_failed_run_is_no_estimate_of_the_next(server, stats):
    server.run(10, 20, 30, stats=stats)
    assert server.run(10, 20, 30).former is None


def test_batches_of_a_play_are_one_play(plugin, server):
    callback = plugin.CallbackModule()
    plays = [Play("one"), Play("two")]
    callback.v2_playbook_on_start(types.SimpleNamespace(get_plays=lambda: plays))
    for play in (plays[0], plays[1], plays[1], plays[1]):
        callback.v2_playbook_on_play_start(play)
        plugin.now += 10
    callback.v2_playbook_on_stats(Stats())
    assert [record["plays"] for record in server.records()] == [[10, 30]]


def test_a_few_runs_of_each_kind_are_kept(server):
    for number in range(8):
        server.run(number, 0, 0)
    server.kind("scale.yml, kubespray 2.31.0")
    server.run(1, 1, 1)
    kept = [record["plays"][0] for record in server.records()]
    assert kept == [3, 4, 5, 6, 7, 1]


def test_the_file_stays_small(plugin, server):
    for number in range(250):
        record = {"kind": f"kind {number}", "hosts": 3, "plays": [1.0] * 45}
        plugin.keep_record(str(server.history), record)
    assert len(server.records()) == plugin.FORMER_LINES
    assert server.history.stat().st_size < 100_000


def test_file_and_directory_are_private(server):
    server.run(1, 2, 3)
    for path, mode in ((server.history, 0o600), (server.history.parent, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert list(server.history.parent.iterdir()) == [server.history]


KIND = "cluster.yml, kubespray 2.31.0"
GOOD = json.dumps({"kind": KIND, "hosts": 3, "plays": [5, 5, 5]})


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\xff\xfe\x00",
        b"[]\n7\nnull\n{}\n",
        GOOD[:-9].encode(),
        GOOD.replace("5", "null").encode(),
        GOOD.replace("5", "-1").encode(),
        GOOD.replace("5", "NaN").encode(),
        GOOD.replace("5", "1e300").encode(),
        GOOD.replace("5", "1" + "0" * 400).encode(),
        GOOD.replace("[5, 5, 5]", "7").encode(),
        b"[" * 100_000,
    ],
)
def test_garbage_gives_no_estimate_and_is_replaced(server, garbage):
    server.history.parent.mkdir(parents=True)
    server.history.write_bytes(garbage)
    assert server.run(10, 20, 30).former is None
    assert server.run(10, 20, 30).former.runs == 1


def test_what_is_good_beside_garbage_counts(server):
    server.history.parent.mkdir(parents=True)
    server.history.write_text(f"{{\n{GOOD}\nnonsense\n")
    assert server.run(10, 20, 30).former.plays == (5, 5, 5)


@pytest.mark.parametrize("what", ["directory", "no-directory", "loop"])
def test_a_file_that_cannot_be_used_fails_nothing(server, what):
    parent = server.history.parent
    if what == "no-directory":
        parent.parent.mkdir(parents=True)
        parent.write_text("")
    else:
        parent.mkdir(parents=True)
        if what == "directory":
            server.history.mkdir()
        else:
            server.history.symlink_to(server.history.name)
    assert server.run(10, 20, 30).recap is not None
    assert server.run(10, 20, 30).recap is not None


def test_results_of_many_hosts_write_next_to_nothing(plugin, server, tmp_path):
    """Thousands of tasks on ten hosts: a line for each task, and one every 2 s."""
    callback = plugin.CallbackModule()
    callback.v2_playbook_on_start(types.SimpleNamespace(get_plays=lambda: [1]))
    callback.v2_playbook_on_play_start(Play("Install Kubernetes nodes"))
    tasks = 5000
    for number in range(tasks):
        name = f"kubernetes/node : Install | Copy kubelet binary {number}"
        callback.v2_playbook_on_task_start(Named(name), is_conditional=False)
        for _ in range(10):
            plugin.now += 0.05
            callback.v2_runner_on_ok(object())
    callback.v2_playbook_on_stats(Stats())
    events = (tmp_path / "events.jsonl").read_text()
    assert events.count('"task"') == tasks
    assert len(events.splitlines()) < 1.1 * tasks
    assert len(events) < 200 * tasks
    end = playbooks.fold(Progress(), events.splitlines())
    assert (end.tasks, end.results) == (tasks, 10 * tasks)


def test_a_long_text_keeps_both_ends_and_no_part_of_a_word(plugin):
    text = " ".join(f"{n:02}" for n in range(50))
    assert plugin.shortened(text, len(text)) == text
    first, last = "00 01 02 03 04 05 06 07 08", "41 42 43 44 45 46 47 48 49"
    assert plugin.shortened(text, 60) == f"{first} ... {last}"
    assert plugin.shortened("x" * 70, 60) == " ... "


def test_output_that_the_message_has_is_not_repeated(plugin):
    outcome = {"msg": "it failed because x", "stderr": "because x"}
    assert plugin.message(outcome) == "it failed because x"
    outcome["stdout"] = "and y"
    assert plugin.message(outcome) == "it failed because x: and y"
