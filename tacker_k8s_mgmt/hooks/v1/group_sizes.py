# SPDX-License-Identifier: Apache-2.0
"""The sizes of scaling groups: Tacker's v1 API keeps others than Heat has, or restores.

A heal of VNFCs writes the size that the scale level stands for into the template of the
stack (``OpenStack.heal_vnf``), and Heat resizes the group to it: it deletes the oldest
members, which no hook has drained, or creates members that Tacker does not list. The
two numbers differ after a scaling that Tacker has recorded wrongly:

* the conductor was killed, or Keystone or Heat did not answer, while Heat created the
  VMs of a scale-out: they exist, and the scale level is the former one;
* the ``retry`` of such an operation has Heat create them once more
  (``VnfLcmDriver._scale_vnf``), or ends without raising the level again;
* a ``rollback`` deletes the VMs and keeps the level that the scale-out has set.

For the rollback of a scale-out Tacker marks the new members unhealthy and updates the
stack with the parameters that it knows (``OpenStack.scale_in_reverse``); Heat then
gives the group the size of its ``desired_capacity``
(``AutoScalingGroup.handle_update``). That is the size before the scale-out if the
package's user data have a method ``scale``, as ours do, and the property is a
parameter. Tacker's heal writes a number in its place, and without the method the
parameter is that of the instantiation. Heat would then delete members of the cluster.

For a change of external connectivity Tacker 16 updates the stack with Heat's own
template and the parameters of the instantiation
(``OpenStack._change_ext_conn_vnf_with_userdata``). Scaling changes neither: it sends
signals to Heat's policies. So Heat would restore the group's first size, and delete the
oldest workers without a drain. A number in the template, as Tacker's heal writes one,
prevents that.
"""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml
from oslo_log import log as logging
from tacker.tosca import utils as tosca_utils
from tacker.vnfm.infra_drivers.openstack.update_template import HOTUpdater

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.advice import FAIL, ROLLBACK, Advice
from tacker_k8s_mgmt.hooks.v1 import stack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.model.nodes import Count
from tacker_k8s_mgmt.model.plan import JOINS, NodeChange
from tacker_k8s_mgmt.operations.records import ClusterRecords, nodes_in
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize

LOG = logging.getLogger(__name__)

_REMEDY = "The next heal of a VNFC, or scale-out, sets Tacker's scale level to that."
# Tacker only checks that there are some.
_ANY_GROUP = {"attributes": {"scaling_group_names": True}}


@dataclass(frozen=True)
class _Group:
    """A scaling group with a scale level.

    :param size: in Heat.
    :param level: Tacker's scale level.
    :param aspect: of the VNFD.
    """

    name: str
    size: GroupSize
    level: int
    aspect: Mapping[str, int]

    @property
    def counted(self) -> int:
        """The size that the scale level stands for."""
        return self.aspect["initialNum"] + self.aspect["num"] * self.level

    @property
    def kept(self) -> int:
        """The size nearest to that at which Heat deletes no member that is to stay."""
        return self.size.nearest(self.counted)

    def level_of_kept(self) -> int | None:
        """The scale level that stands for that size, None if there is none."""
        level, rest = divmod(self.kept - self.aspect["initialNum"], self.aspect["num"])
        return level if rest == 0 and 0 <= level <= self.aspect["maxLevel"] else None


def _groups(instance: V1Instance, sizes: Mapping[str, GroupSize]) -> list[_Group]:
    levels = instance.scale_levels()
    if not levels or not sizes:
        return []
    aspects = _aspects(instance)
    return [
        _Group(name, size, levels[name], aspects[name])
        for name, size in sizes.items()
        if name in aspects and name in levels
    ]


def _aspects(instance: V1Instance) -> Mapping[str, Mapping[str, int]]:
    """The scaling aspects, as Tacker's heal reads them."""
    found = tosca_utils.get_scale_group(_ANY_GROUP, instance.vnfd(), {})
    aspects: Mapping[str, Mapping[str, int]] = found.get("scaleGroupDict", {})
    return aspects


def counts(instance: V1Instance, sizes: Mapping[str, GroupSize]) -> tuple[Count, ...]:
    """The sizes of the scaling groups, in Heat and by Tacker's scale levels."""
    return tuple(
        Count(group.name, group.size.healthy, group.counted, _REMEDY)
        for group in _groups(instance, sizes)
    )


def kept_sizes(instance: V1Instance, sizes: Mapping[str, GroupSize]) -> dict[str, int]:
    """The sizes of all groups at which Heat deletes no member that is to stay.

    That of Tacker's scale level, as far as Heat has it; Heat replaces a failed member
    if Tacker counts it.
    """
    kept = {name: size.nearest(0) for name, size in sizes.items()}
    return kept | {group.name: group.kept for group in _groups(instance, sizes)}


def _sizes(instance: V1Instance, cluster: OperationContext) -> dict[str, GroupSize]:
    """The sizes of the groups, with the failed members that are to stay.

    Those are the nodes of the inventory, and the VNFCs that Tacker lists. Heat deletes
    failed members first (``GroupInspector._get_member_data``), so that one of the
    cluster would go in place of one that Tacker does not count.

    :raises DamagedFile: the inventory, and there is no copy.
    """
    sizes = dict(cluster.site.group_sizes())
    if not any(size.failed for size in sizes.values()):
        return sizes
    records = ClusterRecords(cluster.site, cluster.params.ansible.host)
    nodes = nodes_in(records.last_inventory())
    vnfcs = (*instance.vnfcs.values(), *instance.stacks_of_vnfcs().values())
    staying = {*(node.server_id for node in nodes), *vnfcs}
    for group in cluster.site.machines().groups:
        if size := sizes.get(group.name):
            sizes[group.name] = replace(size, needed=group.least_with(staying))
    return sizes


def scale_level_step(instance: V1Instance, cluster: OperationContext) -> Step:
    """Have a heal keep the sizes of the groups."""

    def act() -> None:
        if _follow(instance, _sizes(instance, cluster)):
            # A retry may begin after this hook.
            instance.save()

    def missing() -> Iterator[NodeChange]:
        for group in _groups(instance, cluster.site.group_sizes()):
            there = group.size.healthy + group.size.failed
            if (number := group.counted - there) > 0:
                why = f"Heat creates what it lacks of the group {group.name}"
                yield NodeChange(f"{number} new", JOINS, why)

    name = "compare Tacker's scale level with Heat"
    return Step("compare-scale-level", name, act, reads=True, effects=missing)


def step_size(instance: V1Instance, aspect: str) -> int:
    """How many VMs a step of a scaling aspect is; 1 where the VNFD does not say."""
    return int(_aspects(instance).get(aspect, {}).get("num", 1))


def follow_scale_out(instance: V1Instance, cluster: OperationContext) -> None:
    """Have Tacker count what an earlier scale-out has left; Tacker stores it.

    The workers have joined by now, so a failure is only logged: the next heal compares
    again.
    """
    try:
        _follow(instance, _sizes(instance, cluster))
    except Exception as exc:
        # Heat, the VNFD and Tacker's database raise many kinds.
        LOG.warning(
            "VNF instance %s: Tacker's scale level was not compared with Heat: %s",
            instance.vnf_id,
            exc,
        )


def _follow(instance: V1Instance, sizes: Mapping[str, GroupSize]) -> bool:
    """Set the scale levels to the sizes in Heat; returns whether one has changed.

    Where a group has too few members and no level stands for that size, Tacker's level
    stays: Heat then creates the missing ones, and deletes none. Where it has too many,
    the heal is refused, or goes by the healthy ones alone if a level stands for those:
    an operator marks the others for Heat to delete.
    """
    changed = False
    for group in _groups(instance, sizes):
        if group.kept > group.counted and group.level_of_kept() is None:
            group = replace(group, size=replace(group.size, needed=0))
        kept, counted = group.kept, group.counted
        if kept == counted:
            continue
        level = group.level_of_kept()
        if level is not None:
            LOG.warning(
                "VNF instance %s: Heat has %d members of %s, and Tacker's scale level "
                "%d stands for %d; it is set to %d",
                instance.vnf_id,
                kept,
                group.name,
                group.level,
                counted,
                level,
            )
            instance.set_scale_level(group.name, level)
            changed = True
        elif kept > counted:
            raise errors.UnsupportedOperation(
                detail=f"Heat has {kept} members of the group {group.name}, and the "
                f"heal would have it keep {counted}, for which Tacker's scale level "
                "stands: the oldest ones would be deleted without a drain. No scale "
                f"level stands for {kept}.",
                hint=f"Nothing was changed. Mark {kept - counted} of them unhealthy in "
                "Heat, as the documentation of heal shows, and heal again: Heat then "
                "deletes those.",
            )
    return changed


_WAY_ON = Advice(
    (ROLLBACK, FAIL),
    "`rollback` deletes the new VMs; after `fail` they stay, and the next scale-out or "
    "heal joins them. Do not send `retry`: Tacker would end it without calling the "
    "driver.",
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
_UNKNOWN = Advice(
    (FAIL,),
    "Which VMs `rollback` would delete could not be found out, since Heat or the VNF "
    "package could not be read (the conductor's log says why). `fail` deletes none: "
    "the new VMs stay, and the next scale-out or heal joins them.",
)


def advice_after_scale_out(
    instance: V1Instance, aspect: str, before: int | None
) -> Advice:
    """What to send after a scale-out that failed.

    :param before: how many members the group had before it, None if unknown.
    """
    try:
        after = members_after(instance, aspect)
    except Exception as exc:
        # This is for a hint; the failure itself is reported anyway.
        LOG.warning("What a rollback would do is not known: %s", exc)
        return _UNKNOWN
    if after is None or after == before:
        return _WAY_ON
    if before is None:
        text = _UNSEEN.format(after=after, stack=instance.stack_id, group=aspect)
        return Advice((ROLLBACK, FAIL), text)
    return Advice((FAIL,), _NO_ROLLBACK.format(after=after, before=before))


def members_after(instance: V1Instance, aspect: str) -> int | None:
    """How many members the group would have after the rollback.

    :returns: None for as many as before the scale-out.
    :raises Exception: from Heat, Tacker or the package's user data.
    """
    client, stack_id = stack.heat_of(instance), instance.stack_id
    template = client.stacks.template(stack_id)
    if isinstance(_wanted(template, aspect), Mapping) and _follows_scale(instance):
        return None
    return size_in(template, client.stacks.get(stack_id).parameters, aspect)


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


def _follows_scale(instance: V1Instance) -> bool:
    """Whether the user data set the size; loaded as Tacker does."""
    params = instance.parameters or {}
    path, name = reader.path(params), str(params.get(reader.CLASS))
    if not path:
        return False
    spec = importlib.util.spec_from_file_location(
        "lcm_user_data", os.path.join(instance.package(), path)
    )
    if spec is None or spec.loader is None:
        return False
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return callable(getattr(getattr(module, name, None), "scale", None))


_LIMIT = 600.0  # seconds for an update that changes no VM
_IN_PROGRESS = "IN_PROGRESS"
_DONE = "UPDATE_COMPLETE"


def group_size_step(instance: V1Instance, cluster: OperationContext) -> Step:
    """Write the present sizes of the groups into the stack's template."""

    def act() -> None:
        sizes = kept_sizes(instance, _sizes(instance, cluster))
        if sizes:
            _keep(instance, sizes)

    return Step("keep-group-sizes", "keep the group sizes in Heat", act)


def _keep(instance: V1Instance, sizes: Mapping[str, int]) -> None:
    stack_id = instance.stack_id
    try:
        client = stack.heat_of(instance)
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
        return size_in(template, parameters, group)
    except (KeyError, TypeError, ValueError):
        # Another intrinsic function of Heat: write a number in any case.
        return -1


def _ended(client: Any, stack_id: str, before: str | None) -> str:
    """The stack's status when its update has ended, or after the limit.

    :param before: ``updated_time``, which changes when Heat begins the update.
    """
    waiting = Backoff(_LIMIT)
    while True:
        seen = client.get(stack_id)
        status = str(seen.stack_status)
        begun = seen.updated_time != before
        if waiting.spent():
            return status if begun else f"{status}, and not updated"
        if begun and not status.endswith(_IN_PROGRESS):
            return status
        waiting.pause()
