# SPDX-License-Identifier: Apache-2.0
"""The sizes of a Heat stack's scaling groups."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.topology.heat_stack import StackResource

_GROUP = "OS::Heat::AutoScalingGroup"


@dataclass(frozen=True)
class GroupSize:
    """The number of a group's members in Heat, without those that it is deleting.

    :param healthy: members that are not in a failed state.
    :param failed: members in a failed state. When the group's size is set, Heat deletes
        them first, and rebuilds them if the size permits it
        (``heat/common/grouputils.py``, ``_get_member_data``).
    """

    healthy: int
    failed: int = 0

    def nearest(self, size: int) -> int:
        """The size nearest to *size* that costs no healthy member and adds none."""
        return min(max(size, self.healthy), self.healthy + self.failed)


def sizes(resources: Sequence[StackResource]) -> dict[str, GroupSize]:
    """The sizes of the scaling groups, by the groups' names.

    :param resources: of the stack and of every stack nested in it.
    """
    groups = {
        r.nested_stack_id: r.name
        for r in resources
        if r.type == _GROUP and r.nested_stack_id
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
