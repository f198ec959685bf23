# SPDX-License-Identifier: Apache-2.0
"""The resources of a Heat stack and of the stacks nested in it, as a tree."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt.topology import scaling_groups
from tacker_k8s_mgmt.topology.scaling_groups import UNHEALTHY, Group, GroupSize, Member

PORT = "OS::Neutron::Port"
FLOATING_IP = "OS::Neutron::FloatingIP"
SERVER = "OS::Nova::Server"
_GONE = "DELETE_COMPLETE"


@dataclass(frozen=True)
class StackResource:
    """A resource of a stack or of a stack nested in it.

    :param stack_id: the stack of the resource.
    :param physical_id: id of the object in OpenStack, e.g. of the port.
    :param status: such as ``CREATE_COMPLETE``.
    :param nested_stack_id: id of the resource as a stack, if it is one.
    :param attributes: Neutron's, of ports and floating IPs; Nova's, of servers, where
        they are needed.
    :param created: when Heat created it, as ISO 8601.
    """

    stack_id: str
    name: str
    type: str
    physical_id: str
    status: str
    nested_stack_id: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    @property
    def complete(self) -> bool:
        """Whether the resource exists and is not being deleted."""
        action, _, state = self.status.partition("_")
        return state == "COMPLETE" and action != "DELETE"

    @property
    def device_id(self) -> str:
        """Of a port, the server that it is attached to; "" if there is none."""
        return str(self.attributes.get("device_id") or "")


class StackTree:
    """Resources by their stacks."""

    def __init__(self, resources: Sequence[StackResource]) -> None:
        self._stacks: dict[str, dict[str, StackResource]] = defaultdict(dict)
        for resource in resources:
            self._stacks[resource.stack_id][resource.name] = resource
        self._owners = {r.nested_stack_id: r for r in resources if r.nested_stack_id}
        self._ports = {r.physical_id: r for r in resources if r.type == PORT}
        self._attached = {port.device_id for port in self._ports.values()}

    def group(self, aspect_id: str | None) -> StackResource | None:
        """The nested stack of that name, as a resource."""
        named = (r for r in self._owners.values() if r.name == aspect_id)
        return next(named, None)

    def stacks(
        self, group: StackResource | None, besides: Container[str]
    ) -> Iterator[tuple[str, Mapping[str, StackResource]]]:
        """The stacks in a group, or all without one.

        :param besides: names of excluded groups.
        """
        for stack_id, resources in self._stacks.items():
            owners = tuple(self.owners(stack_id))
            if any(owner.name in besides for owner in owners):
                continue
            if group is None or any(owner is group for owner in owners):
                yield stack_id, resources

    def port(self, cp: StackResource) -> StackResource | None:
        """The port itself, or the port of a floating IP."""
        if cp.type != FLOATING_IP:
            return cp
        return self._ports.get(str(cp.attributes.get("port_id") or ""))

    def members(self, group: StackResource) -> Iterator[tuple[StackResource, set[str]]]:
        """The members of a group that are not being deleted, each with the ids of its
        stacks.
        """
        for member in self._stacks.get(group.nested_stack_id, {}).values():
            if not member.status.startswith("DELETE_"):
                own = {member.nested_stack_id}
                yield member, {i for i in self._stacks if own & self.around(i)}

    def scaling_groups(self) -> Iterator[Group]:
        """The AutoScalingGroups, with what decides which members Heat removes."""
        for group in self._owners.values():
            if group.type == scaling_groups.GROUP:
                members = self.members(group)
                yield Group(
                    group.name, group.status, tuple(self._member(*m) for m in members)
                )

    def unhealthy_stacks(self) -> Iterator[StackResource]:
        """The nested stacks, as resources, that are :data:`UNHEALTHY`."""
        return (one for one in self._owners.values() if one.status == UNHEALTHY)

    def _member(self, member: StackResource, stacks: set[str]) -> Member:
        inner = [one for stack in stacks for one in self._stacks[stack].values()]
        states = (one.status for one in inner)
        return Member(
            member.name,
            member.status,
            member.created,
            frozenset({member.physical_id, *stacks, *(r.physical_id for r in inner)})
            - {""},
            is_unhealthy=UNHEALTHY in (member.status, *states),
        )

    def unbuilt(self) -> Iterator[tuple[StackResource, set[str]]]:
        """Likewise the stacks that Heat has not begun to build, wherever they are."""
        for resources in self._stacks.values():
            for one in resources.values():
                is_stack = "::" not in one.type and not one.status.startswith("DELETE_")
                if is_stack and one.nested_stack_id not in self._stacks:
                    yield one, set()

    def detached_server(self, stack_id: str) -> str:
        """The only server in a stack to which no port is attached; "" if there is none.

        Nova unbinds the ports of a server that is deleted, so that Neutron no longer
        says whose they were.
        """
        servers = {
            resource.physical_id
            for resource in self._stacks[stack_id].values()
            if resource.type == SERVER and resource.physical_id
        }
        left = servers - self._attached
        return left.pop() if len(left) == 1 else ""

    def places(self) -> Mapping[str, frozenset[str]]:
        """By physical id of all existing resources: it and the stacks around it."""
        around = {stack_id: self.around(stack_id) for stack_id in self._stacks}
        return {
            resource.physical_id: frozenset({resource.physical_id, *around[stack_id]})
            for stack_id, resources in self._stacks.items()
            for resource in resources.values()
            if resource.physical_id and resource.status != _GONE
        }

    def around(self, stack_id: str) -> set[str]:
        """A stack and those around it."""
        return {stack_id, *(owner.stack_id for owner in self.owners(stack_id))}

    def servers(self, without: Container[str]) -> Iterator[str]:
        """The names of all complete servers but these."""
        for resources in self._stacks.values():
            for r in resources.values():
                if r.type == SERVER and r.complete and r.physical_id not in without:
                    yield r.name

    def owners(self, stack_id: str) -> Iterator[StackResource]:
        """The resources around a nested stack, the nearest first."""
        while stack_id in self._owners:
            owner = self._owners[stack_id]
            yield owner
            stack_id = owner.stack_id


def group_sizes(resources: Sequence[StackResource]) -> dict[str, GroupSize]:
    """The sizes of the scaling groups, by the groups' names.

    :param resources: of the stack and of every stack nested in it.
    """
    groups = {
        r.nested_stack_id: r.name
        for r in resources
        if r.type == scaling_groups.GROUP and r.nested_stack_id
    }
    members = Counter(
        (groups[r.stack_id], r.status.endswith("_FAILED"))
        for r in resources
        if r.stack_id in groups and not r.status.startswith("DELETE_")
    )
    return {
        name: GroupSize(members[name, False], members[name, True])
        for name in groups.values()
    }
