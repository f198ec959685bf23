"""Ansible module: a unit is enabled and started (or restarted), or stopped for good.

``name``; ``restarted``: restart it although it runs; ``state``: started or absent;
``ready``: what answers once it really works (see ``module_utils/lab_api.py``).

It calls ``systemctl`` directly: Ansible's own module does not know a host without
systemd as process 1, and the laboratory's hosts are such.
"""

import os

from ansible.module_utils import lab_api
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

    def call(self, *arguments: str) -> None:
        """Run systemctl; a failure ends the module with the end of the unit's log."""
        code, out, errors = self._module.run_command(["systemctl", *arguments])
        if code:
            text = (errors or out).strip()
            verb = " ".join(arguments)
            message = f"systemctl {verb} failed: {text}; log: {_log_tail(self.name)}"
            self._module.fail_json(msg=message)

    def is_active(self) -> bool:
        command = ["systemctl", "is-active", "--quiet", self.name]
        return bool(self._module.run_command(command)[0] == 0)


def main() -> None:
    module = AnsibleModule(
        {
            "name": {"type": "str", "required": True},
            "restarted": {"type": "bool", "default": False},
            "state": {"choices": ["started", "absent"], "default": "started"},
            "ready": {"type": "dict", "options": lab_api.OPTIONS},
        }
    )
    unit = Unit(module, module.params["name"])
    active = unit.is_active()
    if module.params["state"] == "absent":
        if active:
            unit.call("stop", unit.name)
        if os.path.exists(f"/etc/systemd/system/{unit.name}.service"):
            unit.call("disable", unit.name)
        module.exit_json(changed=active)
    restart = active and module.params["restarted"]
    if restart or not active:
        unit.call("daemon-reload")
        unit.call("enable", unit.name)
        unit.call("restart" if restart else "start", unit.name)
    ready = module.params["ready"]
    problem = lab_api.wait(ready) if ready else ""
    if problem:
        module.fail_json(msg=f"{problem}; log: {_log_tail(unit.name)}")
    module.exit_json(changed=restart or not active)


if __name__ == "__main__":
    main()
