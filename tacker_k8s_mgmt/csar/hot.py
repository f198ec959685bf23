# SPDX-License-Identifier: Apache-2.0
"""The Base HOT of a package: reading it, its dead references, its resources."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from tacker_k8s_mgmt.csar.tree import dig, mapping, parse

SERVER = "OS::Nova::Server"
PORT = "OS::Neutron::Port"
GROUP = "OS::Heat::AutoScalingGroup"
#: A group of a size that is chosen once: it has no scaling policies.
FIXED_GROUP = "OS::Heat::ResourceGroup"
#: Types of groups, and the property that describes their members.
GROUPS: Mapping[str, str] = {
    GROUP: "resource",
    FIXED_GROUP: "resource_def",
}
#: Types of groups, and the property with the number of members.
CAPACITIES: Mapping[str, str] = {GROUP: "desired_capacity", FIXED_GROUP: "count"}
#: Parameters that user data fill: what differs by VDU and connection point, and the
#: specification's own for what is the same everywhere.
FILLED = frozenset({"nfv", "flavor", "image", "public_network"})
#: The specification's parameter for an internal network that exists already.
INTERNAL_NETWORK = "net1"
_SUFFIXES = (".yaml", ".yml")
_PARAMETER_TYPES = ("string", "number", "json", "comma_delimited_list", "boolean")


@dataclass(frozen=True)
class Template:
    """One HOT file.

    :param version: its ``heat_template_version``.
    """

    name: str
    parameters: Mapping[str, Mapping[str, Any]]
    resources: Mapping[str, Mapping[str, Any]]
    version: str = ""

    @property
    def vdus(self) -> tuple[str, ...]:
        """The VDUs, which are the names of its servers."""
        return tuple(n for n, r in self.resources.items() if r["type"] == SERVER)


@dataclass(frozen=True)
class Resource:
    """A resource of a stack or of a stack nested in it.

    :param stack_id: names of the resources around it, joined by slashes.
    :param template: file name of the template that it is in.
    :param properties: with the parameters of a nested template filled in.
    :param nested: the template of its own stack, or of a group's members.
    """

    stack_id: str
    name: str
    type: str
    template: str
    properties: Mapping[str, Any]
    nested: Template | None

    @property
    def path(self) -> str:
        """Its stack's id and its name: unique in the whole stack."""
        return f"{self.stack_id}/{self.name}"

    @property
    def vdu(self) -> str:
        """The VDU of a group's members; "" if they have no server."""
        return next(iter(self.nested.vdus), "") if self.nested else ""


@dataclass(frozen=True)
class BaseHot:
    """The templates of a flavour: the top one, and nested ones by file name."""

    top: Template
    nested: Mapping[str, Template]

    @property
    def required(self) -> tuple[str, ...]:
        """The parameters that every instantiate request has to give."""
        return tuple(
            name
            for name, schema in self.top.parameters.items()
            if "default" not in schema and name not in FILLED
        )

    def use(self, definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The definition that makes a nested stack: a resource, or a group's member."""
        member = GROUPS.get(str(definition.get("type")))
        if member:
            definition = mapping(dig(definition, "properties", member))
        is_file = str(definition.get("type", "")).endswith(_SUFFIXES)
        return definition if is_file else None

    def resources(
        self,
        members: Callable[[Template], int] = lambda template: 1,
        *,
        stack_id: str = "stack",
        parameters: Mapping[str, Any] = MappingProxyType({}),
    ) -> Iterator[Resource]:
        """The resources of the whole stack, those of nested stacks after their owner.

        :param members: the number of a group's members, by their template.
        :param parameters: values for ``get_param``.
        """
        for name, definition in self.top.resources.items():
            properties = filled(mapping(definition.get("properties")), parameters)
            kind = definition["type"]
            used = self.use({"type": kind, "properties": properties})
            nested = self.nested.get(str(used["type"])) if used else None
            owner = Resource(stack_id, name, kind, self.top.name, properties, nested)
            yield owner
            if used is None or nested is None:
                continue
            # Heat refuses a template within itself.
            others = {n: t for n, t in self.nested.items() if t is not nested}
            inner, values = BaseHot(nested, others), mapping(used.get("properties"))
            stacks = [owner]
            if kind in GROUPS:
                stacks = [
                    Resource(owner.path, str(n), nested.name, self.top.name, {}, nested)
                    for n in range(members(nested))
                ]
                yield from stacks
            for stack in stacks:
                yield from inner.resources(
                    members, stack_id=stack.path, parameters=values
                )


def read(directory: Path) -> tuple[BaseHot | None, list[str]]:
    """The Base HOT in ``BaseHOT/<flavour>``, and why it cannot be used.

    Tacker takes the YAML file of that directory, whatever its name, and every one of
    ``nested/`` (``tacker/vnflcm/utils.py``, ``get_base_nest_hot_dict``).
    """
    where = f"BaseHOT/{directory.name}"
    tops = _yaml_files(directory)
    if len(tops) != 1:
        return None, [
            f"{where} has {len(tops)} YAML files, and Tacker needs exactly one"
        ]
    templates, problems = {}, []
    for path in [*tops, *_yaml_files(directory / "nested")]:
        try:
            templates[path.name] = _template(path)
        except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
            problems.append(f"{where}: {path.name} is no HOT: {error}")
    if problems:
        return None, problems
    top = templates.pop(tops[0].name)
    return BaseHot(top, templates), []


def _yaml_files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return [p for p in sorted(directory.iterdir()) if p.suffix in _SUFFIXES]


def _template(path: Path) -> Template:
    tree = parse(path.read_text(encoding="utf-8"))
    if not isinstance(tree, dict) or "heat_template_version" not in tree:
        raise ValueError("there is no heat_template_version")
    parameters, resources = mapping(tree.get("parameters")), tree.get("resources")
    if not isinstance(resources, dict) or not resources:
        raise ValueError("there are no resources")
    for name, schema in parameters.items():
        if dig(schema, "type") not in _PARAMETER_TYPES:
            kinds = ", ".join(_PARAMETER_TYPES)
            raise ValueError(f"the parameter {name} has no type of {kinds}")
    for name, definition in resources.items():
        if not isinstance(dig(definition, "type"), str):
            raise ValueError(f"the resource {name} has no type")
    version = str(tree["heat_template_version"])
    return Template(path.name, parameters, resources, version)


def problems(hot: BaseHot) -> list[str]:
    """Dead references, and parameters without a value."""
    templates = (hot.top, *hot.nested.values())
    dead = [f"{t.name}: {text}" for t in templates for text in _dead_references(t)]
    misused = [
        f"{template.name}: {name} {text}"
        for template in templates
        for name, definition in template.resources.items()
        for text in _use_problems(hot, hot.use(definition))
    ]
    nfv = dig(hot.top.parameters, "nfv", "type") == "json"
    return [
        *dead,
        *misused,
        *([] if nfv else [f"{hot.top.name}: there is no parameter nfv of type json"]),
    ]


def unusable_words(hot: BaseHot) -> Iterator[str]:
    """What Tacker's v1 API cannot send to Heat.

    It takes ``password`` anywhere in the main template's text for a key of the template
    (``heat_client.py``, ``create``).
    """
    for kind in ("parameters", "resources"):
        for name, definition in getattr(hot.top, kind).items():
            if "password" in json.dumps({name: definition}, default=str):
                yield (
                    f"{hot.top.name}: {kind}.{name}: Tacker's v1 API fails on a "
                    "template with the word password; write passwd in user data, or "
                    "move the resource into a nested template"
                )


def _dead_references(template: Template) -> Iterator[str]:
    for name, definition in template.resources.items():
        for function, target in references(definition):
            known = (
                template.parameters if function == "get_param" else template.resources
            )
            if target not in known and not target.startswith("OS::"):
                yield f"{name} refers to {target} with {function}, which does not exist"


def references(value: Any) -> Iterator[tuple[str, str]]:
    """``(function, name)`` of every reference in *value*, at any depth."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "depends_on" and isinstance(inner, list):
                yield from ((key, str(target)) for target in inner)
            elif key in ("get_param", "get_resource", "get_attr", "depends_on"):
                yield key, str(inner[0] if isinstance(inner, list) and inner else inner)
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def filled(value: Any, parameters: Mapping[str, Any]) -> Any:
    """*value* with the values of *parameters* in place of their ``get_param``."""
    if isinstance(value, dict):
        parameter = value.get("get_param")
        if isinstance(parameter, str) and parameter in parameters:
            return parameters[parameter]
        return {key: filled(inner, parameters) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, parameters) for inner in value]
    return value


def parameter_paths(value: Any) -> Iterator[tuple[str, ...]]:
    """The argument of every ``get_param`` in *value* that is a path of names."""
    if isinstance(value, Mapping):
        path = value.get("get_param")
        if isinstance(path, list) and path:
            yield tuple(map(str, path))
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from parameter_paths(inner)


def _use_problems(hot: BaseHot, used: Mapping[str, Any] | None) -> Iterator[str]:
    if used is None:
        return
    nested = hot.nested.get(used["type"])
    if nested is None:
        yield f"uses {used['type']}, which is not in nested/"
        return
    given = set(mapping(used.get("properties")))
    required = {name for name, s in nested.parameters.items() if "default" not in s}
    for name in sorted(given - set(nested.parameters)):
        yield f"gives {nested.name} the parameter {name}, which it does not have"
    for name in sorted(required - given):
        yield f"does not give {nested.name} the parameter {name}"
