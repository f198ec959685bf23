# SPDX-License-Identifier: Apache-2.0
"""The profile of a request on a command line: where it is found, what it has given."""

import argparse
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.request import profiles
from tacker_k8s_mgmt.request.profile_values import (
    LARGEST,
    SUFFIX,
    Expansion,
    Profile,
    Refused,
    Source,
)
from tacker_k8s_mgmt.request.secret_references import Reference


def add_profiles(parser: argparse.ArgumentParser, default: str = "none") -> None:
    """Add the option for a directory of profiles.

    :param default: what is taken without it, for the help.
    """
    parser.add_argument(
        "--profiles",
        metavar="DIR",
        help="the directory with NAME.yaml of the profile that the request names, "
        f"unless it is the driver's own (default: {default})",
    )


def source(directory: str | None) -> Source:
    """The profiles in a directory, and the driver's own.

    :param directory: None: only the driver's own.
    """
    return partial(_found, Path(directory)) if directory else _built_in


def _built_in(name: str) -> Profile:
    try:
        return profiles.built_in(name)
    except Refused as error:
        text = "; --profiles DIR names a directory with others"
        raise Refused([f"{problem}{text}" for problem in error.problems]) from None


def _found(directory: Path, name: str) -> Profile:
    path = directory / f"{name}{SUFFIX}"
    return profiles.chosen(name, {str(path): partial(_content, path)})


def _content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused([f"cannot be read: {error.strerror}"]) from None


def note(expansion: Expansion | None, name: str) -> str:
    """What a profile has to do with an attribute; "" for nothing.

    :param name: its dotted name.
    """
    if expansion is None:
        return ""
    place = tuple(name.split("."))
    profile = f"profile {expansion.profile.name}"
    if expansion.has_given(place):
        return profile
    if place in expansion.replaced:
        value = _text(expansion.replaced[place])
        return f"in place of {value} of the {profile}"
    inner = {one[: len(place)] for one in (*expansion.places, *expansion.replaced)}
    return f"with values of the {profile}" if place in inner else ""


def document(expansion: Expansion | None) -> Mapping[str, Any] | None:
    """The same of all attributes, for programs; None without a profile."""
    if expansion is None:
        return None
    return {
        "name": expansion.profile.name,
        "source": expansion.profile.source,
        "given": _dotted(expansion.places),
        "replaced": _dotted(expansion.replaced),
    }


def show(expansion: Expansion | None) -> None:
    """Print what a profile has given, and what of it the request replaces."""
    if expansion is None:
        return
    common.show(f"profile: {expansion.profile.name}, {expansion.profile.source}")
    for name, value in _dotted(expansion.places).items():
        common.show(f"  {name}: {_text(value)}")
    for name, value in _dotted(expansion.replaced).items():
        common.show(f"  {name}: not {_text(value)}, which the request replaces")


def _dotted(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    return {".".join(place): _plain(value) for place, value in sorted(values.items())}


def _text(value: Any) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _plain(value: Any) -> Any:
    """A value with references as they are given."""
    if isinstance(value, Reference):
        return value.as_given()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
