"""The scale level that Tacker's v1 API keeps, compared with what Heat has.

A heal of VNFCs writes the size that the scale level stands for into the template of the
stack (``OpenStack.heal_vnf``), and Heat brings the group to it: it deletes the oldest
members, which no hook has drained, or makes members that Tacker does not list. The two
numbers differ when a scaling ended otherwise than Tacker has noted:

* the conductor was killed, or Keystone or Heat did not answer, while Heat built the VMs
  of a scale-out: they are there, and the scale level is the one before;
* the ``retry`` of such an operation has Heat build them once more
  (``VnfLcmDriver._scale_vnf``), or ends without raising the level again;
* a ``rollback`` deletes the VMs and leaves the level where the scale-out has put it.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from oslo_log import log
from tacker.tosca import utils as tosca_utils
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1.site import V1Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.status.facts import Count
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_REMEDY = "The next heal of a VNFC, or scale-out, sets Tacker's scale level to that."
# Tacker asks whether there are any.
_ANY_GROUP = {"attributes": {"scaling_group_names": True}}


def counts(
    context: Any, vnf_instance: Any, sizes: Mapping[str, GroupSize]
) -> tuple[Count, ...]:
    """The sizes of the scaling groups, in Heat and by Tacker's scale levels.

    :param sizes: as Heat has them, by the names of the groups.
    """
    tacker = _expected(context, vnf_instance, sizes)
    return tuple(
        Count(name, sizes[name].healthy, number, _REMEDY)
        for name, number in tacker.items()
    )


def kept_sizes(
    context: Any, vnf_instance: Any, sizes: Mapping[str, GroupSize]
) -> dict[str, int]:
    """The sizes at which Heat deletes no healthy member of a group.

    What Tacker's scale level stands for, as far as Heat has it; a member that Heat has
    failed at is built anew if Tacker counts it.

    :param sizes: as Heat has them, by the names of the groups.
    """
    expected = _expected(context, vnf_instance, sizes)
    return {
        name: size.nearest(expected.get(name, size.healthy))
        for name, size in sizes.items()
    }


def step(context: Any, vnf_instance: Any, site: V1Site) -> Step:
    """Have a heal leave the sizes of the groups as they are."""

    def act() -> None:
        if _follow(context, vnf_instance, site.group_sizes()):
            # A retry may begin after this hook.
            vnf_instance.save()

    return Step("compare Tacker's scale level with Heat", act)


def follow_scale_out(context: Any, vnf_instance: Any, site: V1Site) -> None:
    """Have Tacker count what an earlier scale-out has left; Tacker stores it.

    The workers have joined by now, so this fails no operation: the next heal comes back
    to it.
    """
    try:
        _follow(context, vnf_instance, site.group_sizes())
    except Exception as exc:
        # Whatever Heat, the VNFD or Tacker's database may raise.
        LOG.warning(
            "VNF instance %s: Tacker's scale level was not compared with Heat: %s",
            vnf_instance.id,
            exc,
        )


def _follow(context: Any, vnf_instance: Any, sizes: Mapping[str, GroupSize]) -> bool:
    """Set the scale levels to those of the groups that Heat has.

    Where no level stands for a group that has too few members, Tacker's number stays:
    Heat then makes the missing ones, and deletes none.

    :param sizes: as Heat has them, by the names of the groups.
    :returns: whether a level has changed.
    :raises UnsupportedOperation: a group has more members than its scale level stands
        for, and no level stands for so many.
    """
    expected = _expected(context, vnf_instance, sizes)
    kept = kept_sizes(context, vnf_instance, sizes)
    wrong = {name: n for name, n in expected.items() if n != kept[name]}
    levels, changed = _levels(vnf_instance), False
    aspects = _aspects(context, vnf_instance) if wrong else {}
    for name, number in wrong.items():
        level = _level(aspects[name], kept[name])
        if level is not None:
            LOG.warning(
                "VNF instance %s: Heat has %d members of %s, and Tacker's scale level "
                "%d stands for %d; it is set to %d",
                vnf_instance.id,
                kept[name],
                name,
                levels[name].scale_level,
                number,
                level,
            )
            levels[name].scale_level = level
            changed = True
        elif kept[name] > number:
            raise _too_many(name, kept[name], number)
    return changed


def _too_many(group: str, heat: int, tacker: int) -> errors.UnsupportedOperation:
    return errors.UnsupportedOperation(
        detail=f"Heat has {heat} members of the group {group}, and the heal "
        f"would have it keep {tacker}, for which Tacker's scale level stands: the "
        "oldest ones would be deleted without a drain. No scale level stands for "
        f"{heat}.",
        hint="Nothing was changed. Mark "
        f"{heat - tacker} of them unhealthy in Heat, as the documentation of "
        "heal shows, and heal again: Heat then deletes those.",
    )


def _expected(
    context: Any, vnf_instance: Any, names: Collection[str]
) -> dict[str, int]:
    """The sizes for which Tacker's scale levels stand, of the groups that have one."""
    levels = _levels(vnf_instance)
    aspects = _aspects(context, vnf_instance) if levels and names else {}
    return {
        name: _size(aspects[name], levels[name].scale_level)
        for name in names
        if name in aspects and name in levels
    }


def _levels(vnf_instance: Any) -> dict[str, Any]:
    """Tacker's own objects, by the names of the scaling aspects."""
    info = vnf_instance.instantiated_vnf_info
    return {one.aspect_id: one for one in getattr(info, "scale_status", None) or ()}


def _aspects(context: Any, vnf_instance: Any) -> Mapping[str, Mapping[str, int]]:
    """What the VNFD says of the scaling aspects, as a heal reads it."""
    flavour = vnf_instance.instantiated_vnf_info.flavour_id
    vnfd = vnflcm_utils.get_vnfd_dict(context, vnf_instance.vnfd_id, flavour)
    found = tosca_utils.get_scale_group(_ANY_GROUP, vnfd, {})
    aspects: Mapping[str, Mapping[str, int]] = found.get("scaleGroupDict", {})
    return aspects


def _size(aspect: Mapping[str, int], level: int) -> int:
    return aspect["initialNum"] + aspect["num"] * level


def _level(aspect: Mapping[str, int], members: int) -> int | None:
    """The scale level of a group of this size, None if there is none."""
    level, rest = divmod(members - aspect["initialNum"], aspect["num"])
    return level if rest == 0 and 0 <= level <= aspect["maxLevel"] else None
