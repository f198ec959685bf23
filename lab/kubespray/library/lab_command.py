#!/usr/bin/python
"""Ansible module: run a program, as ``ansible.builtin.command`` does.

``cmd``, or ``argv`` (a list), and ``stdin``, its input. Returns ``rc``, ``stdout`` and
``stderr``, and fails when ``rc`` is not 0. Without Ansible's library, as ``lab_units``:
that takes longer than most programs that are run here.
"""

import json
import shlex
import subprocess
from typing import Any


def run(given: dict[str, Any]) -> dict[str, Any]:
    """Run it; the result for Ansible."""
    argv = given.get("argv") or shlex.split(given["cmd"])
    done = subprocess.run(
        [str(word) for word in argv],
        input=given.get("stdin") or "",
        capture_output=True,
        text=True,
        check=False,
    )
    told: dict[str, Any] = {
        "changed": True,
        "cmd": argv,
        "rc": done.returncode,
        "stdout": done.stdout.rstrip("\n"),
        "stderr": done.stderr.rstrip("\n"),
    }
    if done.returncode:
        told |= {"failed": True, "msg": "non-zero return code"}
    return told


def main() -> None:
    # Ansible puts its arguments there.
    given = json.loads(r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>""")
    try:
        print(json.dumps(run(given)))
    except OSError as problem:
        print(json.dumps({"failed": True, "msg": str(problem)}))


if __name__ == "__main__":
    main()
