"""What Tacker's rollback of a scale-out would do to the workers' group.

Tacker marks the new members unhealthy and updates the stack with the parameters that it
knows (``OpenStack.scale_in_reverse``); Heat then gives the group the size that its
``desired_capacity`` says (``AutoScalingGroup.handle_update``). That is the size before
the scale-out if the package's user data have a method ``scale``, as ours do, and the
property is a parameter. Tacker's heal writes a number in its place, and without the
method the parameter is that of the instantiation. Then members of the cluster would go.
"""

import importlib.util
import logging
import os
from collections.abc import Mapping
from typing import Any

from oslo_log import log
from tacker import objects
from tacker.common import clients
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.infra_drivers.openstack import heat_client

from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.remote import heat

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

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
_UNTOLD = (
    "Which VMs `rollback` would delete could not be found out, since Heat or the VNF "
    "package could not be read (the conductor's log says why). `fail` deletes none: "
    "the new VMs stay, and the next scale-out or heal joins them."
)


def way_on(context: Any, vnf_instance: Any, aspect_id: str, before: int | None) -> str:
    """What to do after a scale-out that failed.

    :param before: how many members the group had before it, None if that is not known.
    """
    try:
        after = members_after(context, vnf_instance, aspect_id)
    except Exception as exc:
        # It is asked for a hint, beside an error that is told anyway.
        LOG.warning("What a rollback would do cannot be told: %s", exc)
        return _UNTOLD
    if after is None or after == before:
        return _WAY_ON
    if before is None:
        stack_id = vnf_instance.instantiated_vnf_info.instance_id
        return _UNSEEN.format(after=after, stack=stack_id, group=aspect_id)
    return _NO_ROLLBACK.format(after=after, before=before)


class Heat(heat_client.HeatClient):  # type: ignore[misc]
    """Tacker's client with a time limit for each answer.

    A request that gets none, or one that may pass, is sent again. So it is for reads,
    deletions, and an update that Heat refuses while the first one is under way.
    """

    def __init__(self, access: Mapping[str, Any], region: str | None) -> None:
        opened = clients.OpenstackClients(access, region_name=region)
        heat.set_limits(opened.keystone)
        self.heat = opened.heat
        self.stacks = self.heat.stacks
        self.resources = self.heat.resources


def heat_of(context: Any, vnf_instance: Any) -> heat_client.HeatClient:
    """A client of the Heat that has the VNF instance's stack."""
    infos = vnf_instance.vim_connection_info
    vim = database.ask(context, lambda own: vnflcm_utils._get_vim(own, infos))
    info = objects.VimConnectionInfo.obj_from_primitive(vim, context)
    return Heat(info.access_info, info.access_info.get("region"))


def members_after(context: Any, vnf_instance: Any, aspect_id: str) -> int | None:
    """How many members the group has after the rollback.

    :returns: None for as many as before the scale-out.
    :raises Exception: of Heat, of Tacker or of the package's user data.
    """
    client = heat_of(context, vnf_instance)
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

    :returns: None for that which it has.
    """
    wanted = _wanted(template, group)
    if isinstance(wanted, Mapping):
        wanted = parameters[wanted["get_param"]]
    return None if wanted is None else int(wanted)


def _wanted(template: Mapping[str, Any], group: str) -> Any:
    return template["resources"][group]["properties"].get("desired_capacity")


def _follows_scale(context: Any, vnf_instance: Any) -> bool:
    """Whether the user data say the size, as Tacker looks it up."""
    given = vnf_instance.instantiated_vnf_info.additional_params or {}
    path = given.get("lcm-operation-user-data")
    name = given.get("lcm-operation-user-data-class")
    if not path or not name:
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
