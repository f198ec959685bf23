# SPDX-License-Identifier: Apache-2.0
"""What Tacker's rollback of a scale-out would do to the workers' group.

Tacker marks the new members unhealthy and updates the stack with the parameters that it
knows (``OpenStack.scale_in_reverse``); Heat then gives the group the size of its
``desired_capacity`` (``AutoScalingGroup.handle_update``). That is the size before the
scale-out if the package's user data have a method ``scale``, as ours do, and the
property is a parameter. Tacker's heal writes a number in its place, and without the
method the parameter is that of the instantiation. Heat would then delete members of the
cluster.
"""

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt.hooks.v1 import openstack
from tacker_k8s_mgmt.request import user_data

LOG = logging.getLogger(__name__)

_WAY_ON = (
    "`rollback` deletes the new VMs; after `fail` they stay, and the next scale-out or "
    "heal joins them. Do not send `retry`: Tacker would end it without calling the "
    "driver."
)
_NO_ROLLBACK = (
    "Do not send `rollback`: with it Tacker would have Heat set the group to {after} "
    "members, whatever it had before ({before}), and VMs of the cluster would be "
    "deleted or made. Send `fail`: the new VMs stay, and the next scale-out or heal "
    "joins them."
)
_UNSEEN = (
    "With `rollback` Tacker would have Heat set the group to {after} members. The "
    "driver did not come as far as to look at the VMs, so compare before you send it: "
    "`openstack stack resource list -n 1 {stack}` shows the members of {group}. If "
    "there are {after} without the new ones, `rollback` deletes the new VMs only. If "
    "not, VMs of the cluster would be deleted or made: send `fail`, and the new VMs "
    "stay, and the next scale-out or heal joins them."
)
_UNKNOWN = (
    "Which VMs `rollback` would delete could not be found out, since Heat or the VNF "
    "package could not be read (the conductor's log says why). `fail` deletes none: "
    "the new VMs stay, and the next scale-out or heal joins them."
)


def way_on(context: Any, vnf_instance: Any, aspect_id: str, before: int | None) -> str:
    """What to send after a scale-out that failed.

    :param before: how many members the group had before it, None if unknown.
    """
    try:
        after = members_after(context, vnf_instance, aspect_id)
    except Exception as exc:
        # This is for a hint; the failure itself is reported anyway.
        LOG.warning("What a rollback would do is not known: %s", exc)
        return _UNKNOWN
    if after is None or after == before:
        return _WAY_ON
    if before is None:
        stack_id = vnf_instance.instantiated_vnf_info.instance_id
        return _UNSEEN.format(after=after, stack=stack_id, group=aspect_id)
    return _NO_ROLLBACK.format(after=after, before=before)


def members_after(context: Any, vnf_instance: Any, aspect_id: str) -> int | None:
    """How many members the group would have after the rollback.

    :returns: None for as many as before the scale-out.
    :raises Exception: from Heat, Tacker or the package's user data.
    """
    client = openstack.heat_of(context, vnf_instance)
    stack_id = vnf_instance.instantiated_vnf_info.instance_id
    template = client.stacks.template(stack_id)
    if isinstance(_wanted(template, aspect_id), Mapping) and _follows_scale(
        context, vnf_instance
    ):
        return None
    return size_in(template, client.stacks.get(stack_id).parameters, aspect_id)


def size_in(
    template: Mapping[str, Any], parameters: Mapping[str, Any], group: str
) -> int | None:
    """The size that an update with this template and these parameters gives a group.

    :returns: None for its present size.
    """
    wanted = _wanted(template, group)
    if isinstance(wanted, Mapping):
        wanted = parameters[wanted["get_param"]]
    return None if wanted is None else int(wanted)


def _wanted(template: Mapping[str, Any], group: str) -> Any:
    return template["resources"][group]["properties"].get("desired_capacity")


def _follows_scale(context: Any, vnf_instance: Any) -> bool:
    """Whether the user data set the size; loaded as Tacker does."""
    params = vnf_instance.instantiated_vnf_info.additional_params or {}
    path, name = user_data.path(params), str(params.get(user_data.CLASS))
    if not path:
        return False
    package = vnflcm_utils._get_vnf_package_path(context, vnf_instance.vnfd_id)
    spec = importlib.util.spec_from_file_location(
        "lcm_user_data", os.path.join(package, path)
    )
    if spec is None or spec.loader is None:
        return False
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return callable(getattr(getattr(module, name, None), "scale", None))
