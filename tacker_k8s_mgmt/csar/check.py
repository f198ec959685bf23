"""Check a VNF package: everything that is wrong with it, in one report."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tacker_k8s_mgmt.csar import archive, demands, hot, match, meta, sources, vnfd
from tacker_k8s_mgmt.csar.tree import sequence
from tacker_k8s_mgmt.errors import PackageError


@dataclass(frozen=True)
class Report:
    """What was found in a package.

    :param flavours: ids of the deployment flavours that it has.
    :param problems: one sentence each, with the file in the package.
    """

    package: Path
    flavours: tuple[str, ...]
    problems: tuple[str, ...]


def check(package: Path) -> Report:
    """Check the package *package*; it is only read."""
    try:
        files = archive.read(package)
    except PackageError as error:
        return Report(package, (), error.problems)
    if meta.PATH not in files:
        return Report(package, (), (f"{meta.PATH} is missing",))
    described = meta.parse(files[meta.PATH].decode(errors="replace"))
    problems = meta.problems(described, files) + _file_problems(files)
    with archive.unpacked(files) as root:
        entry = root / described.entry_definitions
        unreadable = _yaml_problems(root)
        problems += unreadable
        if unreadable or described.entry_definitions not in files:
            return Report(package, (), tuple(problems))
        reached, invalid = vnfd.parse_package(package, entry)
        problems += invalid or _entry_problems(entry)
        flavours = vnfd.flavours(root / "Definitions")
        if not flavours:
            problems.append("Definitions: no file maps a flavour_id")
        for flavour in flavours:
            problems += _hot_problems(root, flavour)
            if flavour.id in reached:
                problems += _vnfd_problems(root, flavour)
            elif not invalid:
                problems.append(f"{entry.name} does not import {flavour.path.name}")
    return Report(package, tuple(f.id for f in flavours), tuple(problems))


def _file_problems(files: Mapping[str, bytes]) -> list[str]:
    """The driver's copy, and Python that does not compile."""
    found = []
    copy = files.get(sources.DRIVER_FILE)
    if copy is None:
        found.append(f"{sources.DRIVER_FILE} is missing")
    elif copy != sources.driver():
        found.append(
            f"{sources.DRIVER_FILE} is not the installed driver's file, so Tacker "
            "would refuse every operation; build the package again"
        )
    for name, content in sorted(files.items()):
        if name.endswith(".py"):
            try:
                compile(content, name, "exec")
            except (SyntaxError, ValueError) as error:
                found.append(f"{name}: {error}")
    return found


def _yaml_problems(root: Path) -> list[str]:
    found = []
    for path in sorted((root / "Definitions").glob("*.y*ml")):
        try:
            tree = yaml.safe_load(path.read_text(encoding="utf-8"))
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
    tree = yaml.safe_load(entry.read_text(encoding="utf-8"))
    return [f"Definitions/{entry.name}: {text}" for text in demands.of_entry(tree)]


def _hot_problems(root: Path, flavour: vnfd.Flavour) -> list[str]:
    base, unusable = hot.read(root / "BaseHOT" / flavour.id)
    return unusable if base is None else hot.problems(base)


def _vnfd_problems(root: Path, flavour: vnfd.Flavour) -> list[str]:
    """What is missing in a valid flavour, and where its HOT does not match."""
    missing = demands.of_flavour(flavour, sources.DRIVER, sources.DRIVER_FILE)
    found = [f"Definitions/{flavour.path.name}: {text}" for text in missing]
    base, _ = hot.read(root / "BaseHOT" / flavour.id)
    return found if base is None else found + match.problems(flavour, base)
