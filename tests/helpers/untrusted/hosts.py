# SPDX-License-Identifier: Apache-2.0
"""Readers of what other hosts answer, and of the files on them."""

import json
import socket
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from tacker_k8s_mgmt.features.applications import host as downloads
from tacker_k8s_mgmt.features.pod_network import probe
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model import exposure, load_balancer, nodes, playbooks
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.model.playbooks import progress_fields
from tacker_k8s_mgmt.operations.records import ClusterRecords
from tacker_k8s_mgmt.remote import vms
from tacker_k8s_mgmt.remote.ansible import cluster_directory, playbook_runner, server
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.ansible.playbook_runner import (
    PlaybookRunner,
    RunDirectories,
)
from tacker_k8s_mgmt.remote.balancer_vm import Balancer
from tacker_k8s_mgmt.remote.ssh.session import free
from tests.helpers.fakes.answers import Host
from tests.helpers.untrusted.fed import Fed, host, parsed, text


def _record_of(name: str, read: Callable[[ClusterRecords], Any]) -> Callable[..., Any]:
    def call(content: str) -> Any:
        def only(file: str) -> str | None:
            return content if file == name else None

        workdir = SimpleNamespace(path="/srv/a", read=only)
        return read(ClusterRecords(cast(Any, SimpleNamespace(workdir=workdir)), "h"))

    return call


def _progress(line: str) -> None:
    start = '{"event": "play", "name": "p", "number": 1, "time": 1}'
    lines = ['{"event":"playbook","plays":2,"time":1}', start, line, start, line]
    for progress in (
        playbooks.fold(playbooks.Progress(), lines),
        playbooks.fold(playbooks.Progress(), [line]),
    ):
        progress.where(), progress.estimate(), progress.failures
        playbooks.described(progress.failures)
        json.dumps(progress_fields(progress), allow_nan=False)


def _inventory(records: ClusterRecords) -> None:
    text = records.last_inventory()
    assert text is None or inventory.kept_logins(text) is not None
    found = inventory.parse(text or "")
    for node in found:
        nodes.member_number(node)
        str(node)
    machines = [Machine(Role.WORKER, "9", "1.1.1.9", "2.2.2.9")]
    nodes.name_nodes(machines, found)


def _balancer(content: str) -> None:
    script = b"# tacker-k8s-mgmt load-balancer contract: 3\n"
    status = Balancer(cast(Any, Host({"status": content})), script).status()
    for one in status.services:
        exposure.of_service(one)
    str(status)


def _packet(content: str) -> None:
    data = content.encode(errors="replace")[:60_000]
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
    ):
        here.bind(("127.0.0.1", 0))
        there.sendto(data, here.getsockname())
        path = probe._Path(here, "a", "b")
        probe._receive([here], {"b": path}, "t", 0)
        path.is_well()


RUN = {
    **{"run": "r", "state": "running", "rc": None, "started": 1.5, "ended": None},
    **{
        "latest": "r",
        "stamp": "s",
        "up": 9.5,
        "asked": 1.0,
        "begun": 1.0,
        "heard": 2.0,
    },
}

REQUEST = {"playbook": "cluster.yml", "digest": "d"}


def _runs(session: Any) -> None:
    view = RunDirectories("/w", "/k").look(session)
    playbook_runner._Limits(10, 10).passed(view)
    str(PlaybookRunner(lambda: session, "/w", "/k").last())


STATUS = {
    "format": 1,
    "haproxy": {"active": True, "enabled": True, "current": True},
    "udp": {"active": True},
    "api_port": 6443,
    "control_planes": [{"name": "c", "address": "1.1.1.1", "state": "UP"}],
    "workers": [{"name": "w", "address": "1.1.1.2", "state": None}],
    "services": [
        {
            **{"name": "n_a_80", "port": 80, "node_port": 30080, "protocol": "tcp"},
            "servers": [{"name": "w", "state": "UP"}],
            **{"sources": ["10.0.0.0/8"], "check_port": 1, "proxy_protocol": False},
        }
    ],
}

HOSTS = {
    "all": {
        "hosts": {
            "worker-1": {
                **{"ansible_host": "1.1.1.1", "ip": "2.2.2.2", "ansible_user": "u"},
                **{"tacker_server_id": "s", "etcd_member_name": "etcd1"},
                "tacker_aspect_id": "a",
            },
            "plane-1": {
                **{"ansible_host": "1.1.1.3", "ip": "2.2.2.3", "tacker_server_id": "p"},
                "etcd_member_name": "etcd2",
            },
        },
        "children": {"kube_node": {"hosts": {"worker-1": {}}}},
    }
}

EVENTS: Mapping[str, Mapping[str, Any]] = {
    "former": {"event": "former", "runs": 2, "plays": [1.5, 2.5], "time": 1},
    "recap": {"event": "recap", "hosts": {"n": {"failed": 1}}, "up": 5, "results": 3},
    "failed": {"event": "failed", "host": "n", "task": "t", "message": "m", "time": 1},
    "task": {"event": "task", "name": "t", "results": 1, "up": 3.5},
}

RECORDS = "operations.records."

HOST: Mapping[str, Fed] = {
    **{
        f"event {name}": parsed(dict(event), _progress, "model.playbooks.fold")
        for name, event in EVENTS.items()
    },
    "event of a former run": parsed(
        dict(EVENTS["former"]),
        _progress,
        "model.playbooks.Former.read",
        "model.playbooks._after",
        "model.playbooks._count",
    ),
    "event of the end": parsed(
        dict(EVENTS["recap"]), _progress, "model.playbooks._recap"
    ),
    "runs": host(
        {"bash -s": RUN, "request.json": REQUEST},
        _runs,
        "ansible.playbook_runner.RunDirectories.look",
        "ansible.playbook_runner.RunDirectories.record",
    ),
    "owner of a directory": host(
        {"": {"owner": "v", "path": "/w", "format": 1}},
        lambda session: ClusterDirectory(session, "/w", "vnf").owner(),
        "ansible.cluster_directory.ClusterDirectory._marker",
    ),
    "owner of a lock": parsed(
        {"operation": "a", "conductor": "b", "pid": 1, "since": 1.5, "within": 3},
        lambda line: (
            cluster_directory._described(line),
            cluster_directory._promised(line),
        ),
        "remote.ansible.cluster_directory._described",
        "remote.ansible.cluster_directory._promised",
    ),
    "load balancer": parsed(STATUS, _balancer, "model.load_balancer.parse_status"),
    "load balancer's script": text(
        "# tacker-k8s-mgmt load-balancer contract: 3\n",
        lambda script: load_balancer.unusable(script.encode(errors="replace")),
        "model.load_balancer.contract",
    ),
    "identity of a VM": text(
        'm\nb\n1700000000.5\n[{"mtu": 1500}]',
        lambda content: vms.read(
            cast(Any, Host({"": content})),
            Machine(Role.WORKER, "s", "1.1.1.1", "2.2.2.2"),
        ),
        "remote.vms._ahead",
        "remote.vms.nic_mtu",
    ),
    "MTU": parsed([{"mtu": 1500}], vms.nic_mtu),
    "free space": text(
        "12345 678 90 /srv\n",
        lambda content: free(cast(Any, Host({"": content})), "/srv"),
        "remote.ssh.session.free",
    ),
    "size of a download": text(
        "12345",
        lambda content: downloads._size(cast(Any, Host({"": content})), "/a"),
        "features.applications.host._size",
    ),
    "answer of a server": text(
        "200",
        lambda content: server._why(
            cast(Any, Host({})),
            server.Target("https://x", is_registry=True),
            Host({"": content}).run([]),
        ),
        "remote.ansible.server._why",
    ),
    "inventory": parsed(
        HOSTS,
        _record_of("hosts.yaml", _inventory),
        "kubespray.inventory._nodes_in",
        "kubespray.inventory._node",
        "model.nodes.member_number",
        "model.nodes.name_nodes",
    ),
    "variables": parsed(
        {"loadbalancer_apiserver": {"address": "1.1.1.1", "port": 6443}},
        _record_of("vars.json", ClusterRecords.api_address),
        "kubespray.variables.api_address",
    ),
    "packets between pods": parsed(
        ["t", "b", 1500, 1500],
        _packet,
        "features.pod_network.probe._receive",
    ),
    "recorded VMs": parsed(
        {"s": "1.1.1.1"},
        lambda content: vms._machines(
            cast(Any, SimpleNamespace(read=lambda name: content))
        ),
        "remote.vms._machines",
    ),
    "addresses": parsed(
        {"s": "1.1.1.1"},
        _record_of("machines.json", ClusterRecords.machines),
        f"{RECORDS}ClusterRecords.machines",
    ),
    "members": parsed(
        ["s"],
        _record_of("joined.json", ClusterRecords.joined),
        f"{RECORDS}ClusterRecords.joined",
    ),
    "MTUs": parsed(
        [1500],
        _record_of("nic_mtu.json", ClusterRecords.nic_mtus),
        f"{RECORDS}ClusterRecords.nic_mtus",
    ),
    "moving servers": parsed(
        {"s": [["ssh-ed25519", "AAAA"]]},
        _record_of("moving.json", ClusterRecords.moving),
        f"{RECORDS}ClusterRecords.moving",
    ),
    "exposures": parsed(
        [],
        _record_of("exposures.json", ClusterRecords.exposures),
        f"{RECORDS}ClusterRecords.exposures",
    ),
    "services of a load balancer": parsed(
        [{"name": "a", "port": 1, "node_port": 2, "sources": ["10.0.0.0/8"]}],
        _record_of("services.json", ClusterRecords.services),
        f"{RECORDS}_services",
    ),
    "heal": parsed(
        {
            "rebuilt": ["a"],
            "addresses": ["b"],
            "load_balancer": "c",
            "control_plane": {
                **{"name": "n", "server_id": "s", "ssh_address": "1.1.1.1"},
                **{"address": "2.2.2.2", "etcd_member_name": "etcd1", "first": False},
            },
        },
        _record_of("healing.json", ClusterRecords.healing),
        "operations.records.parse",
    ),
    "heal of the whole VNF": parsed(
        {"former": ["a"], "cleared": True},
        _record_of("whole_heal.json", ClusterRecords.whole_heal),
        "operations.records.parse_whole",
    ),
    "upgrade": parsed(
        {"version": "1.31.9", "aim": "1.32.0", "schedulable": ["a"], "batch": ["b"]},
        _record_of("upgrade.json", ClusterRecords.upgrade),
        "operations.upgrade_plan.parse_version",
    ),
}
