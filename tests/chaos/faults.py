# SPDX-License-Identifier: Apache-2.0
"""What strikes: each fault breaks something, and returns how it comes back."""

import threading
import time
from collections.abc import Callable, Mapping

from lab import client
from tests.chaos import catalogue, mistakes, real_faults
from tests.chaos.scene import Scene
from tests.integration.laboratory import ANSIBLE_SERVER, CONDUCTOR, cloud, services

Mend = Callable[[], None]
Strike = Callable[[Scene], "Mend | None"]
_START = 15.0
_SSHD = "ps -eo pid,args | grep 'sshd.*listener' | grep -v grep | awk '{print $1}'"
_API_SERVER = "ps -eo pid,args | grep 'apiserver.crt' | grep -v grep | awk '{print $1}'"


class Fault:
    """A fault in a scene, in a thread of its own.

    :ivar came: whether its moment came.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.came = False
        self.failure = ""
        #: It has struck, or never will.
        self.struck = threading.Event()

    def begin(self) -> None:
        """Wait for the moment, strike, and mend in its time."""
        self._thread.start()

    def end(self) -> None:
        """Wait until it is over."""
        self._thread.join()

    def _run(self) -> None:
        scene = self._scene
        try:
            if not scene.wait():
                scene.record.add("missed", fault=scene.step.fault, at=scene.step.when())
                return
            self.came = True
            self._strike(strike_of(scene.step.fault, scene.subject.kind))
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"
            scene.record.add("fault-failed", text=self.failure)
        finally:
            self.struck.set()
            scene.mended.set()

    def _strike(self, strike: Strike) -> None:
        scene = self._scene
        scene.struck = time.time()
        scene.record.add("fault", fault=scene.step.fault, at=scene.step.when())
        if scene.step.fault in catalogue.DISRUPTING:
            scene.subject.disrupted = True
        mend = strike(scene)
        self.struck.set()
        if mend:
            time.sleep(scene.step.seconds)
            mend()
        scene.record.add("mended", fault=scene.step.fault)


def strike_of(name: str, lab: str = catalogue.QUICK) -> Strike:
    """What a fault of the catalogue does in a kind of laboratory."""
    if lab == catalogue.REAL and name in real_faults.STRIKES:
        return real_faults.STRIKES[name]
    if name in _STRIKES:
        return _STRIKES[name]
    what, _, how = name.rpartition(" ")
    if how == "restarted":
        return lambda scene: services("restart", what)
    if how == "away":
        return lambda scene: _away(what)
    return lambda scene: mistakes.spoil(scene, what, how)


def _away(service: str) -> Mend:
    services("stop", "--kill", service)
    return lambda: services("restart", service)


def _cut(host: str) -> Mend:
    cloud("cut", host)
    return lambda: _restore(host)


def _restore(host: str) -> None:
    # A heal may have deleted it meanwhile.
    if any(one.id == host for one in client.hosts()) or host == ANSIBLE_SERVER:
        cloud("restore", host)


def _stopped(host: str, find: str) -> Mend:
    """Processes of a host that do not answer."""
    line = f"for pid in $({find}); do kill -%s $pid; done; true"
    client.on_host(host, "sh", "-c", line % "STOP")

    def go_on() -> None:
        if any(one.id == host for one in client.hosts()):
            client.on_host(host, "sh", "-c", line % "CONT")

    return go_on


def _without_api(scene: Scene) -> Mend:
    server = scene.subject.cluster.server("masterNode")
    client.on_host(server, "systemctl", "stop", "kube-apiserver")
    return lambda: _started(server)


def _started(server: str) -> None:
    if any(one.id == server for one in client.hosts()):
        client.on_host(server, "systemctl", "start", "kube-apiserver")


def _kill_processes(scene: Scene, words: str) -> None:
    """Kill what has these words on the Ansible server, once a playbook runs."""
    lab = scene.subject.lab
    deadline = time.monotonic() + _START
    while "ansible-playbook" not in lab.ansible("ps -eo args"):
        if scene.rested.is_set() or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    find = f"ps -eo pid,user,args | grep -E '{words}' | grep -v grep"
    line = f"for pid in $({find} | awk '{{print $1}}'); do kill -9 $pid; done; true"
    lab.ansible(line)


def _killed(host: str) -> None:
    cloud("kill", host)


def _without_vms(scene: Scene) -> Mend:
    pattern = f"*{scene.subject.cluster.id}*workerNode*"
    cloud("refuse", pattern)
    return lambda: cloud("admit", pattern)


def _vdu(scene: Scene, vdu: str) -> str:
    return scene.subject.cluster.server(vdu)


_STRIKES: Mapping[str, Strike] = {
    "none": lambda scene: None,
    "conductor killed": lambda scene: services("restart", "--kill", CONDUCTOR),
    "conductor restarted": lambda scene: services("restart", CONDUCTOR),
    "conductor away": lambda scene: _away(CONDUCTOR),
    "Ansible server cut": lambda scene: _cut(ANSIBLE_SERVER),
    "Ansible server rebooted": lambda scene: _kill_processes(scene, "deployer|ansible"),
    "Ansible killed": lambda scene: _kill_processes(scene, "ansible-playbook"),
    "worker cut": lambda scene: _cut(scene.victim),
    "worker killed": lambda scene: _killed(scene.victim),
    "worker without sshd": lambda scene: _stopped(scene.victim, _SSHD),
    "control plane without sshd": lambda scene: _stopped(
        _vdu(scene, "masterNode"), _SSHD
    ),
    "load balancer without sshd": lambda scene: _stopped(
        _vdu(scene, "externalLB"), _SSHD
    ),
    "control plane cut": lambda scene: _cut(_vdu(scene, "masterNode")),
    "control plane killed": lambda scene: _killed(_vdu(scene, "masterNode")),
    "load balancer cut": lambda scene: _cut(_vdu(scene, "externalLB")),
    "load balancer killed": lambda scene: _killed(_vdu(scene, "externalLB")),
    "API server away": _without_api,
    "API server frozen": lambda scene: _stopped(_vdu(scene, "masterNode"), _API_SERVER),
    "no VM": _without_vms,
    # The request itself has the fault.
    "playbook fails once": lambda scene: None,
    "wrong verb": lambda scene: None,
    "runs deleted": lambda scene: mistakes.delete(scene, "runs"),
    "directory deleted": lambda scene: mistakes.delete(scene, ""),
    "second operation": mistakes.second_operation,
    "Node deleted": mistakes.delete_node,
    "route deleted": mistakes.delete_route,
    "worker cordoned": mistakes.cordon,
    "VM deleted": lambda scene: cloud("delete", scene.victim),
}
