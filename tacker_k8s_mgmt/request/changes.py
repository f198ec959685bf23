# SPDX-License-Identifier: Apache-2.0
"""What a request after the instantiation may change of the parameters.

Credentials, paths, and how an operation is done may change in a cluster's life; what
the cluster was built with may not. Each field of the parameters states it
(:mod:`.structure`). A request may repeat a fixed attribute unchanged, because
users send whole structures.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.request.accounts import CREDENTIALS
from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.cross_checks import LOGINS
from tacker_k8s_mgmt.request.fields import blank_is_absent
from tacker_k8s_mgmt.request.installation import ClusterRequest
from tacker_k8s_mgmt.request.structure import (
    CHANGEABLE,
    Fixed,
    Location,
    Problem,
    Structure,
    WrittenRequest,
    later,
    variable_names,
)

_VERSION = ("cluster", "kubernetes_version")
_VARIABLES = "kubespray_vars"
# Every cluster has these, if only by default, so they are merged and never new.
_ALWAYS_THERE = ("cluster", _VARIABLES)


def merge(
    stored: WrittenRequest, change: WrittenRequest, *, upgrade: bool = False
) -> WrittenRequest:
    """The stored request with the changes of a later one.

    Structures are merged attribute by attribute; another password or private key
    replaces all credentials of its account. Each refused change is a problem of the
    result. What is found is the logins that change.

    :param upgrade: whether the Kubernetes version may change. It then replaces the
        version among the stored variables.
    """
    values, problems = {**stored.values}, [*change.problems]
    models = structure.border_names(ClusterRequest)
    of_version = variable_names(ClusterRequest)[_VERSION]
    for name, value in change.values.items():
        before = stored.values.get(name, {} if name in _ALWAYS_THERE else None)
        rule, model = later(ClusterRequest)[name], models[name]
        if isinstance(rule, Fixed):
            problems += _refusal((name,), value, before, rule.reason)
        elif rule and rule.unless_new and before is None:
            problems += _refusal((name,), value, before, rule.unless_new)
        elif not isinstance(before, Mapping) or not isinstance(value, Mapping):
            values[name] = value
        elif name == _VARIABLES:
            others = {n: v for n, v in value.items() if n not in of_version}
            values[name] = {**before, **others}
            for variable in value.keys() & of_version:
                place, reason = (name, variable), _fixed(Cluster)[_VERSION[-1]]
                new, old = value[variable], before.get(variable)
                problems += _refusal(place, new, old, reason)
        elif rule == CHANGEABLE or model is None:
            values[name] = {**before, **value}
        else:
            refused = _fixed(model, upgrade=upgrade)
            for inner in sorted(value.keys() & refused):
                new, old = value[inner], before.get(inner)
                problems += _refusal((name, inner), new, old, refused[inner])
            accepted = _with_stored_parts(before, _accepted(value, refused))
            values[name] = {**_without_old_login(before, accepted), **accepted}
    variables = values.get(_VARIABLES)
    is_newer = upgrade and change.given(*_VERSION) is not None
    if is_newer and isinstance(variables, Mapping):
        kept = {n: v for n, v in variables.items() if n not in of_version}
        values[_VARIABLES] = kept
    logins = _changed_logins(stored.values, values)
    merged = stored.changed_by(change, values, problems)
    return replace(merged, found={"changed_logins": logins})


def _fixed(model: type[Structure], *, upgrade: bool = False) -> Mapping[str, str]:
    """The attributes of a structure that may not be changed, each with the reason."""
    return {
        name: rule.reason
        for name, rule in later(model).items()
        if isinstance(rule, Fixed) and not (upgrade and rule.but_by_upgrade)
    }


def _changed_logins(
    stored: Mapping[str, Any], merged: Mapping[str, Any]
) -> frozenset[str]:
    """The structures whose user name, password or key a merge has changed.

    The bastion counts as changed with any of its attributes: the inventory has the
    connection through it.
    """
    bastion = stored.get("bastion") != merged.get("bastion")
    return frozenset(["bastion"] if bastion else []) | frozenset(
        name
        for name, prefix in LOGINS
        if name != "bastion"
        and _login(stored.get(name), prefix) != _login(merged.get(name), prefix)
    )


def _login(holder: Any, prefix: str) -> list[Any]:
    given = holder if isinstance(holder, Mapping) else {}
    names = (f"{prefix}{name}" for name in ("username", *CREDENTIALS))
    return [blank_is_absent(given.get(name)) for name in names]


def _accepted(value: Mapping[str, Any], refused: Collection[str]) -> dict[str, Any]:
    """The changes of a structure; blank attributes of templates are none."""
    return {
        name: inner
        for name, inner in value.items()
        if name not in refused and blank_is_absent(inner) is not None
    }


def _with_stored_parts(
    before: Mapping[str, Any], change: Mapping[str, Any]
) -> dict[str, Any]:
    """A change, completed by what is stored of the structures in it."""
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
    """What is stored, without the credentials that the change replaces.

    A new key must not be used beside the password of the old login, or vice versa.
    """
    replaced: set[str] = set()
    for prefix in {prefix for _, prefix in LOGINS}:
        names = {f"{prefix}{name}": mark for name, mark in CREDENTIALS.items()}
        if any(
            name in change and change[name] != before.get(name)
            for name, mark in names.items()
            if not mark.use
        ):
            replaced.update(names)
    return {name: value for name, value in before.items() if name not in replaced}


def _refusal(
    location: Location, new: Any, stored: Any, reason: str
) -> Iterator[Problem]:
    if blank_is_absent(new) is not None and not _repeats(new, stored):
        yield Problem(location, f"cannot be changed after instantiation; {reason}")


def _repeats(new: Any, stored: Any) -> bool:
    """Whether a value changes nothing; a structure may repeat some attributes only."""
    if isinstance(new, Mapping) and isinstance(stored, Mapping):
        return all(
            blank_is_absent(value) is None or _repeats(value, stored.get(name))
            for name, value in new.items()
        )
    return bool(new == stored)
