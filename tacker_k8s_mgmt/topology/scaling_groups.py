# SPDX-License-Identifier: Apache-2.0
"""The scaling groups of a Heat stack: their sizes, and what Heat does to their members.

The choice is Heat's (``heat/common/grouputils.py``, ``_get_member_data``;
``heat/scaling/template.py``, ``member_definitions``; ``heat/engine/resource.py``,
``_needs_update``); a contract test compares it with Heat's own functions.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

GROUP = "OS::Heat::AutoScalingGroup"
#: Of a resource that is replaced by whatever update of the stack comes next.
UNHEALTHY = "CHECK_FAILED"


@dataclass(frozen=True)
class GroupSize:
    """The number of a group's members in Heat, without those that it is deleting.

    :param healthy: members that are not in a failed state.
    :param failed: members in a failed state. When the group's size is set, Heat deletes
        them first, and rebuilds them if the size permits it.
    :param needed: the least size at which it deletes no failed member that is to stay.
    """

    healthy: int
    failed: int = 0
    needed: int = 0

    def nearest(self, size: int) -> int:
        """The size nearest to *size* that adds no member.

        It costs none that is healthy, or that is to stay.
        """
        least = max(size, self.healthy, self.needed)
        return min(least, self.healthy + self.failed)


@dataclass(frozen=True)
class Member:
    """A member of a group.

    :param created: when Heat created it, as ISO 8601.
    :param ids: of its stacks and of what is in them.
    :param is_unhealthy: it, or a resource in it, is :data:`UNHEALTHY`.
    """

    name: str
    status: str
    created: str = ""
    ids: frozenset[str] = frozenset()
    is_unhealthy: bool = False

    @property
    def failed(self) -> bool:
        """Whether Heat has it among the failed ones."""
        return self.status.endswith("_FAILED")

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"


@dataclass(frozen=True)
class Resizing:
    """What Heat does when it sets a group's size.

    :param removed: the members that it deletes.
    :param rebuilt: those that it keeps and replaces.
    """

    removed: tuple[Member, ...]
    rebuilt: tuple[Member, ...]


@dataclass(frozen=True)
class Group:
    """An AutoScalingGroup.

    :param status: of the group itself, not of its members.
    """

    name: str
    status: str
    members: tuple[Member, ...]

    def having(self, ids: Collection[str]) -> tuple[Member, ...]:
        """The members with one of these ids."""
        return tuple(one for one in self.members if not one.ids.isdisjoint(ids))

    def order(self) -> tuple[Member, ...]:
        """The members in the order in which Heat removes them."""
        return tuple(
            sorted(self.members, key=lambda m: (not m.failed, m.created, m.name))
        )

    def least_with(self, ids: Collection[str]) -> int:
        """The least size at which Heat deletes none of the members with these ids."""
        staying = self.having(ids)
        order = self.order()
        return max((len(order) - order.index(one) for one in staying), default=0)

    def resized(self, size: int) -> Resizing:
        """What Heat does when it sets the group to that size, or a smaller one."""
        order = self.order()
        kept = order[-size:] if size else ()
        replaces_all = self.status == UNHEALTHY
        return Resizing(
            tuple(one for one in order if one not in kept),
            tuple(one for one in kept if replaces_all or one.is_unhealthy),
        )

    def signalled(self, leaving: Collection[Member]) -> Resizing:
        """What Heat does on a signal to the policy that removes so many members.

        It counts those only that have not failed.
        """
        healthy = sum(not one.failed for one in self.members)
        return self.resized(max(healthy - len(leaving), 0))

    def marked(self, leaving: Collection[Member]) -> "Group":
        """The group when these members have been marked unhealthy."""
        members = (
            replace(one, status=UNHEALTHY, is_unhealthy=True) if one in leaving else one
            for one in self.members
        )
        return replace(self, members=tuple(members))
