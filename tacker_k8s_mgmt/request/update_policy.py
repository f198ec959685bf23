"""What a scale or heal request may change of the parameters of the instantiation.

Credentials, where things lie, and how the operation is done may change in a cluster's
life. What the cluster was built with may not: each field of the parameters says so
(:mod:`.option_metadata`). A request may repeat such an attribute as it was: people send
whole structures.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.request import key_aliases
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.cross_validation import LOGINS
from tacker_k8s_mgmt.request.field_types import blank_is_absent
from tacker_k8s_mgmt.request.install_params import InstallParams
from tacker_k8s_mgmt.request.key_aliases import Location, Reading, Structure
from tacker_k8s_mgmt.request.option_metadata import (
    CHANGEABLE,
    Fixed,
    later,
    variable_names,
)

_VERSION = ("cluster", "kubernetes_version")
# Every cluster has these, if only by default, so they are merged and never new.
_ALWAYS_THERE = ("cluster", "kubespray_vars")
_LOGIN = ("username", "password", "private_key", "private_key_passphrase")


def merge(stored: Reading, change: Reading, *, upgrade: bool = False) -> Reading:
    """The stored request with the changes of a later one.

    Structures are merged attribute by attribute; another password or private key
    replaces both of the account. What may not be changed is among the result's
    problems.

    :param upgrade: whether the Kubernetes version may be another one. It takes the
        place of one among the stored variables.
    """
    merged = Reading(
        values={**stored.values},
        problems=[*stored.problems, *change.problems],
        warnings=list(dict.fromkeys([*stored.warnings, *change.warnings])),
        written={**stored.written, **change.written},
    )
    models = key_aliases.border_names(InstallParams)
    of_version = variable_names(InstallParams)[_VERSION]
    for name, value in change.values.items():
        before = stored.values.get(name, {} if name in _ALWAYS_THERE else None)
        rule, model = later(InstallParams)[name], models[name]
        if isinstance(rule, Fixed):
            merged.problems += _fixed(stored, change, (name,), rule.reason)
        elif rule and rule.unless_new and before is None:
            merged.problems += _fixed(stored, change, (name,), rule.unless_new)
        elif not isinstance(before, Mapping) or not isinstance(value, Mapping):
            merged.values[name] = value
        elif rule == CHANGEABLE or model is None:
            others = {n: v for n, v in value.items() if n not in of_version}
            merged.values[name] = {**before, **others}
            for variable in value.keys() & of_version:
                reason = _reasons(Cluster)[_VERSION[-1]]
                merged.problems += _fixed(stored, change, (name, variable), reason)
        else:
            refused = _reasons(model, upgrade=upgrade)
            for inner in sorted(value.keys() & refused):
                place = (name, inner)
                merged.problems += _fixed(stored, change, place, refused[inner])
            new = _whole(before, _given(value, refused))
            merged.values[name] = {**_without_old_login(before, new), **new}
    variables = merged.values.get("kubespray_vars")
    is_newer = upgrade and blank_is_absent(change.get(*_VERSION)) is not None
    if is_newer and isinstance(variables, Mapping):
        kept = {n: v for n, v in variables.items() if n not in of_version}
        merged.values["kubespray_vars"] = kept
    return merged


def _reasons(model: type[Structure], *, upgrade: bool = False) -> Mapping[str, str]:
    """The attributes of a structure that may not be changed, each with the reason."""
    return {
        name: rule.reason
        for name, rule in later(model).items()
        if isinstance(rule, Fixed) and not (upgrade and rule.but_by_upgrade)
    }


def changed_logins(stored: Reading, merged: Reading) -> frozenset[str]:
    """The structures whose user name, password or key is another one after a merge.

    The bastion also when it is another one: the inventory tells the way through it.
    """
    bastion = stored.get("bastion") != merged.get("bastion")
    return frozenset(["bastion"] if bastion else []) | frozenset(
        name
        for name, prefix in LOGINS
        for attribute in _LOGIN
        if name != "bastion"
        and blank_is_absent(stored.get(name, f"{prefix}{attribute}"))
        != blank_is_absent(merged.get(name, f"{prefix}{attribute}"))
    )


def _given(value: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """What a structure changes; templates leave attributes empty."""
    return {
        name: inner
        for name, inner in value.items()
        if name not in refused and blank_is_absent(inner) is not None
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
    """Another password or key replaces all credentials.

    A key that is given later must not be used beside a password that was good for the
    old login, nor the other way round.
    """
    replaced: set[str] = set()
    for prefix in {prefix for _, prefix in LOGINS}:
        credentials = [f"{prefix}{attribute}" for attribute in _LOGIN[1:]]
        if any(
            way in change and change[way] != before.get(way) for way in credentials[:2]
        ):
            replaced.update(credentials)
    return {name: value for name, value in before.items() if name not in replaced}


def _fixed(
    stored: Reading, change: Reading, location: Location, reason: str
) -> Iterator[str]:
    was, wanted = stored.get(*location), change.get(*location)
    if blank_is_absent(wanted) is not None and not _repeats(wanted, was):
        name = change.dotted(*location)
        yield f"{name}: cannot be changed after instantiation; {reason}"


def _repeats(wanted: Any, was: Any) -> bool:
    """Whether nothing else is wanted than there was; of a structure, parts will do."""
    if isinstance(wanted, Mapping) and isinstance(was, Mapping):
        return all(
            blank_is_absent(value) is None or _repeats(value, was.get(name))
            for name, value in wanted.items()
        )
    return bool(wanted == was)
