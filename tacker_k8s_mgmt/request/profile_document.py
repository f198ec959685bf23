# SPDX-License-Identifier: Apache-2.0
"""A platform profile as YAML text and as value, and what came of it in a request.

The text is YAML, as far as JSON goes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from tacker_k8s_mgmt.model.yaml_text import limited_loader, parse_yaml

PROFILE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
#: Where files of profiles are: below the VNF package, and below the driver's state.
IN_PACKAGE = "Files/profiles"
IN_STATE_PATH = "profiles"
SUFFIX = ".yaml"
LARGEST = 32 * 1024  # bytes; MariaDB keeps an expansion in a column of 64 KiB

_Location = tuple[str, ...]


class InvalidProfile(Exception):
    """A profile that cannot be used.

    :ivar problems: one sentence each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Profile:
    """A platform profile.

    :param source: where it is from, for people.
    :param parameters: a part of ``k8s_cluster_installation_param``, as written.
    :param needs: by attribute that a request with it has to have, the reason.
    """

    name: str
    source: str
    parameters: Mapping[str, Any]
    needs: Mapping[str, str] = field(default_factory=dict)


#: Finds the profile of a name, or raises :class:`InvalidProfile`.
Source = Callable[[str], Profile]


@dataclass(frozen=True)
class ResolvedProfile:
    """What came of a profile in a request.

    :param applied: what of its parameters holds, as JSON without secrets; attributes
        that the request sets to null are left out.
    :param places: the attributes that have their value from the profile, and that
        value; an item of a list by its number.
    :param replaced: by attribute, the profile's value that the request replaces.
    """

    profile: Profile
    applied: Mapping[str, Any]
    places: Mapping[_Location, Any] = field(default_factory=dict)
    replaced: Mapping[_Location, Any] = field(default_factory=dict)

    def has_given(self, place: _Location) -> bool:
        """Whether an attribute, or a structure around it, is from the profile."""
        return any(place[:end] in self.places for end in range(1, len(place) + 1))

    def without(self, changed: Callable[[_Location], bool]) -> "ResolvedProfile":
        """The same after a later request.

        :param changed: whether that one replaces an attribute.
        """
        left = {
            place: value
            for place, value in self.places.items()
            if not any(changed(place[:end]) for end in range(1, len(place) + 1))
        }
        return replace(self, places=left)

    def kept(self) -> dict[str, Any]:
        """What to keep for the cluster's life; :func:`from_kept` reads it."""
        return {"name": self.profile.name, "parameters": self.applied}


def from_kept(kept: Any) -> Profile:
    """The profile that was kept of a cluster, with what held of it at instantiation.

    :raises InvalidProfile: it is not as :meth:`ResolvedProfile.kept` returns it.
    """
    if (
        not isinstance(kept, Mapping)
        or not isinstance(kept.get("name"), str)
        or not isinstance(kept.get("parameters"), Mapping)
    ):
        raise InvalidProfile(["what is stored of it is not as this driver stores it"])
    return Profile(kept["name"], "stored at instantiation", kept["parameters"])


_DEEPEST = 20


@limited_loader
class _Loader(yaml.SafeLoader):
    """Refuses aliases, whose values may grow without limit, and repeated names."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_mark()
            raise yaml.MarkedYAMLError(problem="has an alias", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if (name := str(key.value)) in names:
                raise yaml.MarkedYAMLError(
                    problem=f"has {name[:64]!r} twice", problem_mark=key.start_mark
                )
            names.add(name)
        return super().construct_mapping(node, deep)


# A date is text, as in JSON.
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(text: bytes) -> Mapping[str, Any]:
    """The mapping that a text describes.

    :raises InvalidProfile: the text is too large, or no YAML that JSON could have.
    """
    if len(text) > LARGEST:
        raise InvalidProfile([f"is larger than {LARGEST} bytes"])
    try:
        value = parse_yaml(text.decode(), _Loader)
    except UnicodeDecodeError:
        raise InvalidProfile(["is no text in UTF-8"]) from None
    except yaml.YAMLError as error:
        raise InvalidProfile([_sentence(error)]) from None
    if not isinstance(value, Mapping):
        raise InvalidProfile(["must be a mapping with parameters"])
    if problems := list(_foreign(value, "")):
        raise InvalidProfile(problems)
    return value


def _sentence(error: yaml.YAMLError) -> str:
    """The problem and its line, without the text around it, which may be a secret."""
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) if type(error) is _OURS else None
    return f"{problem or 'is no valid YAML'}{where}"


_OURS = yaml.MarkedYAMLError


def _foreign(value: Any, place: str, depth: int = 0) -> Iterator[str]:
    """What JSON does not have."""
    if depth > _DEEPEST:
        yield f"{place}: is nested too deeply"
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            here = f"{place}.{name}" if place else str(name)
            if not isinstance(name, str):
                yield f"{here[:64]}: a name must be text; put it in quotes"
            else:
                yield from _foreign(inner, here, depth + 1)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _foreign(inner, f"{place}.{number}", depth + 1)
    elif not isinstance(value, str | int | float | bool | None):
        yield f"{place}: must be text, a number, true, false, a list or a mapping"
    elif isinstance(value, float) and value - value != 0:
        yield f"{place}: must be a finite number"
