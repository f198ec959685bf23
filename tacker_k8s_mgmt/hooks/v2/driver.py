# SPDX-License-Identifier: Apache-2.0
"""The hooks of Tacker's v2 API: their table, and what each does.

What Tacker passes to each, and when: ``sol_refactored/conductor/vnflcm_driver_v2.py``.
A retry runs both hooks of an operation again, whichever of them has failed. Changes of
the VNF instance are stored only when the whole operation succeeds.

Scale (of workers): Tacker counts the entries of ``vnfcResourceInfo``, adds or subtracts
what the operation is granted, and gives Heat the result as the group's size
(``userdata_default.py``). VMs left by an operation that ended with `fail` are not
listed there.

Modify VNF information: its request has no ``additionalParams``, and so no place for
literal secrets. It enables automatic operations, too, which are refused if they cannot
work.

Change current VNF package (the cluster's upgrade): Tacker runs the scripts of the new
package (``conductor_v2.py``), and between the hooks updates the Heat stack with the
user data; those of our packages do not change it. A rollback runs the scripts of the
former package.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging
from oslo_utils.uuidutils import is_uuid_like
from tacker.sol_refactored.common import vnfd_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.hooks.advice import (
    CHECK,
    NO_VM_YET,
    SEND_FAIL,
    SEND_ROLLBACK,
    SEND_ROLLBACK_ONLY,
    UNCHANGED_SEND_FAIL,
    UNCHANGED_SEND_ROLLBACK,
    V2_HEAL_OF_ALL,
    VMS_EXIST,
    Advice,
    attached,
)
from tacker_k8s_mgmt.hooks.hook import SERVER_ONLY, Entry, Plan
from tacker_k8s_mgmt.hooks.v2.call import HookCall, remember, restore
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook, V2Site, begin, read, see_possible
from tacker_k8s_mgmt.hooks.v2.program import Streams
from tacker_k8s_mgmt.hooks.v2.stack import resources_of
from tacker_k8s_mgmt.operations import preconditions, upgrade_plan
from tacker_k8s_mgmt.operations.compare import see_none_rebuilt
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd, connectivity_start
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.operations.modify import Modify, concerned
from tacker_k8s_mgmt.operations.records import ClusterRecords
from tacker_k8s_mgmt.operations.scale import ScaleIn, ScaleOut, ScaleOutRollback
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.operations.terminate import (
    terminate_end,
)
from tacker_k8s_mgmt.operations.upgrade import Upgrade, UpgradeStart
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request import reader as parameters
from tacker_k8s_mgmt.request.reader import ATTRIBUTE, ClusterRequest
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import StackResource

LOG = logging.getLogger(__name__)

_FAIL = (
    "To give the operation up send `fail`: `rollback` would delete every VM that "
    "Tacker does not count, also one that an earlier operation has left."
)
_OUT_START_ADVICE = Advice(f"Send `retry` when that is mended. {_FAIL}", _FAIL)
OUT_END_ADVICE = Advice(
    "`retry` goes on from here; `rollback` takes the new workers out of the cluster "
    "and deletes their VMs; after `fail` the next heal joins them.",
    refused=SEND_ROLLBACK_ONLY,
)
ROLLBACK_ADVICE = Advice("Send `rollback` again, or `fail` to keep the VMs.")
# Between the hooks of an operation.
_SERVERS = "servers"


def scale_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Check a scale-out before VMs exist; remove the workers of a scale-in."""
    call = hook.call
    counted = Step(
        "check-vm-count",
        "check that Tacker counts every VM",
        partial(_see_counted, call),
    )
    if call.request["type"] != "SCALE_OUT":
        work = ScaleIn(deps, stacks=call.removed(), size=call.size_after_scale_in())
        return Plan((counted, *work.steps()), work.left, is_last=True)
    steps = (
        counted,
        preconditions.step(deps),
        Step(
            "check-scale-out",
            "check that only workers are added",
            partial(_see_workers, hook, deps, site),
        ),
    )
    note = partial(call.between.update, {_SERVERS: call.servers()})
    return Plan(steps, advice=_OUT_START_ADVICE, after=note)


def _see_counted(call: HookCall) -> None:
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


def _see_workers(hook: V2Hook, deps: OperationContext, site: V2Site) -> None:
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


def params_of_scale_out(hook: V2Hook, advice: str) -> ClusterRequest | None:
    """The parameters of a scale-out; None for a scale-in, which is done by now."""
    return hook.merged(advice) if hook.call.request["type"] == "SCALE_OUT" else None


def scale_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Join the VMs that Tacker has added as workers."""
    now = set(hook.call.servers())
    # Unknown without scale_start; then all VMs that are not members join.
    new = now - set(hook.call.between.get(_SERVERS, now))
    return Plan.of(ScaleOut(deps, stacks=new, takes_back=False))


def params_of_rollback(hook: V2Hook, advice: str) -> ClusterRequest | None:
    """The parameters, if there are VMs that a rollback deletes."""
    present = {server.physical_id for server in _servers(hook.call)}
    if present - set(hook.call.servers()):
        return hook.merged(advice)
    # Refused before a VM existed, maybe because of these parameters.
    LOG.info("There is no new VM to be removed from the cluster")
    return None


def scale_rollback_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Remove the new workers from the cluster before Tacker deletes their VMs."""
    return Plan.of(ScaleOutRollback(deps, known=hook.call.servers()))


def healthy_servers(call: HookCall) -> list[StackResource]:
    """The servers in the Heat stack that have not failed."""
    servers = _servers(call)
    return [server for server in servers if not server.status.endswith("_FAILED")]


def _servers(call: HookCall) -> list[StackResource]:
    return [
        resource
        for resource in resources_of(call)
        if resource.type == "OS::Nova::Server"
        and resource.physical_id
        and resource.status != "DELETE_COMPLETE"
    ]


MODIFY_END_ADVICE = Advice(
    "`retry` goes on from here; `rollback` gives the cluster what it had before."
)
# Between the hooks of the operation.
_METADATA_REFUSED = "metadata refused"


def modify_params(hook: V2Hook, advice: str) -> ClusterRequest | None:
    """The stored parameters; None for a request that is not ours, or a refused one.

    :raises ParamError: automatic operations are enabled that could not work.
    """
    call = hook.call
    if call.operation == "modify_information_start":
        call.between[_METADATA_REFUSED] = True
    elif call.between.get(_METADATA_REFUSED):
        return None
    elif call.operation == "modify_information_end":
        see_possible(call)
    if not concerned(FEATURES, call.patch):
        call.between.pop(_METADATA_REFUSED, None)
        return None
    try:
        return hook.merged(advice)
    except errors.ParamError:
        return hook.completed(advice, _former_requests(call.vnf_id))


def modify_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Refuse what cannot be done, before anything changes."""
    checked = partial(hook.call.between.pop, _METADATA_REFUSED, None)
    return Plan(_modify(hook, deps).start_steps(), after=checked)


def modify_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Give the cluster what the metadata want."""
    return Plan.of(_modify(hook, deps))


def modify_rollback_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Give the cluster what the former metadata want, which Tacker has kept."""
    return Plan.of(_modify(hook, deps, checked=False))


def _modify(hook: V2Hook, deps: OperationContext, *, checked: bool = True) -> Modify:
    return Modify(deps, hook.call.patch, checked=checked)


def _former_requests(vnf_id: str) -> Sequence[Mapping[str, Any]]:
    """``additionalParams`` of the operations that ended well, latest first.

    :raises TackerError: Tacker's database cannot be read.
    """
    # Few hooks need the database, whose modules take long to import. They register
    # options, also for the command line, so the configuration is read again.
    cfg.CONF.clear()
    import tacker.cmd.conductor  # noqa: F401

    from tacker_k8s_mgmt.hooks.v2 import lookup

    read()
    # The conductor has its database; do not wait for it.
    cfg.CONF.set_override("max_retries", 0, group="database")
    try:
        return lookup.V2Record(vnf_id).carried_out()
    except Exception as error:
        # The drivers of databases raise many kinds, whose texts may have the password.
        raise errors.TackerError(
            detail="The literal passwords and keys of former requests are not kept "
            "with the VNF instance, and Tacker's database, which has the requests, "
            f"could not be read ({type(error).__name__}).",
            hint="Let the conductor's user read the configuration with [database] "
            "connection. Or send a heal or scale request with references in place of "
            "literal secrets; what it gives is known from then on.",
        ) from None


_ROLLBACK_ADVICE = Advice(
    "Send `rollback` again, or `fail` to end the operation.",
    refused="Mend what it has failed at and send `retry`, which goes on; or send "
    "`fail`, and the same change of package later.",
)
START_ADVICE = Advice(CHECK.failed, refused=SEND_FAIL)
UPGRADE_END_ADVICE = Advice(
    "`retry` goes on from here; after `fail`, another request for the same version "
    "does."
)


def params_of_start(hook: V2Hook, advice: str) -> ClusterRequest | None:
    """As :func:`params_of_upgrade`, if Tacker will not change the VMs.

    :raises UnsupportedOperation: with everything that would make Tacker change them.
    """
    findings = list(_changes(hook.call))
    if findings:
        raise errors.UnsupportedOperation(
            detail="A change of the VNF package upgrades Kubernetes on the VMs that "
            f"there are, and replaces none: {'; '.join(findings)}; nothing was "
            "changed.",
        )
    return params_of_upgrade(hook, advice)


def params_of_upgrade(hook: V2Hook, advice: str) -> ClusterRequest | None:
    """The parameters of a request that names a Kubernetes version."""
    params = None
    if hook.call.names_parameters:
        params = hook.merged(advice, upgrade=True)
    if params is None or params.cluster.kubernetes_version is None:
        LOG.info("No Kubernetes version is asked for: only the package changes")
        return None
    return params


def upgrade_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Refuse what cannot work, before any change."""
    return Plan.of(UpgradeStart(deps))


def upgrade_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Upgrade the nodes to the Kubernetes version of the request."""
    kept = {ATTRIBUTE: upgrade_plan.kept(hook.call.stored[ATTRIBUTE], deps.params)}
    return Plan.of(Upgrade(deps), after=partial(hook.call.store, kept))


def upgrade_rollback_start(hook: V2Hook) -> None:
    """Refuse to restore the former package once nodes are upgraded.

    :raises UnsupportedOperation: an upgrade has begun.
    """
    remember(hook.call)
    if not hook.call.names_parameters:
        return
    with attached(_ROLLBACK_ADVICE):
        params = hook.merged(SEND_FAIL, needed=SERVER_ONLY, upgrade=True)
        with hook.site(params) as site:
            record = ClusterRecords(site, params.ansible.host).upgrade()
        if record.aim:
            raise errors.UnsupportedOperation(
                detail=f"The upgrade to Kubernetes {record.aim} has begun, and "
                "Kubernetes cannot go back; nothing was changed."
            )


def upgrade_rollback_end(hook: V2Hook) -> None:
    """Restore what Tacker's rollback drops."""
    restore(hook.call)


def _changes(call: HookCall) -> Iterator[str]:
    yield from reader.package_change_problems(call.additional_params)
    vnfd = vnfd_utils.Vnfd(str(call.request["vnfdId"]))
    vnfd.init_from_csar_dir(call.package)
    named = vnfd.get_sw_image(call.instance["instantiatedVnfInfo"]["flavourId"])
    for vdu, used in sorted(call.images().items()):
        # An image granted by an NFVO is an id, and takes precedence over the name.
        if vdu in named and named[vdu] != used and not is_uuid_like(used):
            yield (
                f"the new package names the image {named[vdu]} for {vdu}, whose VMs "
                f"have {used}"
            )


_Entry = Entry[V2Hook, V2Site]
_SEND_FAIL_OR_FORCEFUL = (
    "Nothing was changed. Send `fail` for this operation, then a corrected request; a "
    "FORCEFUL one does without and leaves the inventory directory behind."
)
_ROLLBACK_AGAIN_ADVICE = Advice("Another `rollback` goes on from here.")
_UNDONE_ADVICE = Advice(
    "Another `rollback` goes on from here; after `fail`, the next such request does."
)
_CONNECTIVITY_END_ADVICE = Advice(
    "`retry` goes on from here; `rollback` gives the ports their former places; after "
    "`fail`, the same request sent again goes on."
)
# Between the hooks of an operation.
_REFUSED = "parameters refused"


def perform(call: HookCall, streams: Streams) -> None:
    """Run a hook; *call* is changed in place.

    :raises K8sMgmtError: with what is wrong, for the operator.
    """
    hook = V2Hook(call, begin(streams))
    if call.operation not in HOOKS:
        raise errors.UnsupportedOperation(
            detail=f"This release has no hook {call.operation}.",
            hint="Take it out of the VNFD, or upgrade tacker-k8s-mgmt.",
        )
    # Before Tacker selects a VIM for its work between the hooks.
    VimEntry(call.instance).settle()
    if call.operation.endswith("_start"):
        call.note_places()
    else:
        call.follow_places()
    HOOKS[call.operation](hook)


def _instantiate_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Refuse what cannot work, before a VM exists."""
    see_possible(hook.call)
    flavour_id = str(hook.call.request.get("flavourId") or "")
    script = reader.path(hook.call.additional_params)
    names = partial(site.base_hot_findings, flavour_id, script)
    return Plan((preconditions.step(deps, names),))


def _parsed_or_forget(hook: V2Hook, advice: str) -> ClusterRequest | None:
    params = hook.parsed(advice)
    if params is None:
        hook.call.forget()
    return params


def _instantiate_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Install Kubernetes on the VMs."""
    kept = parameters.without_secrets(hook.call.additional_params)
    return Plan.of(Instantiate(deps), after=partial(hook.call.store, kept))


def _parsed_if_valid(hook: V2Hook, advice: str) -> ClusterRequest | None:
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


def _merged_unless_forceful(hook: V2Hook, advice: str) -> ClusterRequest | None:
    try:
        params = hook.merged(advice, needed=SERVER_ONLY)
        return hook.with_logins(params, lambda: hook.merged(advice))
    except errors.ParamError as error:
        if not _is_forceful(hook):
            raise
        _left_behind(hook, error)
        VimEntry(hook.call.instance).remove()
        return None


def _is_forceful(hook: V2Hook) -> bool:
    return hook.call.request.get("terminationType") == "FORCEFUL"


def _terminate(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Refuse while CNFs are exposed, unless forced to; then as a rollback."""
    end = terminate_end(deps.vnf_id, site.vims, site)
    return Plan((*ClusterState(deps).terminating(_is_forceful(hook)), *end))


def _end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Remove what the driver has created, while there are credentials for it."""
    return Plan(terminate_end(deps.vnf_id, site.vims, site))


def _params_of_heal(hook: V2Hook, advice: str) -> ClusterRequest:
    if hook.call.request.get("vnfcInstanceId") == []:
        # Tacker takes it for a heal of VNFCs, and has Heat replace none.
        raise errors.NoVnfcError
    return hook.merged(advice)


def _heal_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Remove the nodes that Tacker is about to rebuild, or refuse."""
    call = hook.call
    if "vnfcInstanceId" not in call.request:
        listed, kept = call.servers(), partial(_kept, call)
        return Plan.of(WholeHealStart(deps, listed=listed, kept=kept))
    call.note_healed()
    servers = {server: vnfc for vnfc, server, _ in call.healed()}
    work = HealStart(deps, servers=servers)
    return Plan((_lookup(call, servers), *work.steps()), work.left)


def _lookup(call: HookCall, servers: dict[str, str]) -> Step:
    """Add the healed VNFCs to *servers*, with which the other steps work."""

    def look() -> None:
        servers.update(_present(call))

    return Step("find-rebuilt-servers", "find the rebuilt servers", look)


def _present(call: HookCall) -> Mapping[str, str]:
    """The healed VNFCs, by the ids of the servers that Heat has in their places."""
    healed = call.noted()
    return {
        resource.physical_id: healed[resource.stack_id, resource.name]
        for resource in resources_of(call)
        if (resource.stack_id, resource.name) in healed
    }


def _kept(call: HookCall) -> frozenset[str]:
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


def _heal_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Install the cluster again, or join the rebuilt VMs."""
    if "vnfcInstanceId" not in hook.call.request:
        return Plan.of(WholeHealEnd(deps), advice=V2_HEAL_OF_ALL)
    servers: dict[str, str] = {}
    work = HealEnd(deps, servers=servers)
    return Plan((_lookup(hook.call, servers), *work.steps()), work.left)


def _merged_or_refused(hook: V2Hook, advice: str) -> ClusterRequest:
    hook.call.between[_REFUSED] = True
    params = hook.merged(advice)
    del hook.call.between[_REFUSED]
    return params


def _connectivity_start(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Refuse a change that the cluster cannot follow, before a port changes."""
    return Plan(connectivity_start(deps, _attachments(hook.call)))


def _attachments(call: HookCall) -> tuple[Attachment, ...]:
    """The connection points that a change of external connectivity names."""
    return tuple(Attachment(*connection) for connection in call.connections())


def _connectivity_end(hook: V2Hook, deps: OperationContext, site: V2Site) -> Plan:
    """Adapt the cluster to the new addresses of its VMs."""
    return Plan(ConnectivityEnd(deps, points=_attachments(hook.call)).steps())


def _merged_unless_refused(hook: V2Hook, advice: str) -> ClusterRequest | None:
    restore(hook.call)
    # Not the other way round: a killed conductor loses this data.
    return None if hook.call.between.get(_REFUSED) else hook.merged(advice)


def _connectivity_rollback_end(
    hook: V2Hook, deps: OperationContext, site: V2Site
) -> Plan:
    """Adapt the cluster to the former addresses of its VMs."""
    steps = ConnectivityEnd(deps).steps()
    return Plan(steps, lambda: "Heat has taken the ports back.")


def _nothing(hook: V2Hook) -> None:
    """Nothing to do in this hook."""


HOOKS: Mapping[str, Callable[[V2Hook], None]] = {
    "instantiate_start": _Entry(
        V2Hook.parsed,
        _instantiate_start,
        param_advice=UNCHANGED_SEND_ROLLBACK,
        advice=NO_VM_YET,
        followed_by="instantiate_end",
    ),
    "instantiate_end": _Entry(
        _parsed_or_forget,
        _instantiate_end,
        param_advice=SEND_ROLLBACK,
        advice=VMS_EXIST,
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
        scale_start,
        param_advice=UNCHANGED_SEND_FAIL,
        followed_by="scale_end",
    ),
    "scale_end": _Entry(
        params_of_scale_out,
        scale_end,
        param_advice=SEND_ROLLBACK,
        advice=OUT_END_ADVICE,
    ),
    "scale_rollback_start": _Entry(
        params_of_rollback,
        scale_rollback_start,
        param_advice=SEND_FAIL,
        advice=ROLLBACK_ADVICE,
    ),
    "scale_rollback_end": _nothing,
    "heal_start": _Entry(
        _params_of_heal,
        _heal_start,
        param_advice=UNCHANGED_SEND_FAIL,
        followed_by="heal_end",
    ),
    "heal_end": _Entry(V2Hook.merged, _heal_end, param_advice=SEND_FAIL),
    "modify_information_start": _Entry(
        modify_params,
        modify_start,
        param_advice=UNCHANGED_SEND_FAIL,
        advice=CHECK,
        followed_by="modify_information_end",
    ),
    "modify_information_end": _Entry(
        modify_params,
        modify_end,
        param_advice=SEND_FAIL,
        advice=MODIFY_END_ADVICE,
    ),
    "modify_information_rollback_start": _nothing,
    "modify_information_rollback_end": _Entry(
        modify_params,
        modify_rollback_end,
        param_advice=SEND_FAIL,
        advice=_UNDONE_ADVICE,
    ),
    "change_external_connectivity_start": _Entry(
        _merged_or_refused,
        _connectivity_start,
        param_advice=UNCHANGED_SEND_ROLLBACK,
        advice=CHECK,
        followed_by="change_external_connectivity_end",
    ),
    "change_external_connectivity_end": _Entry(
        V2Hook.merged,
        _connectivity_end,
        param_advice=SEND_FAIL,
        advice=_CONNECTIVITY_END_ADVICE,
    ),
    "change_external_connectivity_rollback_start": (lambda hook: remember(hook.call)),
    "change_external_connectivity_rollback_end": _Entry(
        _merged_unless_refused,
        _connectivity_rollback_end,
        param_advice=SEND_FAIL,
        advice=_UNDONE_ADVICE,
    ),
    "change_current_package_start": _Entry(
        params_of_start,
        upgrade_start,
        param_advice=UNCHANGED_SEND_FAIL,
        advice=START_ADVICE,
        followed_by="change_current_package_end",
    ),
    "change_current_package_end": _Entry(
        params_of_upgrade,
        upgrade_end,
        param_advice=SEND_FAIL,
        advice=UPGRADE_END_ADVICE,
    ),
    "change_current_package_rollback_start": upgrade_rollback_start,
    "change_current_package_rollback_end": upgrade_rollback_end,
}
