"""What the parameters say about the VMs that are to be found in the Heat stack."""

from collections.abc import Iterator
from dataclasses import dataclass

from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request.params import InstallParams


@dataclass(frozen=True)
class Wanted:
    """What the parameters say about the VMs of one role, or of one aspect of it.

    :param attribute: the structure of the request that says so.
    :param nic_cp: where it is not given, the same as *ssh_cp*.
    :param aspect_id: the group that the VMs are in; None: the stack is searched.
    :param own_labels: whether the aspect has labels of its own; its group must exist.
    :param besides: groups of other aspects, whose VMs are none of these.
    :param compute_host: whether it has to be known on which one a VM is.
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


def wanted_vms(params: InstallParams) -> Iterator[Wanted]:
    """Everything that is to be found: control planes, workers, load balancer."""
    family, planes = params.address_family, params.control_plane
    yield Wanted(
        *(Role.CONTROL_PLANE, "master_node"),
        *(planes.ssh_cp, planes.nic_cp or planes.ssh_cp),
        *(family, planes.aspect_id),
        compute_host=bool(planes.compute_host_label),
    )
    yield from _workers(params)
    balancer = params.load_balancer
    if balancer:
        cps = balancer.ssh_cp, balancer.nic_cp or balancer.ssh_cp
        yield Wanted(Role.LOAD_BALANCER, "external_lb_param", *cps, family)


def _workers(params: InstallParams) -> Iterator[Wanted]:
    group, family = params.workers, params.address_family
    told = bool(group.compute_host_label)
    own = frozenset(aspect.aspect_id for aspect in group.aspects)
    if not own or (group.aspect_id and group.aspect_id not in own):
        yield Wanted(
            *(Role.WORKER, "worker_node"),
            *(group.ssh_cp, group.nic_cp or group.ssh_cp),
            *(family, group.aspect_id),
            besides=own,
            compute_host=told,
        )
    for number, aspect in enumerate(group.aspects):
        ssh_cp = aspect.ssh_cp or group.ssh_cp
        yield Wanted(
            *(Role.WORKER, f"worker_node.aspects.{number}"),
            *(ssh_cp, aspect.nic_cp or group.nic_cp or ssh_cp),
            *(family, aspect.aspect_id),
            own_labels=True,
            compute_host=told,
        )
