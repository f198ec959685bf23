# SPDX-License-Identifier: Apache-2.0
"""Options that conflict with each other in every kubespray release.

The checks work on the request as it was read, as those of :mod:`.cross_validation` do.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model import network_plugins, networks
from tacker_k8s_mgmt.request import cross_validation, node_registry, option_metadata
from tacker_k8s_mgmt.request.install_params import InstallParams
from tacker_k8s_mgmt.request.key_aliases import Location, Reading
from tacker_k8s_mgmt.request.openstack_options import CREDENTIAL

_CLUSTER = "cluster"
# What a user's login at OpenStack needs: one of each.
_USER = (
    *(("username",), ("password",)),
    *(("project_id", "project_name"), ("domain_id", "domain_name")),
)
# The StorageClasses that an option of cluster.storage makes.
_STORAGE_CLASSES = {"local-path": "local_path", "cinder-csi": "cinder"}


def warnings(reading: Reading) -> Iterator[str]:
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


def _labels(reading: Reading) -> Iterator[str]:
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


def _label_twice(reading: Reading, place: Location, key: Any) -> Iterator[str]:
    """A label with the key of the compute host's label."""
    labels = reading.get(*place)
    for label in labels if isinstance(labels, list) and isinstance(key, str) else ():
        if str(label).partition("=")[0] == key:
            name = reading.dotted(place[0], "compute_host_label")
            yield f"{reading.dotted(*place)}: {name} sets this label already"


def _network(reading: Reading) -> Iterator[str]:
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


def _registries(reading: Reading) -> Iterator[str]:
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
    reading: Reading, engine: Any, prefixes: Collection[Any]
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
    if str(reading.given(*place, "name") or node_registry.NAME) in prefixes:
        yield f"{reading.dotted(*place, 'name')}: the registry is given twice"
    services = cross_validation.services(reading)
    address = reading.given(*place, "address")
    if services and services.num_addresses < node_registry.SMALLEST_NETWORK:
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


def _is_within(address: str, network: networks.Network) -> bool:
    try:
        return networks.address(address) in network
    except ValueError:
        return True  # its type reports that


def _docker(reading: Reading, place: Location) -> Iterator[str]:
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


def _openstack(reading: Reading) -> Iterator[str]:
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


def _webhook(reading: Reading) -> Iterator[str]:
    place = (_CLUSTER, "authentication", "webhook")
    if (
        _given(reading, *place, "ca_certificate")
        and reading.get(*place, "skip_tls_verify") is True
    ):
        yield (
            f"{reading.dotted(*place, 'skip_tls_verify')}: leaves ca_certificate "
            "without effect; give one of them"
        )


def _set_twice(reading: Reading) -> Iterator[str]:
    """Variables in ``kubespray_vars`` beside the attribute that stands for them."""
    variables = reading.get("kubespray_vars")
    if not isinstance(variables, Mapping):
        return
    for location, names in option_metadata.variable_names(InstallParams).items():
        if not _given(reading, *location) or reading.get(*location) is False:
            continue
        for name in filter(variables.__contains__, names):
            yield (
                f"{reading.dotted('kubespray_vars', name)}: cannot be set beside "
                f"{reading.dotted(*location)}, which stands for it"
            )


def _given(reading: Reading, *location: str) -> bool:
    return reading.given(*location) not in (None, [])


def _items(reading: Reading, *location: str) -> Iterator[Location]:
    value = reading.get(*location)
    if isinstance(value, list):
        for number, item in enumerate(value):
            if isinstance(item, Mapping):
                yield (*location, str(number))


#: Each yields sentences about options.
PROBLEMS = (_labels, _network, _registries, _openstack, _webhook, _set_twice)
