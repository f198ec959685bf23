# SPDX-License-Identifier: Apache-2.0
"""All hosts of a cluster, for hooks with the real site: nothing of it is faked.

The Ansible server, the VMs, Keystone with Heat, and the cluster's API are servers in
this process. The scripts of the driver and kubectl really run; what a playbook does to
the cluster is done here. What the driver asks of each host is counted.
"""

import itertools
import json
import os
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.kubeapi.server import start, stop
from lab.kubeapi.settings import Settings
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.contract.openstack_api import OpenStack
from tests.helpers import kubeapi as bed
from tests.helpers.heat_stacks import workers_group
from tests.helpers.kubectl_server import SUDO
from tests.helpers.samples import REMOVED, changed, request, vm
from tests.helpers.sshd import PASSWORD, USER, Sshd

STACK = "top"
SERVER, PLANE, BALANCER = "10.99.0.5", "10.99.0.11", "10.99.0.19"
#: What the API stand-in runs pods with: at once.
_SETTINGS = Settings(node_grace=3600.0, start_delay=0.0, stop_delay=0.0)

_ANSIBLE = """
[ "$1" != --version ] || { echo 'ansible-playbook [core 2.18.6]'; exit; }
echo >>"$K8S_MGMT_EVENTS"
printf '%s\\n' "$*" >"$HOME/playbook"
read -r _ <"$HOME/played"
"""
_KUBECTL = """
shift 2
arguments=()
while (($#)); do
    case $1 in
        --server) shift ;;
        *) arguments+=("$1") ;;
    esac
    shift
done
exec {kubectl} --server={url} --certificate-authority={ca} --token={token} \
    "${{arguments[@]}}"
"""
# A VM's own identity, which all the others of this process would share.
_CAT = """
case $1 in
    /etc/machine-id) echo "machine-$SERVER_ID" ;;
    /proc/sys/kernel/random/boot_id) echo "boot-$SERVER_ID" ;;
    *) exec /bin/cat "$@" ;;
esac
"""
# The probe of the pod network: all packets arrive.
_PYTHON = """
{ echo 'import json
def main(request):
    well = {"tried": 1400, "arrived": 1400, "error": ""}
    paths = {other: well for other in request["others"]}
    services = {host: "" for host, _ in request["services"]}
    print(json.dumps({"paths": paths, "services": services}))
'; grep '^main('; } | /usr/bin/env -i PATH=/usr/bin:/bin python3 -
"""
_BALANCER = """#!/bin/bash
# tacker-k8s-mgmt load-balancer contract: 2
[ "$1" = status ] || exit 0
echo '{"format":1,"haproxy":{"active":true,"enabled":true,"current":true},
"api_port":6443,"control_planes":[],"workers":[],"services":[]}'
"""


class Host(Sshd):
    """A host, and what the driver has done on it.

    :ivar sent: bytes that the driver has sent, with what SSH adds.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.sent = 0
        self.program("sudo", SUDO)


class Counted:
    """A socket whose sent bytes are counted; the rest is the socket's own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._socket = socket.create_connection(("127.0.0.1", host.port))

    def send(self, data: bytes) -> int:
        sent = self._socket.send(data)
        self._host.sent += sent
        return sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


@dataclass
class Asked:
    """What one hook has asked for.

    :param logins: the most on one host.
    :param heat: requests that Heat has answered.
    :param commands: remote commands on all hosts, by what they do.
    :param files: how often a file was opened over SFTP.
    :param sent: bytes, to all hosts.
    """

    logins: int
    heat: int
    files: int
    sent: int
    commands: Counter[str] = field(default_factory=Counter)

    @property
    def figures(self) -> tuple[int, int, int, int]:
        """Logins, requests to Heat, remote commands and files."""
        return self.logins, self.heat, self.commands.total(), self.files


class Hosts:
    """The hosts of one cluster, which are there until :meth:`close`.

    :ivar workers: addresses of the workers' VMs by server id, the oldest first.
    """

    def __init__(self, directory: Path, certificate: Path, key: Path) -> None:
        self._directory = directory
        self.package = directory / "package"
        (self.package / "Scripts").mkdir(parents=True)
        script = self.package / "Scripts" / "install_external_lb.sh"
        script.write_text(_BALANCER)
        self._api = start(bed.listener(certificate, key), _SETTINGS)
        self._kube = bed.Kube(self._api, certificate)
        kubectl = _KUBECTL.format(
            kubectl=bed.KUBECTL,
            url=self._kube.url,
            ca=certificate,
            token=bed.ADMIN_TOKEN,
        )
        self._kubectl = kubectl
        self._hosts: dict[str, Host] = {}
        self.server = self._add(SERVER)
        self._install(self.server)
        self._vm(PLANE, "m1").program("kubectl", kubectl)
        self._vm(BALANCER, "lb")
        self.workers: dict[str, str] = {}
        self.openstack = OpenStack()
        for number in (21, 22):
            self.add_worker(number)
        threading.Thread(target=self._play, daemon=True).start()

    # The cloud

    def add_worker(self, number: int, server: str = "") -> str:
        """Make a VM, as Heat does; returns its server id."""
        server = server or f"w{number}"
        self.workers[server] = f"10.99.0.{number}"
        self._vm(self.workers[server], server)
        self._tell_heat()
        return server

    def delete_worker(self, server: str) -> None:
        """Delete a VM, as Heat does."""
        self._hosts.pop(self.workers.pop(server)).close()
        self._tell_heat()

    def rebuild_worker(self, server: str) -> str:
        """Delete a VM and make another one at its port; returns its server id."""
        number = self._number(server)
        self.delete_worker(server)
        return self.add_worker(number, f"{server}-new")

    def stack_of(self, server: str) -> str:
        """The id of the stack of the worker's group member."""
        return f"stack-{self._number(server)}"

    def _tell_heat(self) -> None:
        plane = {"masterNode_CP1": PLANE, "masterNode_CP2": "10.10.0.11"}
        balancer = {"externalLB_CP1": BALANCER, "externalLB_CP2": "10.10.0.19"}
        self.openstack.resources = [
            *vm(STACK, "masterNode", "m1", plane),
            *vm(STACK, "externalLB", "lb", balancer),
            *workers_group(*map(self._member, self.workers)),
        ]

    def _member(self, server: str) -> list[StackResource]:
        number = self._number(server)
        addresses = {
            "workerNode_CP1": f"10.10.0.{number}",
            "workerNode_CP2": f"10.99.0.{number}",
        }
        return vm(self.stack_of(server), "workerNode", server, addresses)

    def _number(self, server: str) -> int:
        return int(self.workers[server].rpartition(".")[2])

    # The hosts

    def open(self, host: str, port: int, timeout: float) -> Any:
        """Connect to a host, as :class:`.session.Transport` does."""
        del port, timeout
        if host not in self._hosts:
            raise ConnectionRefusedError(host)
        return Counted(self._hosts[host])

    def _add(self, address: str) -> Host:
        number = len(list(self._directory.glob("host-*")))
        host = self._hosts[address] = Host(self._directory / f"host-{number}")
        return host

    def _vm(self, address: str, server: str) -> Host:
        host = self._add(address)
        host.variables["SERVER_ID"] = server
        host.program("cat", _CAT)
        host.program("python3", _PYTHON)
        return host

    def _install(self, server: Host) -> None:
        server.program("ansible-playbook", _ANSIBLE)
        server.program("sshpass", "")
        root = server.home / "kubespray"
        (root / "playbooks").mkdir(parents=True)
        (root / "galaxy.yml").write_text("name: kubespray\nversion: 2.31.0\n")
        versions = "minimal_ansible_version: 2.18.0\nmaximal_ansible_version: 2.19.0\n"
        (root / "playbooks" / "ansible_version.yml").write_text(versions)
        for name in ("playbook", "played"):
            os.mkfifo(server.home / name)

    def parameters(self) -> dict[str, Any]:
        """``additionalParams`` of the instantiation."""
        changes: dict[str, Any] = {
            "ansible.kubespray_root_path": str(self.server.home / "kubespray"),
            "ansible.transferring_inventory_path": self._cluster,
            "ansible.venv_path": REMOVED,
            "external_lb_param.ssh_username": USER,
            "external_lb_param.ssh_password": PASSWORD,
        }
        for name in ("ansible", "master_node", "worker_node"):
            changes |= {f"{name}.username": USER, f"{name}.password": PASSWORD}
        return request(changed(changes))

    @property
    def _cluster(self) -> str:
        return str(self.server.home / "clusters" / "one")

    # What playbooks do

    def _play(self) -> None:
        while True:
            words = (self.server.home / "playbook").read_text()
            if not words:
                return
            self._effect(words.split())
            (self.server.home / "played").write_text("\n")

    def _effect(self, words: Sequence[str]) -> None:
        playbook = Path(words[-1]).name
        text = Path(self._cluster, inventory.FILE_NAME).read_text()
        nodes = {node.name: node for node in inventory.parse(text)}
        if playbook == "cluster.yml":
            chosen = list(nodes)
        elif playbook == "scale.yml":
            chosen = words[words.index("--limit") + 1].split(",")
        elif playbook.startswith("remove"):
            runs = sorted(Path(self._cluster, "runs").iterdir())
            given = json.loads((runs[-1] / "vars.json").read_text())
            for name in given["node"].split(","):
                self._kube.request("DELETE", f"/api/v1/nodes/{name}")
            return
        else:
            return
        for name in chosen:
            self._register(name, nodes[name].server_id, nodes[name].address)

    def _register(self, name: str, server: str, address: str) -> None:
        """A kubelet registers its node, and reports."""
        node = {"metadata": {"name": name}, "spec": {}}
        self._kube.request("POST", "/api/v1/nodes", node)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [ready],
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "nodeInfo": {
                "kubeletVersion": "v1.35.4",
                "machineID": f"machine-{server}",
                "bootID": f"boot-{server}",
            },
            "images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320368}],
        }
        self._kube.request(
            "PATCH",
            f"/api/v1/nodes/{name}/status",
            {"status": status},
            content_type="application/merge-patch+json",
        )

    # What is counted

    @contextmanager
    def counting(self) -> Iterator[Asked]:
        """What the driver asks for within the block."""
        hosts = self._hosts.values()
        for host in hosts:
            host.logins = host.sent = host.opened = 0
            host.commands.clear()
        self.openstack.asked.clear()
        found = Asked(0, 0, 0, 0)
        yield found
        found.logins = max(host.logins for host in hosts)
        found.sent = sum(host.sent for host in hosts)
        found.files = sum(host.opened for host in hosts)
        found.heat = len(self.openstack.heard())
        for host in hosts:
            found.commands.update(_told_once(map(what, host.commands)))

    def close(self) -> None:
        """End all of it."""
        with open(self.server.home / "playbook", "w"):
            pass
        for host in self._hosts.values():
            host.close()
        stop(self._api)


#: Asked again and again until something has happened, however often that is.
_POLLS = ("take the lock", "look at the runs", "kubectl get pods")
_PREFIX = re.compile(r"env LC_ALL=C (timeout -k \S+ \S+ )?")
_SUDO = re.compile(r"sudo .*?-- env PATH=\S+ LC_ALL=C (timeout -k \S+ \S+ )?")
_NAMES = {
    "wc -l": "become root",
    "bash -s": "look at the runs",
    "bash -c": "take the lock",
}


def what(command: str) -> str:
    """What a command is for, in short."""
    line = _SUDO.sub("", _PREFIX.sub("", command))
    line = re.sub(r"/\S+/load-balancer.sh", "balancer", line)
    words = [word for word in line.split() if not word.startswith("--")]
    if words[0] == "kubectl":
        words = [word for word in words if "/" not in word]
        return " ".join(words[:3])
    text = re.sub(r"/\S*/host-\d+", "~", " ".join(line.split()))
    return _NAMES.get(" ".join(words[:2])) or text[:60]


def _told_once(commands: Iterable[str]) -> Iterator[str]:
    for command, again in itertools.groupby(commands):
        yield from (command,) if command in _POLLS else again
