"""Ansible module: files and the units that are made of them, in one task.

In this order:

- ``stopped``: names of units that are stopped for good;
- ``absent``: paths of files and directories to remove;
- ``files``: what to write (see ``module_utils/lab_files.py``);
- ``reachable``: what has to answer first (see ``module_utils/lab_api.py``);
- ``unit``: {name, restarted, ready}, a unit that is enabled and started; it is started
  anew when it runs already and ``restarted`` is true or a file of its has changed.
  ``ready`` is what answers once it really works.

It calls ``systemctl`` directly: Ansible's own module does not know a host without
systemd as process 1, and the laboratory's hosts are such. One task does all of it since
each one costs a login, ``sudo`` and a Python on every host.
"""

import os
from typing import Any

from ansible.module_utils import lab_api, lab_files
from ansible.module_utils.basic import AnsibleModule

_TAIL = 5


def _log_tail(name: str) -> str:
    path = f"/var/log/{name}.log"
    if not os.path.exists(path):
        return f"there is no {path}"
    with open(path, errors="replace") as file:
        return " | ".join(line.rstrip() for line in file.readlines()[-_TAIL:])


class Unit:
    """One unit, seen through systemctl."""

    def __init__(self, module: AnsibleModule, name: str) -> None:
        self._module = module
        self.name = name

    def _call(self, *arguments: str) -> None:
        """Run systemctl; a failure ends the module with the end of the unit's log."""
        code, out, errors = self._module.run_command(["systemctl", *arguments])
        if code:
            text = (errors or out).strip()
            verb = " ".join(arguments)
            message = f"systemctl {verb} failed: {text}; log: {_log_tail(self.name)}"
            self._module.fail_json(msg=message)

    def _is_active(self) -> bool:
        command = ["systemctl", "is-active", "--quiet", self.name]
        return bool(self._module.run_command(command)[0] == 0)

    def stop(self) -> bool:
        """Stop it for good; whether it ran."""
        active = self._is_active()
        if active:
            self._call("stop", self.name)
        if os.path.exists(f"/etc/systemd/system/{self.name}.service"):
            self._call("disable", self.name)
        return active

    def start(self, anew: bool) -> bool:
        """Have it run; whether it had to be started.

        :param anew: also when it runs already.
        """
        active = self._is_active()
        if active and not anew:
            return False
        self._call("daemon-reload")
        self._call("enable", self.name)
        self._call("restart" if active else "start", self.name)
        return True


def _await(module: AnsibleModule, wanted: dict[str, Any] | None, more: str) -> None:
    """Wait until it answers.

    :param more: also said when it does not.
    """
    problem = lab_api.wait(wanted) if wanted else ""
    if problem:
        module.fail_json(msg=problem + more)


def main() -> None:
    names = {"type": "list", "elements": "str", "default": []}
    files = {"type": "list", "elements": "dict", "default": []}
    unit_options = {
        "name": {"type": "str", "required": True},
        "restarted": {"type": "bool", "default": False},
        "ready": {"type": "dict", "options": lab_api.OPTIONS},
    }
    module = AnsibleModule(
        {
            "stopped": names,
            "absent": names,
            "files": {**files, "options": lab_files.OPTIONS},
            "reachable": {"type": "dict", "options": lab_api.OPTIONS},
            "unit": {"type": "dict", "options": unit_options},
        }
    )
    given = module.params
    changes = [Unit(module, name).stop() for name in given["stopped"]]
    changes += [lab_files.remove(path) for path in given["absent"]]
    written = [file for file in given["files"] if lab_files.write(file)]
    _await(module, given["reachable"], "")
    if wanted := given["unit"]:
        unit = Unit(module, wanted["name"])
        anew = wanted["restarted"] or any(file["restarts"] for file in written)
        changes.append(unit.start(anew))
        _await(module, wanted["ready"], f"; log: {_log_tail(unit.name)}")
    module.exit_json(changed=bool(written) or any(changes))


if __name__ == "__main__":
    main()
