# SPDX-License-Identifier: Apache-2.0
"""Requests, stacks and golden files that the tests of ``cluster`` share."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.request import reader, structure
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.stack_resources import StackResource

GOLDEN = Path(__file__).parent / "golden"

SIMPLE: dict[str, Any] = {
    "vim_name": "kubernetes_vim",
    "ansible": {
        "ip_address": "10.99.0.5",
        "username": "ansible",
        "password": "ans-s3cret",
        "kubespray_root_path": "/opt/kubespray",
        "transferring_inventory_path": "/home/ansible/clusters/simple",
        "venv_path": "/opt/kubespray-venv",
    },
    "master_node": {
        "ssh_cp_name": "masterNode_CP1",
        "nic_cp_name": "masterNode_CP2",
        "username": "ubuntu",
        "password": "cp-s3cret",
        "pod_cidr": "10.233.64.0/18",
        "cluster_cidr": "10.233.0.0/18",
    },
    "worker_node": {
        "aspect_id": "worker_instance",
        "ssh_cp_name": "workerNode_CP2",
        "nic_cp_name": "workerNode_CP1",
        "username": "ubuntu",
        "password": "worker-s3cret",
    },
    "external_lb_param": {
        "ssh_cp_name": "externalLB_CP1",
        "nic_cp_name": "externalLB_CP2",
        "ssh_username": "ubuntu",
        "ssh_password": "lb-s3cret",
        "script_path": "./Scripts/install_external_lb.sh",
    },
}

REMOVED = object()

#: A cluster of IPv6, whose pods and services have kubespray's own networks.
IPV6 = {
    "address_family": "ipv6",
    "master_node.pod_cidr": REMOVED,
    "master_node.cluster_cidr": REMOVED,
}

#: What a private key's text looks like; none of these logs in anywhere.
KEY = (
    "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    "b3BlbnNzaC1rZXktdjEAAAAAsecret1\n"
    "c2Vjb25kLWxpbmUtb2YtdGhlLWtleQsecret2\n"
    "-----END OPENSSH PRIVATE KEY-----\n"
)


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The simple parameters with dotted attributes set or removed."""
    body = copy.deepcopy(SIMPLE)
    for dotted, value in changes.items():
        *outer, last = dotted.split(".")
        place = body
        for name in outer:
            if not isinstance(place.get(name), dict):
                place[name] = {}
            place = place[name]
        if value is REMOVED:
            place.pop(last, None)
        else:
            place[last] = value
    return body


def request(body: Any) -> dict[str, Any]:
    """``additionalParams`` around a ``k8s_cluster_installation_param``."""
    return {
        "k8s_cluster_installation_param": body,
        "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
    }


def read(params: Any, *arguments: Any, **options: Any) -> ClusterRequest:
    """The model of ``additionalParams``; the rest is for the reader."""
    made = reader.RequestReader(*arguments, **options).read(params)
    assert made is not None
    return made


def updated(
    stored: Any, change: Any, *arguments: Any, **options: Any
) -> ClusterRequest:
    """The model of a later request; the rest is for the reader."""
    made = reader.RequestReader(*arguments, **options).update(stored, change)
    assert made is not None
    return made


def parsed(changes: dict[str, Any] | None = None, **options: Any) -> ClusterRequest:
    """The simple parameters, with changes, as the model."""
    return read(request(changed(changes or {})), **options)


def refused(call: Callable[..., Any], *args: Any, **named: Any) -> tuple[str, ...]:
    """The problems of a request that a call refuses."""
    with pytest.raises(ParamError) as caught:
        call(*args, **named)
    return caught.value.problems


def problems(body: Any, **options: Any) -> tuple[str, ...]:
    """The problems of a body of the parameters."""
    return refused(read, request(body), **options)


def camelised(value: Any) -> Any:
    """A request as Tacker's GET view shows it."""
    if isinstance(value, dict):
        return {
            structure.camel(name): camelised(inner) for name, inner in value.items()
        }
    return value


def machine(role: Role, number: int) -> Machine:
    """A VM on 10.10.0.0/24, reached on 10.99.0.0/24."""
    return Machine(
        role=role,
        server_id=f"server-{number}",
        ssh_address=f"10.99.0.{number}",
        address=f"10.10.0.{number}",
    )


def port(
    stack_id: str, name: str, server: str, *addresses: str, status: str = ""
) -> StackResource:
    """A Neutron port of a server."""
    return StackResource(
        stack_id=stack_id,
        name=name,
        type="OS::Neutron::Port",
        physical_id=f"port-{name}-{server}",
        status=status or "CREATE_COMPLETE",
        attributes={
            "device_id": server,
            "fixed_ips": [
                {"subnet_id": "s", "ip_address": address} for address in addresses
            ],
        },
    )


def vm(
    stack_id: str,
    name: str,
    server: str,
    ports: dict[str, str],
    *,
    status: str = "CREATE_COMPLETE",
) -> list[StackResource]:
    """A server and its ports, by name and address."""
    compute = StackResource(stack_id, name, "OS::Nova::Server", server, status=status)
    return [
        compute,
        *(port(stack_id, name, server, address) for name, address in ports.items()),
    ]


def nested(
    stack_id: str, name: str, kind: str, inner: str, status: str = "CREATE_COMPLETE"
) -> StackResource:
    """A resource that is a stack of its own."""
    return StackResource(stack_id, name, kind, inner, status, nested_stack_id=inner)


def assert_golden(name: str, text: str) -> None:
    """Compare with a golden file; ``UPDATE_GOLDEN=1`` writes it instead."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def as_json(values: Any) -> str:
    """Variables as they are written to the Ansible server."""
    return json.dumps(values, indent=2, sort_keys=True) + "\n"


BESIDE = {
    "several documents": b"a: 1\n---\nb: 2\n",
    "a list": b"- a\n",
    "nothing": b"",
    "a tag": b"!Ref a\n",
    "no text": b"\xff",
    "no topology": b"topology_template:\n",
    "no properties": b"topology_template: {substitution_mappings: {properties: }}\n",
}
