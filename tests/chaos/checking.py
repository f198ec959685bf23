# SPDX-License-Identifier: Apache-2.0
"""What an operator does about the differences that ``cluster check`` prints."""

import json
import re
import time
from collections.abc import Iterator
from typing import Any

from lab import client
from lab.cloud import CloudError
from tests.chaos.operator import Operator
from tests.chaos.record import ACTION, FINDING, Record
from tests.chaos.subject import Subject
from tests.integration.cluster import begun
from tests.integration.cluster_checks import check

_ROUNDS = 6
_QUOTED = re.compile(r"`([^`]+)`")
_SCRIPT = "sudo bash install_external_lb.sh "
#: They only look.
_LOOKS = (
    "journalctl",
    "systemctl status",
    "openstack stack failures",
    "cluster labels",
)
_LOOK = "Look whether it answers"
# The load balancer's row says how.
_FIRST = "First fix the load balancer"
#: What keeps it from asking is that nobody has seen its host key.
_RECORDS = "one that modifies the VNF instance, record it"
# Kubernetes itself notices that a node is back.
_WAITS = ("Wait:", "it is on its way")


class Checker:
    """Compares, and does what is printed, until everything agrees.

    :ivar differences: what was different at first.
    """

    def __init__(self, subject: Subject, record: Record, operator: Operator) -> None:
        self._subject = subject
        self._record = record
        self._operator = operator
        self.differences: list[str] = []
        self._ran: set[str] = set()

    def until_agreed(self) -> str:
        """Return "" when all agree, else what still differs."""
        left = ""
        for number in range(_ROUNDS):
            code, told = self._look()
            if code == 0:
                return ""
            left = "; ".join(_texts(told)) or f"exit code {code}"
            self.differences += [left] if number == 0 else []
            self._record.add("check", code=code, text=left)
            if number == 0:
                # A node or a route may be about to come back by itself.
                time.sleep(self._subject.pace.pause)
                continue
            self._act(told)
        return left

    def _look(self) -> tuple[int, dict[str, Any]]:
        try:
            self._subject.cnfs.serve()
            done = check(self._subject.cluster, "--json")
        except (AssertionError, RuntimeError) as error:
            self._record.add(FINDING, text="cluster check", error=str(error)[:600])
            return 2, {}
        return done.returncode, json.loads(done.stdout or "{}")

    def _act(self, told: dict[str, Any]) -> None:
        found = [
            (row, difference)
            for row in told.get("rows", [])
            for difference in row["differences"]
        ]
        for row, difference in found:
            # One remedy may make others needless: look again after a heal.
            if self._remedy(row, difference):
                return
        if told.get("not_asked"):
            self._heal_what_does_not_answer(told)

    def _heal_what_does_not_answer(self, told: dict[str, Any]) -> None:
        """By the text, else by the guide's table of what to heal."""
        silent = told.get("not_asked", {})
        if any(_RECORDS in why for why in silent.values()):
            self._begin("modify labels", "check: that records its host key")
            return
        off = {host.id for host in client.hosts() if _is_off(host.id)}
        if "cluster" in silent and self._subject.cluster.server("masterNode") in off:
            self._begin("heal VNF", "guide: the only control plane")
        elif "load_balancer" in silent and self._subject.balanced:
            self._begin("heal load balancer", "guide: the load balancer")
        else:
            time.sleep(self._subject.pace.pause)

    def _remedy(self, row: dict[str, Any], difference: dict[str, Any]) -> bool:
        remedy, commands = difference["remedy"], difference["commands"]
        if remedy.startswith(_WAITS):
            time.sleep(self._subject.pace.pause)
            return False
        if remedy.startswith((_LOOK, _FIRST)) and not commands:
            return False
        quoted = [
            one
            for one in _QUOTED.findall(remedy)
            if " " in one and not one.startswith(_LOOKS)
        ]
        tried = commands and self._ran.issuperset(quoted)
        if tried:
            # Of a remedy with both, the heal is for what the other did not fix.
            self._heal(commands[-1])
            return True
        for line in quoted:
            self._run(line)
        if quoted:
            return False
        if "heal of a VNFC" in remedy or "scale-out" in remedy:
            self._begin("heal worker", f"check: {remedy}")
            return True
        if "Modify the VNF instance again" in remedy:
            self._begin("modify labels", f"check: {remedy}")
            return True
        self._record.add(FINDING, text="no command", difference=difference, row=row)
        return False

    def _heal(self, command: str) -> None:
        cluster, tacker = self._subject.cluster, self._subject.lab.tacker
        self._record.add(ACTION, text=command, source="check")
        self._subject.leaving |= self._servers_in(command)
        with begun(tacker, cluster.id) as started:
            client.command(command.split(), limit=120)
        cluster.follow(started[0])
        whole = "--vnfc-instance" not in command
        self._subject.replaced |= whole
        self._operator.see_through(started[0], "heal VNF" if whole else "heal worker")

    def _servers_in(self, command: str) -> set[str]:
        """The VMs that a command has replaced."""
        subject = self._subject
        named = {
            server
            for server in subject.cluster.servers()
            if subject.cluster.vnfc(server) in command
        }
        return named if "--vnfc-instance" in command else subject.servers()

    def _begin(self, operation: str, source: str) -> None:
        self._record.add(ACTION, text=operation, source=source)
        self._subject.begin(operation)
        self._operator.see_through(self._subject.cluster.operation, operation)

    def _run(self, line: str) -> None:
        self._record.add(ACTION, text=line, source="check")
        self._ran.add(line)
        cluster = self._subject.cluster
        try:
            if line.startswith(_SCRIPT):
                cluster.balancer(*line.removeprefix(_SCRIPT).split())
            elif line.startswith("kubectl "):
                cluster.kubectl(*line.split()[1:])
            elif line.startswith("sudo systemctl "):
                client.on_host(cluster.server("externalLB"), *line.split()[1:])
            else:
                client.command(line.split(), limit=300)
        except Exception as error:
            self._record.add(FINDING, text="a printed command failed", error=str(error))


def _texts(told: dict[str, Any]) -> Iterator[str]:
    for row in told.get("rows", []):
        for difference in row["differences"]:
            yield f"{row['name']}: {difference['what']}"
    for source, why in (told.get("not_asked") or {}).items():
        yield f"{source} does not answer: {why}"


def _is_off(host: str) -> bool:
    try:
        client.on_host(host, "true")
    except (CloudError, RuntimeError):
        return True
    return False
