# SPDX-License-Identifier: Apache-2.0
"""Ansible strategy plugin: linear, without a process for what needs none.

Ansible forks a process for each task and host, also for a task whose condition is
false, an include or a ``set_fact``. Here the code of that process (Ansible's
``TaskExecutor``) does such work in the controller's own process. It gets copies of what
it changes, and its result takes the way of all results, so it is what it would have
been.

It is copied to the server for every playbook run. ``strategies.py`` has the versions of
ansible-core in whose sources this was compared with linear.
"""

# Ansible is not installed where types are checked.
# mypy: ignore-errors

import os
import time
import traceback

from ansible import constants
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins import loader as plugin_loader
from ansible.utils.fqcn import add_internal_fqcns

if os.environ.get("K8S_MGMT_MITOGEN"):
    from ansible_mitogen.plugins.strategy.mitogen_linear import StrategyModule as Linear
else:
    from ansible.plugins.strategy.linear import StrategyModule as Linear

DOCUMENTATION = """
    name: k8s_linear
    short_description: linear, without a process for what needs none
    description: Skips, includes and local actions are done by the controller itself.
    author: tacker-k8s-mgmt
"""

# What Ansible itself does without the host.
_LOCAL = frozenset(
    [
        *constants._ACTION_INCLUDE_TASKS,
        *constants._ACTION_INCLUDE_ROLE,
        *add_internal_fqcns(("assert", "debug", "fail", "include_vars", "set_fact")),
    ]
)
# Processes work side by side. So the other hosts of a task get them if the first takes
# longer than a process costs (some 20 ms), and all would take long here; in seconds.
_SLOW, _LONG = 0.02, 1.0


class _NeedsProcess(BaseException):
    """The task is not skipped. TaskExecutor would make a result of an Exception."""


class _Skipper(TaskExecutor):
    """Takes a task as far as its condition."""

    def _execute(self, *args, **kwargs):
        # The next thing after the condition.
        self._task.post_validate = _not_skipped
        return super()._execute(*args, **kwargs)


def _not_skipped(*_, **__):
    raise _NeedsProcess


class StrategyModule(Linear):
    def __init__(self, tqm):
        super().__init__(tqm)
        self._slow = None  # the task that was slow on a host

    def _queue_task(self, host, task, task_vars, play_context):
        began = time.monotonic()
        if (
            task._uuid == self._slow
            or task.async_val
            or task.throttle
            or not self._done_here(host, task, task_vars, play_context)
        ):
            super()._queue_task(host, task, task_vars, play_context)
        else:
            taken = time.monotonic() - began
            if taken > _SLOW and taken * len(self._hosts_cache) > _LONG:
                self._slow = task._uuid

    def _done_here(self, host, task, task_vars, play_context):
        """Do what needs no process; returns whether that was all."""
        if task.action in _LOCAL:
            if task.timeout or task.until or task.retries or _pauses(task):
                return False
            executor = self._executor(TaskExecutor, host, task, task_vars, play_context)
            self._announce(host, task, task_vars, play_context)
            result = executor.run()
        elif task.when and task.loop is None and not task.loop_with:
            executor = self._executor(_Skipper, host, task, task_vars, play_context)
            try:
                result = executor.run()
            except _NeedsProcess:
                return False
            self._announce(host, task, task_vars, play_context)
        else:
            return False
        self._send(host, task, result, executor)
        return True

    def _executor(self, kind, host, task, task_vars, play_context):
        return kind(
            host,
            task.copy(exclude_tasks=True),
            task_vars.copy(),
            play_context,
            None,  # standard input
            self._loader,
            plugin_loader,
            self._final_q,
            self._variable_manager,
        )

    def _announce(self, host, task, task_vars, play_context):
        # Results of a loop's items are matched with it while the task is executed.
        self._queued_task_cache[(host.name, task._uuid)] = {
            "host": host,
            "task": task,
            "task_vars": task_vars,
            "play_context": play_context,
        }
        self._tqm.send_callback("v2_runner_on_start", host, task)

    def _send(self, host, task, result, executor):
        fields = executor._task.dump_attrs()
        try:
            self._final_q.send_task_result(host.name, task._uuid, result, fields)
        except Exception as error:  # it cannot be pickled; as Ansible's process does
            trace = traceback.format_exc()
            result = {"failed": True, "msg": f"{error}", "exception": trace}
            self._final_q.send_task_result(host.name, task._uuid, result, {})
        self._pending_results += 1


def _pauses(task):
    """Whether a loop waits between its items, for which other hosts would wait too."""
    return bool(task.loop_control and task.loop_control.pause)
