"""The scaling groups of a Heat stack, and how large they are."""

from collections import Counter
from collections.abc import Sequence

from tacker_k8s_mgmt.cluster.stack import StackResource

_GROUP = "OS::Heat::AutoScalingGroup"


def sizes(resources: Sequence[StackResource]) -> dict[str, int]:
    """How many members Heat keeps of each scaling group, by the group's name.

    A member that Heat has failed at is not counted: it is deleted before any other when
    the group's size is set (``heat/common/grouputils.py``, ``_get_member_data``).

    :param resources: of the stack and of every stack nested in it.
    """
    groups = {
        one.nested_stack_id: one.name
        for one in resources
        if one.type == _GROUP and one.nested_stack_id
    }
    kept = Counter(
        groups[one.stack_id]
        for one in resources
        if one.stack_id in groups
        and not one.status.startswith("DELETE_")
        and not one.status.endswith("_FAILED")
    )
    return {name: kept[name] for name in groups.values()}
