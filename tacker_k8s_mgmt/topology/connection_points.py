"""External connection points: what a request asks for, and what is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import UUID

from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import StackResource

_PORT = "OS::Neutron::Port"
_FLOATING_IP = "OS::Neutron::FloatingIP"
_RESOURCE_GROUP = "OS::Heat::ResourceGroup"


@dataclass(frozen=True)
class Attachment:
    """A port on a network, as it is or as a request wants it.

    :param name: of the Heat resource, which is the ``cpdId`` of the VNFD.
    :param network: its id or name.
    :param addresses: fixed ones; empty where a request leaves them to the VIM.
    :param floating_ips: names of the Heat resources of floating IPs in front of it.
    """

    name: str
    network: str
    addresses: frozenset[str] = frozenset()
    floating_ips: frozenset[str] = frozenset()


def attachments(resources: Sequence[StackResource]) -> tuple[Attachment, ...]:
    """The ports of a stack; of a group's members, one for each of them."""
    in_front: dict[str, set[str]] = {}
    for one in resources:
        if one.type == _FLOATING_IP:
            behind = str(one.attributes.get("port_id") or "")
            in_front.setdefault(behind, set()).add(one.name)
    return tuple(
        Attachment(
            one.name,
            str(one.attributes.get("network_id") or ""),
            frozenset(
                str(fixed["ip_address"])
                for fixed in one.attributes.get("fixed_ips") or ()
            ),
            frozenset(in_front.get(one.physical_id, ())),
        )
        for one in resources
        if one.type == _PORT and one.attributes
    )


def changing(
    asked: Iterable[Attachment], present: Iterable[Attachment]
) -> frozenset[str]:
    """Names of the connection points that would not be as they are.

    A request may repeat what is: Tacker changes nothing then. A network that is named
    otherwise than Neutron does (by its name) counts as another one.
    """
    now: dict[str, list[Attachment]] = {}
    for one in present:
        now.setdefault(one.name, []).append(one)
    return frozenset(
        wanted.name
        for wanted in asked
        for one in now.get(wanted.name, ())
        if wanted.network != one.network or not wanted.addresses <= one.addresses
    )


def unmet(asked: Iterable[Attachment], present: Iterable[Attachment]) -> frozenset[str]:
    """Names of the connection points that are not as a request wants them.

    A network that is named otherwise than Neutron does, which has ids, tells nothing.
    """
    known = [
        replace(wanted, network=one.network)
        if _is_id(one.network) and not _is_id(wanted.network)
        else wanted
        for wanted in asked
        for one in present
        if one.name == wanted.name
    ]
    return changing(known, present)


def _is_id(network: str) -> bool:
    try:
        UUID(network)
    except ValueError:
        return False
    return True


def left_out(resources: Iterable[StackResource]) -> tuple[str, ...]:
    """Names of groups whose VMs' template Tacker's v1 API does not give to Heat.

    To change a stack it hands Heat the templates that it finds in there, and looks for
    those of AutoScalingGroups only (``HOTUpdater.get_templates_from_stack``). Heat
    refuses what is left, and Tacker goes on as if it had not.
    """
    return tuple(one.name for one in resources if one.type == _RESOURCE_GROUP)


def inner_points(
    params: InstallParams, present: Iterable[Attachment]
) -> Mapping[str, str]:
    """The attributes that name a connection point inside the cluster, by its name.

    Names of nodes, etcd's members and every node's way to the API hang on their
    addresses. A floating IP stands for the port behind it.

    :param present: the ports of the stack.
    """
    groups = {
        "master_node": params.control_plane,
        "worker_node": params.workers,
        "external_lb_param": params.load_balancer,
    }
    ports = tuple(present)
    return MappingProxyType(
        {
            name: f"{structure}.{'nic' if group.nic_cp else 'ssh'}_cp_name"
            for structure, group in groups.items()
            if group
            for name in _ports_of(group.nic_cp or group.ssh_cp, ports)
        }
    )


def _ports_of(cp: str, present: Iterable[Attachment]) -> frozenset[str]:
    """The names of the ports that a name in the parameters leads to."""
    behind = frozenset(one.name for one in present if cp in one.floating_ips)
    return behind or frozenset({cp})


def entry_point(params: InstallParams) -> str:
    """The connection point at whose address Tacker reaches the cluster's API."""
    if params.load_balancer:
        return params.load_balancer.ssh_cp
    return params.control_plane.ssh_cp


def shared_addresses(
    asked: Iterable[Attachment], present: Iterable[Attachment], params: InstallParams
) -> tuple[str, ...]:
    """Names of connection points of scaling groups with an address in the request.

    Every VM of the group would have to have it.

    :param present: the ports of the stack.
    """
    ports = tuple(present)
    names = {
        port
        for group in (params.control_plane, params.workers)
        if group.aspect_id
        for cp in (group.ssh_cp, group.nic_cp or group.ssh_cp)
        for port in _ports_of(cp, ports)
    }
    return tuple(one.name for one in asked if one.addresses and one.name in names)
