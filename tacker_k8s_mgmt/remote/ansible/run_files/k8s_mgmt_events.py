# SPDX-License-Identifier: Apache-2.0
"""Ansible callback plugin: writes a run's events as JSON lines, small and safe.

It is copied to the server for every playbook run, works from Ansible 2.9 on (Python
3.6), and runs beside the output plugin that the kubespray checkout configures.

A line has an ``event`` (playbook, former, play, task, failed, unreachable, alive,
recap), a ``time`` in epoch seconds, ``up`` in seconds since the boot, which no change
of the clock touches, and the number of ``results`` of hosts so far.
Module results are never written, only a failure's message, and that not with no_log.

The durations of all plays of the last successful runs, of all clusters, are kept: one
JSON object per line with kind, number of hosts, and the seconds of its plays.
"""

# Ansible is not installed where types are checked.
# mypy: ignore-errors

import contextlib
import json
import os
import re
import statistics
import tempfile
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: k8s_mgmt_events
    type: notification
    short_description: Writes JSON lines for tacker-k8s-mgmt
    description: Writes the events of a playbook run to a file.
"""

ALIVE_SECONDS = 2.0  # between two "alive" events
MESSAGE_CHARS = 1000
OUTPUT_CHARS = 200  # of a program; in longer output only the lines with errors count
# "[ERROR CreateJob]: ..." of kubeadm, "error: ...", "E: ..." of apt, klog's "E1123 ..."
ERROR_LINE = re.compile(r"\s*(\[ERROR\b|(error|fatal)\b|E:|[EF]\d{4} )", re.IGNORECASE)
FORMER_RUNS = 5  # kept per kind of run and number of hosts
FORMER_LINES = 200  # kept in total
FORMER_BYTES = 1024 * 1024  # read at most, because other programs may write the file


class CallbackModule(CallbackBase):
    """Appends events to the file that K8S_MGMT_EVENTS names."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "k8s_mgmt_events"
    # Enabling it would replace the checkout's own list of plugins.
    CALLBACK_NEEDS_WHITELIST = False
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("K8S_MGMT_EVENTS")
        self.disabled = not path
        self._results = 0
        self._written = float("-inf")
        self._plays = 0
        self._play = None
        self._began = []  # start times of the plays
        self._hosts = 0
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, 0o600) if path else -1

    def v2_playbook_on_start(self, playbook):
        self._plays = len(playbook.get_plays())
        self._write("playbook", plays=self._plays)

    def v2_playbook_on_play_start(self, play):
        if not self._began:
            self._hosts = number_of_hosts(play)
            self._write_former()
        # A play with `serial` starts again for each batch of hosts.
        if not self._began or play._uuid != self._play:
            self._play = play._uuid
            self._began.append(time.monotonic())
        self._write("play", name=play.get_name(), number=len(self._began))

    def v2_playbook_on_task_start(self, task, is_conditional=False):
        self._write("task", name=task.get_name())

    v2_playbook_on_handler_task_start = v2_playbook_on_task_start
    v2_playbook_on_cleanup_task_start = v2_playbook_on_task_start

    def v2_runner_on_ok(self, result):
        self._alive()

    v2_runner_on_skipped = v2_runner_on_ok

    def v2_runner_item_on_ok(self, result):
        self._alive(0)

    v2_runner_retry = v2_runner_on_async_poll = v2_runner_item_on_ok

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._results += 1
        self._failed("failed", result, ignore_errors)

    def v2_runner_on_unreachable(self, result):
        self._results += 1
        task = part(result, "task")
        self._failed("unreachable", result, getattr(task, "ignore_unreachable", False))

    def v2_playbook_on_stats(self, stats):
        hosts = {}
        for host in stats.processed:
            numbers = stats.summarize(host)
            hosts[host] = {
                "failed": numbers["failures"],
                "unreachable": numbers["unreachable"],
            }
        self._write("recap", hosts=hosts)
        if hosts and not any(sum(numbers.values()) for numbers in hosts.values()):
            self._keep()

    def _write_former(self):
        path, kind = history()
        former = [
            record["plays"]
            for record in read_records(path)
            if (record["kind"], record["hosts"]) == (kind, self._hosts)
            and len(record["plays"]) == self._plays
        ]
        if kind and self._hosts and former:
            columns = zip(*former)  # noqa: B905  # strict came with Python 3.10
            plays = [round(statistics.median(times), 1) for times in columns]
            self._write("former", runs=len(former), plays=plays)

    def _keep(self):
        path, kind = history()
        ends = [*self._began[1:], time.monotonic()]
        times = zip(self._began, ends)  # noqa: B905
        plays = [round(end - began, 1) for began, end in times]
        # A record that cannot be kept is not worth a warning in the run's output.
        if kind and self._hosts and len(plays) == self._plays:
            with contextlib.suppress(OSError):
                keep_record(path, {"kind": kind, "hosts": self._hosts, "plays": plays})

    def _alive(self, results=1):
        self._results += results
        if time.monotonic() - self._written >= ALIVE_SECONDS:
            self._write("alive")

    def _failed(self, event, result, ignored):
        outcome = part(result, "result")
        no_log = "censored" in outcome or outcome.get("_ansible_no_log", False)
        self._write(
            event,
            host=part(result, "host").get_name(),
            task=part(result, "task").get_name(),
            ignored=bool(ignored),
            no_log=bool(no_log),
            message="" if no_log else message(outcome),
        )

    def _write(self, event, **fields):
        self._written = time.monotonic()
        fields.update(event=event, time=time.time(), up=uptime(), results=self._results)
        # One write per line, so that lines do not mix; ASCII, so that byte offsets are
        # character offsets.
        os.write(self._file, (json.dumps(fields, default=str) + "\n").encode())


def uptime():
    """Return the seconds since the boot, as the script for the run's state does."""
    with open("/proc/uptime", encoding="ascii") as file:
        return float(file.read().split()[0])


def history():
    """Return the path of the durations of former runs, and the kind of this run."""
    return os.environ.get("K8S_MGMT_HISTORY", ""), os.environ.get("K8S_MGMT_KIND", "")


def number_of_hosts(play):
    """Return the run's number of hosts; 0 if this Ansible does not provide it."""
    inventory = getattr(play.get_variable_manager(), "_inventory", None)
    return len(inventory.get_hosts()) if inventory else 0


def read_records(path):
    """Return the records of former runs, oldest first, without invalid lines."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = file.read(FORMER_BYTES).splitlines()
    except (OSError, ValueError):
        return []
    return [record for record in map(parsed, lines) if record]


def parsed(line):
    """Return the record in a line, or None for an invalid line."""
    try:
        record = json.loads(line)
        plays = [float(seconds) for seconds in record["plays"]]
        known = isinstance(record["kind"], str) and isinstance(record["hosts"], int)
        if known and plays and all(0 <= seconds < 1e6 for seconds in plays):
            return dict(kind=record["kind"], hosts=record["hosts"], plays=plays)
    except (ArithmeticError, ValueError, TypeError, LookupError, RecursionError):
        pass
    return None


def keep_record(path, record):
    """Add a record, and drop the oldest of each kind and in total.

    If two runs end at the same moment, one may be lost.
    """
    kept, counts = [], {}
    for former in reversed([*read_records(path), record]):
        kind = former["kind"], former["hosts"]
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= FORMER_RUNS and len(kept) < FORMER_LINES:
            kept.insert(0, former)
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(handle, "w") as file:
            file.writelines(json.dumps(former) + "\n" for former in kept)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def part(result, name):
    """Return a field of a result; before Ansible 2.19 its name has an underscore."""
    value = getattr(result, name, None)
    return getattr(result, "_" + name) if value is None else value


def message(outcome):
    """Return the message of a failed result, for the operator."""
    for item in outcome.get("results") or ():
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            # A loop's own message is only that some item failed.
            return "(censored by no_log)" if "censored" in item else message(item)
    text = str(outcome.get("msg") or "").strip()
    if outcome.get("url"):
        # A download, whose own message is only that the request failed.
        text = ": ".join(filter(None, [without_login(str(outcome["url"])), text]))
    for stream in ("response", "stderr", "module_stderr", "stdout", "module_stdout"):
        output = str(outcome.get(stream) or "").strip()
        if output and output not in text:
            half = MESSAGE_CHARS // 2
            return shortened(text, half) + ": " + shortened(errors(output), half)
    return shortened(text, MESSAGE_CHARS)


def without_login(url):
    """Return a URL without user, password and query."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme + separator + host.rpartition("@")[2] + slash + path.partition("?")[0]


def errors(output):
    """Return the lines of a program's output that name errors, or all if none does."""
    if len(output) <= OUTPUT_CHARS:
        return output
    lines = [line.strip() for line in output.splitlines() if ERROR_LINE.match(line)]
    return "\n".join(lines) or output


def shortened(text, limit):
    """Cut out the middle of a text; the reason is usually at its end."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 3
    return whole_words(text[:half], -1) + " ... " + whole_words(text[-half:], 0)


def whole_words(text, cut):
    """Drop the word at the cut: a part of a secret would not be recognised later."""
    words = text.split(" ")
    del words[cut]
    return " ".join(words) or text[:0]
