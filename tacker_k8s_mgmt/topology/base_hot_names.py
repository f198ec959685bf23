# SPDX-License-Identifier: Apache-2.0
"""The names in the parameters against a Base HOT, before Heat has a stack of it.

:mod:`.heat_stack` finds the same in the stack, when its VMs are there.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from tacker_k8s_mgmt.model import python_text
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.tree import dig, sequence
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.base_hot import GROUPS, SERVER, BaseHot, Resource
from tacker_k8s_mgmt.topology.heat_stack import FLOATING_IP, PORT
from tacker_k8s_mgmt.topology.vm_selectors import VmSelector, as_named, vm_selectors

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


def compare(base: BaseHot, params: InstallParams) -> Comparison:
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
        if selector.role is Role.WORKER:
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
    tree = python_text.parse(user_data)
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
