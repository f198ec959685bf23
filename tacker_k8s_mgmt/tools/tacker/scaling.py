# SPDX-License-Identifier: Apache-2.0
"""Scaling aspects of workers: by how many VMs a step is, and how far it goes.

A VNF instance has the level of each aspect. The step is in the VNFD of its package.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import yaml

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.model.nodes import Role, role_of
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, parse_yaml, sequence
from tacker_k8s_mgmt.tools.csar.vnfd import FLAVOUR_ID, STEPS, Flavour
from tacker_k8s_mgmt.tools.tacker import packages, table
from tacker_k8s_mgmt.tools.tacker.client import Tacker
from tacker_k8s_mgmt.tools.tacker.records import Instance

_SIZE = re.compile("([+-]?)([0-9]{1,4})")


@dataclass(frozen=True)
class Aspect:
    """A scaling aspect.

    :param vdus: whose VMs it makes.
    :param step: VMs of one step.
    :param highest: the highest level.
    """

    name: str
    vdus: tuple[str, ...]
    step: int
    highest: int


@dataclass(frozen=True)
class Size:
    """A wanted number of workers.

    :param sign: ``+`` or ``-`` for so many more or less; "" for so many in all.
    """

    sign: str
    number: int


def size(text: str) -> Size:
    """A number as it is given on the command line.

    :raises ValueError: it is none.
    """
    found = _SIZE.fullmatch(text)
    if not found or (found[1] and not int(found[2])):
        raise ValueError(text)
    return Size(found[1], int(found[2]))


def aspects(tacker: Tacker, instance: Instance) -> tuple[Aspect, ...]:
    """The aspects in the VNFD of an instance's package.

    :raises TackerError: the VNFD cannot be had or read.
    """
    files = packages.vnfd_files(tacker, instance.vnfd_id)
    return tuple(_aspects(files, instance.flavour))


def _aspects(files: Mapping[str, bytes], flavour_id: str) -> Iterator[Aspect]:
    for name, content in files.items():
        if not name.endswith((".yaml", ".yml")):
            continue
        try:
            tree = mapping(parse_yaml(content.decode()))
        except (yaml.YAMLError, ValueError):
            continue
        if dig(tree, *FLAVOUR_ID) == flavour_id:
            topology = mapping(tree.get("topology_template"))
            yield from _of_flavour(Flavour(flavour_id, Path(name), topology))


def _of_flavour(flavour: Flavour) -> Iterator[Aspect]:
    for policy in flavour.policies(STEPS).values():
        name = str(policy.properties.get("aspect"))
        aspect = mapping(flavour.aspects.get(name))
        deltas = [
            dig(policy.properties, "deltas", str(delta), "number_of_instances")
            for delta in sequence(aspect.get("step_deltas"))
        ]
        highest = aspect.get("max_scale_level")
        # Tacker has one step of each aspect.
        if len(set(map(str, deltas))) == 1 and _is_count(deltas[0]):
            top = highest if _is_count(highest) else 0
            yield Aspect(name, policy.targets, deltas[0], top)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def choose(instance: Instance, known: Sequence[Aspect], name: str | None) -> Aspect:
    """The aspect that is meant.

    :param name: as it was given; None where there is only one.
    :raises TackerError: there is none, or several.
    """
    usable = [
        aspect
        for aspect in known
        if aspect.name in instance.levels
        and all(role_of(vdu) in (None, Role.WORKER) for vdu in aspect.vdus)
    ]
    found = [aspect for aspect in usable if name in (None, aspect.name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(aspect.name for aspect in usable) or "none"
    if name is None and usable:
        raise TackerError(
            detail=f"{instance.title} has several aspects of workers: {listed}.",
            hint="Name one with --aspect.",
        )
    raise TackerError(
        detail=f"{instance.title} has no scaling aspect {name or ''} of workers; there "
        f"are: {listed}.".replace("  ", " ")
    )


def request_body(instance: Instance, aspect: Aspect, wanted: Size) -> dict[str, object]:
    """The body of the request.

    :raises TackerError: Tacker would refuse it, or there is nothing to do.
    """
    now = sum(vnfc.vdu in aspect.vdus for vnfc in instance.vnfcs)
    change = (
        int(f"{wanted.sign}{wanted.number}") if wanted.sign else wanted.number - now
    )
    if not change:
        raise TackerError(detail=f"{instance.title} has {now} workers already.")
    steps, rest = divmod(abs(change), aspect.step)
    if rest:
        raise TackerError(
            detail=f"A step of {aspect.name} is {aspect.step} VMs: {change:+} is not "
            "possible.",
            hint=f"Scale by a multiple of {aspect.step}.",
        )
    kind = table.SCALE_OUT if change > 0 else table.SCALE_IN
    _refuse_bounds(instance, aspect, steps if change > 0 else -steps)
    return {"type": kind, "aspectId": aspect.name, "numberOfSteps": steps}


def _refuse_bounds(instance: Instance, aspect: Aspect, steps: int) -> None:
    level = instance.levels[aspect.name]
    highest = instance.highest.get(aspect.name, aspect.highest)
    if not 0 <= level + steps <= highest:
        raise TackerError(
            detail=f"The scale level of {aspect.name} is {level}, and goes from 0 to "
            f"{highest}: {steps:+} steps are too many.",
            hint=f"{-level:+} to {highest - level:+} steps of {aspect.step} VMs are "
            "possible.",
        )
