# SPDX-License-Identifier: Apache-2.0
"""Prints what Heat's own functions do to the members of groups, as JSON.

A program of its own, for an environment with Heat. Standard input has a list of groups:
``status``, ``members`` (name, status, creation time), and either ``size``, which an
update of the stack sets, or ``steps``, as many signals to a policy that removes one,
or that adds one where it is negative.
"""

import json
import sys
from typing import Any
from unittest import mock

from heat.common import grouputils
from heat.engine import resource
from heat.engine.resources import stack_resource
from heat.engine.resources.aws.autoscaling import autoscaling_group
from heat.rpc import api
from heat.scaling import scalingutil, template


def inspector(members: list[list[str]]) -> grouputils.GroupInspector:
    """Heat's view of the group, over what its engine lists."""
    rows = [
        {
            api.RES_NAME: name,
            api.RES_STATUS: status.partition("_")[2],
            api.RES_CREATION_TIME: created,
        }
        for name, status, created in members
    ]
    client = mock.Mock(**{"list_stack_resources.return_value": rows})
    return grouputils.GroupInspector(None, client, {"id": "group"})


def kept(members: list[list[str]], size: int) -> list[str]:
    """The names of the members that are in the template of the group's next size."""
    names = inspector(members).member_names(include_failed=True)
    old = [(name, name) for name in names]
    left = template.member_definitions(old, "new", size, 0, lambda: "NEW")
    return [name for name, _ in left]


def signalled(group: dict[str, Any]) -> list[str]:
    """The members after the signals, by the group's own way to adjust its size."""
    members = group["members"]

    def resize(size: int) -> None:
        left = kept(members, size)
        members[:] = [one for one in members if one[0] in left]
        members.extend([one, "", ""] for one in left if one == "NEW")

    change = -1 if group["steps"] > 0 else 1
    for _ in range(abs(group["steps"])):
        fake = mock.Mock(status=group["status"].partition("_")[2], COMPLETE="COMPLETE")
        fake.resize = resize
        capacity = inspector(members).size(include_failed=False)
        fake._get_new_capacity = lambda current, adjustment, kind, step: (
            scalingutil.calculate_new_capacity(current, adjustment, kind, step, 0, 99)
        )
        module = autoscaling_group
        with (
            mock.patch.object(module.grouputils, "get_size", lambda _, n=capacity: n),
            mock.patch.object(module, "notification"),
        ):
            try:
                module.AutoScalingGroup.adjust(
                    fake, change, scalingutil.CHANGE_IN_CAPACITY, None, 0
                )
            except resource.NoActionRequired:
                break
    return [name for name, _, _ in members]


def is_replaced(status: str) -> bool:
    """Whether an update replaces a member, whose template has not changed."""
    action, _, state = status.partition("_")
    known = stack_resource.StackResource
    fake = mock.Mock(
        spec=known, resource_id="id", action=action, status=state, context=None
    )
    fake.state, fake.CHECK, fake.FAILED = (action, state), "CHECK", "FAILED"
    fake.stack = mock.Mock(CHECK="CHECK", FAILED="FAILED")
    # The nested stack itself is well: the resource was marked unhealthy.
    shown = [{api.STACK_ACTION: "CREATE", api.STACK_STATUS: "COMPLETE"}]
    fake.rpc_client.return_value = mock.Mock(**{"show_stack.return_value": shown})
    try:
        known._needs_update(fake, None, None, None, None, None)
    except resource.UpdateReplace:
        return True
    return False


def main() -> None:
    """Print the names that are left, and those of them that are replaced."""
    answers = []
    for group in json.load(sys.stdin):
        states = {name: status for name, status, _ in group["members"]}
        if "size" in group:
            left = kept(group["members"], group["size"])
        else:
            left = signalled(group)
        every = is_replaced(group["status"])
        replaced = [n for n in left if every or is_replaced(states.get(n, ""))]
        answers.append({"left": left, "replaced": replaced})
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
