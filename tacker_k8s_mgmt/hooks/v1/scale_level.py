"""The scale level that Tacker's v1 API keeps, compared with what Heat has.

A heal of VNFCs writes the size that the scale level stands for into the template of the
stack (``OpenStack.heal_vnf``), and Heat resizes the group to it: it deletes the oldest
members, which no hook has drained, or creates members that Tacker does not list. The
two numbers differ after a scaling that Tacker has recorded wrongly:

* the conductor was killed, or Keystone or Heat did not answer, while Heat created the
  VMs of a scale-out: they exist, and the scale level is the former one;
* the ``retry`` of such an operation has Heat create them once more
  (``VnfLcmDriver._scale_vnf``), or ends without raising the level again;
* a ``rollback`` deletes the VMs and keeps the level that the scale-out has set.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from oslo_log import log
from tacker.tosca import utils as tosca_utils
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1.context import V1Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.status.facts import Count
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_REMEDY = "The next heal of a VNFC, or scale-out, sets Tacker's scale level to that."
# Tacker only checks that there are some.
_ANY_GROUP = {"attributes": {"scaling_group_names": True}}


def counts(site: V1Site) -> tuple[Count, ...]:
    """The sizes of the scaling groups, in Heat and by Tacker's scale levels."""
    sizes = site.group_sizes()
    return tuple(
        Count(name, sizes[name].healthy, number, _REMEDY)
        for name, number in _expected(site, sizes).items()
    )


def kept_sizes(site: V1Site, sizes: Mapping[str, GroupSize]) -> dict[str, int]:
    """The sizes at which Heat deletes no healthy member of a group.

    That of Tacker's scale level, as far as Heat has it; Heat replaces a failed member
    if Tacker counts it.

    :param sizes: in Heat, by the names of the groups.
    """
    expected = _expected(site, sizes)
    return {
        name: size.nearest(expected.get(name, size.healthy))
        for name, size in sizes.items()
    }


def step(site: V1Site) -> Step:
    """Have a heal keep the sizes of the groups."""

    def act() -> None:
        if _follow(site):
            # A retry may begin after this hook.
            site.instance.save()

    return Step("compare Tacker's scale level with Heat", act)


def follow_scale_out(site: V1Site) -> None:
    """Have Tacker count what an earlier scale-out has left; Tacker stores it.

    The workers have joined by now, so a failure is only logged: the next heal compares
    again.
    """
    try:
        _follow(site)
    except Exception as exc:
        # Heat, the VNFD and Tacker's database raise many kinds.
        LOG.warning(
            "VNF instance %s: Tacker's scale level was not compared with Heat: %s",
            site.instance.id,
            exc,
        )


def _follow(site: V1Site) -> bool:
    """Set the scale levels to the sizes in Heat.

    Where a group has too few members and no level stands for that size, Tacker's level
    stays: Heat then creates the missing ones, and deletes none.

    :returns: whether a level has changed.
    :raises UnsupportedOperation: a group has more members than its scale level stands
        for, and no level stands for so many.
    """
    sizes = site.group_sizes()
    expected = _expected(site, sizes)
    kept = kept_sizes(site, sizes)
    wrong = {name: n for name, n in expected.items() if n != kept[name]}
    levels, changed = _levels(site), False
    aspects = _aspects(site) if wrong else {}
    for name, number in wrong.items():
        level = _level(aspects[name], kept[name])
        if level is not None:
            LOG.warning(
                "VNF instance %s: Heat has %d members of %s, and Tacker's scale level "
                "%d stands for %d; it is set to %d",
                site.instance.id,
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


def _expected(site: V1Site, names: Collection[str]) -> dict[str, int]:
    """The sizes for which Tacker's scale levels stand, of the groups that have one."""
    levels = _levels(site)
    aspects = _aspects(site) if levels and names else {}
    return {
        name: _size(aspects[name], levels[name].scale_level)
        for name in names
        if name in aspects and name in levels
    }


def _levels(site: V1Site) -> dict[str, Any]:
    """Tacker's own objects, by the names of the scaling aspects."""
    info = site.instance.instantiated_vnf_info
    levels = getattr(info, "scale_status", None) or ()
    return {level.aspect_id: level for level in levels}


def _aspects(site: V1Site) -> Mapping[str, Mapping[str, int]]:
    """The VNFD's scaling aspects, read as Tacker's heal does."""
    flavour = site.instance.instantiated_vnf_info.flavour_id
    vnfd = vnflcm_utils.get_vnfd_dict(site.context, site.instance.vnfd_id, flavour)
    groups = tosca_utils.get_scale_group(_ANY_GROUP, vnfd, {})
    aspects: Mapping[str, Mapping[str, int]] = groups.get("scaleGroupDict", {})
    return aspects


def _size(aspect: Mapping[str, int], level: int) -> int:
    return aspect["initialNum"] + aspect["num"] * level


def _level(aspect: Mapping[str, int], members: int) -> int | None:
    """The scale level of a group of this size, None if there is none."""
    level, rest = divmod(members - aspect["initialNum"], aspect["num"])
    return level if rest == 0 and 0 <= level <= aspect["maxLevel"] else None
