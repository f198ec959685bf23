"""The stack that Heat would make of a Base HOT, as far as the driver looks at it.

So what the driver says when it looks for the VMs is known before there are any.
"""

import contextlib
import ipaddress
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.csar import hot
from tacker_k8s_mgmt.csar.tree import dig, mapping, sequence
from tacker_k8s_mgmt.topology.heat_stack import StackResource

_SERVER = "OS::Nova::Server"
PORT = "OS::Neutron::Port"
_FLOATING_IP = "OS::Neutron::FloatingIP"
_ASSOCIATION = "OS::Neutron::FloatingIPAssociation"
_EXTERNAL = (
    ipaddress.ip_network("192.0.2.0/24"),
    ipaddress.ip_network("2001:db8::/64"),
)

_Values = Mapping[str, Any]


def stack(
    base: hot.BaseHot, instances: Mapping[str, int], parameters: _Values
) -> tuple[StackResource, ...]:
    """Every resource of the stack and of those nested in it, all complete.

    :param instances: how many VMs of each VDU there are in a group.
    :param parameters: of the Base HOT, where the request gives other values than the
        defaults.
    """
    return tuple(_Imagination(base, instances, parameters).of(base.top, "stack", {}))


class _Imagination:
    def __init__(
        self, base: hot.BaseHot, instances: Mapping[str, int], parameters: _Values
    ) -> None:
        self._base = base
        self._instances = instances
        defaults = {
            name: schema["default"]
            for name, schema in base.top.parameters.items()
            if "default" in schema
        }
        self._parameters = {**defaults, **parameters}
        self._counter = itertools.count(1)

    def of(
        self, template: hot.Template, stack_id: str, given: _Values
    ) -> Iterator[StackResource]:
        """The resources of one stack.

        :param given: what the stack around it fills in for the parameters.
        """
        definitions = {
            name: {**definition, "properties": self._properties(definition, given)}
            for name, definition in template.resources.items()
        }
        servers = _servers_by_port(definitions, stack_id)
        behind = _ports_by_floating_ip(definitions, stack_id)
        for name, definition in definitions.items():
            physical_id = f"{stack_id}/{name}"
            used = self._base.use(definition)
            nested = self._base.nested.get(str(used["type"])) if used else None
            yield StackResource(
                stack_id=stack_id,
                name=name,
                type=str(definition["type"]),
                physical_id=physical_id,
                status="CREATE_COMPLETE",
                nested_stack_id=physical_id if nested else "",
                attributes=self._attributes(
                    definition, servers.get(name, ""), behind.get(name, "")
                ),
            )
            if used and nested:
                yield from self._nested(definition, used, nested, physical_id)

    def _properties(self, definition: _Values, given: _Values) -> _Values:
        return mapping(hot.filled(mapping(definition.get("properties")), given))

    def _nested(
        self,
        definition: _Values,
        used: _Values,
        template: hot.Template,
        stack_id: str,
    ) -> Iterator[StackResource]:
        given = mapping(used.get("properties"))
        if definition["type"] not in hot.GROUPS:
            yield from self.of(template, stack_id, given)
            return
        for number in range(self._members(template)):
            member = f"{stack_id}/{number}"
            yield StackResource(
                stack_id=stack_id,
                name=f"member{number}",
                type=template.name,
                physical_id=member,
                status="CREATE_COMPLETE",
                nested_stack_id=member,
            )
            yield from self.of(template, member, given)

    def _members(self, template: hot.Template) -> int:
        vdus = [
            name
            for name, definition in template.resources.items()
            if definition["type"] == _SERVER
        ]
        return max((self._instances.get(vdu, 1) for vdu in vdus), default=1)

    def _attributes(self, definition: _Values, server_id: str, port_id: str) -> _Values:
        number = next(self._counter)
        properties = mapping(definition["properties"])
        if definition["type"] == _FLOATING_IP:
            address = str(_EXTERNAL[0][number % 254 + 1])
            return {"floating_ip_address": address, "port_id": port_id}
        if definition["type"] == _SERVER:
            return {"hostId": "compute-host"}
        if definition["type"] != PORT:
            return {}
        networks = self._networks(properties) or _EXTERNAL
        addresses = [net[(number + 9) % net.num_addresses] for net in networks]
        return {
            "device_id": server_id,
            "fixed_ips": [{"ip_address": str(address)} for address in addresses],
            "allowed_address_pairs": self._filled(properties, "allowed_address_pairs"),
            "port_security_enabled": self._secured(properties),
        }

    def _filled(self, properties: _Values, name: str) -> Any:
        return hot.filled(properties.get(name), self._parameters)

    def _secured(self, port: _Values) -> Any:
        """What the port says about port security, or else its network."""
        own = self._filled(port, "port_security_enabled")
        network = self._base.top.resources.get(dig(port, "network", "get_resource"))
        around = mapping(dig(network, "properties"))
        return self._filled(around, "port_security_enabled") if own is None else own

    def _networks(self, port: _Values) -> list[Any]:
        """The subnets of the template that the port asks for; none: an external one."""
        found = []
        for entry in sequence(port.get("fixed_ips")):
            subnet = dig(entry, "subnet", "get_resource")
            cidr = dig(self._base.top.resources.get(subnet), "properties", "cidr")
            cidr = hot.filled(cidr, self._parameters)
            with contextlib.suppress(ValueError):
                found.append(ipaddress.ip_network(str(cidr), strict=False))
        return found


def _servers_by_port(definitions: Mapping[str, _Values], stack_id: str) -> _Values:
    return {
        str(dig(entry, "port", "get_resource")): f"{stack_id}/{name}"
        for name, definition in definitions.items()
        if definition["type"] == _SERVER
        for entry in sequence(dig(definition, "properties", "networks"))
    }


def _ports_by_floating_ip(
    definitions: Mapping[str, _Values], stack_id: str
) -> Mapping[str, str]:
    """The port behind each floating IP, which may be told by a resource between."""
    found = {}
    for name, definition in definitions.items():
        port = dig(definition, "properties", "port_id", "get_resource")
        if definition["type"] == _ASSOCIATION:
            name = dig(definition, "properties", "floatingip_id", "get_resource")
        if port and definition["type"] in (_FLOATING_IP, _ASSOCIATION):
            found[str(name)] = f"{stack_id}/{port}"
    return found
