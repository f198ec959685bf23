# SPDX-License-Identifier: Apache-2.0
"""A named phase of an installation: takes time, hangs or fails, by its variables.

It stands where kubespray downloads and installs for minutes. It runs on the Ansible
server and reaches for the host only to count the failures of a ``lab_fault`` with
``times``; the count lives and dies with the host.
"""

import fnmatch
import os
import shlex
import time
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

_COUNT = "/var/tmp/lab-fault-count"
_FOREVER = 3600.0
_TICK = 0.2  # seconds


class ActionModule(ActionBase):
    """``lab_phase:`` without arguments; the task's name is the phase's name."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Take the time, hang, fail; never changes anything."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        time.sleep(float(self._value("lab_task_seconds", variables) or 0))
        hang = self._value("lab_hang", variables) or {}
        if self._meant(hang, variables):
            self._hang(float(hang.get("seconds", _FOREVER)), hang.get("until"))
        fault = self._value("lab_fault", variables) or {}
        if self._meant(fault, variables) and self._still_due(fault):
            result["failed"] = True
            result["msg"] = fault.get("message", "This phase fails on request.")
        result["changed"] = False
        return result

    def _value(self, name: str, variables: dict[str, Any]) -> Any:
        return self._templar.template(variables.get(name))

    def _meant(self, wish: dict[str, Any], variables: dict[str, Any]) -> bool:
        """Whether a ``lab_fault`` or ``lab_hang`` names this phase and host."""
        if wish.get("task") != self._task.name:
            return False
        pattern = wish.get("host", "*")
        if pattern in variables["group_names"]:
            return True
        return fnmatch.fnmatchcase(variables["inventory_hostname"], pattern)

    @staticmethod
    def _hang(seconds: float, until: str | None) -> None:
        """Take the seconds, or less when the file is there before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and os.path.exists(until)):
            time.sleep(_TICK)

    def _still_due(self, fault: dict[str, Any]) -> bool:
        """Whether the fault is not fixed and has not happened its ``times`` yet.

        Counts it if so.
        """
        if os.path.exists(fault.get("until", "")):
            return False
        if "times" not in fault:
            return True
        count, times = shlex.quote(_COUNT), int(fault["times"])
        name = shlex.quote(str(fault["task"]))
        command = (
            f"touch {count} && n=$(grep -cxF {name} {count}); "
            f'[ "$n" -ge {times} ] && exit 3; echo {name} >> {count}'
        )
        done = self._low_level_execute_command(command)
        if done["rc"] not in (0, 3):
            raise AnsibleActionFail(f"Cannot count the fault: {done['stderr']}")
        return bool(done["rc"] == 0)
