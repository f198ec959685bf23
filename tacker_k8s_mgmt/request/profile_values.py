# SPDX-License-Identifier: Apache-2.0
"""Platform profiles as values: what one consists of, and what came of one."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
#: Where files of profiles are: below the VNF package, and below the driver's state.
IN_PACKAGE = "Files/profiles"
IN_STATE_PATH = "profiles"
SUFFIX = ".yaml"
LARGEST = 32 * 1024  # bytes; MariaDB keeps an expansion in a column of 64 KiB

_Location = tuple[str, ...]


class Refused(Exception):
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


#: Finds the profile of a name, or raises :class:`Refused`.
Source = Callable[[str], Profile]


@dataclass(frozen=True)
class Expansion:
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

    def without(self, changed: Callable[[_Location], bool]) -> "Expansion":
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

    :raises Refused: it is not as :meth:`Expansion.kept` returns it.
    """
    if (
        not isinstance(kept, Mapping)
        or not isinstance(kept.get("name"), str)
        or not isinstance(kept.get("parameters"), Mapping)
    ):
        raise Refused(["what is kept of it is not as this driver keeps it"])
    return Profile(kept["name"], "kept at instantiation", kept["parameters"])
