# SPDX-License-Identifier: Apache-2.0
"""The VMs that a request leads to, in the stack that Heat would make of the Base HOT.

The driver's own search looks for them, so its findings come in its own wording.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError

from tacker_k8s_mgmt.csar import stack_simulation, vnfd
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.csar.security_groups import SecurityGroups
from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model import network_plugins, networks
from tacker_k8s_mgmt.model.tree import mapping, sequence
from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import base_hot, base_hot_names, connection_points
from tacker_k8s_mgmt.topology.heat_stack import StackResource, find_machines
from tacker_k8s_mgmt.topology.vm_selectors import vm_selectors

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
    "master_node": {"username": "nobody"},
    "worker_node": {"username": "nobody"},
    "external_lb_param": {"ssh_username": "nobody"},
}
_NODES = ("master_node.", "worker_node.")
_SSH = 22
_KUBELET = (10250, "at which the API reaches the kubelets")
_API = (6443, "at which the nodes and the load balancer reach the API")
#: By structure, who sends what to its VMs: structure, TCP port, what for.
_NEEDED: Mapping[str, Sequence[tuple[str, int, str]]] = {
    "master_node": (
        ("master_node", *_KUBELET),
        ("worker_node", *_API),
        ("external_lb_param", *_API),
    ),
    "worker_node": (("master_node", *_KUBELET),),
}


def reduced(request: Request) -> InstallParams | None:
    """Invalid parameters, reduced to those that lead to the VMs and the script.

    :returns: None where these are invalid too.
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

    :param params: the parameters of the request, as far as they are valid.
    """

    def __init__(
        self,
        request: Request,
        params: InstallParams,
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
        self._stack = stack_simulation.stack(
            base, self._counts, request.additional_params
        )
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
        found += base_hot_names.compare(self._base, self._params).missing
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
            address = networks.address(host)
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
        default = networks.PODS[self._params.address_family]
        pods = self._params.pod_cidr or networks.network(default)
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


def _passes(port: StackResource, pods: networks.Network) -> bool:
    """Whether packets from all pods may leave a port."""
    if port.attributes.get("port_security_enabled") is False:
        return True
    pairs = sequence(port.attributes.get("allowed_address_pairs"))
    return any(_covers(mapping(pair).get("ip_address"), pods) for pair in pairs)


def _covers(address: Any, pods: networks.Network) -> bool:
    try:
        allowed = networks.network(address)  # one address covers no pods' network
    except ValueError:
        return False
    return allowed.version == pods.version and (
        int(allowed[0]) <= int(pods[0]) and int(pods[-1]) <= int(allowed[-1])
    )
