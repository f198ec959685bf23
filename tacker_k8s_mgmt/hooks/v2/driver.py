# SPDX-License-Identifier: Apache-2.0
"""The table of the hooks of Tacker's v2 API.

What Tacker passes to each, and when: ``sol_refactored/conductor/vnflcm_driver_v2.py``.
A retry runs both hooks of an operation again, whichever of them has failed. Changes of
the VNF instance are stored only when the whole operation succeeds.
"""

from collections.abc import Callable, Mapping
from functools import partial

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.context import SERVER_ONLY
from tacker_k8s_mgmt.hooks.entry import Entry, Plan
from tacker_k8s_mgmt.hooks.v2 import (
    automatic,
    modification,
    scale,
    scale_status,
    settings,
    upgrade,
)
from tacker_k8s_mgmt.hooks.v2.context import V2Hook, V2Site
from tacker_k8s_mgmt.hooks.v2.heat import resources_of
from tacker_k8s_mgmt.hooks.v2.process import Streams
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.vim import Connections
from tacker_k8s_mgmt.lifecycle.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.lifecycle.connectivity_check import connectivity_start
from tacker_k8s_mgmt.lifecycle.heal import HealEnd, HealStart
from tacker_k8s_mgmt.lifecycle.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.terminate import (
    delete_volumes,
    refuse_exposed,
    terminate_end,
)
from tacker_k8s_mgmt.request import params as parameters
from tacker_k8s_mgmt.request import user_data
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.connection_points import Attachment

LOG = logging.getLogger(__name__)

_Entry = Entry[V2Hook, V2Site]
_SEND_FAIL_OR_FORCEFUL = (
    "Nothing was changed. Send `fail` for this operation, then a corrected request; a "
    "FORCEFUL one does without and leaves the inventory directory behind."
)
_ROLLBACK_AGAIN_ADVICE = hints.Advice("Another `rollback` goes on from here.")
_UNDONE_ADVICE = hints.Advice(
    "Another `rollback` goes on from here; after `fail`, the next such request does."
)
_CONNECTIVITY_END_ADVICE = hints.Advice(
    "`retry` goes on from here; `rollback` gives the ports their former places; after "
    "`fail`, the same request sent again goes on."
)
# Between the hooks of an operation.
_REFUSED = "parameters refused"


def perform(call: Call, streams: Streams) -> None:
    """Run a hook; *call* is changed in place.

    :raises K8sMgmtError: with what is wrong, for the operator.
    """
    hook = V2Hook(call, settings.begin(streams))
    if call.operation not in HOOKS:
        raise errors.UnsupportedOperation(
            detail=f"This release has no hook {call.operation}.",
            hint="Take it out of the VNFD, or upgrade tacker-k8s-mgmt.",
        )
    # Before Tacker selects a VIM for its work between the hooks.
    Connections(call.instance).settle()
    if call.operation.endswith("_start"):
        call.note_places()
    else:
        call.follow_places()
    HOOKS[call.operation](hook)


def _instantiate_start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Refuse what cannot work, before a VM exists."""
    automatic.see_possible(hook.call)
    flavour_id = str(hook.call.request.get("flavourId") or "")
    script = user_data.path(hook.call.additional_params)
    names = partial(site.base_hot_findings, flavour_id, script)
    return Plan((preflight.step(deps, names),))


def _parsed_or_forget(hook: V2Hook, advice: str) -> InstallParams | None:
    params = hook.parsed(advice)
    if params is None:
        hook.call.forget()
    return params


def _instantiate_end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Install Kubernetes on the VMs."""
    kept = parameters.without_secrets(hook.call.additional_params)
    return Plan.of(Instantiate(deps), after=partial(hook.call.store, kept))


def _parsed_if_valid(hook: V2Hook, advice: str) -> InstallParams | None:
    try:
        return hook.parsed(advice, needed=SERVER_ONLY)
    except errors.ParamError as error:
        # Most likely why the operation failed, before anything was created.
        _left_behind(hook, error)
        return None


def _left_behind(hook: V2Hook, error: errors.ParamError) -> None:
    LOG.warning(
        "VNF instance %s: an inventory directory, if there is any, stays on the "
        "Ansible server: %s",
        hook.call.vnf_id,
        error,
    )


def _merged_unless_forceful(hook: V2Hook, advice: str) -> InstallParams | None:
    try:
        params = hook.merged(advice, needed=SERVER_ONLY)
        return hook.with_logins(params, lambda: hook.merged(advice))
    except errors.ParamError as error:
        if not _is_forceful(hook):
            raise
        _left_behind(hook, error)
        Connections(hook.call.instance).remove()
        return None


def _is_forceful(hook: V2Hook) -> bool:
    return hook.call.request.get("terminationType") == "FORCEFUL"


def _terminate(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Refuse while CNFs are exposed, unless forced to; then as a rollback."""
    end = terminate_end(deps.vnf_id, site.vims, site)
    steps = (*delete_volumes(deps), *end)
    if not _is_forceful(hook):
        host = deps.params.ansible.host
        steps = (refuse_exposed(deps.vnf_id, site, host), *steps)
    return Plan(steps)


def _end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Remove what the driver has created, while there are credentials for it."""
    return Plan(terminate_end(deps.vnf_id, site.vims, site))


def _params_of_heal(hook: V2Hook, advice: str) -> InstallParams:
    if hook.call.request.get("vnfcInstanceId") == []:
        # Tacker takes it for a heal of VNFCs, and has Heat replace none.
        raise errors.NoVnfcError
    return hook.merged(advice)


def _heal_start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Remove the nodes that Tacker is about to rebuild, or refuse."""
    call = hook.call
    if "vnfcInstanceId" not in call.request:
        listed, kept = call.servers(), partial(_kept, call)
        return Plan.of(WholeHealStart(deps, listed=listed, kept=kept))
    call.note_healed()
    servers = {server: vnfc for vnfc, server, _ in call.healed()}
    work = HealStart(deps, servers=servers)
    return Plan((_lookup(call, servers), *work.steps()), work.left)


def _lookup(call: Call, servers: dict[str, str]) -> Step:
    """Add the healed VNFCs to *servers*, with which the other steps work."""

    def look() -> None:
        servers.update(_present(call))

    return Step("find the servers of the healed VNFCs", look)


def _present(call: Call) -> Mapping[str, str]:
    """The healed VNFCs, by the ids of the servers that Heat has in their places."""
    healed = call.noted()
    return {
        resource.physical_id: healed[resource.stack_id, resource.name]
        for resource in resources_of(call)
        if (resource.stack_id, resource.name) in healed
    }


def _kept(call: Call) -> frozenset[str]:
    """The resources that a heal of the whole VNF leaves as they are.

    Without ``all``, Tacker has Heat replace what is in the places of the servers that
    it lists (``sol_refactored/infra_drivers/openstack/openstack.py``, ``heal``).
    """
    if call.additional_params.get("all"):
        return frozenset()
    places = call.places()
    return frozenset(
        resource.physical_id
        for resource in resources_of(call)
        if (resource.stack_id, resource.name) not in places
    )


def _heal_end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Install the cluster again, or join the rebuilt VMs."""
    if "vnfcInstanceId" not in hook.call.request:
        return Plan.of(WholeHealEnd(deps), advice=hints.V2_HEAL_OF_ALL)
    servers: dict[str, str] = {}
    work = HealEnd(deps, servers=servers)
    return Plan((_lookup(hook.call, servers), *work.steps()), work.left)


def _merged_or_refused(hook: V2Hook, advice: str) -> InstallParams:
    hook.call.between[_REFUSED] = True
    params = hook.merged(advice)
    del hook.call.between[_REFUSED]
    return params


def _connectivity_start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Refuse a change that the cluster cannot follow, before a port changes."""
    return Plan(connectivity_start(deps, _attachments(hook.call)))


def _attachments(call: Call) -> tuple[Attachment, ...]:
    """The connection points that a change of external connectivity names."""
    return tuple(Attachment(*connection) for connection in call.connections())


def _connectivity_end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Adapt the cluster to the new addresses of its VMs."""
    return Plan(ConnectivityEnd(deps, points=_attachments(hook.call)).steps())


def _merged_unless_refused(hook: V2Hook, advice: str) -> InstallParams | None:
    scale_status.restore(hook.call)
    # Not the other way round: a killed conductor loses this data.
    return None if hook.call.between.get(_REFUSED) else hook.merged(advice)


def _connectivity_rollback_end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Adapt the cluster to the former addresses of its VMs."""
    steps = ConnectivityEnd(deps).steps()
    return Plan(steps, lambda: "Heat has taken the ports back.")


def _nothing(hook: V2Hook) -> None:
    """Nothing to do in this hook."""


HOOKS: Mapping[str, Callable[[V2Hook], None]] = {
    "instantiate_start": _Entry(
        V2Hook.parsed,
        _instantiate_start,
        param_advice=hints.UNCHANGED_SEND_ROLLBACK,
        advice=hints.NO_VM_YET,
        followed_by="instantiate_end",
    ),
    "instantiate_end": _Entry(
        _parsed_or_forget,
        _instantiate_end,
        param_advice=hints.SEND_ROLLBACK,
        advice=hints.VMS_EXIST,
    ),
    "instantiate_rollback_start": _Entry(
        _parsed_if_valid, _end, param_advice="", advice=_ROLLBACK_AGAIN_ADVICE
    ),
    "instantiate_rollback_end": _nothing,
    "terminate_start": _Entry(
        _merged_unless_forceful, _terminate, param_advice=_SEND_FAIL_OR_FORCEFUL
    ),
    "terminate_end": lambda hook: hook.call.forget(),
    "scale_start": _Entry(
        V2Hook.merged,
        scale.start,
        param_advice=hints.UNCHANGED_SEND_FAIL,
        followed_by="scale_end",
    ),
    "scale_end": _Entry(
        scale.params_of_scale_out,
        scale.end,
        param_advice=hints.SEND_ROLLBACK,
        advice=scale.OUT_END_ADVICE,
    ),
    "scale_rollback_start": _Entry(
        scale.params_of_rollback,
        scale.rollback_start,
        param_advice=hints.SEND_FAIL,
        advice=scale.ROLLBACK_ADVICE,
    ),
    "scale_rollback_end": _nothing,
    "heal_start": _Entry(
        _params_of_heal,
        _heal_start,
        param_advice=hints.UNCHANGED_SEND_FAIL,
        followed_by="heal_end",
    ),
    "heal_end": _Entry(V2Hook.merged, _heal_end, param_advice=hints.SEND_FAIL),
    "modify_information_start": _Entry(
        modification.params,
        modification.start,
        param_advice=hints.UNCHANGED_SEND_FAIL,
        advice=hints.CHECK,
        followed_by="modify_information_end",
    ),
    "modify_information_end": _Entry(
        modification.params,
        modification.end,
        param_advice=hints.SEND_FAIL,
        advice=modification.END_ADVICE,
    ),
    "modify_information_rollback_start": _nothing,
    "modify_information_rollback_end": _Entry(
        modification.params,
        modification.rollback_end,
        param_advice=hints.SEND_FAIL,
        advice=_UNDONE_ADVICE,
    ),
    "change_external_connectivity_start": _Entry(
        _merged_or_refused,
        _connectivity_start,
        param_advice=hints.UNCHANGED_SEND_ROLLBACK,
        advice=hints.CHECK,
        followed_by="change_external_connectivity_end",
    ),
    "change_external_connectivity_end": _Entry(
        V2Hook.merged,
        _connectivity_end,
        param_advice=hints.SEND_FAIL,
        advice=_CONNECTIVITY_END_ADVICE,
    ),
    "change_external_connectivity_rollback_start": (
        lambda hook: scale_status.remember(hook.call)
    ),
    "change_external_connectivity_rollback_end": _Entry(
        _merged_unless_refused,
        _connectivity_rollback_end,
        param_advice=hints.SEND_FAIL,
        advice=_UNDONE_ADVICE,
    ),
    "change_current_package_start": _Entry(
        upgrade.params_of_start,
        upgrade.start,
        param_advice=hints.UNCHANGED_SEND_FAIL,
        advice=upgrade.START_ADVICE,
        followed_by="change_current_package_end",
    ),
    "change_current_package_end": _Entry(
        upgrade.params_of_upgrade,
        upgrade.end,
        param_advice=hints.SEND_FAIL,
        advice=upgrade.END_ADVICE,
    ),
    "change_current_package_rollback_start": upgrade.rollback_start,
    "change_current_package_rollback_end": upgrade.rollback_end,
}
