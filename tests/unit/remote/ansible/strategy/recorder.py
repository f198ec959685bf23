# SPDX-License-Identifier: Apache-2.0
"""Ansible callback plugin: everything that a strategy reports and leaves, as JSON."""

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: recorder
    type: notification
    short_description: Records what a strategy reports and leaves
    description: Test data.
"""
# Of each run another, or of the process that did the work.
VARYING = ("start", "end", "delta", "exception", "invocation", "finished", "started")
VARYING += ("ansible_job_id", "results_file", "_ansible_async_dir", "uuid")


def fixed(value):
    """A value as JSON has it, without what is another one in each run."""
    if isinstance(value, dict):
        return {str(k): fixed(v) for k, v in value.items() if k not in VARYING}
    if isinstance(value, list | tuple):
        return [fixed(one) for one in value]
    return value if isinstance(value, int | float | None) else str(value)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "recorder"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._tasks, self._hosts, self._play = [], {}, None

    def v2_playbook_on_play_start(self, play):
        self._play = play
        self._tasks.append(["play", play.get_name(), play.strategy.rpartition("_")[2]])

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._tasks.append(["task", task.get_name()])

    def v2_playbook_on_handler_task_start(self, task):
        self._tasks.append(["handler", task.get_name()])

    def v2_playbook_on_include(self, included_file):
        hosts = sorted(host.name for host in included_file._hosts)
        name = os.path.basename(str(included_file._filename))
        self._tasks.append(["include", name, hosts])

    def v2_playbook_on_notify(self, handler, host):
        self._note(host.name, "notify", handler.get_name())

    def v2_runner_on_start(self, host, task):
        self._note(host.name, "start", task.get_name())

    def _result(self, kind, result):
        result, task = result._result, result._task
        fields = {"when": task.when, "run_once": task.run_once, "loop": task.loop}
        fields["no_log"], fields["ignore"] = task.no_log, task.ignore_errors
        return [kind, task.get_name(), task.action, fixed(result), fixed(fields)]

    def _note(self, host, *what):
        self._hosts.setdefault(host, []).append(list(what))

    def v2_playbook_on_stats(self, stats):
        variables, left = self._play.get_variable_manager(), {}
        for name in ("_fact_cache", "_nonpersistent_fact_cache", "_vars_cache"):
            cache = getattr(variables, name)
            left[name] = {host: fixed(dict(cache[host])) for host in sorted(cache)}
        recap = {host: stats.summarize(host) for host in sorted(stats.processed)}
        record = {
            # Not in their order: with files of their own, hosts come as they are ready.
            "tasks": sorted(self._tasks, key=str),
            "hosts": self._hosts,
            "left": left,
            "recap": recap,
        }
        with open(os.environ["RECORD"], "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1, sort_keys=True, default=str)


def _recorded(kind):
    def record(self, result, *_, **__):
        self._note(result._host.name, *self._result(kind, result))

    return record


for _kind in (
    *("runner_on_ok", "runner_on_failed", "runner_on_skipped", "runner_on_unreachable"),
    *("runner_item_on_ok", "runner_item_on_failed", "runner_item_on_skipped"),
    *("runner_retry", "runner_on_async_ok", "runner_on_async_failed"),
):
    setattr(CallbackModule, f"v2_{_kind}", _recorded(_kind))
