"""Ansible callback plugin: writes a run's events as JSON lines, small and safe.

It is sent along with every playbook run and works from Ansible 2.9 on (Python 3.6). It
adds to the output plugin that the kubespray checkout configures and replaces none.

A line has an ``event`` (playbook, former, play, task, failed, unreachable, alive,
recap), a ``time`` in epoch seconds and the number of ``results`` of hosts so far.
Results of modules are never written, only a failure's message; nothing of a task with
no_log.

How long each play took is kept of the last runs that went well, of all clusters: one
JSON object per line with kind and hosts of the run, and the seconds of its plays.
"""

# Ansible is not there where types are checked.
# mypy: ignore-errors

import contextlib
import json
import os
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

ALIVE_SECONDS = 2.0  # between two lines that only say that work goes on
MESSAGE_CHARS = 1000
FORMER_RUNS = 5  # kept of a kind of run and number of hosts
FORMER_LINES = 200  # kept of all
FORMER_BYTES = 1024 * 1024  # read of a file that somebody else may have written


class CallbackModule(CallbackBase):
    """Appends to the file that K8S_MGMT_EVENTS names."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "k8s_mgmt_events"
    # So that it need not be enabled: that would replace the checkout's own list.
    CALLBACK_NEEDS_WHITELIST = False
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        path = os.environ.get("K8S_MGMT_EVENTS")
        self.disabled = not path
        self._results = 0
        self._written = 0.0
        self._plays = 0
        self._play = None
        self._began = []  # when each play did
        self._hosts = 0
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, 0o600) if path else -1

    def v2_playbook_on_start(self, playbook):
        self._plays = len(playbook.get_plays())
        self._write("playbook", plays=self._plays)

    def v2_playbook_on_play_start(self, play):
        if not self._began:
            self._hosts = number_of_hosts(play)
            self._tell_former()
        # A play that takes its hosts in batches starts anew with each of them.
        if not self._began or play._uuid != self._play:
            self._play = play._uuid
            self._began.append(time.time())
        self._write("play", name=play.get_name(), number=len(self._began))

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._write("task", name=task.get_name())

    def v2_playbook_on_handler_task_start(self, task):
        self._write("task", name=task.get_name())

    def v2_playbook_on_cleanup_task_start(self, task):
        self._write("task", name=task.get_name())

    def v2_runner_on_ok(self, result):
        self._alive()

    def v2_runner_on_skipped(self, result):
        self._alive()

    def v2_runner_item_on_ok(self, result):
        self._alive(0)

    def v2_runner_retry(self, result):
        self._alive(0)

    def v2_runner_on_async_poll(self, result):
        self._alive(0)

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

    def _tell_former(self):
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
        ends = [*self._began[1:], time.time()]
        times = zip(self._began, ends)  # noqa: B905
        plays = [round(end - began, 1) for began, end in times]
        # No record of durations is worth a warning in the run's output.
        if kind and self._hosts and len(plays) == self._plays:
            with contextlib.suppress(OSError):
                keep_record(path, {"kind": kind, "hosts": self._hosts, "plays": plays})

    def _alive(self, results=1):
        self._results += results
        if time.time() - self._written >= ALIVE_SECONDS:
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
        self._written = time.time()
        fields.update(event=event, time=self._written, results=self._results)
        # One write per line: a reader never sees lines mixed, and ASCII keeps byte
        # offsets equal to character offsets.
        os.write(self._file, (json.dumps(fields, default=str) + "\n").encode())


def history():
    """The file with the durations of former runs, and the kind of this one."""
    return os.environ.get("K8S_MGMT_HISTORY", ""), os.environ.get("K8S_MGMT_KIND", "")


def number_of_hosts(play):
    """How many hosts the run is about; 0 where this Ansible does not say."""
    inventory = getattr(play.get_variable_manager(), "_inventory", None)
    return len(inventory.get_hosts()) if inventory else 0


def read_records(path):
    """The records of former runs, the oldest first; what is none is passed over."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            lines = file.read(FORMER_BYTES).splitlines()
    except (OSError, ValueError):
        return []
    return [record for record in map(parsed, lines) if record]


def parsed(line):
    """A record, or None of a line that is none."""
    try:
        record = json.loads(line)
        plays = [float(seconds) for seconds in record["plays"]]
        known = isinstance(record["kind"], str) and isinstance(record["hosts"], int)
        if known and plays and all(0 <= seconds < 1e6 for seconds in plays):
            return dict(kind=record["kind"], hosts=record["hosts"], plays=plays)
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    return None


def keep_record(path, record):
    """Add a record, and leave out those of its kind, and of all, that are too old.

    Of two runs that end in the same moment one may be lost.
    """
    kept, counts = [], {}
    for one in reversed([*read_records(path), record]):
        kind = one["kind"], one["hosts"]
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= FORMER_RUNS and len(kept) < FORMER_LINES:
            kept.insert(0, one)
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(handle, "w") as file:
            file.writelines(json.dumps(one) + "\n" for one in kept)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def part(result, name):
    """A field of a result; Ansible made them public in 2.19."""
    value = getattr(result, name, None)
    return getattr(result, "_" + name) if value is None else value


def message(outcome):
    """What an operator needs to know of a failed result."""
    for item in outcome.get("results") or ():
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            # Of a loop the result itself only says that some item failed.
            return "(censored by no_log)" if "censored" in item else message(item)
    said = str(outcome.get("msg") or "").strip()
    if outcome.get("url"):
        # A download; its own message is that the request failed.
        said = ": ".join(filter(None, [without_login(str(outcome["url"])), said]))
    for stream in ("response", "stderr", "module_stderr", "stdout", "module_stdout"):
        output = str(outcome.get(stream) or "").strip()
        if output and output not in said:
            return (
                shortened(said, MESSAGE_CHARS // 2)
                + ": "
                + shortened(output, MESSAGE_CHARS // 2)
            )
    return shortened(said, MESSAGE_CHARS)


def without_login(url):
    """A URL as it may be shown: without user, password and query."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme + separator + host.rpartition("@")[2] + slash + path.partition("?")[0]


def shortened(text, limit):
    """The beginning and the end, which is where the reason usually is."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 3
    return text[:half] + " ... " + text[-half:]
