"""Ansible callback plugin: writes a run's events as JSON lines, small and safe.

It is sent along with every playbook run and works from Ansible 2.9 on (Python 3.6). It
adds to the output plugin that the kubespray checkout configures and replaces none.

A line has an ``event`` (playbook, play, task, failed, unreachable, alive, recap), a
``time`` in epoch seconds and the number of ``results`` of hosts so far. Results of
modules are never written, only a failure's message; nothing of a task with no_log.
"""

# Ansible is not there where types are checked.
# mypy: ignore-errors

import json
import os
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
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(path, flags, 0o600) if path else -1

    def v2_playbook_on_start(self, playbook):
        self._write("playbook", plays=len(playbook.get_plays()))

    def v2_playbook_on_play_start(self, play):
        self._write("play", name=play.get_name())

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
    for stream in ("stderr", "module_stderr", "stdout", "module_stdout"):
        output = str(outcome.get(stream) or "").strip()
        if output and output not in said:
            return (
                shortened(said, MESSAGE_CHARS // 2)
                + ": "
                + shortened(output, MESSAGE_CHARS // 2)
            )
    return shortened(said, MESSAGE_CHARS)


def shortened(text, limit):
    """The beginning and the end, which is where the reason usually is."""
    if len(text) <= limit:
        return text
    half = limit // 2 - 3
    return text[:half] + " ... " + text[-half:]
