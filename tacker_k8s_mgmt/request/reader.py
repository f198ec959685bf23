# SPDX-License-Identifier: Apache-2.0
"""``additionalParams.k8s_cluster_installation_param``, read and checked.

Lists in the VNF instance's ``metadata`` replace those of the parameters. A request that
modifies the VNF instance has no ``additionalParams``; what it wants is in its
``metadata``, which both of Tacker's APIs keep. Each list is an entry of its own, as
JSON text, because Tacker's v1 API stores nothing else.

Tacker's keys for the user data of a VNF package are in ``additionalParams``, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

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
from tacker_k8s_mgmt.request.structure import Problem, WrittenRequest, readable
from tacker_k8s_mgmt.text import without_login

__all__ = ["API_PORT", "ClusterRequest", "RequestReader", "without_secrets"]

ATTRIBUTE = "k8s_cluster_installation_param"
#: The entries of the metadata for attributes of the parameters.
TENANTS = "k8s_tenants"
APPLICATIONS = "k8s_applications"
_LISTS = {TENANTS: "tenants", APPLICATIONS: "applications"}
_SPELLINGS = (ATTRIBUTE, structure.camel(ATTRIBUTE))
_BECAUSE = {
    "ansible": "it names the Ansible server, without which nothing can be installed, "
    "and Tacker's operator has none for all requests ([k8s_mgmt] ansible_host)"
}
#: Whose secrets must be references: everybody sees it who sees the VNF instance.
_BY_REFERENCE = applications.ATTRIBUTE


@dataclass(frozen=True)
class RequestReader:
    """Reads the parameters of an operation.

    :param resolver: returns the secrets behind references; without it references are
        only checked, and placeholders are used.
    :param needed: structures whose secrets are needed (``ansible``...); None for all.
        Those of others may be missing.
    :param find_profile: finds the request's profile, or what was kept of it; without
        it, the driver's own.
    :param find_server: finds the Ansible server of a request that has none, as it is at
        the time of the operation.
    :param metadata: of the VNF instance, whose lists replace those of the parameters.
        Their problems are no error, but in the result, which then has the lists of the
        request.
    """

    resolver: Resolver | None = None
    needed: Collection[str] | None = None
    find_profile: Source = profiles.built_in
    find_server: operator_server.Find = operator_server.none
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def read(self, params: Mapping[str, Any] | None) -> ClusterRequest | None:
        """The parameters of an instantiation.

        :param params: ``additionalParams``, as sent by the user or as shown by Tacker's
            GET view.
        :returns: None if the request has no parameters of this driver.
        :raises ParamError: with every problem at once.
        """
        raw = _attribute(params)
        return None if raw is None else self._request(raw)

    def update(
        self,
        stored: Mapping[str, Any] | None,
        change: Mapping[str, Any] | None,
        *,
        upgrade: bool = False,
    ) -> ClusterRequest | None:
        """The parameters of an operation after the instantiation.

        Neither mapping is changed, and Tacker does not store the result: it is valid
        for this operation. :mod:`.changes` has what may be changed. A secret that was
        not kept (:func:`without_secrets`) has to be repeated or replaced.

        :param stored: ``additionalParams`` of the instantiation.
        :param change: ``additionalParams`` of the later request.
        :param upgrade: whether the Kubernetes version may change, too.
        :returns: None if the VNF was instantiated without this driver.
        :raises ParamError: with every problem at once.
        """
        raw = _attribute(change)
        if raw is None:
            return self.read(stored)
        first, later = _instantiated_with(stored), _written(raw)
        return self._request(first, [later], later, upgrade=upgrade)

    def with_former_secrets(
        self, stored: Mapping[str, Any], requests: Iterable[Mapping[str, Any]]
    ) -> ClusterRequest:
        """The stored parameters with the secrets of former requests.

        :param stored: ``additionalParams`` from :func:`without_secrets`.
        :param requests: ``additionalParams`` of the former requests, the latest first.
        :raises ParamError: with every problem at once.
        """
        former = [_written(raw) for one in requests if (raw := _attribute(one))]
        return self._request(_instantiated_with(stored), former)

    def _request(
        self,
        raw: Mapping[str, Any],
        repeating: Iterable[WrittenRequest] = (),
        change: WrittenRequest | None = None,
        *,
        upgrade: bool = False,
    ) -> ClusterRequest:
        """What an attribute asks for.

        :param repeating: requests that may repeat secrets that it lacks.
        :param change: what a later request changes of it.
        """
        written = _written(raw)
        written = profiles.expanded(written, self.find_profile)
        for other in repeating:
            written = secrets.restore_repeated(ClusterRequest, written, other)
        if change:
            stored = written
            written = changes.merge(stored, change, upgrade=upgrade)
            written.problems += operator_server.refused_change(
                stored, change, self.find_server
            )
        replaced = with_metadata_lists(written, self.metadata)
        try:
            return self._built(replaced)
        except ParamError as error:
            if replaced is written:
                raise
            try:
                request = self._built(written)
            except ParamError:
                raise error from None
            return request.model_copy(update={"metadata_problems": error.problems})

    def _built(self, asked: WrittenRequest) -> ClusterRequest:
        literal = secrets.literal(ClusterRequest, asked.values, _BY_REFERENCE)
        opened, lost = secrets.resolve(
            ClusterRequest, asked, self.resolver, self.needed
        )
        written = operator_server.with_server(opened, self.find_server)
        request, mistakes = structure.build(ClusterRequest, written.values, _BECAUSE)
        needs = {need.location: need for need in written.needed()}
        problems = [
            *written.problems,
            *lost,
            *literal,
            *(one for one in mistakes if one.location not in needs),
            *needs.values(),
            *cross_checks.problems(request, written),
            *readable(tenants.problems(request)),
            *readable(applications.problems(request)),
        ]
        # What is blank has no other problem.
        blank = dict(structure.places(asked.values))
        problems = [one for one in problems if one.location not in blank]
        problems[:0] = [Problem(*place) for place in blank.items()]
        if problems:
            # Names of attributes and variables are repeated, also where they are none.
            texts = [without_login(str(one)) for one in written.named(problems)]
            retryable = all(problem.retryable for problem in problems)
            raise ParamError(texts, retryable=retryable)
        warnings = [
            *written.warnings,
            *cross_checks.warnings(request, written),
            *tenants.warnings(request),
        ]
        return request.model_copy(
            update={
                **written.found,
                "warnings": tuple(map(str, written.named(warnings))),
                "expansion": written.expansion,
            }
        )


def with_metadata_lists(
    written: WrittenRequest, metadata: Mapping[str, Any]
) -> WrittenRequest:
    """The parameters with the lists of the metadata in place of their own.

    :param written: the parameters; is not changed.
    :param metadata: an entry that is null, or missing, replaces nothing.
    """
    for entry, attribute in _LISTS.items():
        if metadata.get(entry) is not None:
            written = _replaced(written, entry, attribute, metadata[entry])
    return written


def merged_metadata(
    metadata: Mapping[str, Any], patch: Mapping[str, Any]
) -> dict[str, Any]:
    """The metadata after a request that modifies the VNF instance, as Tacker merges."""
    values = {**metadata, **patch}
    return {name: value for name, value in values.items() if value is not None}


def _replaced(
    written: WrittenRequest, entry: str, attribute: str, value: Any
) -> WrittenRequest:
    problems = []
    if isinstance(value, str):
        try:
            value = untrusted.parse_json(value)
        except ValueError:
            value = []
            problems = [Problem((attribute,), "is text, but not JSON")]
    new = structure.read(ClusterRequest, {attribute: value})
    secrets.read(ClusterRequest, new)
    others = {n: text for n, text in written.names.items() if n[0] != attribute}
    return replace(
        written,
        values={**written.values, attribute: new.values.get(attribute)},
        problems=[*written.named(written.problems), *problems, *new.problems],
        warnings=written.named(written.warnings),
        names={**others, **new.names, (attribute,): entry},
    )


def problems(metadata: Mapping[str, Any]) -> list[str]:
    """What is wrong with the lists by themselves, without the other parameters."""
    written = with_metadata_lists(WrittenRequest({}), metadata)
    literal = secrets.literal(ClusterRequest, written.values, _BY_REFERENCE)
    resolved, _ = secrets.resolve(ClusterRequest, written, None)
    _, mistakes = structure.build(ClusterRequest, resolved.values)
    own = (one for one in mistakes if one.location[0] in written.values)
    found = written.named([*written.problems, *literal, *own])
    return list(map(str, found))


def without_secrets(additional_params: Mapping[str, Any]) -> dict[str, Any]:
    """The attribute without secrets, to be stored in Tacker.

    :param additional_params: of a request that :class:`RequestReader` accepts.
    :returns: ``{"k8s_cluster_installation_param": ...}``; empty without the attribute.
    """
    raw = _attribute(additional_params)
    if raw is None:
        return {}
    return {ATTRIBUTE: secrets.without_secrets(ClusterRequest, _written(raw).values)}


def not_kept(stored: Mapping[str, Any]) -> list[str]:
    """The secrets that a request without parameters lacks, by their dotted names.

    :param stored: ``additionalParams`` from :func:`without_secrets`.
    """
    return secrets.not_kept(ClusterRequest, _written(_instantiated_with(stored)))


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


def _written(raw: Mapping[str, Any]) -> WrittenRequest:
    written = structure.read(ClusterRequest, raw)
    secrets.read(ClusterRequest, written)
    structure.restore_keys(written, "kubespray_vars")
    return written


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
            "instantiation, for without them Tacker sets images and flavours again"
        )
