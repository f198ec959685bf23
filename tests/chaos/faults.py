# SPDX-License-Identifier: Apache-2.0
"""What strikes: each fault breaks something, and returns how it comes back."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping

from lab import client
from lab.services.mirror import FILES, REGISTRY
from lab.services.tacker import SECOND
from tests.chaos import catalogue, hosts, mistakes, real_faults
from tests.chaos.hosts import Fix
from tests.chaos.scene import Scene
from tests.integration.laboratory import ANSIBLE_SERVER, CONDUCTOR, cloud, services

Strike = Callable[[Scene], "Fix | None"]
# Of the real laboratory.
_MIRROR = (FILES, REGISTRY)


class Fault:
    """A fault in a scene, in a thread of its own.

    :ivar came: whether its moment came.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.came = False
        self.failure = ""

    def begin(self) -> None:
        """Wait for the moment, strike, and fix in its time."""
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
            scene.broken.set()
            scene.fixed.set()

    def _strike(self, strike: Strike) -> None:
        scene = self._scene
        scene.struck = time.time()
        scene.record.add("fault", fault=scene.step.fault, at=scene.step.when())
        if scene.step.fault in catalogue.DISRUPTING:
            scene.subject.disrupted = True
        fix = strike(scene)
        scene.broken.set()
        if catalogue.FAULTS[scene.step.fault].lasts:
            scene.rested.wait()
        if fix:
            time.sleep(scene.step.seconds)
            fix()
        scene.record.add("fixed", fault=scene.step.fault)


def strike_of(name: str, lab: str = catalogue.QUICK) -> Strike:
    """What a fault of the catalogue does in a kind of laboratory."""
    if lab == catalogue.REAL and name in real_faults.STRIKES:
        return real_faults.STRIKES[name]
    if name in _STRIKES:
        return _STRIKES[name]
    what, _, how = name.rpartition(" ")
    if what in (*catalogue.SERVICES, *_MIRROR, "conductor"):
        service = CONDUCTOR if what == "conductor" else what
        return lambda scene: _OF_SERVICES[how](service)
    line = mistakes.SPOILED[how]
    return lambda scene: mistakes.spoil(scene, what, line)


def _away(service: str) -> Fix:
    services("stop", "--kill", service)
    return lambda: services("restart", service)


def _frozen(service: str) -> Fix:
    """It takes connections, and no more."""
    process = json.loads((client.state() / "run" / f"{service}.json").read_text())
    group = int(process["pid"])
    os.killpg(group, signal.SIGSTOP)
    return lambda: os.killpg(group, signal.SIGCONT)


_OF_SERVICES: Mapping[str, Callable[[str], "Fix | None"]] = {
    "restarted": lambda service: services("restart", service),
    "killed": lambda service: services("restart", "--kill", service),
    "away": _away,
    "frozen": _frozen,
}


def _second_conductor(scene: Scene) -> Fix:
    services("restart", SECOND)
    services("stop", "--kill", CONDUCTOR)

    def back() -> None:
        services("restart", CONDUCTOR)
        services("stop", SECOND)

    return back


def _faulty_request(scene: Scene) -> Fix:
    """The request itself has the fault, until a file is there."""

    def cure() -> None:
        scene.subject.lab.ansible(f"touch {scene.cured}")

    return cure


def _reboot_new_worker(scene: Scene) -> Fix:
    known = scene.workers
    new = [
        host.id
        for host in scene.subject.cluster.hosts()
        if "worker" in host.name and host.id not in known
    ]
    return hosts.rebooting(scene.chance.choice(sorted(new)))


def _without_vms(scene: Scene) -> Fix:
    pattern = f"*{scene.subject.cluster.id}*workerNode*"
    cloud("refuse", pattern)
    return lambda: cloud("admit", pattern)


def _on_vdu(break_it: Callable[[str], "Fix | None"], vdu: str) -> Strike:
    return lambda scene: break_it(scene.subject.cluster.server(vdu))


def _on_victim(break_it: Callable[[str], "Fix | None"]) -> Strike:
    return lambda scene: break_it(scene.victim)


_CONTROL_PLANE, _BALANCER = "masterNode", "externalLB"
_STRIKES: Mapping[str, Strike] = {
    "none": lambda scene: None,
    "second conductor": _second_conductor,
    "Ansible server cut": lambda scene: hosts.cut(ANSIBLE_SERVER),
    "Ansible server full": lambda scene: hosts.full(ANSIBLE_SERVER),
    "Ansible server greets": hosts.greeting,
    "Ansible server strict": lambda scene: hosts.few_sessions(ANSIBLE_SERVER),
    "Ansible server rebooted": lambda s: hosts.kill_processes(s, "deployer|ansible"),
    "Ansible killed": lambda scene: hosts.kill_processes(scene, "ansible-playbook"),
    "worker cut": _on_victim(hosts.cut),
    "worker killed": _on_victim(hosts.killed),
    "worker full": _on_victim(hosts.full),
    "worker stays full": _on_victim(hosts.full),
    "worker's clock ahead": _on_victim(lambda host: hosts.ahead(host, 30)),
    "worker's clock far ahead": _on_victim(lambda host: hosts.ahead(host, 600)),
    "Ansible server's clock ahead": lambda scene: hosts.ahead(ANSIBLE_SERVER, 3600),
    "new worker rebooted": _reboot_new_worker,
    "worker without sshd": _on_victim(hosts.without_sshd),
    "worker's password changed": _on_victim(hosts.other_password),
    "kubelet stopped": _on_victim(lambda host: hosts.stopped(host, "kubelet")),
    "control plane cut": _on_vdu(hosts.cut, _CONTROL_PLANE),
    "control plane killed": _on_vdu(hosts.killed, _CONTROL_PLANE),
    "control plane without sshd": _on_vdu(hosts.without_sshd, _CONTROL_PLANE),
    "etcd member lost": _on_vdu(hosts.without_etcd, _CONTROL_PLANE),
    "API server away": _on_vdu(
        lambda host: hosts.stopped(host, "kube-apiserver"), _CONTROL_PLANE
    ),
    "API server frozen": _on_vdu(hosts.frozen_api, _CONTROL_PLANE),
    "API server busy": _on_vdu(lambda h: hosts.refusing_api(h, 429), _CONTROL_PLANE),
    "API server failing": _on_vdu(lambda h: hosts.refusing_api(h, 500), _CONTROL_PLANE),
    "load balancer cut": _on_vdu(hosts.cut, _BALANCER),
    "load balancer killed": _on_vdu(hosts.killed, _BALANCER),
    "load balancer without sshd": _on_vdu(hosts.without_sshd, _BALANCER),
    "HAProxy stopped": _on_vdu(hosts.without_haproxy, _BALANCER),
    "no VM": _without_vms,
    "playbook fails once": _faulty_request,
    "wrong verb": _faulty_request,
    "runs deleted": lambda scene: mistakes.delete(scene, "runs"),
    "directory deleted": lambda scene: mistakes.delete(scene, ""),
    "budget": mistakes.forbid_evictions,
    "stack updated": mistakes.update_stack,
    "second operation": mistakes.second_operation,
    "Node deleted": mistakes.delete_node,
    "route deleted": mistakes.delete_route,
    "worker cordoned": mistakes.cordon,
    "VM deleted": lambda scene: cloud("delete-server", scene.victim),
    "eviction fails once": lambda scene: mistakes.fail_evictions(scene, times=1),
    "evictions fail": lambda scene: mistakes.fail_evictions(scene, seconds=3600),
    "kind unreadable": mistakes.break_kind,
    "kind deprecated": mistakes.deprecate_kind,
    "member marked": mistakes.mark_unhealthy,
    "second address": mistakes.add_address,
}
