"""``additionalParams.k8s_cluster_installation_param``, read and checked."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import (
    cross_validation,
    key_aliases,
    option_conflicts,
    secret_references,
    update_policy,
)
from tacker_k8s_mgmt.request.install_params import InstallParams
from tacker_k8s_mgmt.request.key_aliases import Reading
from tacker_k8s_mgmt.request.models import API_PORT, LoadBalancer, Proxy
from tacker_k8s_mgmt.request.secret_references import Resolver

__all__ = [
    "API_PORT",
    "InstallParams",
    "LoadBalancer",
    "Proxy",
    "merged",
    "parse",
    "without_secrets",
]

ATTRIBUTE = "k8s_cluster_installation_param"
_BECAUSE = {
    "ansible": "it names the Ansible server, without which nothing can be installed",
}


def parse(
    additional_params: Mapping[str, Any] | None,
    resolver: Resolver | None = None,
    *,
    needed: Collection[str] | None = None,
) -> InstallParams | None:
    """Read and check the parameters of an instantiate request.

    :param additional_params: the request's ``additionalParams``, as sent by the user or
        as shown by Tacker's GET view.
    :param resolver: tells secrets that are given by reference; without it they are only
        checked, and texts that are none stand for them.
    :param needed: structures whose secrets are needed (``ansible``...); None for all.
        Those of others may be missing.
    :returns: None if the request asks nothing of this driver.
    :raises ParamError: with every problem at once.
    """
    raw = _given(additional_params)
    return None if raw is None else _checked(_read(raw), resolver, needed)


def merged(
    stored: Mapping[str, Any] | None,
    override: Mapping[str, Any] | None,
    resolver: Resolver | None = None,
    *,
    needed: Collection[str] | None = None,
    upgrade: bool = False,
) -> InstallParams | None:
    """The parameters of an operation later in the cluster's life.

    Neither mapping is changed, and Tacker stores the merged values nowhere: they hold
    for this operation. What may be changed, and why other things may not:
    :mod:`.update_policy`. A secret that was not kept (:func:`without_secrets`) has to
    be repeated or replaced.

    :param stored: ``additionalParams`` of the instantiation.
    :param override: ``additionalParams`` of the scale or heal request.
    :param resolver: as above, and so is *needed*.
    :param upgrade: the Kubernetes version may change, too.
    :returns: None if this driver was not asked for when the VNF was instantiated.
    :raises ParamError: with every problem at once.
    """
    change, raw = _given(override), _given(stored)
    if change is None:
        return parse(stored, resolver, needed=needed)
    if raw is None:
        raise ParamError(["was not given when the VNF was instantiated"])
    later = _read(change)
    before = secret_references.restore_repeated(InstallParams, _read(raw), later)
    reading = update_policy.merge(before, later, upgrade=upgrade)
    changed = update_policy.changed_logins(before, reading)
    params = _checked(reading, resolver, needed)
    return params.model_copy(update={"changed_logins": changed})


def completed(
    stored: Mapping[str, Any],
    requests: Iterable[Mapping[str, Any]],
    resolver: Resolver | None = None,
) -> InstallParams:
    """The parameters as they are kept, with their secrets from where they were given.

    :param stored: ``additionalParams`` as :func:`without_secrets` keeps them.
    :param requests: ``additionalParams`` of the requests before, the latest first.
    :param resolver: as above.
    :raises ParamError: with every problem at once.
    """
    raw = _given(stored)
    if raw is None:
        raise ParamError(["was not given when the VNF was instantiated"])
    reading = _read(raw)
    for request in requests:
        if (given := _given(request)) is not None:
            later = _read(given)
            reading = secret_references.restore_repeated(InstallParams, reading, later)
    return _checked(reading, resolver, None)


def without_secrets(additional_params: Mapping[str, Any]) -> dict[str, Any]:
    """The attribute as it may be kept where others see it; :func:`merged` reads it.

    :param additional_params: of a request that :func:`parse` takes.
    :returns: ``{"k8s_cluster_installation_param": ...}``; nothing if it is not given.
    """
    raw = _given(additional_params)
    if raw is None:
        return {}
    return {ATTRIBUTE: secret_references.without_secrets(InstallParams, _read(raw))}


def _given(additional_params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The attribute in either spelling; whatever else there is, Tacker's or not, is
    nothing of ours.
    """
    given = additional_params or {}
    spellings = (ATTRIBUTE, key_aliases.camel(ATTRIBUTE))
    raw = next((given[name] for name in spellings if name in given), None)
    if raw is not None and not isinstance(raw, Mapping):
        raise ParamError(["the attribute itself must be a structure"])
    return raw


def _read(raw: Mapping[str, Any]) -> Reading:
    reading = key_aliases.read(InstallParams, raw)
    secret_references.read(InstallParams, reading)
    key_aliases.restore_keys(reading, "kubespray_vars")
    return reading


def _checked(
    written: Reading, resolver: Resolver | None, needed: Collection[str] | None
) -> InstallParams:
    opened = secret_references.resolve(InstallParams, written, resolver, needed)
    reading = replace(written, values=opened.values)
    params, mistakes = _validated(reading)
    problems = [
        *reading.problems,
        *opened.missing,
        *mistakes,
        *cross_validation.problems(reading),
        *option_conflicts.problems(reading),
    ]
    if params is None or problems or opened.lost:
        raise ParamError([*opened.lost, *problems], elsewhere=not problems)
    found = {"references": tuple(opened.uses), "resolved": tuple(opened.secrets)}
    return params.model_copy(update=found) if opened.uses else params


def _validated(reading: Reading) -> tuple[InstallParams | None, list[str]]:
    warnings = (
        *reading.warnings,
        *cross_validation.warnings(reading),
        *option_conflicts.warnings(reading),
    )
    try:
        values = {**reading.values, "warnings": warnings}
        return InstallParams.model_validate(values), []
    except ValidationError as error:
        # The details alone leave this block: the exception holds the user's secrets.
        details = error.errors(include_url=False, include_input=False)
    return None, [reading.sentence(detail, _BECAUSE) for detail in details]
