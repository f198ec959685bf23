# SPDX-License-Identifier: Apache-2.0
"""Reading a VNFD, as Tacker does.

Tacker 16 reads it twice: with tosca-parser when the package is uploaded
(``tacker/common/csar_utils.py``), and as a plain mapping in every operation
(``tacker/vnflcm/utils.py``, ``_get_flavour_based_vnfd``).
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from tacker_k8s_mgmt.model.tree import dig, mapping, node_at, pairs, parse, sequence

VDU = "tosca.nodes.nfv.Vdu.Compute"
STORAGE = "tosca.nodes.nfv.Vdu.VirtualBlockStorage"
CP = "tosca.nodes.nfv.VduCp"
ASPECTS = "tosca.policies.nfv.ScalingAspects"
LEVELS = "tosca.policies.nfv.InstantiationLevels"
VDU_LEVELS = "tosca.policies.nfv.VduInstantiationLevels"
STEPS = "tosca.policies.nfv.VduScalingAspectDeltas"
_SW_IMAGE = "tosca.artifacts.nfv.SwImage"
#: Where a file of the VNFD names its flavour.
FLAVOUR_ID = (
    "topology_template",
    "substitution_mappings",
    "properties",
    "flavour_id",
)
#: Where a VDU names its image, and its Nova flavour.
IMAGE = ("properties", "sw_image_data", "name")
FLAVOR = (
    "capabilities",
    "virtual_compute",
    "properties",
    "requested_additional_capabilities",
    "properties",
    "requested_additional_capability_name",
)
#: The packages that read a VNFD, by a module of each; the extra ``csar`` has them.
_PARSERS = {"toscaparser": "tosca-parser", "translator": "heat-translator"}
_OCCURRENCES = re.compile(
    r'Relationship "([^"\n]{1,300})" in [^\n]{0,500}? wrong number of occurrences'
)


@dataclass(frozen=True)
class Policy:
    """A policy of a flavour, such as the VDUs' numbers at the instantiation levels."""

    targets: tuple[str, ...]
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Flavour:
    """One deployment flavour's file, as the mapping that Tacker works on.

    :param path: the file on disk; imports are relative to it.
    :param topology: its ``topology_template``.
    """

    id: str
    path: Path
    topology: Mapping[str, Any]

    @property
    def substitution(self) -> Mapping[str, Any]:
        return mapping(self.topology.get("substitution_mappings"))

    @property
    def nodes(self) -> dict[str, Mapping[str, Any]]:
        templates = mapping(self.topology.get("node_templates"))
        return {str(name): mapping(node) for name, node in templates.items()}

    def of_type(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """The node templates of exactly this type; Tacker does not look at parents."""
        return {name: n for name, n in self.nodes.items() if n.get("type") == kind}

    def policies(self, kind: str) -> dict[str, Policy]:
        """The policies of one type by name."""
        return {
            str(name): Policy(
                tuple(map(str, sequence(dig(policy, "targets")))),
                mapping(dig(policy, "properties")),
            )
            for entry in sequence(self.topology.get("policies"))
            for name, policy in mapping(entry).items()
            if dig(policy, "type") == kind
        }

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the instantiation levels, the default one first."""
        names: list[str] = []
        for policy in self.policies(LEVELS).values():
            default = policy.properties.get("default_level")
            own = map(str, mapping(policy.properties.get("levels")))
            names += sorted(own, key=lambda name: name != default)
        return tuple(names)

    def instances(self, level: str) -> dict[str, int]:
        """How many VMs of each VDU there are at an instantiation level."""
        counts = {}
        for policy in self.policies(VDU_LEVELS).values():
            number = dig(policy.properties, "levels", level, "number_of_instances")
            for vdu in policy.targets:
                counts[vdu] = number if isinstance(number, int) else 1
        return counts

    @property
    def aspects(self) -> dict[str, Mapping[str, Any]]:
        """The scaling aspects by name."""
        return {
            str(name): mapping(aspect)
            for policy in self.policies(ASPECTS).values()
            for name, aspect in mapping(policy.properties.get("aspects")).items()
        }

    @property
    def scaled(self) -> dict[str, tuple[str, ...]]:
        """The VDUs of each scaling aspect."""
        return {
            str(policy.properties.get("aspect")): policy.targets
            for policy in self.policies(STEPS).values()
        }

    @property
    def input_values(self) -> dict[str, Any]:
        """The inputs as Tacker fills them in before it reads the request.

        From the node template of the VNF, then from the defaults of its type
        (``tacker/vnflcm/utils.py``, ``_get_param_data``).
        """
        kind = self.substitution.get("node_type")
        values: dict[str, Any] = {}
        for node in self.nodes.values():
            if node.get("type") == kind:
                values.update(mapping(node.get("properties")))
        for name in sequence(load(self.path).get("imports")):
            imported = self.path.parent / str(name)
            tree = load(imported) if imported.is_file() else {}
            properties = dig(tree, "node_types", str(kind), "properties")
            for key, schema in mapping(properties).items():
                if not values.get(key):
                    values[key] = dig(schema, "default")
        return values

    def requirement(self, node: str, name: str) -> str | None:
        """The node template that *node* names in its requirement *name*."""
        for entry in sequence(self.nodes[node].get("requirements")):
            target = mapping(entry).get(name)
            if target is not None:
                return str(dig(target, "node") or target)
        return None


def flavours(definitions: Path) -> tuple[Flavour, ...]:
    """The deployment flavours in a package's ``Definitions``, sorted by id."""
    listed = []
    for path in sorted(definitions.glob("*.y*ml")):
        topology = mapping(load(path).get("topology_template"))
        flavour_id = dig(topology, *FLAVOUR_ID[1:])
        if flavour_id:
            listed.append(Flavour(str(flavour_id), path, topology))
    return tuple(sorted(listed, key=lambda flavour: flavour.id))


def load(path: Path) -> Mapping[str, Any]:
    """A file of the VNFD; empty if it is invalid, which another check reports."""
    try:
        return mapping(parse(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}


def descriptor_id(tree: Mapping[str, Any]) -> str:
    """The id of the VNFD in its entry file; "" if that has none."""
    nodes = mapping(dig(tree, "topology_template", "node_templates"))
    ids = [dig(node, "properties", "descriptor_id") for node in nodes.values()]
    return str(next(filter(None, ids), ""))


def without_occurrences(definitions: Path) -> Iterator[tuple[str, str]]:
    """Requirements of node types without occurrences.

    tosca-parser takes that for ``[ 1, UNBOUNDED ]``.

    :returns: of each, its name, and its file and line.
    """
    for path in sorted(definitions.glob("*.y*ml")):
        try:
            root = yaml.compose(path.read_text(encoding="utf-8"), yaml.SafeLoader)
        except (yaml.YAMLError, UnicodeDecodeError):
            continue  # another check reports it
        for _, node_type in pairs(node_at(root, "node_types")):
            requirements = node_at(node_type, "requirements")
            if isinstance(requirements, yaml.SequenceNode):
                for key, value in chain.from_iterable(map(pairs, requirements.value)):
                    if node_at(value, "occurrences") is None:
                        line = key.start_mark.line + 1
                        yield key.value, f"{path.name}, line {line}"


def missing_parsers() -> tuple[str, ...]:
    """The packages of the extra ``csar`` that are not installed."""
    return tuple(name for module, name in _PARSERS.items() if find_spec(module) is None)


def parse_package(entry: Path, package: Path | None) -> tuple[set[str], list[str]]:
    """Parse as Tacker does at upload: references in the zip, then the whole VNFD.

    :param entry: the entry file, unpacked.
    :param package: the zip; None leaves its references out.
    :returns: the flavours that the entry file leads to, and tosca-parser's complaints.
    """
    # Imported late: it takes a second, which other commands need not spend.
    from toscaparser.prereq.csar import CSAR
    from toscaparser.tosca_template import ToscaTemplate

    try:
        with quiet():
            if package:
                CSAR(str(package)).validate()
            tosca = ToscaTemplate(str(entry), None, True)
        nested = tosca.nested_tosca_templates_with_topology
        properties = [tree.substitution_mappings.properties for tree in nested]
        return {str(dig(own, "flavour_id")) for own in properties}, []
    except Exception as error:  # tosca-parser raises whatever its dictionaries raise
        return set(), list(_explained(complaints(error, entry.parent), entry.parent))


def _explained(texts: Sequence[str], definitions: Path) -> Iterator[str]:
    """The complaints, those about occurrences with line and remedy."""
    for text in texts:
        wrong = _OCCURRENCES.search(text)
        places = [
            place
            for name, place in without_occurrences(definitions)
            if wrong and name == wrong[1]
        ]
        remedy = (
            f" ({' and '.join(places)}: the requirement has no occurrences, which "
            "stands for at least one; add `occurrences: [ 0, 1 ]` to it)"
        )
        yield f"{text}{remedy}" if places else text


def parse_flavour(flavour: Flavour) -> Any:
    """tosca-parser's ToscaTemplate of one flavour alone, as Tacker makes it.

    :raises Exception: whatever tosca-parser raises.
    """
    from toscaparser.tosca_template import ToscaTemplate

    tree = parse(flavour.path.read_text(encoding="utf-8"))
    here = flavour.path.parent
    tree["imports"] = [str(here / name) for name in tree.get("imports") or []]
    tree["topology_template"]["substitution_mappings"].pop("requirements", None)
    _write_out_artifacts(tree)
    with quiet():
        return ToscaTemplate(
            parsed_params=flavour.input_values, a_file=False, yaml_dict_tpl=tree
        )


def _write_out_artifacts(tree: Any) -> None:
    """Write images in short notation out; Tacker takes them, heat-translator not."""
    for node in mapping(dig(tree, "topology_template", "node_templates")).values():
        artifacts = mapping(dig(node, "artifacts"))
        short = {
            name: file for name, file in artifacts.items() if isinstance(file, str)
        }
        for name, file in short.items():
            node["artifacts"][name] = {"type": _SW_IMAGE, "file": file}


def complaints(error: Exception, root: Path) -> list[str]:
    """One sentence for each problem that tosca-parser collected before *error*.

    The text of *error* itself has a traceback of each.

    :param root: directory whose name is left out of the text.
    """
    from toscaparser.common.exception import ExceptionCollector

    texts = ExceptionCollector.getExceptionsReport(False)
    ExceptionCollector.clear()
    texts = texts or [f"{type(error).__name__}: {error}"]
    return [f"tosca-parser: {text}".replace(f"{root}/", "") for text in texts]


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress what tosca-parser and heat-translator log about valid files."""
    loggers = [logging.getLogger(name) for name in ("tosca", "heat-translator")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
