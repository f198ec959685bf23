"""The VMs that a request leads to, in the stack that Heat would make of the Base HOT.

The driver's own search for them is done here, so its own words tell what it finds.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from tacker_k8s_mgmt.csar import hot, stack_simulation, vnfd
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.csar.tree import mapping, sequence
from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model import kubespray_releases
from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import connection_points
from tacker_k8s_mgmt.topology.heat_stack import StackResource, find_machines

#: What the driver looks for in the stack and in the package.
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
    "master_node": {"username": "nobody"},
    "worker_node": {"username": "nobody"},
    "external_lb_param": {"ssh_username": "nobody"},
}
_NODES = ("master_node.", "worker_node.")


def reduced(request: Request) -> InstallParams | None:
    """Wrong parameters without what has no part in finding the VMs and the script.

    None where these are wrong too.
    """
    raw = key_aliases.read(InstallParams, request.installation).values
    structures = {
        name: _STAND_INS[name] | {key: value[key] for key in _SEARCHED & value.keys()}
        for name, value in raw.items()
        if name in _STAND_INS and isinstance(value, Mapping)
    }
    if "address_family" in raw:
        structures["address_family"] = raw["address_family"]
    try:
        return InstallParams.model_validate({"ansible": _ANSIBLE, **structures})
    except ValidationError:
        return None


class Look:
    """A look at the VMs of an instantiation.

    :param given: the parameters of the request, as far as they are right.
    """

    def __init__(
        self,
        request: Request,
        given: InstallParams,
        flavour: vnfd.Flavour,
        base: hot.BaseHot,
    ) -> None:
        self._given = given
        self._flavour = flavour
        self._base = base
        default = next(iter(flavour.levels), "")
        self._level = str(request.body.get("instantiationLevelId") or default)
        self._stack = stack_simulation.stack(
            base, flavour.instances(self._level), request.additional_params
        )
        self._groups = {one.name: one for one in self._stack if one.type in hot.GROUPS}

    def problems(self) -> Iterator[str]:
        """What the driver would not find, or what would not work when it has."""
        try:
            find_machines("of this request", self._stack, self._given)
        except DiscoveryError as error:
            yield from error.problems
        aspect = self._given.workers.aspect_id
        if aspect and aspect not in self._groups:
            yield (
                f"worker_node.aspect_id: the Base HOT has no group {aspect} (it has: "
                f"{', '.join(sorted(self._groups)) or 'none'})"
            )
        yield from self._numbers()
        yield from self._spoofing()

    def warnings(self) -> Iterator[str]:
        """What works otherwise than it may be meant."""
        aspect = self._given.control_plane.aspect_id
        if aspect and aspect not in self._groups:
            yield (
                f"master_node.aspect_id: the Base HOT has no group {aspect}; the whole "
                "stack is searched"
            )
        group = self._groups.get(aspect or "")
        if group and group.type == hot.GROUP and aspect in self._flavour.aspects:
            yield (
                f"master_node.aspect_id: {aspect} is a scaling aspect; control planes "
                "cannot be scaled, and the driver refuses a request to do so"
            )

    def _numbers(self) -> Iterator[str]:
        """Groups whose size the Base HOT fixes otherwise than the level says."""
        counts = self._flavour.instances(self._level)
        for name in sorted(self._groups):
            group = self._base.top.resources.get(name, {})
            key = hot.CAPACITIES[self._groups[name].type]
            fixed = mapping(group.get("properties")).get(key)
            number = counts.get(self._base.vdu(group))
            if isinstance(fixed, int) and number not in (None, fixed):
                yield (
                    f"instantiationLevelId: the level {self._level} has {number} VMs "
                    f"in {name}, and the Base HOT makes {fixed} whatever the level is"
                )

    def _spoofing(self) -> Iterator[str]:
        """Ports that let no packet of a pod pass, where none is encapsulated.

        Neutron drops what does not come from the port's own address.
        """
        network = self._given.cluster.network
        if network.encapsulation != "none":
            return
        defaults = kubespray_releases.NETWORKS[self._given.address_family]
        pods = ipaddress.ip_network(self._given.pod_cidr or defaults.pods)
        present = connection_points.attachments(self._stack)
        inner = connection_points.inner_points(self._given, present)
        nodes = {cp for cp, why in inner.items() if why.startswith(_NODES)}
        refused = {
            one.name
            for one in self._stack
            if one.name in nodes
            and one.type == stack_simulation.PORT
            and not _lets(one, pods)
        }
        for name in sorted(refused):
            yield (
                "cluster.network.encapsulation: without one, Neutron drops the packets "
                f"of pods at {name}: give the port allowed_address_pairs with {pods} "
                "(in the sample packages: additionalParams.address_pairs), or switch "
                "its port security off"
            )


def _lets(
    port: StackResource, pods: ipaddress.IPv4Network | ipaddress.IPv6Network
) -> bool:
    """Whether packets from all pods may leave a port."""
    if port.attributes.get("port_security_enabled") is False:
        return True
    pairs = sequence(port.attributes.get("allowed_address_pairs"))
    return any(_covers(mapping(pair).get("ip_address"), pods) for pair in pairs)


def _covers(address: Any, pods: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        allowed = ipaddress.ip_network(str(address), strict=False)
    except ValueError:
        return False
    return allowed.version == pods.version and (
        int(allowed.network_address) <= int(pods.network_address)
        and int(pods.broadcast_address) <= int(allowed.broadcast_address)
    )
