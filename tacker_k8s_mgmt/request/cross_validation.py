# SPDX-License-Identifier: Apache-2.0
"""Checks of attributes against each other, and of values as they are written.

They work on the request as it was read, not on the validated model, so that their
problems are reported beside those of single attributes.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from tacker_k8s_mgmt.model import networks, reserved_variables, urls
from tacker_k8s_mgmt.request.key_aliases import Location, Reading
from tacker_k8s_mgmt.request.models import SPECIFIED_BALANCER

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
    network: networks.Network
    shown: str


def warnings(reading: Reading) -> Iterator[str]:
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


def _logins(reading: Reading) -> Iterator[str]:
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


def _family(reading: Reading) -> str:
    return "ipv6" if reading.get("address_family") == "ipv6" else "ipv4"


def _families(reading: Reading) -> Iterator[str]:
    family = _family(reading)
    for location in (_POD_CIDR, _CLUSTER_CIDR):
        network = _network(reading.get(*location))
        if network and f"ipv{network.version}" != family:
            name = reading.dotted(*location)
            yield f"{name}: must be of the family that address_family names, {family}"


def _overlaps(reading: Reading) -> Iterator[str]:
    family = _family(reading)
    ranges = [
        *_range(reading, _POD_CIDR, networks.PODS[family]),
        *_range(reading, _CLUSTER_CIDR, networks.SERVICES[family]),
        *_range(reading, _NODE_CIDR, None),
    ]
    for first, other in combinations(ranges, 2):
        if first.network.overlaps(other.network):
            yield f"{first.name}: {first.shown} overlaps {other.name} ({other.shown})"


def services(reading: Reading) -> networks.Network | None:
    """The network of Services; None if the request has none of the right form."""
    ranges = _range(reading, _CLUSTER_CIDR, networks.SERVICES[_family(reading)])
    return ranges[0].network if ranges else None


def _range(reading: Reading, location: Location, default: str | None) -> list[_Range]:
    written = reading.get(*location)
    name = reading.dotted(*location)
    network = _network(written)
    if network:
        return [_Range(name, network, str(network))]
    if default and not written:
        return [
            _Range(name, networks.network(default), f"kubespray's default {default}")
        ]
    return []


def _network(written: Any) -> networks.Network | None:
    try:
        return networks.network(written)
    except ValueError:
        return None


def _shared_directories(reading: Reading) -> Iterator[str]:
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


def _refused_variables(reading: Reading) -> Iterator[str]:
    variables, family = reading.get(_VARIABLES), _family(reading)
    if not isinstance(variables, Mapping):
        return
    for name, value in variables.items():
        shown = reading.dotted(_VARIABLES, str(name))
        if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
            listed = reading.dotted(_VARIABLES)
            yield f"{listed}: {repr(name)[:64]} is not the name of a variable"
        elif reason := reserved_variables.reserved(name, family):
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
        return isinstance(url, str) and urls.parts(url).port == 0
    except ValueError:
        return True


#: Each yields sentences about logins, networks, directories or variables.
PROBLEMS = (_logins, _families, _overlaps, _shared_directories, _refused_variables)
