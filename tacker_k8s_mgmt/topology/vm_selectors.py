# SPDX-License-Identifier: Apache-2.0
"""How the parameters select the cluster's VMs in the Heat stack."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request.models import (
    SPECIFIED_BALANCER,
    LoadBalancer,
    NodeGroup,
)
from tacker_k8s_mgmt.request.params import InstallParams


@dataclass(frozen=True)
class VmSelector:
    """The VMs of one role, or of one scaling aspect of it.

    :param attribute: the structure of the request that selects them.
    :param ssh_cp: the resource with the address for SSH.
    :param nic_cp: the resource with the address in the cluster.
    :param family: ``ipv4`` or ``ipv6``, of the address in the cluster.
    :param aspect_id: the group of the VMs; None to search the whole stack.
    :param own_labels: whether the aspect has labels of its own; its group must exist.
    :param besides: groups of other aspects, whose VMs are excluded.
    :param compute_host: whether the compute host of the VMs is needed.
    """

    role: Role
    attribute: str
    ssh_cp: str
    nic_cp: str
    family: str
    aspect_id: str | None = None
    own_labels: bool = False
    besides: frozenset[str] = frozenset()
    compute_host: bool = False


def as_named(params: InstallParams, names: Container[str]) -> InstallParams:
    """The parameters with the load balancer's port by the name that the stack has.

    :param names: of the resources in the stack.
    """
    balancer, (specified, port) = params.load_balancer, SPECIFIED_BALANCER
    if balancer is None or specified in names or port not in names:
        return params
    names_of = {"ssh_cp": balancer.ssh_cp, "nic_cp": balancer.nic_cp}
    update = {key: port for key, name in names_of.items() if name == specified}
    balancer = balancer.model_copy(update=update)
    return params.model_copy(update={"load_balancer": balancer})


def vm_selectors(params: InstallParams) -> Iterator[VmSelector]:
    """The selectors of control planes, workers and load balancer."""
    yield _selector(Role.CONTROL_PLANE, "master_node", params.control_plane, params)
    yield from _workers(params)
    if params.load_balancer:
        group = params.load_balancer
        yield _selector(Role.LOAD_BALANCER, "external_lb_param", group, params)


def _selector(
    role: Role, attribute: str, group: NodeGroup | LoadBalancer, params: InstallParams
) -> VmSelector:
    nodes = group if isinstance(group, NodeGroup) else None
    return VmSelector(
        role=role,
        attribute=attribute,
        ssh_cp=group.ssh_cp,
        nic_cp=group.nic_cp or group.ssh_cp,
        family=params.address_family,
        aspect_id=nodes.aspect_id if nodes else None,
        compute_host=bool(nodes and nodes.compute_host_label),
    )


def _workers(params: InstallParams) -> Iterator[VmSelector]:
    group = params.workers
    selector = _selector(Role.WORKER, "worker_node", group, params)
    own = frozenset(aspect.aspect_id for aspect in group.aspects)
    if not own or (group.aspect_id and group.aspect_id not in own):
        yield replace(selector, besides=own)
    for number, aspect in enumerate(group.aspects):
        ssh_cp = aspect.ssh_cp or group.ssh_cp
        yield replace(
            selector,
            attribute=f"worker_node.aspects.{number}",
            ssh_cp=ssh_cp,
            nic_cp=aspect.nic_cp or group.nic_cp or ssh_cp,
            aspect_id=aspect.aspect_id,
            own_labels=True,
        )
