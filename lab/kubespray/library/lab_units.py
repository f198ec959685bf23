#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: files and the units that are made of them, in one task.

In this order:

- ``stopped``: names of units that are stopped for good;
- ``absent``: paths of files and directories to remove;
- ``files``: what to write: ``path``, ``mode`` (0644), and either ``content``, which is
  bytes where ``base64`` is true, or ``source``, a file of the same host that it is a
  copy of; that one is large and looked at only where there is none yet;
- ``reachable``: what has to answer first: an HTTPS ``url``, the PEM file of the ``ca``
  that its certificate must come from, one with a ``client`` certificate and key, how
  many ``seconds`` to wait (60), and ``what`` to call it (the API server);
- ``unit``: its ``name``; it is enabled and started, and started again when it runs
  already and ``restarted`` is true or a file has changed whose ``restarts`` is not
  false. ``ready``, of the form of ``reachable``, answers once it really works.

It calls ``systemctl`` directly: Ansible's own module does not know a host without
systemd as process 1, and the laboratory's hosts are such. One task does all of it, and
it does without Ansible's Python library, since a task costs a login, ``sudo`` and a
Python on every host, and with that library five times as much.
"""

import base64
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from typing import Any

_LOG_LINES = 5
_PAUSE = 0.2  # seconds
_ONE_TRY = 3.0


class Problem(Exception):
    """Why the host cannot be made so."""


def write(wanted: dict[str, Any]) -> bool:
    """Make a file so; whether it was not."""
    path, mode = wanted["path"], int(wanted.get("mode", "0644"), 8)
    if "source" in wanted:
        if os.path.exists(path):
            return False
        return _put(path, mode, lambda file: _copy(wanted["source"], file))
    content = wanted["content"].encode()
    if wanted.get("base64"):
        content = base64.b64decode(content)
    if os.path.exists(path):
        with open(path, "rb") as file:
            same = file.read() == content
        if same and os.stat(path).st_mode & 0o7777 == mode:
            return False
    return _put(path, mode, lambda file: file.write(content))


def _copy(source: str, file: Any) -> None:
    with open(source, "rb") as original:
        shutil.copyfileobj(original, file)


def _put(path: str, mode: int, fill: Any) -> bool:
    """Have the whole file appear at once."""
    directory = os.path.dirname(path)
    os.makedirs(directory, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=directory)
    with os.fdopen(descriptor, "wb") as file:
        fill(file)
    os.chmod(temporary, mode)
    os.replace(temporary, path)
    return True


def remove(path: str) -> bool:
    """Make a path absent; whether it was there."""
    if not os.path.lexists(path):
        return False
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)
    return True


def wait(wanted: dict[str, Any]) -> None:
    """Wait until it answers well.

    :raises Problem: it does not within its time.
    """
    seconds = float(wanted.get("seconds", 60))
    deadline = time.monotonic() + seconds
    while problem := _no_answer(wanted):
        if time.monotonic() > deadline:
            what = wanted.get("what", "the API server")
            raise Problem(
                f"No good answer from {what} at {wanted['url']} "
                f"within {seconds:g} s: {problem}"
            )
        time.sleep(_PAUSE)


def _no_answer(wanted: dict[str, Any]) -> str:
    """Why the address does not answer as it should; "" if it does."""
    context = ssl.create_default_context(cafile=wanted["ca"])
    if "client" in wanted:
        context.load_cert_chain(wanted["client"])
    direct = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with direct.open(wanted["url"], timeout=_ONE_TRY):
            return ""
    except urllib.error.HTTPError as error:
        return f"HTTP status {error.code}"
    except urllib.error.URLError as error:
        return str(error.reason)
    except OSError as error:
        return str(error)


class Unit:
    """One unit, seen through systemctl."""

    def __init__(self, name: str) -> None:
        self._name = name

    def stop(self) -> bool:
        """Stop it for good; whether it ran."""
        active = self._is_active()
        if active:
            self._call("stop", self._name)
        if os.path.exists(f"/etc/systemd/system/{self._name}.service"):
            self._call("disable", self._name)
        return active

    def start(self, anew: bool) -> bool:
        """Have it run; whether it had to be started.

        :param again: also when it runs already.
        """
        active = self._is_active()
        if active and not anew:
            return False
        self._call("daemon-reload")
        self._call("enable", self._name)
        self._call("restart" if active else "start", self._name)
        return True

    def log_tail(self) -> str:
        """The end of its log."""
        path = f"/var/log/{self._name}.log"
        if not os.path.exists(path):
            return f"there is no {path}"
        with open(path, errors="replace") as file:
            return " | ".join(line.rstrip() for line in file.readlines()[-_LOG_LINES:])

    def _is_active(self) -> bool:
        command = ["systemctl", "is-active", "--quiet", self._name]
        return subprocess.run(command, check=False).returncode == 0

    def _call(self, *arguments: str) -> None:
        done = subprocess.run(
            ["systemctl", *arguments], capture_output=True, text=True, check=False
        )
        if done.returncode:
            output = (done.stderr or done.stdout).strip()
            verb = " ".join(arguments)
            raise Problem(f"systemctl {verb} failed: {output}; log: {self.log_tail()}")


def start(wanted: dict[str, Any], changed: bool) -> bool:
    """Have a unit run and see that it works; whether it had to be started.

    :param changed: a file of its has changed.
    """
    unit = Unit(wanted["name"])
    started = unit.start(changed or bool(wanted.get("restarted")))
    if "ready" in wanted:
        try:
            wait(wanted["ready"])
        except Problem as problem:
            raise Problem(f"{problem}; log: {unit.log_tail()}") from problem
    return started


def work(arguments: dict[str, Any]) -> bool:
    """All of it; whether anything was changed."""
    changes = [Unit(name).stop() for name in arguments.get("stopped", ())]
    changes += [remove(path) for path in arguments.get("absent", ())]
    written = [file for file in arguments.get("files", ()) if write(file)]
    if "reachable" in arguments:
        wait(arguments["reachable"])
    if "unit" in arguments:
        restarts = any(file.get("restarts", True) for file in written)
        changes.append(start(arguments["unit"], restarts))
    return bool(written) or any(changes)


def main() -> None:
    # Ansible puts its arguments there. JSON has no three quotation marks in a row.
    arguments = json.loads(r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>""")
    try:
        print(json.dumps({"changed": work(arguments)}))
    except (Problem, OSError) as problem:
        print(json.dumps({"failed": True, "msg": str(problem)}))


if __name__ == "__main__":
    main()
