# SPDX-License-Identifier: Apache-2.0
"""What Tacker 16 requires of a VNFD, beyond that it is valid TOSCA.

Without these things the upload succeeds and an operation fails later, halfway
(``tacker/vnflcm/utils.py``, ``tacker/tosca/utils.py``, ``vnflcm_driver.py``).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.csar import vnfd
from tacker_k8s_mgmt.csar.api import Api
from tacker_k8s_mgmt.csar.vnfd import CP, LEVELS, STEPS, VDU, VDU_LEVELS, Flavour
from tacker_k8s_mgmt.model.tree import dig, mapping

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
        storages = flavour.of_type(vnfd.STORAGE)
        volume = storages.get(flavour.requirement(name, "virtual_storage") or "")
        if not dig(node, *vnfd.IMAGE) and not dig(volume, *vnfd.IMAGE):
            yield f"{name} has no sw_image_data with the name of an image"
        if not dig(node, *vnfd.FLAVOR):
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
