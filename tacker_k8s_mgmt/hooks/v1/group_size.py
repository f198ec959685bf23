# SPDX-License-Identifier: Apache-2.0
"""The sizes of the scaling groups, while Tacker's v1 API changes a stack's ports.

Tacker 16 then updates the stack with Heat's own template and the parameters of the
instantiation (``OpenStack._change_ext_conn_vnf_with_userdata``). Scaling changes
neither: it sends signals to Heat's policies. So Heat would restore the group's first
size, and delete the oldest workers without a drain. A number in the template, as
Tacker's heal writes one, prevents that.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from tacker.vnfm.infra_drivers.openstack.update_template import HOTUpdater

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import openstack, rollback, scale_level
from tacker_k8s_mgmt.hooks.v1.context import V1Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.remote.backoff import Backoff

_LIMIT = 600.0  # seconds for an update that changes no VM
_IN_PROGRESS = "IN_PROGRESS"
_DONE = "UPDATE_COMPLETE"


def step(site: V1Site) -> Step:
    """Write the present sizes of the groups into the stack's template."""

    def act() -> None:
        sizes = scale_level.kept_sizes(site)
        if sizes:
            _keep(site, sizes)

    return Step("have Heat keep the size of the groups", act)


def _keep(site: V1Site, sizes: Mapping[str, int]) -> None:
    stack_id = site.instance.instantiated_vnf_info.instance_id
    try:
        client = openstack.heat_of(site.context, site.instance)
        before = client.get(stack_id).updated_time
        if not _write(client, stack_id, sizes):
            return
        status = _ended(client, stack_id, before)
        if status == _DONE:
            return
        reason = f"the stack is {status}"
    except Exception as error:
        # The client, its session and the renewal of tokens raise many kinds.
        reason = str(error) or type(error).__name__
    raise errors.RemoteError(
        detail=f"The size of {', '.join(sizes)} could not be written into the template "
        f"of Heat stack {stack_id}: {reason}. Without it Heat would delete workers.",
        hint="No port was changed. `openstack stack failures list --long "
        f"{stack_id}` may say more.",
    )


def _write(client: Any, stack_id: str, sizes: Mapping[str, int]) -> bool:
    """Begin an update of the stack if its own template would change a size."""
    updater = HOTUpdater(client)
    updater.get_templates_from_stack(stack_id)
    resources = updater.template["resources"]
    parameters = client.stacks.get(stack_id).parameters
    wrong = {
        name: size
        for name, size in sizes.items()
        if name in resources
        and _written(updater.template, parameters, name) not in (None, size)
    }
    for name, size in wrong.items():
        resources[name]["properties"]["desired_capacity"] = size
    if wrong:
        nested = updater.nested_templates
        files = {name: yaml.safe_dump(nested[name]) for name in nested}
        template = yaml.safe_dump(updater.template)
        client.update(stack_id, existing=True, template=template, files=files)
    return bool(wrong)


def _written(
    template: Mapping[str, Any], parameters: Mapping[str, Any], group: str
) -> int | None:
    try:
        return rollback.size_in(template, parameters, group)
    except (KeyError, TypeError, ValueError):
        # Another intrinsic function of Heat: write a number in any case.
        return -1


def _ended(client: Any, stack_id: str, before: str | None) -> str:
    """The stack's status when its update has ended, or after the limit.

    :param before: ``updated_time``, which changes when Heat begins the update.
    """
    waiting = Backoff(_LIMIT)
    while True:
        stack = client.get(stack_id)
        status = str(stack.stack_status)
        begun = stack.updated_time != before
        if waiting.spent():
            return status if begun else f"{status}, and not updated"
        if begun and not status.endswith(_IN_PROGRESS):
            return status
        waiting.pause()
