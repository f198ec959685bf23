# SPDX-License-Identifier: Apache-2.0
"""Checks of attributes against each other, and of variables that a request may set.

They work on the request as it was read, not on the validated model, so that their
problems are reported beside those of single attributes.

Options are refused that conflict with each other in every kubespray release, and so are
kubespray variables that a request may not set because this driver does. Warnings are
about values that are not used as they are written, and attributes without effect.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.request import cluster_options, structure
from tacker_k8s_mgmt.request.cluster_options import CREDENTIAL
from tacker_k8s_mgmt.request.installation import SPECIFIED_BALANCER, ClusterRequest
from tacker_k8s_mgmt.request.structure import Location, WrittenRequest

#: Variables that this driver sets, with what a user can do instead. Extra variables
#: override the inventory on every host, so ``ip`` would give all nodes one address.
RESERVED: Mapping[str, str] = {
    "kube_pods_subnet": "use master_node.pod_cidr",
    "kube_service_addresses": "use master_node.cluster_cidr",
    "ipv4_stack": "use address_family",
    "http_proxy": "use proxy.http_proxy",
    "https_proxy": "use proxy.https_proxy",
    "no_proxy": "use proxy.no_proxy",
    "additional_no_proxy": "use proxy.no_proxy",
    "no_proxy_exclude_workers": "it is set when there is a proxy",
    "supplementary_addresses_in_ssl_keys": "it is made from the VMs' addresses",
    "loadbalancer_apiserver": "use external_lb_param",
    "kube_apiserver_port": "it is 6443; external_lb_param.api_port is free",
    "kube_override_hostname": "nodes have the names of the inventory",
    "kube_config_dir": "admin.conf is looked for in /etc/kubernetes",
    **dict.fromkeys(
        (
            *("ip", "access_ip", "ip6", "access_ip6"),
            *("etcd_member_name", "tacker_server_id"),
            *("tacker_aspect_id", "tacker_compute_host"),
        ),
        "it is set for each node in the inventory",
    ),
    **dict.fromkeys(
        (
            *("node", "reset_nodes", "allow_ungraceful_removal"),
            *("skip_confirmation", "delete_nodes_confirmation"),
            "reset_confirmation",
        ),
        "it belongs to the removal of a node",
    ),
    **dict.fromkeys(
        ("kube_control_plane", "kube_node", "etcd", "calico_rr", "k8s_cluster"),
        "it is a group of the inventory",
    ),
}

#: Further ones with address_family ipv6; with ipv4 they make a dual-stack cluster.
RESERVED_IPV6: Mapping[str, str] = {
    "ipv6_stack": "use address_family",
    "enable_dual_stack_networks": "use address_family",
    "kube_pods_subnet_ipv6": "use master_node.pod_cidr",
    "kube_service_addresses_ipv6": "use master_node.cluster_cidr",
}


def reserved(variable: str, address_family: str = "ipv4") -> str:
    """Why a user may not set a variable and what to do instead; "" if allowed."""
    if variable.startswith("ansible_"):
        return "it tells Ansible how to reach the nodes"
    if address_family == "ipv6" and variable in RESERVED_IPV6:
        return RESERVED_IPV6[variable]
    return RESERVED.get(variable, "")


_POD_CIDR = ("master_node", "pod_cidr")
_CLUSTER_CIDR = ("master_node", "cluster_cidr")
_NODE_CIDR = ("proxy", "k8s_node_cidr")
_DIRECTORY = ("ansible", "transferring_inventory_path")
_BALANCER = ("external_lb_param", "ssh_cp_name")
_INSTALLED = (("ansible", "kubespray_root_path"), ("ansible", "venv_path"))
#: Structures with a login, and the prefix of its attributes there.
LOGINS = (
    ("ansible", ""),
    ("master_node", ""),
    ("worker_node", ""),
    ("external_lb_param", "ssh_"),
    ("bastion", ""),
)
_VARIABLES = "kubespray_vars"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Range(NamedTuple):
    name: str
    network: network_plugins.Network
    shown: str


def warnings(reading: WrittenRequest) -> Iterator[str]:
    """Sentences about values that are not used as they are written."""
    for location in (_POD_CIDR, _CLUSTER_CIDR, _NODE_CIDR):
        network = _network(reading.get(*location))
        if network and str(network) != reading.get(*location):
            yield f"{reading.dotted(*location)}: is taken as {network}"
    for scheme in ("http_proxy", "https_proxy"):
        if _has_odd_port(reading.get("proxy", scheme)):
            name = reading.dotted("proxy", scheme)
            yield f"{name}: the URL has no valid port"
    specified, port = SPECIFIED_BALANCER
    if reading.get(*_BALANCER) == specified:
        yield (
            f"{reading.dotted(*_BALANCER)}: {specified} stands for {port} unless the "
            f"stack has a resource of that name; better name {port}"
        )


def _logins(reading: WrittenRequest) -> Iterator[str]:
    for name, prefix in LOGINS:
        if not isinstance(reading.get(name), Mapping):
            continue
        password, key = f"{prefix}password", f"{prefix}private_key"
        has_key = reading.given(name, key) is not None
        if not has_key and reading.given(name, password) is None:
            yield f"{reading.dotted(name)}: {password} or {key} is missing"
        passphrase = (name, f"{key}_passphrase")
        if not has_key and reading.given(*passphrase) is not None:
            yield f"{reading.dotted(*passphrase)}: there is no {key} that it opens"


def _family(reading: WrittenRequest) -> str:
    return "ipv6" if reading.get("address_family") == "ipv6" else "ipv4"


def _families(reading: WrittenRequest) -> Iterator[str]:
    family = _family(reading)
    for location in (_POD_CIDR, _CLUSTER_CIDR):
        network = _network(reading.get(*location))
        if network and f"ipv{network.version}" != family:
            name = reading.dotted(*location)
            yield f"{name}: must be of the family that address_family names, {family}"


def _overlaps(reading: WrittenRequest) -> Iterator[str]:
    family = _family(reading)
    ranges = [
        *_range(reading, _POD_CIDR, network_plugins.PODS[family]),
        *_range(reading, _CLUSTER_CIDR, network_plugins.SERVICES[family]),
        *_range(reading, _NODE_CIDR, None),
    ]
    for first, other in combinations(ranges, 2):
        if first.network.overlaps(other.network):
            yield f"{first.name}: {first.shown} overlaps {other.name} ({other.shown})"


def service_network(reading: WrittenRequest) -> network_plugins.Network | None:
    """The network of Services; None if the request has none of the right form."""
    ranges = _range(reading, _CLUSTER_CIDR, network_plugins.SERVICES[_family(reading)])
    return ranges[0].network if ranges else None


def _range(
    reading: WrittenRequest, location: Location, default: str | None
) -> list[_Range]:
    written = reading.get(*location)
    name = reading.dotted(*location)
    network = _network(written)
    if network:
        return [_Range(name, network, str(network))]
    if default and not written:
        return [
            _Range(
                name, network_plugins.network(default), f"kubespray's default {default}"
            )
        ]
    return []


def _network(written: Any) -> network_plugins.Network | None:
    try:
        return network_plugins.network(written)
    except ValueError:
        return None


def _shared_directories(reading: WrittenRequest) -> Iterator[str]:
    directory = reading.get(*_DIRECTORY)
    if not isinstance(directory, str) or not directory.startswith("/"):
        return
    for location in _INSTALLED:
        installed = reading.get(*location)
        if not isinstance(installed, str):
            continue
        if PurePosixPath(installed).is_relative_to(PurePosixPath(directory)):
            yield (
                f"{reading.dotted(*_DIRECTORY)}: is deleted with the cluster, so "
                f"{reading.dotted(*location)} must not be in it"
            )


def _refused_variables(reading: WrittenRequest) -> Iterator[str]:
    variables, family = reading.get(_VARIABLES), _family(reading)
    if not isinstance(variables, Mapping):
        return
    for name, value in variables.items():
        shown = reading.dotted(_VARIABLES, str(name))
        if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
            listed = reading.dotted(_VARIABLES)
            yield f"{listed}: {repr(name)[:64]} is not the name of a variable"
        elif reason := reserved(name, family):
            yield f"{shown}: cannot be set here; {reason}"
        elif not _fits_json(value):
            yield f"{shown}: cannot be written as JSON"


def _fits_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _has_odd_port(url: Any) -> bool:
    try:
        return isinstance(url, str) and untrusted.url_parts(url).port == 0
    except ValueError:
        return True


#: Each yields sentences about logins, networks, directories or variables.
PROBLEMS = (_logins, _families, _overlaps, _shared_directories, _refused_variables)


_CLUSTER = "cluster"
# What a user's login at OpenStack needs: one of each.
_USER = (
    *(("username",), ("password",)),
    *(("project_id", "project_name"), ("domain_id", "domain_name")),
)
# The StorageClasses that an option of cluster.storage makes.
_STORAGE_CLASSES = {"local-path": "local_path", "cinder-csi": "cinder"}


def option_warnings(reading: WrittenRequest) -> Iterator[str]:
    """Sentences about attributes without effect."""
    for place in _items(reading, "private_registry_connection_info"):
        is_http = reading.get(*place, "connection_type") in (0, "0")
        if is_http and _given(reading, *place, "certificate_path"):
            name = reading.dotted(*place, "certificate_path")
            yield f"{name}: has no effect with connection_type 0, which is http"
    webhook = (_CLUSTER, "authentication", "webhook")
    if (
        _given(reading, *webhook, "ca_certificate")
        and reading.get(*webhook, "authorization") is True
    ):
        name = reading.dotted(*webhook, "ca_certificate")
        yield (
            f"{name}: is for authentication only; for authorization the operating "
            "system of the VMs has to know the CA"
        )


def _labels(reading: WrittenRequest) -> Iterator[str]:
    ids: set[Any] = set()
    for place in _items(reading, "worker_node", "aspects"):
        aspect_id = reading.get(*place, "aspect_id")
        if isinstance(aspect_id, str) and aspect_id in ids:
            yield f"{reading.dotted(*place, 'aspect_id')}: the aspect is given twice"
        ids.add(str(aspect_id))
        own = reading.get("worker_node", "compute_host_label")
        yield from _label_twice(reading, (*place, "node_labels"), own)
    for role in ("master_node", "worker_node"):
        own = reading.get(role, "compute_host_label")
        yield from _label_twice(reading, (role, "node_labels"), own)


def _label_twice(reading: WrittenRequest, place: Location, key: Any) -> Iterator[str]:
    """A label with the key of the compute host's label."""
    labels = reading.get(*place)
    for label in labels if isinstance(labels, list) and isinstance(key, str) else ():
        if str(label).partition("=")[0] == key:
            name = reading.dotted(place[0], "compute_host_label")
            yield f"{reading.dotted(*place)}: {name} sets this label already"


def _network_options(reading: WrittenRequest) -> Iterator[str]:
    place = (_CLUSTER, "network")
    chosen = reading.given(*place, "plugin") or network_plugins.DEFAULT
    if not isinstance(chosen, str):
        return
    plugin = network_plugins.PLUGINS.get(chosen)
    if not plugin:
        known = ", ".join(sorted(network_plugins.PLUGINS))
        yield f"{reading.dotted(*place, 'plugin')}: must be one of {known}"
        return
    encapsulation = plugin.encapsulation(reading.given(*place, "encapsulation"))
    mtu = reading.get(*place, "mtu")
    family = reading.get("address_family")
    name = reading.dotted(*place, "encapsulation")
    if _given(reading, *place, "encapsulation") and not encapsulation.name:
        offered = " or ".join(one.name for one in plugin.encapsulations)
        choice = offered or "nothing: it has no such choice"
        yield f"{name}: with {chosen} it can be {choice}"
    elif family == "ipv6" and not encapsulation.has_ipv6:
        kind = encapsulation.name
        yield f"{name}: {kind} carries no IPv6, which address_family asks for"
    name = reading.dotted(*place, "mtu")
    if mtu is not None and not plugin.mtu_variable:
        settable = ", ".join(sorted(network_plugins.MTU_VARIABLES))
        yield f"{name}: {chosen} finds out by itself; it can be set for {settable}"
    elif family == "ipv6" and type(mtu) is int and mtu < 1280:
        yield f"{name}: IPv6, which address_family asks for, needs 1280 at least"


def _registries(reading: WrittenRequest) -> Iterator[str]:
    engine = reading.get(_CLUSTER, "container_manager") or "containerd"
    prefixes: set[Any] = set()
    for place in (
        *_items(reading, _CLUSTER, "registries"),
        *_items(reading, "private_registry_connection_info"),
    ):
        name = reading.dotted(*place)
        if _given(reading, *place, "username") != _given(reading, *place, "password"):
            yield f"{name}: username and password go together"
        if engine != "containerd" and _given(reading, *place, "ca_file"):
            yield f"{reading.dotted(*place, 'ca_file')}: is for containerd only"
        if engine == "docker":
            yield from _docker(reading, place)
        prefix = reading.get(*place, "prefix" if place[0] == _CLUSTER else "server")
        if isinstance(prefix, str) and prefix in prefixes:
            yield f"{name}: the registry is given twice"
        prefixes.add(str(prefix))
    yield from _node_registry(reading, engine, prefixes)


def _node_registry(
    reading: WrittenRequest, engine: Any, prefixes: Collection[Any]
) -> Iterator[str]:
    place = (_CLUSTER, "node_registry")
    if not isinstance(reading.get(*place), Mapping):
        return
    name = reading.dotted(*place)
    if reading.get(_CLUSTER, "local_registry") is False:
        flag = reading.dotted(_CLUSTER, "local_registry")
        yield f"{flag}: is false, and {name} runs a registry in the cluster"
    if engine == "docker":
        yield f"{name}: Docker has mirrors of docker.io only; use containerd or crio"
    if str(reading.given(*place, "name") or cluster_options.NAME) in prefixes:
        yield f"{reading.dotted(*place, 'name')}: the registry is given twice"
    services = service_network(reading)
    address = reading.given(*place, "address")
    if services and services.num_addresses < cluster_options.SMALLEST_NETWORK:
        yield f"{name}: the network of Services is too small for its address"
    elif services and isinstance(address, str) and not _is_within(address, services):
        yield f"{reading.dotted(*place, 'address')}: must be in {services}, of Services"
    for storage_class, option in _STORAGE_CLASSES.items():
        chosen = reading.given(*place, "storage_class") == storage_class
        if chosen and reading.get(_CLUSTER, "storage", option) is not True:
            yield (
                f"{reading.dotted(*place, 'storage_class')}: {storage_class} comes "
                f"with cluster.storage.{option}, which is not requested"
            )


def _is_within(address: str, network: network_plugins.Network) -> bool:
    try:
        return network_plugins.address(address) in network
    except ValueError:
        return True  # its type reports that


def _docker(reading: WrittenRequest, place: Location) -> Iterator[str]:
    if _given(reading, *place, "password"):
        yield (
            f"{reading.dotted(*place, 'password')}: kubespray logs Docker in to no "
            "registry; use containerd or crio"
        )
    if (
        _given(reading, *place, "mirrors")
        and reading.get(*place, "prefix") != "docker.io"
    ):
        yield (
            f"{reading.dotted(*place, 'mirrors')}: Docker has mirrors of docker.io "
            "only; use containerd or crio"
        )


def _openstack(reading: WrittenRequest) -> Iterator[str]:
    place = (_CLUSTER, "openstack")
    if not isinstance(reading.get(*place), Mapping):
        cinder = (_CLUSTER, "storage", "cinder")
        if reading.get(*cinder) is True:
            name = reading.dotted(*cinder)
            yield f"{name}: needs cluster.openstack, with the login at OpenStack"
        return
    name = reading.dotted(*place)
    credential = [part for part in CREDENTIAL if _given(reading, *place, part)]
    user = [part for part in ("username", "password") if _given(reading, *place, part)]
    if credential and user:
        yield f"{name}: has both an application credential and a user; give one of them"
    elif credential:
        for part in CREDENTIAL:
            if part not in credential:
                yield f"{name}: {part} is missing; kubespray wants id, name and secret"
    else:
        for choice in _USER:
            if not any(_given(reading, *place, part) for part in choice):
                yield (
                    f"{name}: {' or '.join(choice)} is missing, and there is no "
                    "application credential"
                )
    for part in ("load_balancer_subnet_id", "load_balancer_floating_network_id"):
        if (
            _given(reading, *place, part)
            and reading.get(*place, "cloud_controller") is not True
        ):
            yield f"{reading.dotted(*place, part)}: needs cloud_controller: true"


def _webhook(reading: WrittenRequest) -> Iterator[str]:
    place = (_CLUSTER, "authentication", "webhook")
    if (
        _given(reading, *place, "ca_certificate")
        and reading.get(*place, "skip_tls_verify") is True
    ):
        yield (
            f"{reading.dotted(*place, 'skip_tls_verify')}: leaves ca_certificate "
            "without effect; give one of them"
        )


def _set_twice(reading: WrittenRequest) -> Iterator[str]:
    """Variables in ``kubespray_vars`` beside the attribute that stands for them."""
    variables = reading.get("kubespray_vars")
    if not isinstance(variables, Mapping):
        return
    for location, names in structure.variable_names(ClusterRequest).items():
        if not _given(reading, *location) or reading.get(*location) is False:
            continue
        for name in filter(variables.__contains__, names):
            yield (
                f"{reading.dotted('kubespray_vars', name)}: cannot be set beside "
                f"{reading.dotted(*location)}, which stands for it"
            )


def _given(reading: WrittenRequest, *location: str) -> bool:
    return reading.given(*location) not in (None, [])


def _items(reading: WrittenRequest, *location: str) -> Iterator[Location]:
    value = reading.get(*location)
    if isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, Mapping):
                yield (*location, str(number))


#: Each yields sentences about options.
OPTION_PROBLEMS = (
    _labels,
    _network_options,
    _registries,
    _openstack,
    _webhook,
    _set_twice,
)
