# SPDX-License-Identifier: Apache-2.0
"""Plans of operations of Tacker's v2 API: its own choice, then the driver's own hooks.

Which VMs leave at a scale-in is in the grant request that Tacker makes before it calls
a hook (``VnfLcmDriverV2.scale_grant``); that code makes it here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from tacker.sol_refactored import objects
from tacker.sol_refactored.conductor.vnflcm_driver_v2 import VnfLcmDriverV2

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.planning import (
    HEAL,
    MODIFY,
    SCALE,
    UPGRADE,
    Planning,
    PlanningHook,
)
from tacker_k8s_mgmt.hooks.v2 import stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.driver import V2Driver
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook
from tacker_k8s_mgmt.hooks.v2.lookup import Command, SeenV2Site, vnfd_of
from tacker_k8s_mgmt.model.plan import Plan
from tacker_k8s_mgmt.request.reader import ClusterRequest, merged_metadata

#: The hooks of each operation that can be planned. That of a heal's end works on VMs
#: that Heat builds before.
_HOOKS: Mapping[str, Sequence[str]] = {
    SCALE: ("scale_start", "scale_end"),
    HEAL: ("heal_start",),
    MODIFY: ("modify_information_start", "modify_information_end"),
    UPGRADE: ("change_current_package_start", "change_current_package_end"),
}


class _Site(SeenV2Site):
    """The read-only site, with the package that the operation has."""

    def _package_root(self) -> str:
        return self._call.package or super()._package_root()


class _Hook(PlanningHook, Command):
    """A call of a hook that plans.

    :param carried_out: returns ``additionalParams`` of former requests.
    """

    def __init__(
        self, call: HookCall, planning: Planning, carried_out: Callable[[], Any]
    ) -> None:
        super().__init__(call, cfg.CONF)
        self.planning, self._carried_out = planning, carried_out

    def request(self, *, former: Any = None, **how: Any) -> ClusterRequest | None:
        return super().request(former=former and self._carried_out, **how)

    def site(self, params: ClusterRequest) -> SeenV2Site:
        """What is read."""
        return _Site(self, params)


def call_hooks(
    planning: Planning,
    operation: str,
    instance: dict[str, Any],
    call: HookCall,
    make: Callable[[HookCall], V2Hook],
) -> None:
    """Call the hooks of an operation.

    :param instance: a copy of the VNF instance.
    :param call: of any hook, with all that Tacker passes.
    :param make: makes the call of a hook; it adds to *planning*.
    """
    VimEntry(instance).settle()
    call.note_places()
    for name in _HOOKS[operation]:
        call.operation = name
        if name == "modify_information_end":
            metadata = merged_metadata(instance.get("metadata") or {}, call.patch)
            instance["metadata"] = metadata
        planning.call(getattr(V2Driver(make(call)), name))
    if call.added():
        planning.call(lambda: planning.create(created(call)))


def created(call: HookCall) -> int:
    """How many VMs Heat creates for a scale-out.

    Tacker gives the group the size of what it lists and adds, whatever Heat has; one
    that has failed there is replaced.
    """
    vdus = call.added()
    listed = sum(vnfc["vduId"] in vdus for vnfc in call.resources())
    there = sum(server.name in vdus for server in stack.servers_of(call))
    return max(listed + len(vdus) - there, 0)


def plan(
    instance: dict[str, Any],
    operation: str,
    body: Mapping[str, Any],
    carried_out: Callable[[], Any],
) -> Plan:
    """The plan of an operation.

    :param instance: a copy of the VNF instance.
    :param operation: as :mod:`tacker_k8s_mgmt.hooks.planning` names it.
    :param body: of its request.
    :param carried_out: returns ``additionalParams`` of former requests.
    """
    planning = Planning()
    grant: dict[str, Any] = {}
    package = ""
    try:
        if operation == SCALE:
            grant = granted(instance, body, vnfd_of(str(instance["vnfdId"])))
        elif operation == UPGRADE:
            package = str(vnfd_of(str(body["vnfdId"])).csar_dir)
    except Exception as error:
        # Of Tacker: its packages, and its own checks of a request.
        text = str(error).rstrip(".") or type(error).__name__
        raise errors.TackerError(
            detail=f"What Tacker would do first cannot be told: {text}."
        ) from error
    call = HookCall("", body, instance, grant, package)

    def make(one: HookCall) -> V2Hook:
        return _Hook(one, planning, carried_out)

    call_hooks(planning, operation, instance, call, make)
    return planning.plan


def granted(
    instance: Mapping[str, Any], body: Mapping[str, Any], vnfd: Any
) -> dict[str, Any]:
    """The grant request of a scale, as Tacker makes it."""
    request = objects.GrantRequestV1(
        vnfInstanceId=instance["id"],
        vnfLcmOpOccId=instance["id"],
        vnfdId=instance["vnfdId"],
        operation="SCALE",
        isAutomaticInvocation=False,
    )
    sent = objects.ScaleVnfRequest.from_dict({"numberOfSteps": 1, **body})
    one = objects.VnfInstanceV2.from_dict(dict(instance))
    VnfLcmDriverV2().scale_grant(request, sent, one, vnfd)
    found: dict[str, Any] = request.to_dict()
    return found
