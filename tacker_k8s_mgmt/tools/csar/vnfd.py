# SPDX-License-Identifier: Apache-2.0
"""The VNFD as Tacker reads it, and what Tacker requires of it beyond valid TOSCA.

Tacker 16 reads it twice: with tosca-parser when the package is uploaded
(``tacker/common/csar_utils.py``), and as a plain mapping in every operation
(``tacker/vnflcm/utils.py``, ``_get_flavour_based_vnfd``).

Without what is required beyond TOSCA, the upload succeeds and an operation fails later,
halfway (``tacker/vnflcm/utils.py``, ``tacker/tosca/utils.py``, ``vnflcm_driver.py``).
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from tacker_k8s_mgmt.model.yaml_text import (
    dig,
    mapping,
    node_at,
    pairs,
    parse_yaml,
    sequence,
)
from tacker_k8s_mgmt.tools.csar.tacker_api import Api

VDU = "tosca.nodes.nfv.Vdu.Compute"
STORAGE = "tosca.nodes.nfv.Vdu.VirtualBlockStorage"
CP = "tosca.nodes.nfv.VduCp"
ASPECTS = "tosca.policies.nfv.ScalingAspects"
LEVELS = "tosca.policies.nfv.InstantiationLevels"
VDU_LEVELS = "tosca.policies.nfv.VduInstantiationLevels"
STEPS = "tosca.policies.nfv.VduScalingAspectDeltas"
_SW_IMAGE = "tosca.artifacts.nfv.SwImage"
#: Where a file of the VNFD names its flavour.
FLAVOUR_ID = ("topology_template", "substitution_mappings", "properties", "flavour_id")
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
        return mapping(parse_yaml(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError):
        return {}


def descriptor_id(tree: Mapping[str, Any]) -> str:
    """The id of the VNFD in its entry file; "" if that has none."""
    nodes = mapping(dig(tree, "topology_template", "node_templates"))
    ids = [dig(node, "properties", "descriptor_id") for node in nodes.values()]
    return str(next(filter(None, ids), ""))


def id_in(files: Mapping[str, bytes]) -> str:
    """The id of the VNFD among the files of a package; "" if none has one.

    :param files: contents by path in the package.
    """
    for name in sorted(files):
        if PurePosixPath(name).match("Definitions/*.y*ml"):
            with suppress(yaml.YAMLError, UnicodeDecodeError):
                if found := descriptor_id(mapping(parse_yaml(files[name].decode()))):
                    return found
    return ""


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

    tree = parse_yaml(flavour.path.read_text(encoding="utf-8"))
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


_INITIAL = "tosca.policies.nfv.VduInitialDelta"
_SCRIPT = "tosca.artifacts.Implementation.Python"
_IDENTITY = (
    "descriptor_id",
    "descriptor_version",
    "provider",
    "product_name",
    "software_version",
)


def of_entry(tree: Mapping[str, Any]) -> list[str]:
    """What is missing in the entry file; defaults of the node type do not count."""
    nodes = mapping(dig(tree, "topology_template", "node_templates"))
    missing = [
        set(_IDENTITY) - set(mapping(dig(n, "properties"))) for n in nodes.values()
    ]
    least = min(missing, key=len, default=set(_IDENTITY))
    return [f"no node template has the property {k}" for k in _IDENTITY if k in least]


def of_flavour(flavour: Flavour, driver: str, api: Api) -> list[str]:
    """What is missing in a deployment flavour.

    :param driver: the name that implements the hooks.
    :param api: Tacker's API that the package is for.
    """
    return [
        *_shape(flavour),
        *_hooks(flavour, driver, api),
        *_machines(flavour),
        *_external(flavour),
        *_aspects(flavour),
        *_levels(flavour),
        *_numbers(flavour),
    ]


def _shape(flavour: Flavour) -> Iterator[str]:
    if not isinstance(flavour.topology.get("inputs"), Mapping):
        yield "topology_template has no inputs, and Tacker iterates over them"
    if "requirements" not in flavour.substitution:
        yield "substitution_mappings has no requirements, and Tacker removes them"


def _hooks(flavour: Flavour, driver: str, api: Api) -> Iterator[str]:
    if "VNF" not in flavour.nodes:
        yield "no node template is named VNF, so Tacker finds no hooks"
        return
    vnf = flavour.nodes["VNF"]
    if vnf.get("type") != flavour.substitution.get("node_type"):
        yield "the node template VNF is not of the node_type of substitution_mappings"
    named = mapping(dig(vnf, "interfaces", "Vnflcm"))
    for hook in api.hooks:
        if hook not in named:
            yield f"the hook {hook} is not named in interfaces of the VNF"
    for hook, operation in named.items():
        if operation == [] and hook not in api.hooks:
            continue  # SOL001's operations without a script, and those of the NFVO
        implementation = dig(operation, "implementation")
        if implementation != driver:
            yield f"{hook} has the implementation {implementation} instead of {driver}"
    artifact = mapping(dig(vnf, "artifacts", driver))
    for key, value in (("file", api.artifact), ("type", _SCRIPT)):
        if artifact.get(key) != value:
            yield (
                f"the artifact {driver} has the {key} {artifact.get(key)} instead of "
                f"{value}"
            )


def _machines(flavour: Flavour) -> Iterator[str]:
    for name, node in flavour.of_type(VDU).items():
        storages = flavour.of_type(STORAGE)
        volume = storages.get(flavour.requirement(name, "virtual_storage") or "")
        if not dig(node, *IMAGE) and not dig(volume, *IMAGE):
            yield f"{name} has no sw_image_data with the name of an image"
        if not dig(node, *FLAVOR):
            yield f"{name} has no requested_additional_capability_name (flavour)"


def external_cps(flavour: Flavour) -> set[str]:
    """The connection points without a link inside the VNF."""
    return {
        name
        for name in flavour.of_type(CP)
        if flavour.requirement(name, "virtual_link") is None
    }


def _external(flavour: Flavour) -> Iterator[str]:
    mapped = set()
    for name, target in mapping(flavour.substitution.get("requirements")).items():
        node = str(target[0]) if isinstance(target, list) and target else str(target)
        mapped.add(node)
        if node not in flavour.of_type(CP):
            yield f"substitution_mappings maps {name} to {node}, which is no VduCp"
    for cp in sorted(external_cps(flavour) - mapped):
        yield f"{cp} has no virtual_link, and substitution_mappings does not map it"


def _aspects(flavour: Flavour) -> Iterator[str]:
    aspects, initial = flavour.aspects, _initial(flavour)
    for name, policy in flavour.policies(STEPS).items():
        aspect = str(policy.properties.get("aspect"))
        if aspect not in aspects:
            yield f"{name} belongs to the unknown aspect {aspect}"
        for vdu in policy.targets:
            if vdu not in initial:
                yield f"{vdu} is scaled by {name}, but no VduInitialDelta names it"
    for aspect in sorted(aspects.keys() - flavour.scaled.keys()):
        yield f"no VduScalingAspectDeltas belongs to the aspect {aspect}"


def _initial(flavour: Flavour) -> dict[str, Any]:
    """The initial number of VMs of each VDU with a VduInitialDelta."""
    return {
        vdu: dig(policy.properties, "initial_delta", "number_of_instances")
        for policy in flavour.policies(_INITIAL).values()
        for vdu in policy.targets
    }


def _levels(flavour: Flavour) -> Iterator[str]:
    aspects = set(flavour.aspects)
    if aspects and not flavour.policies(LEVELS):
        yield "there are scaling aspects but no InstantiationLevels"
    for name, policy in flavour.policies(LEVELS).items():
        levels = mapping(policy.properties.get("levels"))
        default = policy.properties.get("default_level")
        if default not in list(levels):
            yield f"{name} has the default_level {default}, which is no level"
        for level, content in levels.items():
            for aspect in sorted(aspects - set(mapping(dig(content, "scale_info")))):
                yield f"the level {level} has no scale_info of the aspect {aspect}"
    for name, policy in flavour.policies(VDU_LEVELS).items():
        for level in map(str, mapping(policy.properties.get("levels"))):
            if level not in flavour.levels:
                yield f"{name} has the unknown level {level}"


def _numbers(flavour: Flavour) -> Iterator[str]:
    """Numbers of VMs that contradict each other.

    Tacker takes those of the VDUs from one policy and those of the scaling group from
    the others (``vnflcm/utils.py``, ``tosca/utils.py``).
    """
    initial = _initial(flavour)
    for policy in flavour.policies(STEPS).values():
        aspect = str(policy.properties.get("aspect"))
        deltas = mapping(policy.properties.get("deltas")).values()
        step = next((dig(delta, "number_of_instances") for delta in deltas), None)
        most = dig(flavour.aspects.get(aspect), "max_scale_level")
        for vdu in policy.targets:
            first = initial.get(vdu)
            if not isinstance(first, int) or not first:
                continue  # another check reports it
            if isinstance(step, int) and isinstance(most, int):
                yield from _of_levels(flavour, vdu, aspect, first, step)
                yield from _of_profile(flavour, vdu, first, first + most * step)


def _of_levels(
    flavour: Flavour, vdu: str, aspect: str, first: int, step: int
) -> Iterator[str]:
    for policy in flavour.policies(LEVELS).values():
        for level, content in mapping(policy.properties.get("levels")).items():
            scale_level = dig(content, "scale_info", aspect, "scale_level")
            number = flavour.instances(str(level)).get(vdu)
            if not isinstance(scale_level, int) or number is None:
                continue
            if number != first + scale_level * step:
                yield (
                    f"the level {level} has {number} VMs of {vdu}, but the scale_level "
                    f"{scale_level} of {aspect} makes {first + scale_level * step}"
                )


def _of_profile(flavour: Flavour, vdu: str, least: int, most: int) -> Iterator[str]:
    profile = mapping(dig(flavour.nodes.get(vdu), "properties", "vdu_profile"))
    for bound, number in (("min", least), ("max", most)):
        key = f"{bound}_number_of_instances"
        if profile.get(key) != number:
            yield (
                f"{vdu} has the {key} {profile.get(key)}, but scaling goes from "
                f"{least} to {most}"
            )
