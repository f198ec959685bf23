# SPDX-License-Identifier: Apache-2.0
"""Checks of attributes against each other, and of variables that a request may set.

A check reads attributes of the model. One that is not valid ends it, and the others are
carried out, so that their problems are reported beside those of single attributes.

Options are refused that conflict with each other in every kubespray release, and so are
kubespray variables that a request may not set because this driver does. Warnings are
about values that are not used as they are written, and attributes without effect.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.nodes import ROLES
from tacker_k8s_mgmt.request import registries, structure
from tacker_k8s_mgmt.request.accounts import CREDENTIALS
from tacker_k8s_mgmt.request.cluster_options import CREDENTIAL
from tacker_k8s_mgmt.request.installation import SPECIFIED_BALANCER, ClusterRequest
from tacker_k8s_mgmt.request.registries import PrivateRegistry, Registry
from tacker_k8s_mgmt.request.structure import (
    Location,
    Problem,
    WrittenRequest,
    at,
    items,
    readable,
    valid,
)

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
    "supplementary_addresses_in_ssl_keys": "it is derived from the VMs' addresses",
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
    *((spec.parameter, spec.login) for spec in ROLES.values()),
    ("bastion", ""),
)
_VARIABLES = "kubespray_vars"
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NETWORK = ("cluster", "network")
_REGISTRIES = ("cluster", "registries")
_PRIVATE_REGISTRIES = ("private_registry_connection_info",)
_NODE_REGISTRY = ("cluster", "node_registry")
_OPENSTACK = ("cluster", "openstack")
_WEBHOOK = ("cluster", "authentication", "webhook")
# What a user's login at OpenStack needs: one of each.
_USER = (
    *(("username",), ("password",)),
    *(("project_id", "project_name"), ("domain_id", "domain_name")),
)
# The StorageClasses that an option of cluster.storage makes.
_STORAGE_CLASSES = {"local-path": "local_path", "cinder-csi": "cinder"}


class _Range(NamedTuple):
    location: Location
    network: network_plugins.Network
    shown: str


def warnings(request: ClusterRequest, written: WrittenRequest) -> Iterator[Problem]:
    """Values that are not used as they are written, and attributes without effect."""
    for location in (_POD_CIDR, _CLUSTER_CIDR, _NODE_CIDR):
        network = at(request, location)
        if network and str(network) != written.get(*location):
            yield Problem(location, f"is taken as {network}")
    for scheme in ("http_proxy", "https_proxy"):
        if _has_odd_port(written.get("proxy", scheme)):
            yield Problem(("proxy", scheme), "the URL has no valid port")
    specified, port = SPECIFIED_BALANCER
    if request.load_balancer and request.load_balancer.ssh_cp == specified:
        text = (
            f"{specified} stands for {port} unless the stack has a resource of that "
            f"name; better name {port}"
        )
        yield Problem(_BALANCER, text)
    for place, registry in items(_PRIVATE_REGISTRIES, request.private_registries):
        if registry.certificate_path and not registry.connection_type:
            text = "has no effect with connection_type 0, which is http"
            yield Problem((*place, "certificate_path"), text)
    webhook = request.cluster.authentication.webhook
    if webhook and webhook.ca_certificate and webhook.authorization:
        text = (
            "is for authentication only; for authorization the operating system of the "
            "VMs has to know the CA"
        )
        yield Problem((*_WEBHOOK, "ca_certificate"), text)


def _logins(request: ClusterRequest) -> Iterator[Problem]:
    for name, prefix in LOGINS:
        yield from readable(_login(request, name, prefix))


def _login(request: ClusterRequest, name: str, prefix: str) -> Iterator[Problem]:
    holder = at(request, (name,))
    if holder is None or holder.private_key is not None:
        return
    key = f"{prefix}private_key"
    for credential, mark in CREDENTIALS.items():
        if mark.use and getattr(holder, credential) is not None:
            text = f"there is no {key} {mark.use}"
            yield Problem((name, f"{prefix}{credential}"), text)
    if holder.password is None:
        yield Problem((name,), f"{prefix}password or {key} is missing")


def _families(request: ClusterRequest) -> Iterator[Problem]:
    family = request.address_family
    for location in (_POD_CIDR, _CLUSTER_CIDR):
        network = valid(request, *location)
        if network and f"ipv{network.version}" != family:
            text = f"must be of the family that address_family names, {family}"
            yield Problem(location, text)


def _overlaps(request: ClusterRequest) -> Iterator[Problem]:
    family = request.address_family
    ranges = [
        found
        for location, default in (
            (_POD_CIDR, network_plugins.PODS[family]),
            (_CLUSTER_CIDR, network_plugins.SERVICES[family]),
            (_NODE_CIDR, ""),
        )
        for found in readable(_range(request, location, default))
    ]
    for first, other in combinations(ranges, 2):
        if first.network.overlaps(other.network):
            text = f"{first.shown} overlaps %s ({other.shown})"
            yield Problem(first.location, text, (other.location,))


def service_network(request: ClusterRequest) -> network_plugins.Network:
    default = network_plugins.SERVICES[request.address_family]
    return request.service_cidr or network_plugins.network(default)


def _range(
    request: ClusterRequest, location: Location, default: str
) -> Iterator[_Range]:
    network = at(request, location)
    if network:
        yield _Range(location, network, str(network))
    elif default:
        usual = network_plugins.network(default)
        yield _Range(location, usual, f"kubespray's default {default}")


def _shared_directories(request: ClusterRequest) -> Iterator[Problem]:
    directory = PurePosixPath(request.ansible.directory)
    for location in _INSTALLED:
        installed = at(request, location)
        if installed and PurePosixPath(installed).is_relative_to(directory):
            text = "is deleted with the cluster, so %s must not be in it"
            yield Problem(_DIRECTORY, text, (location,))


def _refused_variables(request: ClusterRequest) -> Iterator[Problem]:
    family = valid(request, "address_family") or "ipv4"
    for name, value in request.kubespray_vars.items():
        here = (_VARIABLES, name)
        if not _VARIABLE_NAME.fullmatch(name):
            text = f"{repr(name)[:64]} is not the name of a variable"
            yield Problem((_VARIABLES,), text)
        elif reason := reserved(name, family):
            yield Problem(here, f"cannot be set here; {reason}")
        elif not _fits_json(value):
            yield Problem(here, "cannot be written as JSON")


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


def _labels(request: ClusterRequest) -> Iterator[Problem]:
    place = ("worker_node", "aspects")
    ids: set[str] = set()
    for here, aspect in items(place, request.workers.aspects):
        yield from readable(_label_twice(request, here))
        if (aspect_id := valid(aspect, "aspect_id")) in ids:
            text = "the aspect is given twice"
            yield Problem((*here, "aspect_id"), text)
        ids.update([aspect_id] if aspect_id else [])


def _role_labels(request: ClusterRequest) -> Iterator[Problem]:
    for spec in ROLES.values():
        if spec.groups:
            place = (spec.parameter,)
            yield from readable(_label_twice(request, place))


def _label_twice(request: ClusterRequest, place: Location) -> Iterator[Problem]:
    """A label with the key of the compute host's label."""
    own = (place[0], "compute_host_label")
    key, labels = at(request, own), (*place, "node_labels")
    for label in at(request, labels) if key else ():
        if label.partition("=")[0] == key:
            yield Problem(labels, "%s sets this label already", (own,))


def _plugins(request: ClusterRequest) -> Iterator[Problem]:
    chosen = request.cluster.network.plugin
    if chosen and chosen not in network_plugins.PLUGINS:
        known = ", ".join(sorted(network_plugins.PLUGINS))
        yield Problem((*_NETWORK, "plugin"), f"must be one of {known}")


def _encapsulation(request: ClusterRequest) -> Iterator[Problem]:
    chosen, given = (
        request.cluster.network.known_plugin,
        request.cluster.network.encapsulation,
    )
    used, place = chosen.encapsulation(given), (*_NETWORK, "encapsulation")
    if given and not used.name:
        offered = " or ".join(one.name for one in chosen.encapsulations)
        choice = offered or "nothing: it has no such choice"
        yield Problem(place, f"with {chosen.name} it can be {choice}")
    elif request.address_family == "ipv6" and not used.has_ipv6:
        text = f"{used.name} carries no IPv6, which address_family asks for"
        yield Problem(place, text)


def _mtu(request: ClusterRequest) -> Iterator[Problem]:
    chosen, mtu = request.cluster.network.known_plugin, request.cluster.network.mtu
    if mtu is not None and not chosen.mtu_variable:
        settable = ", ".join(sorted(network_plugins.MTU_VARIABLES))
        text = f"{chosen.name} finds out by itself; it can be set for {settable}"
        yield Problem((*_NETWORK, "mtu"), text)
    elif isinstance(mtu, int) and mtu < 1280 and request.address_family == "ipv6":
        text = "IPv6, which address_family asks for, needs 1280 at least"
        yield Problem((*_NETWORK, "mtu"), text)


def _registries(request: ClusterRequest) -> Iterator[Problem]:
    engine = request.container_engine
    for here, registry in items(_REGISTRIES, request.cluster.registries):
        yield from readable(_registry_login(here, registry))
        if engine != "containerd":
            yield from readable(_without_containerd(here, registry, engine))
    for here, private in items(_PRIVATE_REGISTRIES, request.private_registries):
        yield from readable(_registry_login(here, private))
        if engine == "docker":
            yield from readable(_docker_login(here, private))


def _registry_login(
    here: Location, registry: Registry | PrivateRegistry
) -> Iterator[Problem]:
    if (registry.username is None) != (registry.password is None):
        yield Problem(here, "username and password go together")


def _without_containerd(
    here: Location, registry: Registry, engine: str
) -> Iterator[Problem]:
    if registry.ca_file:
        yield Problem((*here, "ca_file"), "is for containerd only")
    if engine == "docker":
        yield from _docker_login(here, registry)
        if registry.mirrors and registry.prefix != "docker.io":
            text = "Docker has mirrors of docker.io only; use containerd or crio"
            yield Problem((*here, "mirrors"), text)


def _docker_login(
    here: Location, registry: Registry | PrivateRegistry
) -> Iterator[Problem]:
    if registry.password:
        text = "kubespray logs Docker in to no registry; use containerd or crio"
        yield Problem((*here, "password"), text)


def _registries_twice(request: ClusterRequest) -> Iterator[Problem]:
    registries, private = request.cluster.registries, request.private_registries
    prefixes: set[str] = set()
    for place, registry, name in (
        *((*pair, "prefix") for pair in items(_REGISTRIES, registries)),
        *((*pair, "server") for pair in items(_PRIVATE_REGISTRIES, private)),
    ):
        if (prefix := valid(registry, name)) in prefixes:
            yield Problem(place, "the registry is given twice")
        prefixes.update([prefix] if prefix else [])
    if valid(request, *_NODE_REGISTRY, "name") in prefixes:
        place = (*_NODE_REGISTRY, "name")
        yield Problem(place, "the registry is given twice")


def _node_registry(request: ClusterRequest) -> Iterator[Problem]:
    if not request.cluster.node_registry:
        return
    if request.container_engine == "docker":
        text = "Docker has mirrors of docker.io only; use containerd or crio"
        yield Problem(_NODE_REGISTRY, text)
    is_given = "local_registry" in request.cluster.model_fields_set
    if is_given and not request.cluster.local_registry:
        text = "is false, and %s runs a registry in the cluster"
        yield Problem(("cluster", "local_registry"), text, (_NODE_REGISTRY,))


def _node_registry_address(request: ClusterRequest) -> Iterator[Problem]:
    if not (registry := request.cluster.node_registry):
        return
    services = service_network(request)
    if services.num_addresses < registries.SMALLEST_NETWORK:
        text = "the network of Services is too small for its address"
        yield Problem(_NODE_REGISTRY, text)
    elif registry.address and registry.address not in services:
        text = f"must be in {services}, of Services"
        yield Problem((*_NODE_REGISTRY, "address"), text)


def _node_registry_storage(request: ClusterRequest) -> Iterator[Problem]:
    registry = request.cluster.node_registry
    option = _STORAGE_CLASSES.get((registry and registry.storage_class) or "")
    if registry and option and not at(request, ("cluster", "storage", option)):
        text = (
            f"{registry.storage_class} comes with cluster.storage.{option}, which is "
            "not requested"
        )
        yield Problem((*_NODE_REGISTRY, "storage_class"), text)


def _openstack_login(request: ClusterRequest) -> Iterator[Problem]:
    if not (openstack := request.cluster.openstack):
        return
    credential = [part for part in CREDENTIAL if getattr(openstack, part)]
    if credential and (openstack.username or openstack.password):
        text = "has both an application credential and a user; give one of them"
        yield Problem(_OPENSTACK, text)
    elif credential:
        for part in CREDENTIAL:
            if part not in credential:
                text = f"{part} is missing; kubespray wants id, name and secret"
                yield Problem(_OPENSTACK, text)
    else:
        for choice in _USER:
            if not any(getattr(openstack, part) for part in choice):
                text = (
                    f"{' or '.join(choice)} is missing, and there is no application "
                    "credential"
                )
                yield Problem(_OPENSTACK, text)


def _openstack(request: ClusterRequest) -> Iterator[Problem]:
    if not (openstack := request.cluster.openstack):
        if request.cluster.storage.cinder:
            text = "needs cluster.openstack, with the login at OpenStack"
            yield Problem(("cluster", "storage", "cinder"), text)
        return
    for part in ("load_balancer_subnet_id", "load_balancer_floating_network_id"):
        if getattr(openstack, part) and not openstack.cloud_controller:
            text = "needs cloud_controller: true"
            yield Problem((*_OPENSTACK, part), text)


def _webhook(request: ClusterRequest) -> Iterator[Problem]:
    webhook = request.cluster.authentication.webhook
    if webhook and webhook.ca_certificate and webhook.skip_tls_verify:
        text = "leaves ca_certificate without effect; give one of them"
        yield Problem((*_WEBHOOK, "skip_tls_verify"), text)


def _set_twice(request: ClusterRequest, written: WrittenRequest) -> Iterator[Problem]:
    """Variables in ``kubespray_vars`` beside the attribute that stands for them."""
    variables = request.kubespray_vars
    for location, names in structure.variable_names(ClusterRequest).items():
        if written.given(*location) in (None, [], False):
            continue
        for name in filter(variables.__contains__, names):
            text = "cannot be set beside %s, which stands for it"
            yield Problem((_VARIABLES, name), text, (location,))


_CHECKS = (
    *(_logins, _families, _overlaps, _shared_directories, _refused_variables),
    *(_labels, _role_labels, _plugins, _encapsulation, _mtu),
    *(_registries, _registries_twice),
    *(_node_registry, _node_registry_address, _node_registry_storage),
    *(_openstack, _openstack_login, _webhook),
)


def problems(request: ClusterRequest, written: WrittenRequest) -> Iterator[Problem]:
    """What contradicts itself."""
    for check in _CHECKS:
        yield from readable(check(request))
    yield from readable(_set_twice(request, written))
