# SPDX-License-Identifier: Apache-2.0
"""Heat stacks of clusters, and what is found in them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model.nodes import Machine, Role, of_role
from tacker_k8s_mgmt.topology.heat_stack import Machines, find_machines
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.samples import nested, parsed, vm

ASG = "OS::Heat::AutoScalingGroup"
RESOURCE_GROUP = "OS::Heat::ResourceGroup"
FLOATING_IP = "OS::Neutron::FloatingIP"

MASTER = vm(
    "top",
    "masterNode",
    "m1",
    {"masterNode_CP1": "10.99.0.11", "masterNode_CP2": "10.10.0.5"},
)
BALANCER = vm(
    "top",
    "externalLB",
    "lb",
    {"externalLB_CP1": "10.99.0.19", "externalLB_CP2": "10.10.0.9"},
)


def workers_of(machines: Machines) -> tuple[Machine, ...]:
    return of_role(machines.vms, Role.WORKER)


def worker(number: int, stack_id: str, **options: Any) -> list[StackResource]:
    addresses = {
        "workerNode_CP1": f"10.10.0.{number}",
        "workerNode_CP2": f"10.99.0.{number}",
    }
    return vm(stack_id, "workerNode", f"w{number}", addresses, **options)


def workers_group(
    *members: list[StackResource], kind: str = ASG, status: str = "CREATE_COMPLETE"
) -> list[StackResource]:
    """An ASG and its members, each in a stack of its own."""
    found = [nested("top", "worker_instance", kind, "asg", status)]
    for number, resources in enumerate(members):
        inner = resources[0].stack_id
        found += [nested("asg", f"member{number}", "file:///worker.yaml", inner)]
        found += resources
    return found


SIMPLE = [*MASTER, *BALANCER, *workers_group(worker(21, "w-a"), worker(22, "w-b"))]
BOTH_WORKERS = (
    Machine(Role.WORKER, "w21", "10.99.0.21", "10.10.0.21"),
    Machine(Role.WORKER, "w22", "10.99.0.22", "10.10.0.22"),
)


def find(
    resources: Sequence[StackResource], changes: dict[str, Any] | None = None
) -> Machines:
    return find_machines("top", resources, parsed(changes))


def problems(
    resources: Sequence[StackResource], changes: dict[str, Any] | None = None
) -> tuple[str, ...]:
    """Why no cluster can be built of such a stack."""
    with pytest.raises(DiscoveryError) as caught:
        find(resources, changes).require_whole()
    assert "stack top" in str(caught.value)
    return caught.value.problems


def with_changed(
    resources: Sequence[StackResource], which: str, **values: Any
) -> list[StackResource]:
    return [
        dataclasses.replace(resource, **values) if resource.name == which else resource
        for resource in resources
    ]


def template(**resources: Any) -> bytes:
    tree = {"heat_template_version": "2021-04-16", "resources": resources}
    return yaml.safe_dump(tree).encode()
