# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 operation "scale", for workers.

Tacker counts the entries of ``vnfcResourceInfo``, adds or subtracts what the operation
is granted, and gives Heat the result as the group's size (``userdata_default.py``).
VMs left by an operation that ended with `fail` are not listed there.
"""

from collections import Counter
from functools import partial

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.entry import Plan
from tacker_k8s_mgmt.hooks.v2.context import V2Hook, V2Site
from tacker_k8s_mgmt.hooks.v2.heat import resources_of
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut, ScaleOutRollback
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.steps.compare import see_none_rebuilt
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import StackResource

LOG = logging.getLogger(__name__)

_FAIL = (
    "To give the operation up send `fail`: `rollback` would delete every VM that "
    "Tacker does not count, also one that an earlier operation has left."
)
_OUT_START_ADVICE = hints.Advice(f"Send `retry` when that is mended. {_FAIL}", _FAIL)
OUT_END_ADVICE = hints.Advice(
    "`retry` goes on from here; `rollback` takes the new workers out of the cluster "
    "and deletes their VMs; after `fail` the next heal joins them.",
    refused=hints.SEND_ROLLBACK_ONLY,
)
ROLLBACK_ADVICE = hints.Advice("Send `rollback` again, or `fail` to keep the VMs.")
# Between the hooks of an operation.
_SERVERS = "servers"


def start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Check a scale-out before VMs exist; remove the workers of a scale-in."""
    call = hook.call
    counted = Step("see that Tacker counts every VM", partial(_see_counted, call))
    if call.request["type"] != "SCALE_OUT":
        work = ScaleIn(deps, stacks=call.removed(), size=call.size_after_scale_in())
        return Plan((counted, *work.steps()), work.left, is_last=True)
    steps = (
        counted,
        preflight.step(deps),
        Step(
            "see that workers come and the others stay",
            partial(_see_workers, hook, deps, site),
        ),
    )
    note = partial(call.between.update, {_SERVERS: call.servers()})
    return Plan(steps, advice=_OUT_START_ADVICE, after=note)


def _see_counted(call: Call) -> None:
    """Refuse if Heat has VMs that Tacker does not count.

    When a group shrinks, Heat deletes the failed members first, then the oldest.
    """
    present = [
        (server.physical_id, (server.stack_id, server.name))
        for server in healthy_servers(call)
    ]
    # At a retry, the operation's own VMs may exist.
    more = call.uncounted(present) - Counter(call.added())
    if more:
        raise errors.UnsupportedOperation(
            detail=f"Heat has {more.total()} VM(s) of an operation that was given up "
            "with `fail`, which Tacker does not count: it would have Heat delete other "
            "workers.",
            hint="Nothing was changed; heal one worker, which joins them and has "
            "Tacker count them, then scale.",
        )


def _see_workers(hook: V2Hook, deps: Dependencies, site: V2Site) -> None:
    """Refuse if the new VMs are of the control plane, or Heat builds others again."""
    control_planes = [machine.server_id for machine in site.machines().control_planes]
    if hook.call.vdus(control_planes) & set(hook.call.added()):
        aspect = hook.call.request.get("aspectId")
        raise errors.UnsupportedOperation(
            detail=f"The scaling aspect {aspect} is that of the control plane, which "
            "cannot be scaled; nothing was changed.",
            hint="Take the aspect out of the VNFD.",
        )
    see_none_rebuilt(deps)


def params_of_scale_out(hook: V2Hook, advice: str) -> InstallParams | None:
    """The parameters of a scale-out; None for a scale-in, which is done by now."""
    return hook.merged(advice) if hook.call.request["type"] == "SCALE_OUT" else None


def end(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Join the VMs that Tacker has added as workers."""
    now = set(hook.call.servers())
    # Unknown without scale_start; then all VMs that are not members join.
    new = now - set(hook.call.between.get(_SERVERS, now))
    return Plan.of(ScaleOut(deps, stacks=new, takes_back=False))


def params_of_rollback(hook: V2Hook, advice: str) -> InstallParams | None:
    """The parameters, if there are VMs that a rollback deletes."""
    present = {server.physical_id for server in _servers(hook.call)}
    if present - set(hook.call.servers()):
        return hook.merged(advice)
    # Refused before a VM existed, maybe because of these parameters.
    LOG.info("There is no new VM to be removed from the cluster")
    return None


def rollback_start(hook: V2Hook, deps: Dependencies, site: V2Site) -> Plan:
    """Remove the new workers from the cluster before Tacker deletes their VMs."""
    return Plan.of(ScaleOutRollback(deps, known=hook.call.servers()))


def healthy_servers(call: Call) -> list[StackResource]:
    """The servers in the Heat stack that have not failed."""
    servers = _servers(call)
    return [server for server in servers if not server.status.endswith("_FAILED")]


def _servers(call: Call) -> list[StackResource]:
    return [
        resource
        for resource in resources_of(call)
        if resource.type == "OS::Nova::Server"
        and resource.physical_id
        and resource.status != "DELETE_COMPLETE"
    ]
