# SPDX-License-Identifier: Apache-2.0
"""Platform profiles: parameters by a name, found and merged below those of a request.

A profile may have the parameters that are not of a single cluster, and no secret but by
reference, since Tacker shows what is stored of it. It is checked by itself, completely,
and once more as a part of the request.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.model.nodes import ROLES
from tacker_k8s_mgmt.request import fields, profile_document, secrets, structure
from tacker_k8s_mgmt.request.installation import ClusterRequest
from tacker_k8s_mgmt.request.profile_document import (
    IN_PACKAGE,
    PROFILE_NAME,
    SUFFIX,
    InvalidProfile,
    Profile,
    ResolvedProfile,
    Source,
    from_kept,
)
from tacker_k8s_mgmt.request.secrets import Place
from tacker_k8s_mgmt.request.structure import (
    Location,
    Problem,
    Structure,
    WrittenRequest,
)

#: The structures with nodes.
_NODES = tuple(spec.parameter for spec in ROLES.values() if spec.groups)


def _taint_key(taint: Any) -> tuple[str, str]:
    key, _, effect = str(taint).rpartition(":")
    return key.partition("=")[0], effect


def _item_key(name: str) -> Callable[[Any], Any]:
    return lambda item: item.get(name) if isinstance(item, Mapping) else item


#: The lists that are merged, with the key of an item.
_KEYS: Mapping[Location, Callable[[Any], Any]] = {
    **{
        (role, "node_labels"): (lambda label: str(label).partition("=")[0])
        for role in _NODES
    },
    **{(role, "node_taints"): _taint_key for role in _NODES},
    ("cluster", "registries"): _item_key("prefix"),
    ("private_registry_connection_info",): _item_key("server"),
}


def _is_there(model: type[Structure], name: str) -> bool:
    """Whether a structure has its defaults where a request does not have it."""
    return structure.attributes(model)[name].info.default is not None


class Merge:
    """Merges a profile's values below those of a request.

    :ivar places: see :class:`.ResolvedProfile`, and so is *replaced*.
    """

    def __init__(self, written: WrittenRequest) -> None:
        self._written = written
        self.places: dict[Location, Any] = {}
        self.replaced: dict[Location, Any] = {}

    def structure(
        self,
        model: type[Structure],
        given: Mapping[str, Any],
        default: Mapping[str, Any],
        place: Location,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The merged values of a structure, and what of the profile's holds."""
        values, applied = dict(given), {}
        for name, value in default.items():
            here = (*place, name)
            own = fields.blank_is_absent(given.get(name))
            inner = structure.border_names(model)[name]
            if own is None and self._written.is_null(here):
                continue
            applied[name] = value
            if own is None and isinstance(value, Mapping) and _is_there(model, name):
                own = {}
            if own is None:
                values[name] = value
                self.places[here] = value
            elif isinstance(own, Mapping) and isinstance(value, Mapping):
                if inner:
                    merged = self.structure(inner, own, value, here)
                    values[name], applied[name] = merged
                else:
                    values[name] = self._variables(own, value, here)
            elif here in _KEYS and isinstance(own, list) and isinstance(value, list):
                values[name] = self._items(own, value, here)
            elif own != value:
                self.replaced[here] = value
        return values, applied

    def _variables(
        self, own: Mapping[str, Any], value: Mapping[str, Any], here: Location
    ) -> dict[str, Any]:
        for name in value:
            if name not in own:
                self.places[(*here, name)] = value[name]
            elif own[name] != value[name]:
                self.replaced[(*here, name)] = value[name]
        return {**value, **own}

    def _items(self, own: list[Any], value: list[Any], here: Location) -> list[Any]:
        key = _KEYS[here]
        known = {str(key(item)): item for item in own}
        items = list(own)
        for item in value:
            if (same := known.get(str(key(item)))) is None:
                self.places[(*here, str(len(items)))] = item
                items.append(item)
            elif same != item:
                self.replaced[(*here, str(own.index(same)))] = item
        return items


_BUILT_IN = Path(__file__).parent / "platforms"
_OF_NODES = ("node_labels", "node_taints", "compute_host_label")
#: The attributes that a profile may have; of structures None for all of them.
ATTRIBUTES: Mapping[str, tuple[str, ...] | None] = {
    **dict.fromkeys(_NODES, _OF_NODES),
    "master_node": (*_OF_NODES, "pod_cidr", "cluster_cidr"),
    "proxy": None,
    "address_family": None,
    "cluster": None,
    "private_registry_connection_info": None,
    "drain": None,
    "kubespray_vars": None,
}
_PARTS = ("description", "parameters", "needs")
# The least of a request, to validate a profile by itself.
_REST: Mapping[str, Any] = {
    **{role: {"ssh_cp_name": "a", "username": "a"} for role in _NODES},
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
    :raises InvalidProfile: with every problem.
    """
    value = profile_document.parse(text)
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
    except InvalidProfile as error:
        problems += (f"parameters.{problem}" for problem in error.problems)
    if problems:
        raise InvalidProfile(problems)
    return profile


@cache
def _built_in() -> Mapping[str, Profile]:
    return {
        path.stem: parse(path.read_bytes(), path.stem, "of tacker-k8s-mgmt")
        for path in sorted(_BUILT_IN.glob(f"*{SUFFIX}"))
    }


def built_in(name: str) -> Profile:
    """The driver's own profile of a name.

    :raises InvalidProfile: there is none.
    """
    if name not in _built_in():
        raise InvalidProfile([f"there is no profile {name}; {known()}"])
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
        none, or raises :class:`InvalidProfile`.
    :raises InvalidProfile: there is none, or several, or it is wrong.
    """
    problems: list[str] = []
    profiles: list[Profile] = []
    for place, read in files.items():
        try:
            if (text := read()) is not None:
                profiles.append(parse(text, name, place))
        except InvalidProfile as error:
            problems += (f"{place}: {problem}" for problem in error.problems)
    if name in _built_in():
        profiles.append(_built_in()[name])
    if problems:
        raise InvalidProfile(problems)
    if len(profiles) > 1:
        listed = " and ".join(profile.source for profile in profiles)
        raise InvalidProfile(
            [f"there are several profiles {name}: {listed}; rename one"]
        )
    if not profiles:
        looked = " or ".join(files)
        raise InvalidProfile([f"there is no {looked}, and {known()}"])
    return profiles[0]


def kept_or(kept: Any, otherwise: Source) -> Source:
    """The profile as it was at a cluster's instantiation.

    :param kept: as :meth:`.ResolvedProfile.kept`; None if nothing is kept.
    :param otherwise: finds a profile of which nothing is kept.
    """

    def found(name: str) -> Profile:
        profile = None if kept is None else from_kept(kept)
        return profile if profile and profile.name == name else otherwise(name)

    return found


def lost(name: str) -> Profile:
    """Of a cluster's profile, what the metadata should have.

    :raises InvalidProfile: always.
    """
    raise InvalidProfile(
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


def expanded(written: WrittenRequest, find: Source) -> WrittenRequest:
    """A request with what its profile adds; its own attributes take precedence.

    Structures and variables are merged, and lists of labels, taints and registries by
    their keys. An attribute that is null in the request is left out.

    :param find: finds the profile; what is wrong with it becomes a problem.
    """
    name = written.values.get("profile")
    if not isinstance(name, str) or not PROFILE_NAME.fullmatch(name):
        return written
    try:
        profile = find(name)
        own = _read(profile)
    except InvalidProfile as error:
        problems = [Problem(("profile",), text) for text in error.problems]
        return replace(written, problems=[*written.problems, *problems])
    merge = Merge(written)
    values, applied = merge.structure(ClusterRequest, written.values, own.values, ())
    kept = secrets.without_secrets(ClusterRequest, applied)
    expansion = ResolvedProfile(profile, kept, merge.places, merge.replaced)
    return replace(written, values=values, expansion=expansion)


def _read(profile: Profile) -> WrittenRequest:
    """The parameters of a profile by the specification's names.

    :raises InvalidProfile: with every problem.
    """
    written = structure.read(ClusterRequest, profile.parameters)
    written.problems += _of_one_cluster(written.values)
    secrets.read(ClusterRequest, written)
    if isinstance(written.values.get("kubespray_vars", {}), Mapping):
        written.problems += _literal_secrets(written.values)
    problems = [*written.problems, *_mistakes(written)]
    if problems:
        raise InvalidProfile(list(dict.fromkeys(map(str, written.named(problems)))))
    return written


def _of_one_cluster(values: Mapping[str, Any]) -> Iterator[Problem]:
    text = "is of one cluster; give it in the request"
    for name, value in values.items():
        allowed = ATTRIBUTES.get(name, ())
        if name not in ATTRIBUTES:
            yield Problem((name,), text)
        elif allowed is not None and isinstance(value, Mapping):
            for inner in value.keys() - set(allowed):
                yield Problem((name, inner), text)


def _literal_secrets(values: dict[str, Any]) -> list[Problem]:
    found: list[Problem] = []

    def look(place: Place, value: Any) -> Any:
        is_reference = isinstance(value, secrets.Reference)
        blank = fields.blank_is_absent(value) is None
        is_open = isinstance(value, str) and place.form.is_open(value)
        if not (is_reference or blank or is_open):
            text = "is a secret; give it in the request, or a reference"
            found.append(Problem(place.location, text))
        return value

    secrets.changed(ClusterRequest, values, look)
    return found


def _mistakes(written: WrittenRequest) -> Iterator[Problem]:
    """What is wrong with a profile's values by themselves."""
    resolved, _ = secrets.resolve(ClusterRequest, written, None)
    allowed = {n: value for n, value in resolved.values.items() if n in ATTRIBUTES}
    for role in _NODES:
        if isinstance(inner := allowed.get(role), Mapping):
            allowed[role] = {**_REST[role], **inner}
    _, mistakes = structure.build(ClusterRequest, {**_REST, **allowed})
    # The request may have the rest of a structure.
    return (mistake for mistake in mistakes if mistake.text != structure.MISSING)


def _problems_of_needs(needs: Mapping[str, Any]) -> Iterator[str]:
    for dotted, reason in needs.items():
        if not _is_attribute(ClusterRequest, dotted.split(".")):
            yield f"needs.{dotted[:64]}: is not a known attribute"
        if not isinstance(reason, str) or not reason.strip() or len(reason) > 500:
            yield f"needs.{dotted[:64]}: must have the reason as text"


def _is_attribute(model: type[Structure], names: list[str]) -> bool:
    known = structure.border_names(model)
    if names[0] not in known:
        return False
    inner = known[names[0]]
    return len(names) == 1 or (inner is not None and _is_attribute(inner, names[1:]))
