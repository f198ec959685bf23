# SPDX-License-Identifier: Apache-2.0
"""The VMs and logins that a request leads to, in the stack that Heat would make.

Heat has no stack yet. So one is simulated as Heat would describe it, and the driver's
own search looks for the VMs in it; its findings come in its own wording.

A stock cloud image admits only what it gets at its first start: the key of a key pair,
what user data say, or Nova's password. The logins of a request are compared with that.
"""

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, sequence
from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.request.accounts import Account
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.tools.csar import vnfd
from tacker_k8s_mgmt.tools.csar.body import Request
from tacker_k8s_mgmt.tools.csar.consistency import SecurityGroups
from tacker_k8s_mgmt.topology import base_hot, connection_points
from tacker_k8s_mgmt.topology.heat_stack import find_machines, vm_selectors
from tacker_k8s_mgmt.topology.stack_resources import StackResource

_FLOATING_IP = "OS::Neutron::FloatingIP"
_ASSOCIATION = "OS::Neutron::FloatingIPAssociation"
_EXTERNAL = (
    network_plugins.network("192.0.2.0/24"),
    network_plugins.network("2001:db8::/64"),
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
                found.append(network_plugins.network(str(cidr)))
        return found


#: Names of resources in the stack, of files in the package, and the pods' network.
_SEARCHED = frozenset(
    {"aspect_id", "ssh_cp_name", "nic_cp_name", "pod_cidr", "cluster_cidr"}
    | {"script_path"}
)
_ANSIBLE = {
    "ip_address": "ansible",
    "username": "nobody",
    "kubespray_root_path": "/opt/kubespray",
    "transferring_inventory_path": "/opt/clusters/this",
}
_STAND_INS: Mapping[str, dict[str, Any]] = {
    spec.parameter: {f"{spec.login}username": "nobody"} for spec in ROLES.values()
}
_NODES = tuple(f"{spec.parameter}." for spec in ROLES.values() if spec.groups)
_SSH = 22
_KUBELET = (10250, "at which the API reaches the kubelets")
#: By structure, who sends what to its VMs: structure, TCP port, what for.
_NEEDED: Mapping[str, Sequence[tuple[str, int, str]]] = {
    spec.parameter: (
        (ROLES[Role.CONTROL_PLANE].parameter, *_KUBELET),
        *(
            (other.parameter, *port)
            for other in ROLES.values()
            if other is not spec and (other.groups or spec.route)
            for port in spec.ports
        ),
    )
    for spec in ROLES.values()
    if spec.groups
}


def reduced(request: Request) -> ClusterRequest | None:
    """Invalid parameters, reduced to those that lead to the VMs and the script.

    :returns: None where these are invalid too.
    """
    raw = structure.read(ClusterRequest, request.installation).values
    structures = {
        name: _STAND_INS[name] | {key: value[key] for key in _SEARCHED & value.keys()}
        for name, value in raw.items()
        if name in _STAND_INS and isinstance(value, Mapping)
    }
    if "address_family" in raw:
        structures["address_family"] = raw["address_family"]
    try:
        return ClusterRequest.model_validate({"ansible": _ANSIBLE, **structures})
    except ValidationError:
        return None


class StackPreview:
    """A look at the VMs of an instantiation.

    :param params: the parameters of the request, as far as they are valid.
    """

    def __init__(
        self,
        request: Request,
        params: ClusterRequest,
        flavour: vnfd.Flavour,
        base: base_hot.BaseHot,
    ) -> None:
        self._params = params
        self._flavour = flavour
        self._base = base
        default = next(iter(flavour.levels), "")
        self._level = str(request.body.get("instantiationLevelId") or default)
        schemas = base.top.parameters.items()
        defaults = {n: s["default"] for n, s in schemas if "default" in s}
        values = {**defaults, **request.additional_params}
        self._security = SecurityGroups(base, values)
        self._counts = flavour.instances(self._level)
        self._stack = stack(base, self._counts, request.additional_params)
        self._groups = {
            r.name: r for r in base.resources() if r.type in base_hot.GROUPS
        }

    def problems(self) -> Iterator[str]:
        """What the driver would not find, and what would not work afterwards."""
        found: list[str] = []
        try:
            machines = find_machines("of this request", self._stack, self._params)
            machines.require_whole()
        except DiscoveryError as error:
            found += error.problems
        found += base_hot.compare(self._base, self._params).missing
        yield from dict.fromkeys(found)
        yield from self._numbers()
        yield from self.spoofing()
        yield from self._closed()

    def warnings(self) -> Iterator[str]:
        """What works, but perhaps not as intended."""
        yield from self._unreached()
        aspect = self._params.control_plane.aspect_id
        if aspect and aspect not in self._groups:
            yield (
                f"master_node.aspect_id: the Base HOT has no group {aspect}; the whole "
                "stack is searched"
            )
        group = self._groups.get(aspect or "")
        if group and group.type == base_hot.GROUP and aspect in self._flavour.aspects:
            yield (
                f"master_node.aspect_id: {aspect} is a scaling aspect; control planes "
                "cannot be scaled, and the driver refuses a request to do so"
            )

    def _closed(self) -> Iterator[str]:
        """Ports at which their security groups drop the cluster's own packets."""
        present = connection_points.attachments(self._stack)
        inner = connection_points.inner_points(self._params, present)
        for name, attribute in inner.items():
            dropped = (
                (number, source, why)
                for sender, number, why in _NEEDED.get(attribute.partition(".")[0], ())
                for source, other in inner.items()
                if other.startswith(sender)
                and not self._security.admit(name, number, source)
            )
            for number, source, why in islice(dropped, 1):
                groups = ", ".join(self._security.names(name))
                yield (
                    f"{attribute}: the security groups of {name} ({groups}) do not "
                    f"admit TCP {number} from {source}, {why}: name the VMs' "
                    "port on the cluster's network, or give this one a group that "
                    "admits the nodes"
                )

    def _unreached(self) -> Iterator[str]:
        """Ports at which their security groups drop logins."""
        params, server = self._params, "ansible"
        host = params.ansible.host
        if params.bastion and params.bastion.carries_playbooks:
            server, host = "bastion", params.bastion.host
        try:
            address = network_plugins.address(host)
        except ValueError:
            return  # A name, which only the hosts there can look up.
        points = dict.fromkeys(one.ssh_cp for one in vm_selectors(params))
        closed = [p for p in points if not self._security.admit(p, _SSH, address)]
        if closed:
            yield (
                f"{server}.ip_address: the security groups of {', '.join(closed)} do "
                f"not admit SSH from {host}; in the sample packages "
                "additionalParams.management_cidr says from where they do"
            )

    def _numbers(self) -> Iterator[str]:
        """Groups whose size is fixed in the Base HOT and differs from the level's."""
        for name, group in sorted(self._groups.items()):
            fixed = group.properties.get(base_hot.CAPACITIES[group.type])
            number = self._counts.get(group.vdu)
            if isinstance(fixed, int) and number not in (None, fixed):
                yield (
                    f"instantiationLevelId: the level {self._level} has {number} VMs "
                    f"in {name}, and the Base HOT makes {fixed} whatever the level is"
                )

    def spoofing(self, unfiltered: Collection[str] = ()) -> Iterator[str]:
        """Ports at which Neutron drops packets of pods that are not encapsulated.

        It drops all that do not come from one of the port's own addresses.

        :param unfiltered: ports on networks that are known to have no port security.
        """
        cause = self._unencapsulated()
        if not cause:
            return
        default = network_plugins.PODS[self._params.address_family]
        pods = self._params.pod_cidr or network_plugins.network(default)
        present = connection_points.attachments(self._stack)
        inner = connection_points.inner_points(self._params, present)
        refused = {
            port.name
            for port in self._stack
            if port.type == base_hot.PORT
            and port.name not in unfiltered
            and inner.get(port.name, "").startswith(_NODES)
            and not _passes(port, pods)
        }
        for name in sorted(refused):
            yield (
                f"{cause} Neutron drops the packets of pods at {name}: give the port "
                f"allowed_address_pairs with {pods} (in the sample packages: "
                "additionalParams.address_pairs), or switch its port security off"
            )

    def _unencapsulated(self) -> str:
        """Why packets of pods are not encapsulated; "" if they are, or may be."""
        cluster, variable = self._params.cluster, "kube_network_plugin"
        network = cluster.network
        name = str(self._params.kubespray_vars.get(variable, cluster.network_plugin))
        plugin = network_plugins.PLUGINS.get(name)
        used = plugin and plugin.encapsulation(network.encapsulation).name
        if used != network_plugins.NO_ENCAPSULATION:
            return ""
        if network.encapsulation:
            return "cluster.network.encapsulation: without one,"
        place = (
            "cluster.network.plugin" if network.plugin else f"kubespray_vars.{variable}"
        )
        return f"{place}: {name} has no encapsulation by default, so"


def _passes(port: StackResource, pods: network_plugins.Network) -> bool:
    """Whether packets from all pods may leave a port."""
    if port.attributes.get("port_security_enabled") is False:
        return True
    pairs = sequence(port.attributes.get("allowed_address_pairs"))
    return any(_covers(mapping(pair).get("ip_address"), pods) for pair in pairs)


def _covers(address: Any, pods: network_plugins.Network) -> bool:
    try:
        allowed = network_plugins.network(
            address
        )  # one address covers no pods' network
    except ValueError:
        return False
    return allowed.version == pods.version and (
        int(allowed[0]) <= int(pods[0]) and int(pods[-1]) <= int(allowed[-1])
    )


_KEY, _USER_DATA, _ADMIN_PASS = "key_name", "user_data", "admin_pass"
#: What has to be in user data to have sshd accept passwords.
_PASSWORDS = "ssh_pwauth"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class _Servers:
    """The servers of a VDU.

    :param points: names of their ports and floating IPs.
    :param ways: the properties for a login that are not empty.
    """

    vdu: str
    points: frozenset[str]
    ways: Mapping[str, Any]

    def refuse(self, account: Account) -> str:
        """Why those of a stock image would refuse a login; "" if they may admit it."""
        if account.private_key:
            if self.ways.keys() & {_KEY, _USER_DATA}:
                return ""
            return f"{self.vdu} gets no public key, without {_KEY} and {_USER_DATA}"
        data = self.ways.get(_USER_DATA, "")
        admits = not isinstance(data, str) or _PASSWORDS in data
        if not account.password or _ADMIN_PASS in self.ways or (data and admits):
            return ""
        return f"{self.vdu} accepts no passwords without {_PASSWORDS} in {_USER_DATA}"


def of_package(base: base_hot.BaseHot) -> Iterator[str]:
    """The warning that VMs of a stock image would admit no login.

    A request may still give what the templates leave empty.
    """
    closed = sorted(servers.vdu for servers in _servers(base) if not servers.ways)
    if not closed:
        return
    remedy = f"give the servers a {_KEY}"
    if _KEY in base.top.parameters:
        remedy = f"build it with --key-name, or give additionalParams.{_KEY}"
    yield (
        f"{base.top.name}: {', '.join(closed)}: there is no {_KEY}, {_USER_DATA} or "
        f"{_ADMIN_PASS}, so VMs of a stock cloud image admit no login; {remedy}"
    )


def of_request(
    base: base_hot.BaseHot, additional: Mapping[str, Any], params: ClusterRequest
) -> Iterator[str]:
    """Warnings about logins that VMs of a stock image would refuse.

    :param additional: the request's ``additionalParams``.
    """
    every = {
        point: servers
        for servers in _servers(base, additional)
        for point in servers.points
    }
    for selector in vm_selectors(params):
        servers, account = every.get(selector.ssh_cp), params.account(selector.role)
        if servers and (why := servers.refuse(account)):
            yield (
                f"{selector.attribute}: a stock cloud image refuses this login: {why}"
            )


def _servers(
    base: base_hot.BaseHot, additional: Mapping[str, Any] = _NOTHING
) -> Iterator[_Servers]:
    defaults = {
        name: schema["default"]
        for name, schema in base.top.parameters.items()
        if "default" in schema
    }
    resources = list(base.resources(parameters={**defaults, **additional}))
    floating = {
        dig(resource.properties, "port_id", "get_resource"): resource.name
        for resource in resources
        if resource.type == _FLOATING_IP
    }
    for resource in resources:
        if resource.type == base_hot.SERVER:
            networks = sequence(resource.properties.get("networks"))
            ports = {str(dig(entry, "port", "get_resource")) for entry in networks}
            points = ports | {floating[port] for port in ports & floating.keys()}
            ways = {
                name: resource.properties[name]
                for name in (_KEY, _USER_DATA, _ADMIN_PASS)
                if resource.properties.get(name)
            }
            yield _Servers(resource.name, frozenset(points), ways)
