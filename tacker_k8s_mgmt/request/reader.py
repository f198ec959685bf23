# SPDX-License-Identifier: Apache-2.0
"""``additionalParams.k8s_cluster_installation_param``, read and checked.

Lists in the VNF instance's ``metadata`` replace those of the parameters. A request that
modifies the VNF instance has no ``additionalParams``; what it wants is in its
``metadata``, which both of Tacker's APIs keep. Each list is an entry of its own, as
JSON text, because Tacker's v1 API stores nothing else.

Tacker's keys for the user data of a VNF package are in ``additionalParams``, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request import (
    applications,
    changes,
    cross_checks,
    operator_server,
    profiles,
    secrets,
    structure,
    tenants,
)
from tacker_k8s_mgmt.request.installation import API_PORT, ClusterRequest
from tacker_k8s_mgmt.request.profile_document import Source
from tacker_k8s_mgmt.request.secrets import Resolver
from tacker_k8s_mgmt.request.structure import WrittenRequest
from tacker_k8s_mgmt.text import without_login

#: The entries of the metadata for attributes of the parameters.
TENANTS = "k8s_tenants"
APPLICATIONS = "k8s_applications"
_ATTRIBUTES = {TENANTS: "tenants", APPLICATIONS: "applications"}


def with_metadata_lists(
    reading: WrittenRequest, metadata: Mapping[str, Any]
) -> WrittenRequest:
    """The parameters with the lists of the metadata in place of their own.

    :param reading: the parameters; is not changed.
    :param metadata: an entry that is null, or missing, replaces nothing.
    """
    for entry, attribute in _ATTRIBUTES.items():
        if metadata.get(entry) is not None:
            reading = _replaced(reading, entry, attribute, metadata[entry])
    return reading


def problems(metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the lists by themselves, without the other parameters."""
    reading = with_metadata_lists(WrittenRequest({}), metadata)
    applications = _ATTRIBUTES[APPLICATIONS]
    literal = secrets.literal(ClusterRequest, reading, applications)
    found = [*reading.problems, *literal]
    opened = secrets.resolve(ClusterRequest, reading, None, None)
    for attribute, value in opened.values.items():
        field = ClusterRequest.model_fields[attribute]
        try:
            TypeAdapter(field.annotation).validate_python(value)
        except ValidationError as error:
            # Neither the values nor the chained exception leave this block.
            for detail in error.errors(include_url=False, include_input=False):
                detail["loc"] = (attribute, *detail["loc"])
                found.append(reading.sentence(detail, {}))
    return found


def _replaced(
    reading: WrittenRequest, entry: str, attribute: str, value: Any
) -> WrittenRequest:
    problems = []
    if isinstance(value, str):
        try:
            value = untrusted.parse_json(value)
        except ValueError:
            value, problems = [], [f"{entry}: is text, but not JSON"]
    new = structure.read(ClusterRequest, {attribute: value})
    secrets.read(ClusterRequest, new)
    written = {n: text for n, text in reading.written.items() if n[0] != attribute}
    return replace(
        reading,
        values={**reading.values, attribute: new.values.get(attribute)},
        problems=[*reading.problems, *problems, *_named(entry, attribute, new)],
        written={**written, **new.written, (attribute,): entry},
    )


def _named(entry: str, attribute: str, reading: WrittenRequest) -> list[str]:
    """The problems, which begin with the attribute's name, with the entry's instead."""
    return [f"{entry}{text.removeprefix(attribute)}" for text in reading.problems]


__all__ = ["API_PORT", "ClusterRequest", "merged", "parse", "without_secrets"]

ATTRIBUTE = "k8s_cluster_installation_param"
_SPELLINGS = (ATTRIBUTE, structure.camel(ATTRIBUTE))
_NONE: Mapping[str, Any] = MappingProxyType({})
_BECAUSE = {
    "ansible": "it names the Ansible server, without which nothing can be installed, "
    "and Tacker's operator has none for all requests ([k8s_mgmt] ansible_host)",
}


def parse(
    additional_params: Mapping[str, Any] | None,
    resolver: Resolver | None = None,
    *,
    needed: Collection[str] | None = None,
    find_profile: Source = profiles.built_in,
    find_server: operator_server.Find = operator_server.none,
    metadata: Mapping[str, Any] = _NONE,
) -> ClusterRequest | None:
    """Read and check the parameters of an instantiate request.

    :param additional_params: the request's ``additionalParams``, as sent by the user or
        as shown by Tacker's GET view.
    :param resolver: returns the secrets behind references; without it references are
        only checked, and placeholders are used.
    :param needed: structures whose secrets are needed (``ansible``...); None for all.
        Those of others may be missing.
    :param find_profile: finds the request's profile; without it, the driver's own.
    :param find_server: finds the Ansible server of a request that has none.
    :param metadata: of the VNF instance, whose lists replace
        those of the parameters. Their problems are no error, but in the result, which
        then has the lists of the request.
    :returns: None if the request has no parameters of this driver.
    :raises ParamError: with every problem at once.
    """
    raw = _attribute(additional_params)
    if raw is None:
        return None
    reading = profiles.expanded(_read(raw), find_profile)
    return _with_metadata(reading, resolver, needed, metadata, find_server)


def merged(
    stored: Mapping[str, Any] | None,
    override: Mapping[str, Any] | None,
    resolver: Resolver | None = None,
    *,
    needed: Collection[str] | None = None,
    upgrade: bool = False,
    find_profile: Source = profiles.built_in,
    find_server: operator_server.Find = operator_server.none,
    metadata: Mapping[str, Any] = _NONE,
) -> ClusterRequest | None:
    """The parameters of an operation after the instantiation.

    Neither mapping is changed, and Tacker does not store the merged values: they are
    valid for this operation. :mod:`.changes` has what may be changed. A secret
    that was not kept (:func:`without_secrets`) has to be repeated or replaced.

    :param stored: ``additionalParams`` of the instantiation.
    :param override: ``additionalParams`` of the later request.
    :param resolver: as in :func:`parse`, and so are *needed* and *metadata*.
    :param upgrade: whether the Kubernetes version may change, too.
    :param find_profile: finds what was kept of the profile; see :func:`parse`.
    :param find_server: as in :func:`parse`. It is that of the time of the operation.
    :returns: None if the VNF was instantiated without this driver.
    :raises ParamError: with every problem at once.
    """
    change = _attribute(override)
    if change is None:
        return parse(
            stored,
            resolver,
            needed=needed,
            find_profile=find_profile,
            find_server=find_server,
            metadata=metadata,
        )
    raw = _instantiated_with(stored)
    later = _read(change)
    before = secrets.restore_repeated(ClusterRequest, _read(raw), later)
    before = profiles.expanded(before, find_profile)
    reading = changes.merge(before, later, upgrade=upgrade)
    changed = changes.changed_logins(before, reading)
    reading.problems += operator_server.refused_change(before, later, find_server)
    params = _with_metadata(reading, resolver, needed, metadata, find_server)
    return params.model_copy(update={"changed_logins": changed})


def completed(
    stored: Mapping[str, Any],
    requests: Iterable[Mapping[str, Any]],
    resolver: Resolver | None = None,
    *,
    find_profile: Source = profiles.built_in,
    find_server: operator_server.Find = operator_server.none,
    metadata: Mapping[str, Any] = _NONE,
) -> ClusterRequest:
    """The stored parameters with the secrets of former requests.

    :param stored: ``additionalParams`` from :func:`without_secrets`.
    :param requests: ``additionalParams`` of the former requests, the latest first.
    :param resolver: as in :func:`parse`, and so is *metadata*.
    :param find_profile: as in :func:`merged`, and so is *find_server*.
    :raises ParamError: with every problem at once.
    """
    reading = _read(_instantiated_with(stored))
    for request in requests:
        if (raw := _attribute(request)) is not None:
            later = _read(raw)
            reading = secrets.restore_repeated(ClusterRequest, reading, later)
    reading = profiles.expanded(reading, find_profile)
    return _with_metadata(reading, resolver, None, metadata, find_server)


def without_secrets(additional_params: Mapping[str, Any]) -> dict[str, Any]:
    """The attribute without secrets, to be stored in Tacker; :func:`merged` reads it.

    :param additional_params: of a request that :func:`parse` accepts.
    :returns: ``{"k8s_cluster_installation_param": ...}``; empty without the attribute.
    """
    raw = _attribute(additional_params)
    if raw is None:
        return {}
    return {ATTRIBUTE: secrets.without_secrets(ClusterRequest, _read(raw))}


def not_kept(stored: Mapping[str, Any]) -> list[str]:
    """The secrets that a request without parameters lacks, by their dotted names.

    :param stored: ``additionalParams`` from :func:`without_secrets`.
    """
    return secrets.not_kept(ClusterRequest, _read(_instantiated_with(stored)))


def names_parameters(text: str) -> bool:
    """Whether a text, such as a request in JSON, names the attribute."""
    return any(f'"{name}"' in text for name in _SPELLINGS)


def _attribute(params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The attribute in either spelling; others of ``additionalParams`` are ignored."""
    raw = next((params[name] for name in _SPELLINGS if params and name in params), None)
    if raw is not None and not isinstance(raw, Mapping):
        raise ParamError(["the attribute itself must be a structure"])
    return raw


def _instantiated_with(stored: Mapping[str, Any] | None) -> Mapping[str, Any]:
    raw = _attribute(stored)
    if raw is None:
        raise ParamError(["was not given when the VNF was instantiated"])
    return raw


def _read(raw: Mapping[str, Any]) -> WrittenRequest:
    reading = structure.read(ClusterRequest, raw)
    secrets.read(ClusterRequest, reading)
    structure.restore_keys(reading, "kubespray_vars")
    return reading


def _with_metadata(
    written: WrittenRequest,
    resolver: Resolver | None,
    needed: Collection[str] | None,
    metadata: Mapping[str, Any],
    find_server: operator_server.Find,
) -> ClusterRequest:
    replaced = with_metadata_lists(written, metadata)
    try:
        return _checked(replaced, resolver, needed, find_server)
    except ParamError as error:
        if replaced is written:
            raise
        try:
            params = _checked(written, resolver, needed, find_server)
        except ParamError:
            raise error from None
        return params.model_copy(update={"metadata_problems": error.problems})


def _checked(
    written: WrittenRequest,
    resolver: Resolver | None,
    needed: Collection[str] | None,
    find_server: operator_server.Find,
) -> ClusterRequest:
    opened = secrets.resolve(ClusterRequest, written, resolver, needed)
    reading, is_operators = operator_server.placed(
        replace(written, values=opened.values), find_server
    )
    params, mistakes = _validated(reading)
    needs = dict(profiles.needed(reading))
    mistakes = [text for text in mistakes if text.partition(":")[0] not in needs]
    mistakes += (f"{name}: {sentence}" for name, sentence in needs.items())
    checks = (
        *cross_checks.PROBLEMS,
        *cross_checks.OPTION_PROBLEMS,
        tenants.problems,
        applications.problems,
    )
    conflicts = (problem for check in checks for problem in check(reading))
    problems = _without_blanks(
        written,
        [
            *reading.problems,
            *opened.missing,
            *secrets.literal(ClusterRequest, written, applications.ATTRIBUTE),
            *mistakes,
            *conflicts,
        ],
    )
    if params is None or problems or opened.lost:
        # Names of attributes and of variables are repeated, also where they are none.
        texts = map(without_login, (*opened.lost, *problems))
        raise ParamError(list(texts), elsewhere=not problems)
    update: dict[str, Any] = {"operators_server": True} if is_operators else {}
    if opened.uses:
        update |= {"references": tuple(opened.uses), "resolved": tuple(opened.secrets)}
    if reading.expansion:
        update |= {"expansion": reading.expansion}
    return params.model_copy(update=update) if update else params


def _without_blanks(written: WrittenRequest, problems: Iterable[str]) -> list[str]:
    """The problems, with one sentence for each attribute that is still blank."""
    found = structure.places(written.values)
    blank = {written.dotted(*place): text for place, text in found}
    others = [text for text in problems if text.partition(":")[0] not in blank]
    return [*(f"{name}: {text}" for name, text in blank.items()), *others]


def _validated(reading: WrittenRequest) -> tuple[ClusterRequest | None, list[str]]:
    warnings = (
        *reading.warnings,
        *cross_checks.warnings(reading),
        *cross_checks.option_warnings(reading),
        *tenants.warnings(reading),
    )
    try:
        values = {**reading.values, "warnings": warnings}
        return ClusterRequest.model_validate(values), []
    except ValidationError as error:
        # The details alone leave this block: the exception holds the user's secrets.
        details = error.errors(include_url=False, include_input=False)
    return None, [reading.sentence(detail, _BECAUSE) for detail in details]


PATH = "lcm-operation-user-data"
CLASS = "lcm-operation-user-data-class"


def path(additional_params: Mapping[str, Any] | None) -> str:
    """The path in the package of what Tacker runs; "" for none."""
    given = additional_params or {}
    return str(given[PATH]) if given.get(PATH) and given.get(CLASS) else ""


def package_change_problems(additional_params: Mapping[str, Any]) -> Iterator[str]:
    """What would make Tacker's v2 API change VMs in a change of package."""
    if additional_params.get("vdu_params"):
        yield "additionalParams.vdu_params must be []"
    missing = [name for name in (PATH, CLASS) if not additional_params.get(name)]
    if missing:
        yield (
            f"additionalParams must have {' and '.join(missing)} as the request of the "
            "instantiation, for without them Tacker sets images and flavours anew"
        )
