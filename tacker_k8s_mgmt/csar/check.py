"""Check a VNF package: everything that is wrong with it, in one report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tacker_k8s_mgmt.csar import (
    api,
    archive,
    hot,
    hot_consistency,
    meta,
    request,
    request_check,
    sources,
    vnfd,
    vnfd_rules,
)
from tacker_k8s_mgmt.csar.tree import dig, mapping, parse, sequence
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import load_balancer

_NO_REQUESTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Report:
    """What was found in a package.

    :param flavours: ids of the deployment flavours that it has.
    :param problems: one sentence each, with the file in the package or the request.
    :param warnings: what works, but probably not as it was meant.
    """

    package: Path
    flavours: tuple[str, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def check(package: Path, requests: Mapping[str, Any] = _NO_REQUESTS) -> Report:
    """Check the package *package*; it is only read.

    :param requests: request bodies by the name that the report calls them; the first
        one that instantiates is what scale and heal requests come after.
    """
    try:
        files = archive.read(package)
    except PackageError as error:
        return Report(package, (), error.problems)
    with archive.unpacked(files) as root:
        return _Check(package, files, root).report(requests)


class _Check:
    """The check of one package.

    :param root: where its files are unpacked.
    """

    def __init__(self, package: Path, files: Mapping[str, bytes], root: Path) -> None:
        self._package = package
        self._files = files
        self._root = root
        self._api = api.of_package(files)
        self._problems: list[str] = []

    def report(self, requests: Mapping[str, Any]) -> Report:
        described = self._meta()
        self._problems += _file_problems(self._files, self._api)
        unreadable = _yaml_problems(self._root)
        self._problems += unreadable
        entry = _entry(described.entry_definitions, self._files)
        reached = self._parsed(entry, described) if entry and not unreadable else None
        flavours = vnfd.flavours(self._root / "Definitions")
        if not flavours and not unreadable:
            self._problems.append("Definitions: no file maps a flavour_id")
        bases = {
            flavour.id: self._base(flavour, reached, entry) for flavour in flavours
        }
        contents = request_check.Contents(
            self._files,
            _descriptor_id(self._root, entry),
            {flavour.id: flavour for flavour in flavours},
            {flavour_id: base for flavour_id, base in bases.items() if base},
            self._api,
        )
        warnings = [] if requests else _script_warnings(self._files)
        for name, found in _of_requests(requests, contents):
            self._problems += [f"{name}: {text}" for text in found.problems]
            warnings += [f"{name}: {text}" for text in found.warnings]
        return Report(
            self._package, tuple(bases), tuple(self._problems), tuple(warnings)
        )

    def _meta(self) -> meta.Meta:
        text = self._files.get(meta.PATH, b"").decode(errors="replace")
        described = meta.parse(text)
        if meta.PATH in self._files:
            self._problems += meta.problems(described, self._files)
        else:
            self._problems.append(f"{meta.PATH} is missing")
        return described

    def _parsed(self, entry: str, described: meta.Meta) -> set[str] | None:
        """The flavours that the entry file leads to; None if the VNFD is not valid."""
        # A package that does not name its entry file is told so already.
        is_named = described.entry_definitions == entry
        reached, invalid = vnfd.parse_package(
            self._root / entry, self._package if is_named else None
        )
        self._problems += invalid or _entry_problems(self._root / entry)
        return None if invalid else reached

    def _base(
        self, flavour: vnfd.Flavour, reached: set[str] | None, entry: str
    ) -> hot.BaseHot | None:
        base, unusable = hot.read(self._root / "BaseHOT" / flavour.id)
        self._problems += unusable if base is None else hot.problems(base)
        if reached is not None and flavour.id in reached:
            self._problems += _vnfd_problems(flavour, base, self._api)
        elif reached is not None:
            self._problems.append(
                f"{Path(entry).name} does not import {flavour.path.name}"
            )
        return base


def _entry(named: str, files: Mapping[str, bytes]) -> str:
    """The entry file, also where TOSCA.meta does not name it but there is only one."""
    if named in files:
        return named
    found = [name for name in files if name.endswith((".vnfd.yaml", ".vnfd.yml"))]
    return found[0] if len(found) == 1 else ""


def _descriptor_id(root: Path, entry: str) -> str:
    if not entry:
        return ""
    tree = vnfd.load(root / entry)
    nodes = mapping(dig(tree, "topology_template", "node_templates"))
    found = [dig(node, "properties", "descriptor_id") for node in nodes.values()]
    return next((str(one) for one in found if one), "")


def _of_requests(
    requests: Mapping[str, Any], contents: request_check.Contents
) -> Iterator[tuple[str, request_check.Findings]]:
    read = {}
    for name, document in requests.items():
        try:
            read[name] = request.read(document, contents.api)
        except ValueError as error:
            yield name, request_check.Findings([str(error)])
    first = (r for r in read.values() if r.operation == request.INSTANTIATE)
    stored = next(first, None)
    for name, one in read.items():
        yield name, request_check.findings(one, contents, stored)


def _file_problems(files: Mapping[str, bytes], wanted: api.Api) -> list[str]:
    """The driver's copy, and Python that does not compile."""
    found = []
    copy = files.get(wanted.driver_file)
    if copy is None:
        found.append(f"{wanted.driver_file} is missing")
    elif copy != sources.driver(wanted):
        refused = ", so Tacker would refuse every operation" if wanted is api.V1 else ""
        found.append(
            f"{wanted.driver_file} is not the installed driver's file{refused}; "
            "build the package again"
        )
    for name, content in sorted(files.items()):
        if name.endswith(".py"):
            try:
                compile(content, name, "exec")
            except (SyntaxError, ValueError) as error:
                found.append(f"{name}: {error}")
    return found


def _script_warnings(files: Mapping[str, bytes]) -> list[str]:
    """What a request would be refused for that names one of these scripts."""
    paths = [f"Scripts/{name}" for name in sources.SCRIPTS]
    told = {
        path: load_balancer.unusable(files[path]) for path in paths if path in files
    }
    return [f"{path}: {why}" for path, why in told.items() if why]


def _yaml_problems(root: Path) -> list[str]:
    found = []
    for path in sorted((root / "Definitions").glob("*.y*ml")):
        try:
            tree = parse(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            found.append(f"Definitions/{path.name}: {error}")
            continue
        if not isinstance(tree, dict):
            found.append(f"Definitions/{path.name}: it is not a mapping")
            continue
        found += [
            f"Definitions/{path.name}: it imports {name}; a Tacker without access to "
            "that address cannot use the package"
            for name in sequence(tree.get("imports"))
            if str(name).startswith(("http://", "https://"))
        ]
    return found


def _entry_problems(entry: Path) -> list[str]:
    tree = parse(entry.read_text(encoding="utf-8"))
    return [f"Definitions/{entry.name}: {text}" for text in vnfd_rules.of_entry(tree)]


def _vnfd_problems(
    flavour: vnfd.Flavour, base: hot.BaseHot | None, wanted: api.Api
) -> list[str]:
    """What is missing in a valid flavour, and where its HOT does not match."""
    missing = vnfd_rules.of_flavour(flavour, sources.DRIVER, wanted)
    found = [f"Definitions/{flavour.path.name}: {text}" for text in missing]
    return (
        found
        if base is None
        else found + hot_consistency.problems(flavour, base, wanted)
    )
