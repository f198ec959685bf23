# SPDX-License-Identifier: Apache-2.0
"""External connection points: those of a request, and the ports of the stack."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.nodes import ROLES, one_spelling
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.stack_resources import FLOATING_IP, PORT, StackResource

_RESOURCE_GROUP = "OS::Heat::ResourceGroup"
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True)
class Attachment:
    """A port on a network, present or requested.

    Ids and addresses are kept in Neutron's spelling, whatever a request has.

    :param name: of the Heat resource, which is the ``cpdId`` of the VNFD.
    :param network: its id or name.
    :param addresses: fixed ones; empty where a request leaves them to the VIM.
    :param floating_ips: names of the Heat resources of its floating IPs.
    """

    name: str
    network: str
    addresses: frozenset[str] = frozenset()
    floating_ips: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        network = self.network.lower() if _is_id(self.network) else self.network
        object.__setattr__(self, "network", network)
        addresses = frozenset(map(one_spelling, self.addresses))
        object.__setattr__(self, "addresses", addresses)

    @property
    def wrong_addresses(self) -> tuple[str, ...]:
        """Addresses that Neutron refuses: no IP address, or one with a zone."""
        return tuple(a for a in sorted(self.addresses) if not _is_address(a))


def _is_address(text: str) -> bool:
    try:
        network_plugins.address(text)
    except ValueError:
        return False
    return True


def attachments(resources: Sequence[StackResource]) -> tuple[Attachment, ...]:
    """The ports of a stack and of its nested stacks."""
    floating: dict[str, set[str]] = {}
    for resource in resources:
        if resource.type == FLOATING_IP:
            port_id = str(resource.attributes.get("port_id") or "")
            floating.setdefault(port_id, set()).add(resource.name)
    return tuple(
        Attachment(
            port.name,
            str(port.attributes.get("network_id") or ""),
            frozenset(
                str(fixed["ip_address"])
                for fixed in port.attributes.get("fixed_ips") or ()
            ),
            frozenset(floating.get(port.physical_id, ())),
        )
        for port in resources
        if port.type == PORT and port.attributes
    )


def changing(
    requested: Iterable[Attachment], present: Iterable[Attachment]
) -> frozenset[str]:
    """Names of the connection points that a request changes.

    Tacker changes nothing where a request repeats what is present. A network that is
    given by name counts as changed, because Neutron reports ids.
    """
    ports: dict[str, list[Attachment]] = {}
    for port in present:
        ports.setdefault(port.name, []).append(port)
    return frozenset(
        new.name
        for new in requested
        for port in ports.get(new.name, ())
        if new.network != port.network or not new.addresses <= port.addresses
    )


def unmet(
    requested: Iterable[Attachment], present: Iterable[Attachment]
) -> frozenset[str]:
    """Names of the connection points that are not as requested.

    A network that is given by name is not compared, because Neutron reports ids.
    """
    comparable = [
        replace(new, network=port.network)
        if _is_id(port.network) and not _is_id(new.network)
        else new
        for new in requested
        for port in present
        if port.name == new.name
    ]
    return changing(comparable, present)


def _is_id(network: str) -> bool:
    return bool(_ID.fullmatch(network))


def left_out(resources: Iterable[StackResource]) -> tuple[str, ...]:
    """Names of groups whose VMs' template Tacker's v1 API does not pass to Heat.

    When it updates a stack, it passes only the templates of AutoScalingGroups
    (``HOTUpdater.get_templates_from_stack``). Heat refuses the update, which Tacker
    does not notice.
    """
    return tuple(r.name for r in resources if r.type == _RESOURCE_GROUP)


def inner_points(
    params: ClusterRequest, present: Sequence[Attachment]
) -> Mapping[str, str]:
    """By connection point inside the cluster, the attribute that names it.

    Their addresses are part of the nodes' names, the etcd members and the nodes'
    connection to the API. A floating IP stands for its port.

    :param present: the ports of the stack.
    """
    return {
        name: f"{ROLES[role].parameter}.{'nic' if group.nic_cp else 'ssh'}_cp_name"
        for role, group in params.vms.items()
        for name in _ports_of(group.nic_cp or group.ssh_cp, present)
    }


def _ports_of(cp: str, present: Iterable[Attachment]) -> frozenset[str]:
    """The names of the ports behind a name in the parameters."""
    behind = frozenset(port.name for port in present if cp in port.floating_ips)
    return behind or frozenset({cp})


def entry_point(params: ClusterRequest) -> str:
    """The connection point with the address at which Tacker reaches the API."""
    return (params.load_balancer or params.control_plane).ssh_cp


def shared_addresses(
    requested: Iterable[Attachment],
    present: Sequence[Attachment],
    params: ClusterRequest,
) -> tuple[str, ...]:
    """Names of scaling groups' connection points with an address in the request.

    All VMs of the group would get the same address.

    :param present: the ports of the stack.
    """
    names = {
        port
        for group in params.node_groups.values()
        if group.aspect_id
        for cp in (group.ssh_cp, group.nic_cp or group.ssh_cp)
        for port in _ports_of(cp, present)
    }
    return tuple(new.name for new in requested if new.addresses and new.name in names)
