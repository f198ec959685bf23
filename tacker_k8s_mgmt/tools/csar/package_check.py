# SPDX-License-Identifier: Apache-2.0
"""Check a VNF package: all its problems in one report."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, parse_yaml, sequence
from tacker_k8s_mgmt.request import profiles, structure
from tacker_k8s_mgmt.request.profile_document import (
    IN_PACKAGE,
    PROFILE_NAME,
    SUFFIX,
    InvalidProfile,
)
from tacker_k8s_mgmt.tools.csar import (
    archive,
    body,
    consistency,
    hot,
    parts,
    request_check,
    sandbox,
    stack_preview,
    tacker_api,
    vnfd,
)
from tacker_k8s_mgmt.topology import base_hot

_NO_REQUESTS: Mapping[str, Any] = {}
#: The driver's file in the package of a CNF, of either API.
_OF_CNF = "Scripts/cnf_exposure_mgmt"


@dataclass(frozen=True)
class Report:
    """The problems of a package.

    :param flavours: ids of its deployment flavours.
    :param problems: one sentence each, with the file in the package or the request.
    :param warnings: what works, but probably not as intended.
    """

    flavours: tuple[str, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def check(package: Path, requests: Mapping[str, Any] = _NO_REQUESTS) -> Report:
    """Check the package *package*; it is only read.

    :param requests: request bodies by the name that the report calls them; scale and
        heal requests are checked against the first one that instantiates.
    """
    try:
        files = archive.read(package)
    except PackageError as error:
        return Report((), error.problems)
    if any(name.startswith(_OF_CNF) for name in files):
        text = "it is the package of a CNF, which `csar cnf` makes and checks; this "
        return Report((), (f"{text}command checks those of clusters",))
    package = Path(os.path.abspath(package))
    with archive.unpacked(files) as root:
        try:
            return sandbox.run(
                lambda: _report(package, files, root, requests), root, package
            )
        except sandbox.Failed as error:
            return Report((), (f"it cannot be checked to the end: {error}",))


def _report(
    package: Path, files: Mapping[str, bytes], root: Path, requests: Mapping[str, Any]
) -> Report:
    target = tacker_api.of_package(files)
    described = archive.parse(files.get(archive.PATH, b"").decode(errors="replace"))
    problems = list(archive.problems(files))
    problems += _file_problems(files, target)
    problems += _profile_problems(files)
    problems += _beside_problems(files) if target is tacker_api.V1 else ()
    unreadable = list(_yaml_problems(root))
    problems += unreadable
    problems += _blanks(files)
    entries = archive.entry_files(described.entry_definitions, files)
    entry = root / entries[0] if len(entries) == 1 else None
    reached: set[str] | None = None
    if entry and not unreadable:
        # The references of a package that does not name its entry file are not checked.
        is_named = described.entry_definitions in files
        reached, invalid = vnfd.parse_package(entry, package if is_named else None)
        problems += invalid or _entry_problems(entry)
        reached = None if invalid else reached
    flavours = vnfd.flavours(root / "Definitions")
    if not flavours and not unreadable:
        problems.append("Definitions: no file maps a flavour_id")
    bases = {}
    for flavour in flavours:
        base, unusable = base_hot.read(files, flavour.id)
        problems += unusable if base is None else hot.problems(base)
        if base is not None:
            bases[flavour.id] = base
            problems += hot.unusable_words(base) if target is tacker_api.V1 else ()
        if entry and reached is not None:
            problems += _flavour_problems(flavour, base, target, entry, reached)
    contents = request_check.Contents(
        files,
        vnfd.descriptor_id(vnfd.load(entry)) if entry else "",
        {flavour.id: flavour for flavour in flavours},
        bases,
        target,
    )
    warnings = [
        f"{name}: no hash in {archive.PATH}" for name in archive.unlisted(files)
    ]
    warnings += [] if requests else _script_warnings(files)
    if not requests:
        warnings += [
            text for base in bases.values() for text in stack_preview.of_package(base)
        ]
    for name, findings in _of_requests(requests, contents):
        problems += [f"{name}: {text}" for text in findings.problems]
        warnings += [f"{name}: {text}" for text in findings.warnings]
    return Report(tuple(contents.flavours), tuple(problems), tuple(warnings))


def _profile_problems(files: Mapping[str, bytes]) -> Iterator[str]:
    for path in sorted(name for name in files if name.startswith(f"{IN_PACKAGE}/")):
        name = path.removeprefix(f"{IN_PACKAGE}/").removesuffix(SUFFIX)
        if path != f"{IN_PACKAGE}/{name}{SUFFIX}" or not PROFILE_NAME.fullmatch(name):
            yield f"{path}: is no profile, whose file is named like edge-5g{SUFFIX}"
            continue
        try:
            profiles.parse(files[path], name, path)
            profiles.of_package(files)(name)
        except InvalidProfile as error:
            yield from (f"{path}: {problem}" for problem in error.problems)


def _flavour_problems(
    flavour: vnfd.Flavour,
    base: base_hot.BaseHot | None,
    target: tacker_api.Api,
    entry: Path,
    reached: set[str],
) -> Iterator[str]:
    """What a valid flavour lacks, and where its HOT does not match.

    :param reached: the flavours that the entry file leads to.
    """
    if flavour.id not in reached:
        yield f"{entry.name} does not import {flavour.path.name}"
        return
    for text in vnfd.of_flavour(flavour, parts.DRIVER, target):
        yield f"Definitions/{flavour.path.name}: {text}"
    if base is not None:
        yield from consistency.problems(flavour, base, target)


def _of_requests(
    requests: Mapping[str, Any], contents: request_check.Contents
) -> Iterator[tuple[str, request_check.Findings]]:
    read = {}
    for name, document in requests.items():
        try:
            read[name] = body.read(document, contents.api)
        except ValueError as error:
            yield name, request_check.Findings([str(error)])
    first = (r for r in read.values() if r.operation == body.INSTANTIATE)
    stored = next(first, None)
    for name, one in read.items():
        yield name, request_check.findings(one, contents, stored)


def _file_problems(files: Mapping[str, bytes], target: tacker_api.Api) -> Iterator[str]:
    """The driver's copy, and Python that does not compile."""
    copy = files.get(target.driver_file)
    if copy is None:
        yield f"{target.driver_file} is missing"
    elif copy != parts.driver(target):
        refused = (
            ", so Tacker would refuse every operation"
            if target is tacker_api.V1
            else ""
        )
        yield (
            f"{target.driver_file} is not the installed driver's file{refused}; "
            "build the package again"
        )
    for name, content in sorted(files.items()):
        if name.endswith(".py"):
            try:
                compile(content, name, "exec")
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                yield f"{name}: {error or 'too deeply nested'}"


def _script_warnings(files: Mapping[str, bytes]) -> Iterator[str]:
    """Why a request that names one of these scripts would be refused."""
    for path in parts.SCRIPTS:
        if path in files and (why := load_balancer.unusable(files[path])):
            yield f"{path}: {why}"


def _blanks(files: Mapping[str, bytes]) -> Iterator[str]:
    """Values that an operator has still to give."""
    for name, content in sorted(files.items()):
        if name.endswith((".yaml", ".yml")) and structure.BEGINNING.encode() in content:
            try:
                tree = parse_yaml(content.decode())
            except (yaml.YAMLError, UnicodeDecodeError):
                continue
            for place, text in structure.places(tree):
                yield f"{name}: {'.'.join(place)}: {text}"


def _yaml_problems(root: Path) -> Iterator[str]:
    for path in sorted((root / "Definitions").glob("*.y*ml")):
        name = f"Definitions/{path.name}"
        try:
            tree = parse_yaml(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            yield f"{name}: {error}"
            continue
        if not isinstance(tree, dict):
            yield f"{name}: it is not a mapping"
        for imported in map(_imported, sequence(mapping(tree).get("imports"))):
            if imported.startswith(("http://", "https://")):
                yield (
                    f"{name}: it imports {imported}; a Tacker without access to that "
                    "address cannot use the package"
                )
            elif not _is_inside(root, path.parent / imported):
                yield f"{name}: it imports {imported}, which is not in the package"
            elif not (path.parent / imported).is_file():
                # tosca-parser would look in the working directory, too.
                yield f"{name}: it imports {imported}, which is not there"
        flavour_id = dig(tree, *vnfd.FLAVOUR_ID)
        if flavour_id and not isinstance(flavour_id, str):
            yield (
                f"{name}: flavour_id is {flavour_id!r} and no text, so Tacker does not "
                "find it for any request; write it in quotes"
            )


def _is_inside(root: Path, path: Path) -> bool:
    return os.path.realpath(path).startswith(f"{os.path.realpath(root)}{os.sep}")


def _imported(entry: Any) -> str:
    """The file of an import, which may have a name or a namespace."""
    if isinstance(entry, Mapping):
        entry = entry.get("file") or dig(next(iter(entry.values()), None), "file")
    return str(entry)


def _beside_problems(files: Mapping[str, bytes]) -> Iterator[str]:
    """Files that Tacker's v1 API reads as a part of the VNFD in every operation.

    It takes every YAML file of the package's top directories for one
    (``tacker/vnflcm/utils.py``, ``_get_flavour_based_vnfd``).
    """
    for name, content in sorted(files.items()):
        directory, _, _ = name.rpartition("/")
        if not name.endswith((".yaml", ".yml")) or "/" in directory:
            continue
        if directory == "Definitions":
            continue  # another check reports it
        if not _leads_to_flavour(content):
            yield (
                f"{name}: Tacker's v1 API reads it with the VNFD, where it has to be "
                "one YAML mapping; put it into a directory below"
            )


def _leads_to_flavour(content: bytes) -> bool:
    """Whether Tacker can ask a file for its flavour, which it need not have."""
    try:
        found = parse_yaml(content.decode())
    except (yaml.YAMLError, UnicodeDecodeError):
        return False
    for key in vnfd.FLAVOUR_ID:
        if not isinstance(found, Mapping):
            return False
        found = found.get(key, {})
    return True


def _entry_problems(entry: Path) -> list[str]:
    tree = parse_yaml(entry.read_text(encoding="utf-8"))
    return [f"Definitions/{entry.name}: {text}" for text in vnfd.of_entry(tree)]
