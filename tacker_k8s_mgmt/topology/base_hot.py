# SPDX-License-Identifier: Apache-2.0
"""The Base HOT of a package: templates, resources, and the names that select VMs.

It tells the resources that Heat creates, and whether the names in the parameters are
there, before Heat has a stack of it. :mod:`.heat_stack` finds the same in the stack,
when its VMs are there.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

import yaml

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.nodes import ROLES
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, parse_yaml, sequence
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.heat_stack import VmSelector, as_named, vm_selectors
from tacker_k8s_mgmt.topology.stack_resources import FLOATING_IP

SERVER = "OS::Nova::Server"
PORT = "OS::Neutron::Port"
GROUP = "OS::Heat::AutoScalingGroup"
#: A group of a size that is chosen once: it has no scaling policies.
FIXED_GROUP = "OS::Heat::ResourceGroup"
#: Types of groups, and the property that describes their members.
GROUPS: Mapping[str, str] = {GROUP: "resource", FIXED_GROUP: "resource_def"}
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

    @property
    def names(self) -> frozenset[str]:
        """The names of the resources in all templates."""
        every = (self.top, *self.nested.values())
        return frozenset(name for one in every for name in one.resources)

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


def read(
    files: Mapping[str, bytes], flavour_id: str
) -> tuple[BaseHot | None, list[str]]:
    """The Base HOT of a flavour, and why it cannot be used.

    Tacker takes the YAML file of ``BaseHOT/<flavour>``, whatever its name, and every
    one of ``nested/`` (``tacker/vnflcm/utils.py``, ``get_base_nest_hot_dict``).

    :param files: of the package, or those below that directory, by path.
    """
    where = f"BaseHOT/{flavour_id}"
    tops = _yaml_files(files, where)
    if len(tops) != 1:
        return None, [
            f"{where} has {len(tops)} YAML files, and Tacker needs exactly one"
        ]
    templates, problems = {}, []
    for path in [*tops, *_yaml_files(files, f"{where}/nested")]:
        name = path.rpartition("/")[2]
        try:
            templates[name] = _template(name, files[path].decode())
        except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
            problems.append(f"{where}: {name} is no HOT: {error}")
    if problems:
        return None, problems
    top = templates.pop(tops[0].rpartition("/")[2])
    return BaseHot(top, templates), []


def _yaml_files(files: Mapping[str, bytes], directory: str) -> list[str]:
    found = sorted(name for name in files if name.endswith(_SUFFIXES))
    return [name for name in found if name.rpartition("/")[0] == directory]


def _template(name: str, text: str) -> Template:
    tree = parse_yaml(text)
    if not isinstance(tree, dict) or "heat_template_version" not in tree:
        raise ValueError("there is no heat_template_version")
    parameters, resources = mapping(tree.get("parameters")), tree.get("resources")
    if not isinstance(resources, dict) or not resources:
        raise ValueError("there are no resources")
    for parameter, schema in parameters.items():
        if dig(schema, "type") not in _PARAMETER_TYPES:
            kinds = ", ".join(_PARAMETER_TYPES)
            raise ValueError(f"the parameter {parameter} has no type of {kinds}")
    for resource, definition in resources.items():
        if not isinstance(resource, str) or not isinstance(
            dig(definition, "type"), str
        ):
            raise ValueError(f"the resource {resource} has no type")
    version = str(tree["heat_template_version"])
    return Template(name, parameters, resources, version)


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


_CPS = frozenset({PORT, FLOATING_IP})
# Their members or stacks are not in the package's files.
_OPAQUE = frozenset(
    {"OS::Heat::Stack", "OS::Heat::InstanceGroup", "OS::Heat::ResourceChain"}
)
# Templates in each other can stand for more than memory holds.
_MOST = 10_000
# Tacker's own script, which makes other resources of those in the template.
_STANDARD = "userdata_standard"


@dataclass(frozen=True)
class Comparison:
    """Names that were looked for in a Base HOT.

    :param missing: a sentence for each that is not there.
    :param unknown: why there may be more in the stack than in the template; "" if not.
    """

    missing: tuple[str, ...]
    unknown: str = ""


def compare(base: BaseHot, params: ClusterRequest) -> Comparison:
    """Look for the groups and connection points that the parameters name."""
    resources = tuple(islice(base.resources(), _MOST))
    if len(resources) == _MOST:
        return Comparison((), f"it has {_MOST} resources or more")
    params = as_named(params, base.names)
    found = [
        text
        for selector in vm_selectors(params)
        for text in _missing(selector, resources)
    ]
    opaque = (f"{r.name} is of type {r.type}" for r in resources if _is_opaque(r, base))
    return Comparison(tuple(dict.fromkeys(found)), next(opaque, ""))


def _is_opaque(resource: Resource, base: BaseHot) -> bool:
    used = base.use({"type": resource.type, "properties": resource.properties})
    if resource.nested or resource.type in base.nested:
        return False
    if resource.type in GROUPS:
        member = resource.properties.get(GROUPS[resource.type])
        kind = member.get("type") if isinstance(member, Mapping) else None
        return bool(used) or not str(kind).startswith("OS::")
    return resource.type in _OPAQUE or not resource.type.startswith("OS::")


def _missing(selector: VmSelector, resources: tuple[Resource, ...]) -> Iterator[str]:
    attribute, aspect = selector.attribute, selector.aspect_id
    groups = {r.name for r in resources if r.nested or r.type in GROUPS}
    if aspect and aspect not in groups:
        if selector.own_labels:
            yield f"{attribute}.aspect_id: there is no group {aspect} in the stack"
            return
        if ROLES[selector.role].scales:
            known = sorted(r.name for r in resources if r.type in GROUPS)
            yield (
                f"{attribute}.aspect_id: the Base HOT has no group {aspect} (it has: "
                f"{', '.join(known) or 'none'})"
            )
        aspect = None
    stacks: dict[str, dict[str, Resource]] = {}
    for resource in resources:
        around = resource.stack_id.split("/")[1:]
        if (aspect in around if aspect else True) and not selector.besides & {*around}:
            stacks.setdefault(resource.stack_id, {})[resource.name] = resource
    vms = [stack for stack in stacks.values() if selector.ssh_cp in stack]
    if not vms:
        place = f"the group {aspect}" if aspect else "the stack"
        yield f"{attribute}.ssh_cp_name: there is no {selector.ssh_cp} in {place}"
    for stack in vms:
        nic = stack.get(selector.nic_cp)
        if nic is None:
            yield (
                f"{attribute}.nic_cp_name: there is no {selector.nic_cp} beside "
                f"{selector.ssh_cp}"
            )
            continue
        yield from _mismatch(attribute, stack, stack[selector.ssh_cp], nic)


def _mismatch(
    attribute: str, stack: Mapping[str, Resource], ssh: Resource, nic: Resource
) -> Iterator[str]:
    for name, cp in (("nic" if nic is not ssh else "ssh", nic), ("ssh", ssh)):
        if cp.type not in _CPS:
            yield (
                f"{attribute}.{name}_cp_name: {cp.name} is an {cp.type}, not a port or "
                "floating IP"
            )
            return
    vms = {
        str(dig(entry, "port", "get_resource")): r.name
        for r in stack.values()
        if r.type == SERVER
        for entry in sequence(r.properties.get("networks"))
    }
    if vms.get(ssh.name, "") != vms.get(nic.name, "") and vms.keys() >= {
        ssh.name,
        nic.name,
    }:
        yield (
            f"{attribute}.nic_cp_name: {nic.name} belongs to another VM than {ssh.name}"
        )


def changes_resources(user_data: bytes) -> bool:
    """Whether a script of Tacker's v2 API gives Heat other resources than the template.

    Those that cannot be read are not run by Tacker either.
    """
    if _STANDARD.encode() in user_data:
        return True
    tree = untrusted.parse_python(user_data)
    return tree is None or any(map(_changes, ast.walk(tree)))


def _changes(node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return any(_is_of_resources(t) for t in targets)
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _is_of_resources(target)
        case ast.Call(func=ast.Attribute(attr=attr, value=value)):
            changing = ("pop", "update", "setdefault", "clear", "popitem")
            return attr in changing and _is_of_resources(value)
    return False


def _is_of_resources(node: ast.AST) -> bool:
    """Whether an expression leads through the resources of a template."""
    return any(
        isinstance(part, ast.Constant) and part.value == "resources"
        for part in ast.walk(node)
    )
