"""The Base HOT of a package: reading it, and references that lead nowhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tacker_k8s_mgmt.csar.tree import dig, mapping, parse

GROUP = "OS::Heat::AutoScalingGroup"
#: Instead of one, where the number is chosen once: it has no scaling policies.
FIXED_GROUP = "OS::Heat::ResourceGroup"
#: Types of groups, and the property that describes their members.
GROUPS: Mapping[str, str] = {
    GROUP: "resource",
    FIXED_GROUP: "resource_def",
}
#: Types of groups, and the property that says how many members there are.
CAPACITIES: Mapping[str, str] = {GROUP: "desired_capacity", FIXED_GROUP: "count"}
_SERVER = "OS::Nova::Server"
_SUFFIXES = (".yaml", ".yml")
_PARAMETER_TYPES = ("string", "number", "json", "comma_delimited_list", "boolean")


@dataclass(frozen=True)
class Template:
    """One HOT file."""

    name: str
    parameters: Mapping[str, Mapping[str, Any]]
    resources: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class BaseHot:
    """The templates of a flavour: the top one, and nested ones by file name."""

    top: Template
    nested: Mapping[str, Template]

    def use(self, definition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The definition that makes a nested stack: a resource, or a group's member."""
        member = GROUPS.get(str(definition.get("type")))
        if member:
            definition = mapping(dig(definition, "properties", member))
        is_file = str(definition.get("type", "")).endswith(_SUFFIXES)
        return definition if is_file else None

    def vdu(self, group: Mapping[str, Any]) -> str:
        """The VDU of a group's members; "" where none of them has a server."""
        used = self.use(group)
        nested = self.nested.get(str(used["type"])) if used else None
        resources = nested.resources if nested else {}
        servers = (n for n, one in resources.items() if one["type"] == _SERVER)
        return next(servers, "")


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
    return Template(path.name, parameters, resources)


def problems(hot: BaseHot) -> list[str]:
    """References that lead nowhere, and parameters that nobody fills."""
    found = []
    for template in (hot.top, *hot.nested.values()):
        found += [f"{template.name}: {text}" for text in _reference_problems(template)]
    for template in (hot.top, *hot.nested.values()):
        for name, definition in template.resources.items():
            used = hot.use(definition)
            if used is not None:
                found += [
                    f"{template.name}: {name} {text}"
                    for text in _use_problems(hot, used)
                ]
    if dig(hot.top.parameters, "nfv", "type") != "json":
        found.append(f"{hot.top.name}: there is no parameter nfv of type json")
    found += [
        f"{hot.top.name}: nobody fills the parameter {name}, and it has no default"
        for name, schema in hot.top.parameters.items()
        if name != "nfv" and "default" not in schema
    ]
    return found


def _reference_problems(template: Template) -> Iterator[str]:
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


def filled(value: Any, given: Mapping[str, Any]) -> Any:
    """*value* with ``get_param`` of a given parameter replaced by what is given."""
    if isinstance(value, dict):
        parameter = value.get("get_param")
        if isinstance(parameter, str) and parameter in given:
            return given[parameter]
        return {key: filled(inner, given) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, given) for inner in value]
    return value


def parameter_paths(value: Any) -> Iterator[tuple[str, ...]]:
    """The argument of every ``get_param`` in *value* that goes into a parameter."""
    if isinstance(value, Mapping):
        path = value.get("get_param")
        if isinstance(path, list) and path:
            yield tuple(map(str, path))
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from parameter_paths(inner)


def _use_problems(hot: BaseHot, used: Mapping[str, Any]) -> Iterator[str]:
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
