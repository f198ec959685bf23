"""Tacker's v2 operation "scale": workers come and go.

Tacker counts what is in ``vnfcResourceInfo``, adds or takes off what the operation is
granted, and gives Heat the sum as the group's size (``userdata_default.py``). VMs that
an operation has left behind which ended with `fail` are not in it.
"""

import logging
from collections import Counter
from functools import partial

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.table import Plan
from tacker_k8s_mgmt.hooks.v2.context import V2Hook
from tacker_k8s_mgmt.hooks.v2.heat import resources_of
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.site import V2Site
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut, ScaleOutRollback
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import StackResource

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_FAIL = (
    "To give the operation up send `fail`: `rollback` would delete every VM that "
    "Tacker does not count, also one that an earlier operation has left."
)
_SCALE_OUT_START = hints.Advice(f"Send `retry` when that is mended. {_FAIL}", _FAIL)
OUT_END = hints.Advice(
    "`retry` goes on from here; `rollback` takes the new workers out of the cluster "
    "and deletes their VMs; after `fail` the next heal joins them.",
    refused=hints.PLANES_GO,
)
ROLLBACK = hints.Advice("Send `rollback` again, or `fail` to keep the VMs.")
_SERVER = "OS::Nova::Server"
_GONE = "DELETE_COMPLETE"
# Between the hooks of an operation.
_SERVERS = "servers"


def start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Check a scale-out before VMs exist; take workers out whose VMs will go."""
    call = hook.call
    counted = Step("see that Tacker counts every VM", partial(_see_counted, call))
    if call.request["type"] != "SCALE_OUT":
        stacks = (*call.removed(), *call.members())
        work = ScaleIn(deps, stacks=stacks)
        return Plan((counted, *work.steps()), work.left)
    steps = (
        counted,
        preflight.step(deps),
        Step("see that it is workers that come", partial(_see, hook, site)),
    )
    note = partial(call.between.update, {_SERVERS: call.servers()})
    return Plan(steps, advice=_SCALE_OUT_START, after=note)


def _see_counted(call: Call) -> None:
    """See that Heat has no VM that would cost another one its life.

    Of a group that gets a smaller size, Heat deletes the members that it has failed at,
    then the oldest ones.

    :raises UnsupportedOperation: there are more than Tacker counts.
    """
    there = [
        (one.physical_id, (one.stack_id, one.name)) for one in healthy_servers(call)
    ]
    # A retry may find what the operation itself has made.
    more = call.uncounted(there) - Counter(call.added())
    if more:
        raise errors.UnsupportedOperation(
            detail=f"Heat has {more.total()} VM(s) of an operation that was given up "
            "with `fail`, which Tacker does not count: it would have Heat delete other "
            "workers.",
            hint="Nothing was changed; heal one worker, which joins them and has "
            "Tacker count them, then scale.",
        )


def _see(hook: V2Hook, site: V2Site) -> None:
    """See that the VMs that come are none of the control plane.

    :raises UnsupportedOperation: they are.
    """
    planes = [one.server_id for one in site.machines().control_planes]
    if set(hook.call.vdus(planes)) & set(hook.call.added()):
        aspect = hook.call.request.get("aspectId")
        raise errors.UnsupportedOperation(
            detail=f"The scaling aspect {aspect} is that of the control plane, which "
            "cannot be scaled; nothing was changed.",
            hint="Take the aspect out of the VNFD.",
        )


def of_scale_out(hook: V2Hook, wrong: str) -> InstallParams | None:
    """The parameters, if VMs were made."""
    return hook.merged(wrong) if hook.call.request["type"] == "SCALE_OUT" else None


def end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Make workers of the VMs that Tacker has added."""
    now = set(hook.call.servers())
    # Without scale_start nobody knows which are new; those that are no members join.
    new = now - set(hook.call.between.get(_SERVERS, now))
    return Plan.of(ScaleOut(deps, stacks=new, takes_back=False))


def of_new_vms(hook: V2Hook, wrong: str) -> InstallParams | None:
    """The parameters, if there are VMs that a rollback deletes."""
    there = {one.physical_id for one in _servers(hook.call)}
    if there - set(hook.call.servers()):
        return hook.merged(wrong)
    # It was refused before a VM was made, and may be for what is needed here.
    LOG.info("There is no new VM whose part in the cluster were to be taken back")
    return None


def rollback_start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Take new workers out of the cluster before Tacker deletes their VMs."""
    return Plan.of(ScaleOutRollback(deps, known=hook.call.servers()))


def healthy_servers(call: Call) -> list[StackResource]:
    """Those that Heat has not failed at."""
    return [one for one in _servers(call) if not one.status.endswith("_FAILED")]


def _servers(call: Call) -> list[StackResource]:
    """The servers in the Heat stack."""
    return [
        one
        for one in resources_of(call)
        if one.type == _SERVER and one.physical_id and one.status != _GONE
    ]
