"""The sizes of the scaling groups, while Tacker's v1 API changes a stack's ports.

For that Tacker 16 updates the stack with the template that Heat has and the parameters
of the instantiation (``OpenStack._change_ext_conn_vnf_with_userdata``). Scaling goes
past both, by signals to Heat's policies. So Heat would bring the group back to its
first size, and delete the oldest workers without a drain. With a number in the
template, as a heal of Tacker's writes one, it keeps them.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from tacker.vnfm.infra_drivers.openstack.update_template import HOTUpdater

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import rollback, scale_level
from tacker_k8s_mgmt.hooks.v1.site import V1Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.remote.backoff import Backoff

_LIMIT = 600.0  # seconds for an update that changes no VM
_UNDER_WAY = "IN_PROGRESS"
_DONE = "UPDATE_COMPLETE"


def step(context: Any, vnf_instance: Any, site: V1Site) -> Step:
    """Have the stack's template say how many members the groups have."""

    def act() -> None:
        found = site.group_sizes()
        sizes = scale_level.kept_sizes(context, vnf_instance, found)
        if sizes:
            _keep(context, vnf_instance, sizes)

    return Step("have Heat keep the size of the groups", act)


def _keep(context: Any, vnf_instance: Any, sizes: Mapping[str, int]) -> None:
    stack_id = vnf_instance.instantiated_vnf_info.instance_id
    try:
        client = rollback.heat_of(context, vnf_instance)
        before = client.get(stack_id).updated_time
        if not _write(client, stack_id, sizes):
            return
        status = _ended(client, stack_id, before)
        if status == _DONE:
            return
        reason = f"the stack is {status}"
    except Exception as error:
        # Whatever the client, its session or the token's renewal may raise.
        reason = str(error) or type(error).__name__
    raise errors.RemoteError(
        detail=f"The size of {', '.join(sizes)} could not be written into the template "
        f"of Heat stack {stack_id}: {reason}. Without it Heat would delete workers.",
        hint="No port was changed. `openstack stack failures list --long "
        f"{stack_id}` may say more.",
    )


def _write(client: Any, stack_id: str, sizes: Mapping[str, int]) -> bool:
    """Begin an update of the stack where its own words would change a size."""
    found = HOTUpdater(client)
    found.get_templates_from_stack(stack_id)
    parameters = client.stacks.get(stack_id).parameters
    wrong = {
        name: size
        for name, size in sizes.items()
        if name in found.template["resources"]
        and _written(found.template, parameters, name) not in (None, size)
    }
    for name, size in wrong.items():
        found.template["resources"][name]["properties"]["desired_capacity"] = size
    if wrong:
        files = {
            name: yaml.safe_dump(one) for name, one in found.nested_templates.items()
        }
        template = yaml.safe_dump(found.template)
        client.update(stack_id, existing=True, template=template, files=files)
    return bool(wrong)


def _written(
    template: Mapping[str, Any], parameters: Mapping[str, Any], group: str
) -> int | None:
    try:
        return rollback.size_in(template, parameters, group)
    except (KeyError, TypeError, ValueError):
        # Some other function of Heat's: a number is right in any case.
        return -1


def _ended(client: Any, stack_id: str, before: str | None) -> str:
    """The stack's status when its update has ended, or after the limit.

    :param before: ``updated_time``, which changes when Heat begins to work on it.
    """
    waiting = Backoff(_LIMIT)
    while True:
        stack = client.get(stack_id)
        status = str(stack.stack_status)
        begun = stack.updated_time != before
        if waiting.spent():
            return status if begun else f"{status}, and not updated"
        if begun and not status.endswith(_UNDER_WAY):
            return status
        waiting.pause()
