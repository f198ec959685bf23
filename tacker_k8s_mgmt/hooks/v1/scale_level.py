# SPDX-License-Identifier: Apache-2.0
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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_log import log as logging
from tacker.tosca import utils as tosca_utils
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.hooks.v1.context import V1Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.status.facts import Count
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize

LOG = logging.getLogger(__name__)

_REMEDY = "The next heal of a VNFC, or scale-out, sets Tacker's scale level to that."
# Tacker only checks that there are some.
_ANY_GROUP = {"attributes": {"scaling_group_names": True}}


@dataclass(frozen=True)
class _Group:
    """A scaling group with a scale level.

    :param size: in Heat.
    :param level: Tacker's own object.
    :param aspect: of the VNFD.
    """

    name: str
    size: GroupSize
    level: Any
    aspect: Mapping[str, int]

    @property
    def counted(self) -> int:
        """The size that the scale level stands for."""
        return self.aspect["initialNum"] + self.aspect["num"] * int(
            self.level.scale_level
        )

    @property
    def kept(self) -> int:
        """The size nearest to that at which Heat deletes no healthy member."""
        return self.size.nearest(self.counted)

    def level_of_kept(self) -> int | None:
        """The scale level that stands for that size, None if there is none."""
        level, rest = divmod(self.kept - self.aspect["initialNum"], self.aspect["num"])
        return level if rest == 0 and 0 <= level <= self.aspect["maxLevel"] else None


def _groups(site: V1Site, sizes: Mapping[str, GroupSize]) -> list[_Group]:
    info = site.instance.instantiated_vnf_info
    status = getattr(info, "scale_status", None) or ()
    levels = {level.aspect_id: level for level in status}
    if not levels or not sizes:
        return []
    # As Tacker's heal reads the scaling aspects.
    vnfd = vnflcm_utils.get_vnfd_dict(
        site.context, site.instance.vnfd_id, info.flavour_id
    )
    aspects = tosca_utils.get_scale_group(_ANY_GROUP, vnfd, {}).get(
        "scaleGroupDict", {}
    )
    return [
        _Group(name, size, levels[name], aspects[name])
        for name, size in sizes.items()
        if name in aspects and name in levels
    ]


def counts(site: V1Site) -> tuple[Count, ...]:
    """The sizes of the scaling groups, in Heat and by Tacker's scale levels."""
    return tuple(
        Count(group.name, group.size.healthy, group.counted, _REMEDY)
        for group in _groups(site, site.group_sizes())
    )


def kept_sizes(site: V1Site) -> dict[str, int]:
    """The sizes of all groups at which Heat deletes no healthy member.

    That of Tacker's scale level, as far as Heat has it; Heat replaces a failed member
    if Tacker counts it.
    """
    sizes = site.group_sizes()
    kept = {name: size.healthy for name, size in sizes.items()}
    return kept | {group.name: group.kept for group in _groups(site, sizes)}


def step(site: V1Site) -> Step:
    """Have a heal keep the sizes of the groups."""

    def act() -> None:
        if _follow(site):
            # A retry may begin after this hook.
            database.save(site.instance)

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
    """Set the scale levels to the sizes in Heat; returns whether one has changed.

    Where a group has too few members and no level stands for that size, Tacker's level
    stays: Heat then creates the missing ones, and deletes none. Where it has too many,
    the heal is refused.
    """
    changed = False
    for group in _groups(site, site.group_sizes()):
        kept, counted = group.kept, group.counted
        if kept == counted:
            continue
        level = group.level_of_kept()
        if level is not None:
            LOG.warning(
                "VNF instance %s: Heat has %d members of %s, and Tacker's scale level "
                "%d stands for %d; it is set to %d",
                site.instance.id,
                kept,
                group.name,
                group.level.scale_level,
                counted,
                level,
            )
            group.level.scale_level = level
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
