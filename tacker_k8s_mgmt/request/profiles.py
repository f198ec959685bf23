# SPDX-License-Identifier: Apache-2.0
"""Platform profiles: parameters by a name, below those of a request.

What a profile may have are the parameters that are not of a single cluster, and no
secret but by reference, since Tacker shows what is kept of it. It is checked by itself,
completely, and once more as a part of the request.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tacker_k8s_mgmt.request import (
    field_types,
    key_aliases,
    profile_merge,
    profile_text,
    secret_fields,
    secret_references,
)
from tacker_k8s_mgmt.request.install_params import InstallParams
from tacker_k8s_mgmt.request.key_aliases import Reading, Structure
from tacker_k8s_mgmt.request.profile_values import (
    IN_PACKAGE,
    NAME,
    SUFFIX,
    Expansion,
    Profile,
    Refused,
    Source,
    from_kept,
)
from tacker_k8s_mgmt.request.secret_fields import Place

_BUILT_IN = Path(__file__).parent / "platforms"
_OF_NODES = ("node_labels", "node_taints", "compute_host_label")
#: The attributes that a profile may have; of structures None for all of them.
ATTRIBUTES: Mapping[str, tuple[str, ...] | None] = {
    "master_node": (*_OF_NODES, "pod_cidr", "cluster_cidr"),
    "worker_node": _OF_NODES,
    "proxy": None,
    "address_family": None,
    "cluster": None,
    "private_registry_connection_info": None,
    "drain": None,
    "kubespray_vars": None,
}
_PARTS = ("description", "parameters", "needs")
_ROLES: Mapping[str, Mapping[str, str]] = {
    "master_node": {"ssh_cp_name": "a", "username": "a"},
    "worker_node": {"ssh_cp_name": "a", "username": "a"},
}
# The least of a request, to validate a profile by itself.
_REST: Mapping[str, Any] = {
    **_ROLES,
    "ansible": {
        "ip_address": "a",
        "username": "a",
        "kubespray_root_path": "/a",
        "transferring_inventory_path": "/a/b",
    },
}


def parse(text: bytes, name: str, source: str) -> Profile:
    """The profile in a file.

    :param source: where the file is, for people.
    :raises Refused: with every problem.
    """
    value = profile_text.parse(text)
    parameters, needs = value.get("parameters"), value.get("needs", {})
    problems = [
        f"{part[:64]}: is not a part of a profile; it has {', '.join(_PARTS)}"
        for part in value
        if part not in _PARTS
    ]
    if not isinstance(parameters, Mapping):
        problems.append("parameters: must be a mapping")
        parameters = {}
    if not isinstance(needs, Mapping):
        problems.append("needs: must be a mapping")
        needs = {}
    problems += _problems_of_needs(needs)
    profile = Profile(name, source, parameters, needs)
    try:
        _read(profile)
    except Refused as error:
        problems += (f"parameters.{problem}" for problem in error.problems)
    if problems:
        raise Refused(problems)
    return profile


@cache
def _built_in() -> Mapping[str, Profile]:
    return {
        path.stem: parse(path.read_bytes(), path.stem, "of tacker-k8s-mgmt")
        for path in sorted(_BUILT_IN.glob(f"*{SUFFIX}"))
    }


def built_in(name: str) -> Profile:
    """The driver's own profile of a name.

    :raises Refused: there is none.
    """
    if name not in _built_in():
        raise Refused([f"there is no profile {name}; {known()}"])
    return _built_in()[name]


def known() -> str:
    """The driver's own profiles, as the end of a sentence."""
    return f"the driver has {', '.join(_built_in())}"


def of_package(files: Mapping[str, bytes]) -> Source:
    """The profiles of a VNF package, and the driver's own.

    :param files: by path in the package, their content.
    """

    def found(name: str) -> Profile:
        path = f"{IN_PACKAGE}/{name}{SUFFIX}"
        return chosen(name, {f"{path} of the VNF package": lambda: files.get(path)})

    return found


def chosen(name: str, files: Mapping[str, Callable[[], bytes | None]]) -> Profile:
    """The only profile of a name.

    :param files: by place, what reads the file there; it returns None if there is
        none, or raises :class:`Refused`.
    :raises Refused: there is none, or several, or it is wrong.
    """
    problems: list[str] = []
    profiles: list[Profile] = []
    for place, read in files.items():
        try:
            if (text := read()) is not None:
                profiles.append(parse(text, name, place))
        except Refused as error:
            problems += (f"{place}: {problem}" for problem in error.problems)
    if name in _built_in():
        profiles.append(_built_in()[name])
    if problems:
        raise Refused(problems)
    if len(profiles) > 1:
        listed = " and ".join(profile.source for profile in profiles)
        raise Refused([f"there are several profiles {name}: {listed}; rename one"])
    if not profiles:
        looked = " or ".join(files)
        raise Refused([f"there is no {looked}, and {known()}"])
    return profiles[0]


def kept_or(kept: Any, otherwise: Source) -> Source:
    """The profile as it was at a cluster's instantiation.

    :param kept: as :meth:`.Expansion.kept`; None if nothing is kept.
    :param otherwise: finds a profile of which nothing is kept.
    """

    def found(name: str) -> Profile:
        profile = None if kept is None else from_kept(kept)
        return profile if profile and profile.name == name else otherwise(name)

    return found


def lost(name: str) -> Profile:
    """Of a cluster's profile, what the metadata should have.

    :raises Refused: always.
    """
    raise Refused(
        [
            f"what {name} stood for at instantiation is not in the VNF instance's "
            "metadata any more (k8s_mgmt_profile, in the v2 API profile in k8s_mgmt); "
            "give the metadata back what they were, with a request that modifies the "
            "VNF instance"
        ]
    )


def nothing(name: str) -> Profile:
    """A profile without parameters, where only those of the request matter."""
    return Profile(name, "not needed", {})


def expanded(reading: Reading, find: Source) -> Reading:
    """A request with what its profile adds; its own attributes take precedence.

    Structures and variables are merged, and lists of labels, taints and registries by
    their keys. An attribute that is null in the request is left out.

    :param find: finds the profile; what is wrong with it becomes a problem.
    """
    name = reading.given("profile")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return reading
    try:
        profile = find(name)
        own = _read(profile)
    except Refused as error:
        shown = reading.dotted("profile")
        problems = [f"{shown}: {problem}" for problem in error.problems]
        return replace(reading, problems=[*reading.problems, *problems])
    merge = profile_merge.Merge(reading)
    values, applied = merge.structure(InstallParams, reading.values, own.values, ())
    kept = secret_references.without_secrets(InstallParams, Reading(applied))
    expansion = Expansion(profile, kept, merge.places, merge.replaced)
    return replace(reading, values=values, expansion=expansion)


def needed(reading: Reading) -> Iterator[tuple[str, str]]:
    """What the profile needs and the request lacks: name of the attribute, sentence."""
    if not reading.expansion:
        return
    profile = reading.expansion.profile
    for dotted, reason in profile.needs.items():
        place = tuple(dotted.split("."))
        if reading.given(*place) is None and not reading.is_null(place):
            yield reading.dotted(*place), f"is missing: {reason.rstrip()}"


def _read(profile: Profile) -> Reading:
    """The parameters of a profile by the specification's names.

    :raises Refused: with every problem.
    """
    reading = key_aliases.read(InstallParams, profile.parameters)
    reading.problems += _of_one_cluster(reading)
    secret_references.read(InstallParams, reading)
    if isinstance(reading.values.get("kubespray_vars", {}), Mapping):
        reading.problems += _literal_secrets(reading)
    problems = [*reading.problems, *_mistakes(reading)]
    if problems:
        raise Refused(list(dict.fromkeys(problems)))
    return reading


def _of_one_cluster(reading: Reading) -> Iterator[str]:
    for name in list(reading.values):
        allowed = ATTRIBUTES.get(name, ())
        value = reading.values[name]
        if name not in ATTRIBUTES:
            yield f"{reading.dotted(name)}: is of one cluster; give it in the request"
        elif allowed is not None and isinstance(value, Mapping):
            for inner in value.keys() - set(allowed):
                shown = reading.dotted(name, inner)
                yield f"{shown}: is of one cluster; give it in the request"


def _literal_secrets(reading: Reading) -> list[str]:
    found: list[str] = []

    def look(place: Place, value: Any) -> Any:
        is_reference = isinstance(value, secret_references.Reference)
        blank = field_types.blank_is_absent(value) is None
        is_open = isinstance(value, str) and place.form.is_open(value)
        if not (is_reference or blank or is_open):
            name = reading.dotted(*place.location)
            found.append(f"{name}: is a secret; give it in the request, or a reference")
        return value

    secret_fields.changed(InstallParams, reading.values, look)
    return found


def _mistakes(reading: Reading) -> Iterator[str]:
    """What is wrong with a profile's values by themselves."""
    values = secret_references.resolve(InstallParams, reading, None).values
    allowed = {name: value for name, value in values.items() if name in ATTRIBUTES}
    for role, rest in _ROLES.items():
        if isinstance(inner := allowed.get(role), Mapping):
            allowed[role] = {**rest, **inner}
    try:
        InstallParams.model_validate({**_REST, **allowed})
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            # The request may have the rest of a structure.
            if detail["type"] != "missing":
                yield reading.sentence(detail, {})


def _problems_of_needs(needs: Mapping[str, Any]) -> Iterator[str]:
    for dotted, reason in needs.items():
        if not _is_attribute(InstallParams, dotted.split(".")):
            yield f"needs.{dotted[:64]}: is not a known attribute"
        if not isinstance(reason, str) or not reason.strip() or len(reason) > 500:
            yield f"needs.{dotted[:64]}: must have the reason as text"


def _is_attribute(model: type[Structure], names: list[str]) -> bool:
    known = key_aliases.border_names(model)
    if names[0] not in known:
        return False
    inner = known[names[0]]
    return len(names) == 1 or (inner is not None and _is_attribute(inner, names[1:]))
