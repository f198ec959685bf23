# SPDX-License-Identifier: Apache-2.0
"""What an instantiate request has OpenStack create, and which of the VMs is which.

VNFD and Base HOT of the package that the request is for tell both.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model.nodes import Role, role_of
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, sequence
from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.tools.csar import archive, request_check, vnfd
from tacker_k8s_mgmt.tools.csar.body import Request, external_cps
from tacker_k8s_mgmt.tools.csar.parts import SCRIPTS
from tacker_k8s_mgmt.tools.csar.tacker_api import Api, of_package
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.heat_stack import vm_selectors

VOLUME = "OS::Cinder::Volume"
_NETWORK = "OS::Neutron::Net"
_BY_HEAT = re.compile("-[a-z0-9]{12}$")
_PAIRS = "allowed_address_pairs"
_SECURITY_GROUP = "OS::Neutron::SecurityGroup"
#: Resource types by the name of their quota.
_COUNTED: Mapping[str, str] = {
    base_hot.SERVER: "instances",
    "OS::Nova::ServerGroup": "server_groups",
    _NETWORK: "networks",
    "OS::Neutron::Subnet": "subnets",
    base_hot.PORT: "ports",
    "OS::Neutron::FloatingIP": "floating_ips",
    _SECURITY_GROUP: "security_groups",
    VOLUME: "volumes",
}
# Neutron gives each security group one for IPv4 and one for IPv6, both outwards.
_OWN_RULES = 2


@dataclass(frozen=True)
class Vdu:
    """The VMs of one VDU.

    :param role: None if the parameters do not lead to them.
    :param key: name of the key pair; "" without one.
    """

    name: str
    role: Role | None
    image: str
    flavor: str
    key: str
    number: int


@dataclass(frozen=True)
class Demand:
    """What there will be, and what has to be there before.

    :param counts: how many of each kind, by the name of its quota.
    :param networks: existing networks, by external connection point.
    :param filtered: connection points whose ports have security groups or address
        pairs, for which Neutron needs port security.
    :param versions: of the Base HOT's templates.
    :param types: of the resources in them.
    :param has_pairs: whether a port has address pairs.
    """

    vdus: tuple[Vdu, ...]
    counts: Mapping[str, int]
    networks: Mapping[str, str]
    filtered: frozenset[str]
    versions: frozenset[str]
    types: frozenset[str]
    has_pairs: bool = False


@dataclass(frozen=True)
class Package:
    """The flavour of a package that a request is for.

    :param vnfd_id: of its VNFD; "" if that names none.
    """

    flavour: vnfd.Flavour
    base: base_hot.BaseHot
    api: Api
    vnfd_id: str = ""

    def makes(self, network: str) -> bool:
        """Whether a network is one that a stack of this package has made.

        Heat names it ``STACK-RESOURCE-`` and twelve letters and digits, unless the
        template has a name for it.

        :param network: its name.
        """
        made = _BY_HEAT.sub("", network)
        return any(
            made == name or made.endswith(f"-{name}")
            for name, resource in self.base.top.resources.items()
            if resource["type"] == _NETWORK
        )


def package(files: Mapping[str, bytes], flavour_id: str = "") -> Package:
    """Read a flavour of a package, as far as it is needed here.

    :param files: contents by path in the package.
    :param flavour_id: "" for the only one.
    :raises PackageError: it is not there, or cannot be used.
    """
    with archive.unpacked(files) as root:
        known = {one.id: one for one in vnfd.flavours(root / "Definitions")}
        if not flavour_id and len(known) == 1:
            (flavour_id,) = known
        if flavour_id not in known:
            listed = ", ".join(known) or "none"
            problem = f"there is no such flavour in the package (there are: {listed})"
            raise PackageError(flavour_id, [problem])
        base, problems = base_hot.read(files, flavour_id)
        if base is None:
            raise PackageError(flavour_id, problems)
        vnfd_id = vnfd.id_in(files)
        return Package(known[flavour_id], base, of_package(files), vnfd_id)


def networks(request: Request) -> dict[str, str]:
    """The existing networks of a request, by external connection point; no blanks."""
    return {
        str(cp.get("cpdId")): str(mapping(link).get("resourceId"))
        for link in sequence(request.body.get("extVirtualLinks"))
        for cp in external_cps({"extVirtualLinks": [link]})
        if not structure.is_in(mapping(link).get("resourceId"))
    }


def of_request(request: Request, params: ClusterRequest, source: Package) -> Demand:
    """What an instantiate request makes.

    :param source: what it is for.
    """
    flavour, base = source.flavour, source.base
    level = str(request.body.get("instantiationLevelId") or "")
    resources = _resources(source, level, request.additional_params)
    ports = [r for r in resources if r.type == base_hot.PORT]
    return Demand(
        tuple(_vdus(resources, flavour, _roles(params, flavour))),
        _counts(resources),
        networks(request),
        frozenset(port.name for port in ports if _is_filtered(port)),
        frozenset(one.version for one in (base.top, *base.nested.values())),
        frozenset(r.type for r in resources if r.type.startswith("OS::")),
        any(port.properties.get(_PAIRS) for port in ports),
    )


def vdus(source: Package) -> tuple[Vdu, ...]:
    """The VDUs of a package at its default level, whatever the request is."""
    return tuple(_vdus(_resources(source, "", {}), source.flavour, {}))


def _resources(
    source: Package, level: str, parameters: Mapping[str, Any]
) -> tuple[base_hot.Resource, ...]:
    """The resources of the stack, with the values of the Base HOT's parameters.

    :param level: "" for the default one.
    """
    top = source.base.top.parameters
    defaults = {n: s["default"] for n, s in top.items() if "default" in s}
    level = level or next(iter(source.flavour.levels), "")
    instances = source.flavour.instances(level)

    def members(template: base_hot.Template) -> int:
        return max((instances.get(vdu, 1) for vdu in template.vdus), default=1)

    given = {n: value for n, value in parameters.items() if not structure.is_in(value)}
    values = {**defaults, **given}
    return tuple(source.base.resources(members, parameters=values))


def _roles(params: ClusterRequest, flavour: vnfd.Flavour) -> dict[str, Role]:
    """The roles of VDUs, by the connection points that select their VMs."""
    points = flavour.of_type(vnfd.CP)
    return {
        str(flavour.requirement(cp, "virtual_binding")): selector.role
        for selector in vm_selectors(params)
        for cp in (selector.ssh_cp, selector.nic_cp)
        if cp in points
    }


def _vdus(
    resources: tuple[base_hot.Resource, ...],
    flavour: vnfd.Flavour,
    roles: dict[str, Role],
) -> Iterator[Vdu]:
    servers = [r for r in resources if r.type == base_hot.SERVER]
    numbers = Counter(server.name for server in servers)
    for name, server in {server.name: server for server in servers}.items():
        node = flavour.nodes.get(name, {})

        def value(key: str, *path: str, node: Any = node, server: Any = server) -> str:
            own = server.properties.get(key)
            found = own if isinstance(own, str) else dig(node, *path) if path else ""
            return str(found or "")

        yield Vdu(
            name,
            roles.get(name),
            value("image", *vnfd.IMAGE),
            value("flavor", *vnfd.FLAVOR),
            value("key_name"),
            numbers[name],
        )


def _counts(resources: tuple[base_hot.Resource, ...]) -> dict[str, int]:
    counts = Counter(_COUNTED[r.type] for r in resources if r.type in _COUNTED)
    for resource in resources:
        if resource.type == _SECURITY_GROUP:
            own = len(sequence(resource.properties.get("rules")))
            counts["security_group_rules"] += own + _OWN_RULES
        size = resource.properties.get("size")
        if resource.type == VOLUME and isinstance(size, int):
            counts["gigabytes"] += size
    return dict(counts)


def _is_filtered(port: base_hot.Resource) -> bool:
    properties = port.properties
    wanted = properties.get("security_groups") or properties.get(_PAIRS)
    return bool(wanted) and properties.get("port_security_enabled") is None


@dataclass(frozen=True)
class Vms:
    """The VMs of a role, by names in the VNFD and in the Base HOT.

    :param ssh_cp: connection point for SSH; "" if the VDU has none.
    :param nic_cp: connection point on a network inside the VNF; "" likewise.
    :param group: the Heat group that they are members of; "" for a single VM.
    """

    vdu: str
    ssh_cp: str = ""
    nic_cp: str = ""
    group: str = ""


def roles(package: Package) -> dict[Role, Vms]:
    """The VMs of each role that a VDU's name tells."""
    found: dict[Role, Vms] = {}
    groups = {
        r.vdu: r.name
        for r in package.base.resources()
        if r.type in base_hot.GROUPS and r.vdu
    }
    external = external_points(package)
    for vdu in package.flavour.of_type(vnfd.VDU):
        role = role_of(vdu)
        if role is None or role in found:
            continue
        points = list(_points(package.flavour, vdu))
        outer = [cp for cp in points if cp in external]
        inner = [cp for cp in points if cp not in external]
        found[role] = Vms(
            vdu,
            next(iter(outer or inner), ""),
            next(iter(inner), ""),
            groups.get(vdu, ""),
        )
    return found


def external_points(package: Package) -> list[str]:
    """The connection points that a request connects, in the VNFD's order."""
    external = vnfd.external_cps(package.flavour)
    return [cp for cp in package.flavour.of_type(vnfd.CP) if cp in external]


def _points(flavour: vnfd.Flavour, vdu: str) -> Iterator[str]:
    for cp in flavour.of_type(vnfd.CP):
        if flavour.requirement(cp, "virtual_binding") == vdu:
            yield cp


def user_data(files: Mapping[str, bytes]) -> tuple[str, str]:
    """File and class of a package's user data; empty without any."""
    for name, content in sorted(files.items()):
        path = PurePosixPath(name)
        if path.suffix == ".py" and path.parts[0] not in ("Definitions", "Scripts"):
            for found in sorted(request_check.classes(content)):
                return f"./{name}", found
    return "", ""


def balancer_script(files: Mapping[str, bytes]) -> str:
    """The load balancer's script of a package; "" without any."""
    return next((f"./{name}" for name in SCRIPTS if name in files), "")
