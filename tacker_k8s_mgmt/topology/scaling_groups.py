"""The scaling groups of a Heat stack, and how large they are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.topology.heat_stack import StackResource

_GROUP = "OS::Heat::AutoScalingGroup"


@dataclass(frozen=True)
class GroupSize:
    """How many members Heat has of a group, without those that it deletes.

    :param healthy: those that it has not failed at.
    :param failed: those that it has failed at. When the group's size is set, they are
        deleted before any other, and built anew if the size has room for them
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
        one.nested_stack_id: one.name
        for one in resources
        if one.type == _GROUP and one.nested_stack_id
    }
    found = Counter(
        (groups[one.stack_id], one.status.endswith("_FAILED"))
        for one in resources
        if one.stack_id in groups and not one.status.startswith("DELETE_")
    )
    return {
        name: GroupSize(found[name, False], found[name, True])
        for name in groups.values()
    }
