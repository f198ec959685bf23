# SPDX-License-Identifier: Apache-2.0
"""Stacks as Heat would describe them, for the driver's search before Heat has any."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.model import networks
from tacker_k8s_mgmt.model.tree import dig, mapping, sequence
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.heat_stack import StackResource

_FLOATING_IP = "OS::Neutron::FloatingIP"
_ASSOCIATION = "OS::Neutron::FloatingIPAssociation"
_EXTERNAL = (
    networks.network("192.0.2.0/24"),
    networks.network("2001:db8::/64"),
)

_Values = Mapping[str, Any]
_NONE: _Values = {}
#: Nova's attributes of every server.
SERVER: _Values = {"hostId": "compute-host"}


def complete(
    stack_id: str,
    name: str,
    kind: str,
    physical_id: str,
    attributes: _Values = _NONE,
    *,
    is_stack: bool = False,
) -> StackResource:
    """A resource that Heat has created.

    :param is_stack: whether its physical id is that of a nested stack.
    """
    nested = physical_id if is_stack else ""
    return StackResource(
        stack_id, name, kind, physical_id, "CREATE_COMPLETE", nested, attributes
    )


def port(server_id: str, addresses: Iterable[object]) -> dict[str, Any]:
    """Neutron's attributes of a server's port."""
    fixed_ips = [{"ip_address": str(address)} for address in addresses]
    return {"device_id": server_id, "fixed_ips": fixed_ips}


def stack(
    base: base_hot.BaseHot, instances: Mapping[str, int], parameters: _Values
) -> tuple[StackResource, ...]:
    """Every resource of the stack and of those nested in it, all complete.

    :param instances: how many VMs of each VDU there are in a group.
    :param parameters: of the Base HOT, where the request gives other values than the
        defaults.
    """

    def members(template: base_hot.Template) -> int:
        return max((instances.get(vdu, 1) for vdu in template.vdus), default=1)

    resources = tuple(base.resources(members))
    return tuple(_Simulation(base.top, resources, parameters).described())


class _Simulation:
    """The resources of a Base HOT with the attributes that Heat would show."""

    def __init__(
        self,
        top: base_hot.Template,
        resources: Sequence[base_hot.Resource],
        parameters: _Values,
    ) -> None:
        defaults = {
            name: schema["default"]
            for name, schema in top.parameters.items()
            if "default" in schema
        }
        self._top = top.resources
        self._resources = resources
        self._parameters = {**defaults, **parameters}
        self._numbers = itertools.count(1)
        # Both by path, as are their values.
        self._server_of_port = dict(self._attachments())
        self._port_of_floating_ip = dict(self._associations())

    def described(self) -> Iterator[StackResource]:
        for resource in self._resources:
            yield complete(
                *(resource.stack_id, resource.name, resource.type, resource.path),
                self._attributes(resource),
                is_stack=resource.nested is not None,
            )

    def _attachments(self) -> Iterator[tuple[str, str]]:
        for resource in self._resources:
            if resource.type == base_hot.SERVER:
                for entry in sequence(resource.properties.get("networks")):
                    yield (
                        f"{resource.stack_id}/{dig(entry, 'port', 'get_resource')}",
                        resource.path,
                    )

    def _associations(self) -> Iterator[tuple[str, str]]:
        """Floating IPs with their ports, also where a third resource joins the two."""
        for resource in self._resources:
            behind = dig(resource.properties, "port_id", "get_resource")
            name = resource.name
            if resource.type == _ASSOCIATION:
                name = dig(resource.properties, "floatingip_id", "get_resource")
            if behind and resource.type in (_FLOATING_IP, _ASSOCIATION):
                yield f"{resource.stack_id}/{name}", f"{resource.stack_id}/{behind}"

    def _attributes(self, resource: base_hot.Resource) -> _Values:
        if resource.type == _FLOATING_IP:
            return {
                "floating_ip_address": str(_EXTERNAL[0][next(self._numbers) % 254 + 1]),
                "port_id": self._port_of_floating_ip.get(resource.path, ""),
            }
        if resource.type == base_hot.SERVER:
            return SERVER
        if resource.type != base_hot.PORT:
            return _NONE
        subnets = self._subnets(resource.properties) or _EXTERNAL
        number = next(self._numbers) + 9
        addresses = [network[number % network.num_addresses] for network in subnets]
        return {
            **port(self._server_of_port.get(resource.path, ""), addresses),
            "allowed_address_pairs": self._value(
                resource.properties, "allowed_address_pairs"
            ),
            "port_security_enabled": self._secured(resource.properties),
        }

    def _value(self, properties: _Values, name: str) -> Any:
        return base_hot.filled(properties.get(name), self._parameters)

    def _secured(self, properties: _Values) -> Any:
        """The port security of a port, which is that of its network by default."""
        own = self._value(properties, "port_security_enabled")
        network = self._top.get(dig(properties, "network", "get_resource"))
        around = mapping(dig(network, "properties"))
        return self._value(around, "port_security_enabled") if own is None else own

    def _subnets(self, properties: _Values) -> list[Any]:
        """The template's subnets of a port; none on an external network."""
        found = []
        for entry in sequence(properties.get("fixed_ips")):
            subnet = self._top.get(dig(entry, "subnet", "get_resource"))
            cidr = self._value(mapping(dig(subnet, "properties")), "cidr")
            with contextlib.suppress(ValueError):
                found.append(networks.network(str(cidr)))
        return found
