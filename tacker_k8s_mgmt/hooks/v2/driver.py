"""The hooks of Tacker's v2 API, one by one.

What Tacker passes to each, and when: ``sol_refactored/conductor/vnflcm_driver_v2.py``.
A retry runs both hooks of an operation again, whichever of them has failed. Changes of
the VNF instance are stored only when the whole operation ends well.
"""

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.v2 import scale, scale_status, settings, upgrade
from tacker_k8s_mgmt.hooks.v2.context import V2Hook
from tacker_k8s_mgmt.hooks.v2.heat import resources_of
from tacker_k8s_mgmt.hooks.v2.process import Streams
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.vim import Connections
from tacker_k8s_mgmt.lifecycle.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.lifecycle.connectivity_check import ConnectivityStart
from tacker_k8s_mgmt.lifecycle.heal import HealEnd, HealStart
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.terminate import TerminateEnd
from tacker_k8s_mgmt.request import params as parameters
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.connection_points import Attachment

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_TERMINATE = (
    "Nothing was changed. Send `fail` for this operation, then a corrected request; a "
    "FORCEFUL one does without and leaves the inventory directory behind."
)
_ROLLBACK_AGAIN = hints.Advice("Another `rollback` goes on from here.")
_CONNECTIVITY_END = hints.Advice(
    "`retry` goes on from here; `rollback` gives the ports their former places; after "
    "`fail`, the same request sent again goes on."
)
# What an end of the cluster's life needs: the VMs go anyway.
_SERVER_ONLY = ("ansible", "bastion")
# Between the hooks of an operation.
_REFUSED = "parameters refused"


def perform(call: Call, streams: Streams) -> None:
    """Do what a hook has to do; *call* is changed in place.

    :raises K8sMgmtError: telling the operator what is wrong.
    """
    conf = settings.read()
    hook = V2Hook(call, conf)
    path = f"{hook.state_path}/{settings.LOG_FILE}"
    try:
        streams.divert(path)
    except OSError as error:
        raise errors.TackerError(
            detail=f"The log {path} cannot be written: {error.strerror}.",
            hint="The conductor's user must be able to write there; see "
            "[k8s_mgmt] state_path in tacker.conf.",
        ) from None
    settings.log_to(conf, path)
    work = HOOKS.get(call.operation)
    if work is None:
        raise errors.UnsupportedOperation(
            detail=f"This release has no hook {call.operation}.",
            hint="Take it out of the VNFD, or upgrade tacker-k8s-mgmt.",
        )
    # Before Tacker chooses a VIM for the work between the hooks.
    Connections(call.instance).settle()
    work(hook)


def _instantiate_start(hook: V2Hook) -> None:
    """Refuse what cannot work before a VM exists."""
    params = hook.given(hints.ROLLBACK)
    if params is None:
        return
    with hook.site(params) as site:
        steps = (preflight.Preflight(params, hook.call.vnf_id, site).step(),)
        hook.run(steps, params.secrets(), advice=hints.INSTANTIATE_START)


def _instantiate_end(hook: V2Hook) -> None:
    """Make a Kubernetes cluster of the VMs."""
    params = hook.given(hints.VMS_GO)
    if params is None:
        hook.call.forget()
        return
    with hook.site(params) as site:
        work = Instantiate(hook.dependencies(params, site))
        advice = hints.INSTANTIATE_END
        hook.run(work.steps(), params.secrets(), work.left, advice=advice)
    hook.call.store(parameters.without_secrets(hook.call.given))


def _instantiate_rollback_start(hook: V2Hook) -> None:
    """Take away what an instantiation has made that failed, but for the VMs."""
    try:
        params = hook.given("", needed=_SERVER_ONLY)
    except errors.ParamError as error:
        # That is why it failed, most likely: before anything was made.
        _left_behind(hook, error)
        return
    if params is not None:
        _end(hook, params, _ROLLBACK_AGAIN)


def _left_behind(hook: V2Hook, error: errors.ParamError) -> None:
    LOG.warning(
        "VNF instance %s: an inventory directory, if there is any, stays on the "
        "Ansible server: %s",
        hook.call.vnf_id,
        error,
    )


def _end(hook: V2Hook, params: InstallParams, advice: hints.Advice) -> None:
    with hook.site(params) as site:
        work = TerminateEnd(hook.call.vnf_id, site.vims, site)
        hook.run(work.steps(), params.secrets(), advice=advice)


def _terminate_start(hook: V2Hook) -> None:
    """Take away what we made, while there are credentials for it."""
    try:
        params = hook.merged(_TERMINATE, needed=_SERVER_ONLY)
    except errors.ParamError as error:
        if hook.call.request.get("terminationType") != "FORCEFUL":
            raise
        _left_behind(hook, error)
        Connections(hook.call.instance).remove()
        return
    _end(hook, params, hints.GOES_ON)


def _terminate_end(hook: V2Hook) -> None:
    """Keep nothing of a cluster that is gone."""
    hook.call.forget()


def _heal_start(hook: V2Hook) -> None:
    """Take out of the cluster what is about to be built anew, or refuse."""
    params = hook.merged(hints.FAIL)
    call = hook.call
    with hook.site(params) as site:
        if not call.request.get("vnfcInstanceId"):
            steps = (
                preflight.Preflight(params, call.vnf_id, site).step(),
                *TerminateEnd(call.vnf_id, site.vims, site).steps(),
            )
            hook.run(steps, params.secrets(), advice=hints.GOES_ON)
            return
        call.note_healed()
        servers = {one.server_id: one.vnfc_id for one in call.healed()}
        with hints.attached(hints.GOES_ON):
            servers |= _there(call)
        work = HealStart(hook.dependencies(params, site), servers=servers)
        hook.run(work.steps(), params.secrets(), work.left, advice=hints.GOES_ON)


def _there(call: Call) -> Mapping[str, str]:
    """The VNFCs that are healed, by the ids of the servers that are in their places."""
    healed = call.noted()
    return {
        one.physical_id: healed[one.stack_id, one.name]
        for one in resources_of(call)
        if (one.stack_id, one.name) in healed
    }


def _heal_end(hook: V2Hook) -> None:
    """Make a cluster, or members of it, of the VMs that were built anew."""
    params = hook.merged(hints.FAIL_ALREADY)
    with hook.site(params) as site:
        work: Instantiate | HealEnd
        if hook.call.request.get("vnfcInstanceId"):
            with hints.attached(hints.GOES_ON):
                servers = _there(hook.call)
            work = HealEnd(hook.dependencies(params, site), servers=servers)
            advice = hints.GOES_ON
        else:
            work = Instantiate(hook.dependencies(params, site))
            advice = hints.HEAL_OF_ALL_END
        hook.run(work.steps(), params.secrets(), work.left, advice=advice)


def _change_external_connectivity_start(hook: V2Hook) -> None:
    """Refuse a change that the cluster cannot follow, before a port changes."""
    hook.call.between[_REFUSED] = True
    params = hook.merged(hints.ROLLBACK)
    del hook.call.between[_REFUSED]
    with hook.site(params) as site:
        asked = _asked(hook.call)
        work = ConnectivityStart(params, hook.call.vnf_id, site, asked)
        hook.run(work.steps(), params.secrets(), advice=hints.MENDED)


def _asked(call: Call) -> tuple[Attachment, ...]:
    """The connection points that a change of external connectivity names."""
    return tuple(Attachment(*one) for one in call.connections())


def _change_external_connectivity_end(hook: V2Hook) -> None:
    """Let the cluster follow to where its VMs are reached now."""
    params = hook.merged(hints.FAIL_ALREADY)
    with hook.site(params) as site:
        work = ConnectivityEnd(hook.dependencies(params, site), asked=_asked(hook.call))
        hook.run(work.steps(), params.secrets(), advice=_CONNECTIVITY_END)


def _change_external_connectivity_rollback_end(hook: V2Hook) -> None:
    """Let the cluster follow back, unless the request was refused at once."""
    scale_status.restore(hook.call)
    if hook.call.between.get(_REFUSED):
        # Not the other way round: with a conductor that is killed, all that is lost.
        return
    params = hook.merged(hints.FAIL_ALREADY)
    with hook.site(params) as site:
        work = ConnectivityEnd(hook.dependencies(params, site))
        back = "Heat has taken the ports back."
        steps, secrets = work.steps(), params.secrets()
        hook.run(steps, secrets, lambda: back, advice=_ROLLBACK_AGAIN)


def _nothing(hook: V2Hook) -> None:
    """Nothing to do in this hook."""


HOOKS: Mapping[str, Callable[[V2Hook], None]] = MappingProxyType(
    {
        "instantiate_start": _instantiate_start,
        "instantiate_end": _instantiate_end,
        "instantiate_rollback_start": _instantiate_rollback_start,
        "instantiate_rollback_end": _nothing,
        "terminate_start": _terminate_start,
        "terminate_end": _terminate_end,
        "scale_start": scale.start,
        "scale_end": scale.end,
        "scale_rollback_start": scale.rollback_start,
        "scale_rollback_end": _nothing,
        "heal_start": _heal_start,
        "heal_end": _heal_end,
        "modify_information_start": _nothing,
        "modify_information_end": _nothing,
        "modify_information_rollback_start": _nothing,
        "modify_information_rollback_end": _nothing,
        "change_external_connectivity_start": _change_external_connectivity_start,
        "change_external_connectivity_end": _change_external_connectivity_end,
        "change_external_connectivity_rollback_start": (
            lambda hook: scale_status.remember(hook.call)
        ),
        "change_external_connectivity_rollback_end": (
            _change_external_connectivity_rollback_end
        ),
        "change_current_package_start": upgrade.start,
        "change_current_package_end": upgrade.end,
        "change_current_package_rollback_start": upgrade.rollback_start,
        "change_current_package_rollback_end": upgrade.rollback_end,
    }
)
