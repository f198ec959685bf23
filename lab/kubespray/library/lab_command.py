#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: run a program, as ``ansible.builtin.command`` does.

``cmd``, or ``argv`` (a list), and ``stdin``, its input. Returns ``rc``, ``stdout`` and
``stderr``, and fails when ``rc`` is not 0. Without Ansible's library, as ``lab_units``:
that takes longer than most programs that are run here.
"""

import json
import shlex
import subprocess
from typing import Any


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run it; the result for Ansible."""
    argv = arguments.get("argv") or shlex.split(arguments["cmd"])
    done = subprocess.run(
        [str(word) for word in argv],
        input=arguments.get("stdin") or "",
        capture_output=True,
        text=True,
        check=False,
    )
    result: dict[str, Any] = {
        "changed": True,
        "cmd": argv,
        "rc": done.returncode,
        "stdout": done.stdout.rstrip("\n"),
        "stderr": done.stderr.rstrip("\n"),
    }
    if done.returncode:
        result |= {"failed": True, "msg": "non-zero return code"}
    return result


def main() -> None:
    # Ansible puts its arguments there.
    arguments = json.loads(r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>""")
    try:
        print(json.dumps(run(arguments)))
    except OSError as problem:
        print(json.dumps({"failed": True, "msg": str(problem)}))


if __name__ == "__main__":
    main()
