"""What a scale or heal request may change of the parameters of the instantiation.

Credentials, where things lie, and how the operation is done may change in a cluster's
life. What the cluster was built with may not. A request may repeat such an attribute as
it was: people send whole structures.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tacker_k8s_mgmt.request.field_types import blank_is_absent
from tacker_k8s_mgmt.request.key_aliases import Location, Reading

_LOGIN = frozenset({"username", "password", "private_key", "private_key_passphrase"})
_PLACES = frozenset(
    {"ip_address", "port", "kubespray_root_path", "venv_path", "allow_unknown_release"}
)
_VERSION = "kubernetes_version"
#: What may change: of a structure these attributes, None for all of it.
CHANGEABLE: Mapping[str, frozenset[str] | None] = MappingProxyType(
    {
        "ansible": _LOGIN | _PLACES | {"host_key", "forks"},
        "bastion": _LOGIN | {"ip_address", "port", "host_key", "used_for"},
        "master_node": _LOGIN | {"host_keys"},
        "worker_node": _LOGIN | {"host_keys"},
        "external_lb_param": frozenset({f"ssh_{name}" for name in _LOGIN})
        | {"ssh_host_key", "script_path"},
        "drain": None,
        # They hold for the nodes that are made from then on.
        "cluster": frozenset({"registries", "offline"}),
        "private_registry_connection_info": None,
        "kubespray_vars": None,
    }
)
#: What may change with an upgrade.
UPGRADEABLE: Mapping[str, frozenset[str] | None] = MappingProxyType(
    {**CHANGEABLE, "cluster": (CHANGEABLE["cluster"] or frozenset()) | {_VERSION}}
)

_STACK = "it names what is in the Heat stack"
_NETWORK = "the cluster was built on it"
_UPGRADE = "another version comes with an upgrade only: a change of the VNF package"
_KUBECTL = "nodes that are there would keep theirs; use kubectl label and kubectl taint"
_WHY_NOT: Mapping[str, str] = MappingProxyType(
    {
        "address_family": _NETWORK,
        "pod_cidr": _NETWORK,
        "cluster_cidr": _NETWORK,
        "aspect_id": _STACK,
        "ssh_cp_name": _STACK,
        "nic_cp_name": _STACK,
        "proxy": "it was set up on every node",
        "vim_name": "the cluster is registered under it",
        "transferring_inventory_path": "the cluster's inventory lies there",
        "api_port": "the nodes and the VIM reach the API there",
        "external_lb_param": "the cluster was built without a load balancer",
        **dict.fromkeys((_VERSION, "kube_version"), _UPGRADE),
        "container_manager": "all nodes have the same",
        "network": _NETWORK,
        **dict.fromkeys(("node_labels", "node_taints"), _KUBECTL),
        **dict.fromkeys(("aspects", "compute_host_label"), _KUBECTL),
        **dict.fromkeys(
            (
                *("openstack", "storage", "authentication", "helm", "local_registry"),
                *("metrics_server", "audit_log", "encrypt_secrets"),
                "renew_certificates",
            ),
            "it is set up on the control plane, which scale and heal of workers leave "
            "as it is",
        ),
    }
)
#: Another one of the first replaces all of them: a key that is given later must not be
#: used beside a password that was good for the old login, nor the other way round.
_CREDENTIALS = (
    (("password", "private_key"), "private_key_passphrase"),
    (("ssh_password", "ssh_private_key"), "ssh_private_key_passphrase"),
)


def merge(
    stored: Reading,
    change: Reading,
    changeable: Mapping[str, frozenset[str] | None] = CHANGEABLE,
) -> Reading:
    """The stored request with the changes of a later one.

    Structures are merged attribute by attribute; another password or private key
    replaces both of the account. What may not be changed is among the result's
    problems.

    :param changeable: as :data:`CHANGEABLE` has it.
    """
    merged = Reading(
        values={**stored.values},
        problems=[*stored.problems, *change.problems],
        warnings=list(dict.fromkeys([*stored.warnings, *change.warnings])),
        written={**stored.written, **change.written},
    )
    for name, value in change.values.items():
        before = stored.values.get(name, {} if name == "cluster" else None)
        if name not in changeable or (before is None and name == "external_lb_param"):
            merged.problems += _fixed(stored, change, (name,))
        elif not isinstance(before, Mapping) or not isinstance(value, Mapping):
            merged.values[name] = value
        elif (allowed := changeable[name]) is None:
            merged.values[name] = {**before, **value}
            if "kube_version" in value:
                merged.problems += _fixed(stored, change, (name, "kube_version"))
        else:
            for inner in sorted(value.keys() - allowed):
                merged.problems += _fixed(stored, change, (name, inner))
            new = _whole(before, _given(value, allowed))
            merged.values[name] = {**_without_old_login(before, new), **new}
    return merged


def upgraded(stored: Reading, change: Reading) -> Reading:
    """As :func:`merge`, and the Kubernetes version may be another one.

    It takes the place of one among the stored variables.
    """
    merged = merge(stored, change, UPGRADEABLE)
    variables = merged.values.get("kubespray_vars")
    asked = blank_is_absent(change.get("cluster", _VERSION)) is not None
    if asked and isinstance(variables, Mapping):
        kept = {n: v for n, v in variables.items() if n != "kube_version"}
        merged.values["kubespray_vars"] = kept
    return merged


def changed_logins(stored: Reading, merged: Reading) -> frozenset[str]:
    """The structures whose user name, password or key is another one after a merge.

    The bastion also when it is another one: the inventory tells the way through it.
    """
    bastion = stored.get("bastion") != merged.get("bastion")
    return frozenset(["bastion"] if bastion else []) | frozenset(
        name
        for name in ("ansible", "master_node", "worker_node", "external_lb_param")
        if any(
            blank_is_absent(stored.get(name, f"{prefix}{attribute}"))
            != blank_is_absent(merged.get(name, f"{prefix}{attribute}"))
            for attribute in _LOGIN
            for prefix in ("", "ssh_")
        )
    )


def _given(value: Mapping[str, Any], allowed: frozenset[str]) -> dict[str, Any]:
    """What a structure changes; templates leave attributes empty."""
    return {
        name: inner
        for name, inner in value.items()
        if name in allowed and blank_is_absent(inner) is not None
    }


def _whole(before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A change with what it leaves as it was in the structures of a structure."""
    return {
        name: {**inside, **value}
        if isinstance(value, Mapping)
        and isinstance(inside := before.get(name), Mapping)
        else value
        for name, value in change.items()
    }


def _without_old_login(
    before: Mapping[str, Any], change: Mapping[str, Any]
) -> dict[str, Any]:
    replaced: set[str] = set()
    for ways, passphrase in _CREDENTIALS:
        if any(way in change and change[way] != before.get(way) for way in ways):
            replaced |= {*ways, passphrase}
    return {name: value for name, value in before.items() if name not in replaced}


def _fixed(stored: Reading, change: Reading, location: Location) -> Iterator[str]:
    was, wanted = stored.get(*location), change.get(*location)
    if blank_is_absent(wanted) is not None and not _repeats(wanted, was):
        name, reason = change.dotted(*location), _WHY_NOT[location[-1]]
        yield f"{name}: cannot be changed after instantiation; {reason}"


def _repeats(wanted: Any, was: Any) -> bool:
    """Whether nothing else is wanted than there was; of a structure, parts will do."""
    if isinstance(wanted, Mapping) and isinstance(was, Mapping):
        return all(
            blank_is_absent(value) is None or _repeats(value, was.get(name))
            for name, value in wanted.items()
        )
    return bool(wanted == was)
