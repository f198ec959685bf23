# SPDX-License-Identifier: Apache-2.0
"""The strategy k8s_linear against linear: what each reports and leaves, host by host.

With the Ansible of PATH and those of the environments that ``KUBESPRAY_VENVS`` names
(colon-separated). Playbooks are in ``strategy``, with the callback plugin that records.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "strategy"
PLUGIN = (
    Path(__file__).parents[4] / "tacker_k8s_mgmt/remote/ansible/run_files/k8s_linear.py"
)
VENVS = [one for one in os.environ.get("KUBESPRAY_VENVS", "").split(":") if one]
FOUND = [
    shutil.which("ansible-playbook"),
    *(f"{v}/bin/ansible-playbook" for v in VENVS),
]
PROGRAMS = [program for program in FOUND if program]
PLAYBOOKS = sorted(path.name for path in HERE.glob("*.yml"))
TASKS = {"included.yml", "nested.yml"}
NODE = {
    "ansible_connection": "local",
    "ansible_python_interpreter": "{{ ansible_playbook_python }}",
}
GONE = {"ansible_host": "127.0.0.1", "ansible_port": 1}
INVENTORY = {
    "here": {"hosts": {"h1": NODE, "h2": NODE, "h3": NODE}},
    "away": {"hosts": {"gone": GONE}},
}
LIMIT = 300  # seconds
#: Lines with what is another one in each run.
VARYING = ("ASYNC ",)

pytestmark = pytest.mark.skipif(not PROGRAMS, reason="no ansible-playbook in PATH")


class Run:
    """A run of a playbook with a strategy."""

    def __init__(self, directory: Path, strategy: str, argv, **variables):
        directory.mkdir()
        self._record = directory / "record.json"
        plugins, callbacks = directory / "strategies", directory / "callbacks"
        for plugin, place in ((PLUGIN, plugins), (HERE / "recorder.py", callbacks)):
            place.mkdir()
            shutil.copy(plugin, place)
        hosts = directory / "hosts.json"
        hosts.write_text(json.dumps({"all": {"children": INVENTORY}}))
        env = {
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "RECORD": str(self._record),
            "ANSIBLE_STRATEGY": strategy,
            "ANSIBLE_STRATEGY_PLUGINS": str(plugins),
            "ANSIBLE_CALLBACK_PLUGINS": str(callbacks),
            "ANSIBLE_DEPRECATION_WARNINGS": "False",
            "ANSIBLE_LOCAL_TEMP": str(directory / "tmp"),
            "ANSIBLE_NOCOLOR": "True",
            **variables,
        }
        self._process = subprocess.Popen(
            [argv[0], "-i", str(hosts), *argv[1:]],
            cwd=HERE,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def outcome(self):
        """Exit code, lines and record."""
        output, _ = self._process.communicate(timeout=LIMIT)
        lines = [line for line in output.splitlines() if not line.startswith(VARYING)]
        text = self._record.read_text() if self._record.exists() else "null"
        # A set, since a warning comes once from each process.
        return self._process.returncode, sorted({*map(steady, lines)}), json.loads(text)


def steady(line: str) -> str:
    """A line without the order in which processes have ended."""
    include = re.fullmatch(r"(included: .* for )(h\d(?:, h\d)*)(.*)", line)
    if include is None:
        return line
    what, hosts, item = include.groups()
    return what + ", ".join(sorted(hosts.split(", "))) + item


def compare(directory: Path, *argv: str):
    """Run with both strategies at once; returns what both come to.

    On a busy machine a pair has differed twice in some hundred, in the line of an
    include; why is not known, and the strategy is no default. A difference has to come
    again.
    """
    for attempt in ("first", "second"):
        place = directory / attempt
        place.mkdir()
        runs = {n: Run(place / n, n, argv) for n in ("linear", "k8s_linear")}
        expected, made = (run.outcome() for run in runs.values())
        if made == expected:
            return expected
        (code, lines, record), (other_code, other_lines, other_record) = expected, made
        print(f"{attempt}:", code, other_code, {*lines} ^ {*other_lines})
    assert other_code == code
    assert other_lines == lines
    assert other_record == record
    return expected


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("playbook", [n for n in PLAYBOOKS if n not in TASKS])
def test_results_facts_and_recap_are_those_of_linear(tmp_path, program, playbook):
    code, lines, record = compare(tmp_path, program, playbook)
    if playbook == "throttle.yml":
        assert (code, record) == (1, None)
        assert any("throttle value to an integer" in line for line in lines)
    else:
        assert record["hosts"]["h1"]
        assert len(record["recap"]) >= 3


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "options",
    [
        ["--check", "--diff"],
        ["--tags", "t", "includes.yml"],
        ["--start-at-task", "Batches", "includes.yml"],
    ],
)
def test_so_they_are_with_options(tmp_path, program, options):
    compare(tmp_path, program, "conditions.yml", *options)


SEND = """
import importlib.util, json, sys, types
spec = importlib.util.spec_from_file_location("k8s_linear", sys.argv[1])
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)
sent = []

class Queue:
    def send_task_result(self, *given):
        sent.append(given)
        if len(sent) == 1:
            raise TypeError("cannot pickle it")

strategy = object.__new__(plugin.StrategyModule)
strategy._final_q, strategy._pending_results = Queue(), 0
host = types.SimpleNamespace(name="h1")
task = types.SimpleNamespace(_uuid="t1", dump_attrs=lambda: {"name": "odd"})
executor = types.SimpleNamespace(_task=task)
strategy._send(host, task, {"odd": object()}, executor)
print(json.dumps([*sent[1], strategy._pending_results]))
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_result_that_cannot_be_sent_is_a_failure_with_its_reason(program):
    """As Ansible's worker process has it."""
    python = Path(program).parent / "python"
    done = subprocess.run(
        [python, "-c", SEND, PLUGIN],
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
    )
    host, task, result, fields, pending = json.loads(done.stdout)
    assert (host, task, fields, pending) == ("h1", "t1", {}, 1)
    assert (result["failed"], result["msg"]) == (True, "cannot pickle it")
    assert "TypeError: cannot pickle it" in result["exception"]
