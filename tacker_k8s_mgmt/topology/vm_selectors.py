"""How the parameters select the cluster's VMs in the Heat stack."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tacker_k8s_mgmt.model.nodes import Role
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


def vm_selectors(params: InstallParams) -> Iterator[VmSelector]:
    """The selectors of control planes, workers and load balancer."""
    planes, balancer = params.control_plane, params.load_balancer
    yield VmSelector(
        role=Role.CONTROL_PLANE,
        attribute="master_node",
        ssh_cp=planes.ssh_cp,
        nic_cp=planes.nic_cp or planes.ssh_cp,
        family=params.address_family,
        aspect_id=planes.aspect_id,
        compute_host=bool(planes.compute_host_label),
    )
    yield from _workers(params)
    if balancer:
        yield VmSelector(
            role=Role.LOAD_BALANCER,
            attribute="external_lb_param",
            ssh_cp=balancer.ssh_cp,
            nic_cp=balancer.nic_cp or balancer.ssh_cp,
            family=params.address_family,
        )


def _workers(params: InstallParams) -> Iterator[VmSelector]:
    group = params.workers
    own = frozenset(aspect.aspect_id for aspect in group.aspects)
    others = VmSelector(
        role=Role.WORKER,
        attribute="worker_node",
        ssh_cp=group.ssh_cp,
        nic_cp=group.nic_cp or group.ssh_cp,
        family=params.address_family,
        aspect_id=group.aspect_id,
        besides=own,
        compute_host=bool(group.compute_host_label),
    )
    if not own or (group.aspect_id and group.aspect_id not in own):
        yield others
    for number, aspect in enumerate(group.aspects):
        ssh_cp = aspect.ssh_cp or group.ssh_cp
        yield replace(
            others,
            attribute=f"worker_node.aspects.{number}",
            ssh_cp=ssh_cp,
            nic_cp=aspect.nic_cp or group.nic_cp or ssh_cp,
            aspect_id=aspect.aspect_id,
            besides=frozenset(),
            own_labels=True,
        )
