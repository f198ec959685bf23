# SPDX-License-Identifier: Apache-2.0
"""The hooks of Tacker's v2 API.

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
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
    FAIL,
    NO_VM_YET,
    RESUME,
    RETRY,
    ROLLBACK,
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
from tacker_k8s_mgmt.hooks.v2 import stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook, begin, read, see_possible
from tacker_k8s_mgmt.hooks.v2.program import Streams
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
from tacker_k8s_mgmt.operations.step import Step, Steps
from tacker_k8s_mgmt.operations.terminate import terminate_end
from tacker_k8s_mgmt.operations.upgrade import Upgrade, UpgradeStart
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.reader import ATTRIBUTE, ClusterRequest
from tacker_k8s_mgmt.topology.connection_points import Attachment

LOG = logging.getLogger(__name__)

_FAIL = Advice(
    (FAIL,),
    "To give the operation up send `fail`: `rollback` would delete every VM that "
    "Tacker does not count, also one that an earlier operation has left.",
)
_OUT_START = Advice(
    (RETRY, FAIL), f"Send `retry` when that is fixed. {_FAIL.text}", refused=_FAIL
)
_OUT_END = Advice(
    (RETRY, ROLLBACK, FAIL),
    "`retry` continues from here; `rollback` takes the new workers out of the cluster "
    "and deletes their VMs; after `fail` the next heal joins them.",
    refused=SEND_ROLLBACK_ONLY,
)
_OUT_ROLLBACK = Advice(
    (ROLLBACK, FAIL), "Send `rollback` again, or `fail` to keep the VMs."
)
_MODIFY_END = Advice(
    (RETRY, ROLLBACK),
    "`retry` continues from here; `rollback` gives the cluster what it had before.",
)
_PACKAGE_START = replace(CHECK, refused=SEND_FAIL)
_PACKAGE_END = Advice(
    (RETRY, FAIL),
    "`retry` continues from here; after `fail`, another request for the same version "
    "does.",
)
_PACKAGE_ROLLBACK = Advice(
    (ROLLBACK, FAIL),
    "Send `rollback` again, or `fail` to end the operation.",
    refused=Advice(
        (RETRY, FAIL),
        "Fix what it has failed at and send `retry`, which continues; or send `fail`, "
        "and the same change of package later.",
    ),
)
_NOTHING_TO_SEND = Advice((), "")
_SEND_FAIL_OR_FORCEFUL = Advice(
    (FAIL,),
    "Nothing was changed. Send `fail` for this operation, then a corrected request; a "
    "FORCEFUL one does without and leaves the cluster's directory behind.",
)
_ROLLBACK_AGAIN = Advice((ROLLBACK,), "Another `rollback` continues from here.")
_UNDONE = Advice(
    (ROLLBACK, FAIL),
    "Another `rollback` continues from here; after `fail`, the next such request does.",
)
_CONNECTIVITY_END = Advice(
    (RETRY, ROLLBACK, FAIL),
    "`retry` continues from here; `rollback` gives the ports their former places; "
    "after `fail`, the same request sent again continues.",
)
# Between the hooks of an operation.
_SERVERS = "servers"
_METADATA_REFUSED = "metadata refused"
_REFUSED = "parameters refused"

#: Hooks with no work.
NOTHING = frozenset(
    {
        "instantiate_rollback_end",
        "scale_rollback_end",
        "modify_information_rollback_start",
    }
)


def perform(call: HookCall, streams: Streams) -> None:
    """Run a hook; *call* is changed in place.

    :raises K8sMgmtError: with what is wrong, for the operator.
    """
    hook = V2Hook(call, begin(streams))
    if call.operation not in NOTHING and not hasattr(V2Driver, call.operation):
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
    if call.operation not in NOTHING:
        getattr(V2Driver(hook), call.operation)()


class V2Driver:
    """The hooks, but for :data:`NOTHING`."""

    def __init__(self, hook: V2Hook) -> None:
        self._hook = hook
        self._call = hook.call

    # Instantiation and termination

    def instantiate_start(self) -> None:
        """Refuse what cannot work, before a VM exists."""
        hook, call = self._hook, self._call
        with hook.cluster(wrong=UNCHANGED_SEND_ROLLBACK, advice=NO_VM_YET) as cluster:
            if cluster:
                see_possible(call)
                flavour_id = str(call.request.get("flavourId") or "")
                script = reader.path(call.additional_params)
                names = partial(cluster.site.base_hot_findings, flavour_id, script)
                check = preconditions.step(cluster, names)
                hook.run(Steps(check), followed_by="instantiate_end")

    def instantiate_end(self) -> None:
        """Install Kubernetes on the VMs."""
        hook, call = self._hook, self._call
        with hook.cluster(wrong=SEND_ROLLBACK, advice=VMS_EXIST) as cluster:
            if cluster:
                hook.run(Instantiate(cluster))
                call.store(reader.without_secrets(call.additional_params))
            else:
                call.forget()

    def instantiate_rollback_start(self) -> None:
        """Remove what the driver has created, while there are credentials for it."""
        hook = self._hook
        with attached(_ROLLBACK_AGAIN):
            try:
                request = hook.request(wrong=_NOTHING_TO_SEND, server_only=True)
            except errors.ParamError as error:
                # Most likely why the operation failed, before anything was created.
                _left_behind(hook, error)
                return
            if request:
                with hook.open_cluster(request, _ROLLBACK_AGAIN) as cluster:
                    hook.run(Steps(*_removal(cluster)))

    def terminate_start(self) -> None:
        """Refuse while CNFs are exposed, unless forced to; then as a rollback."""
        hook, call = self._hook, self._call
        forced = call.request.get("terminationType") == "FORCEFUL"
        with attached(RESUME):
            try:
                request = hook.request(wrong=_SEND_FAIL_OR_FORCEFUL, server_only=True)
            except errors.ParamError as error:
                if not forced:
                    raise
                _left_behind(hook, error)
                VimEntry(call.instance).remove()
                return
            if request:
                request = hook.with_logins(request, _SEND_FAIL_OR_FORCEFUL)
                with hook.open_cluster(request) as cluster:
                    work = ClusterState(cluster).terminating(forced)
                    hook.run(Steps(*work, *_removal(cluster)))

    def terminate_end(self) -> None:
        """Forget the cluster."""
        self._hook.terminated()

    # Scale

    def scale_start(self) -> None:
        """Check a scale-out before VMs exist; remove the workers of a scale-in."""
        hook, call = self._hook, self._call
        with hook.cluster(wrong=UNCHANGED_SEND_FAIL) as cluster:
            if not cluster:
                return
            counted = Step(
                "check-vm-count",
                "check that Tacker counts every VM",
                partial(_see_counted, call),
                reads=True,
            )
            if not self._scales_out():
                size = call.size_after_scale_in()
                scale_in = ScaleIn(cluster, stacks=call.removed(), size=size)
                steps = (counted, *scale_in.steps())
                hook.run(Steps(*steps, left=scale_in.left))
                return
            checks = Steps(
                counted,
                preconditions.step(cluster),
                Step(
                    "check-scale-out",
                    "check that only workers are added",
                    partial(_see_workers, call, cluster),
                    reads=True,
                ),
            )
            hook.run(checks, advice=_OUT_START, followed_by="scale_end")
            call.between[_SERVERS] = call.servers()

    def scale_end(self) -> None:
        """Join the VMs that Tacker has added as workers; a scale-in is done by now."""
        hook, call = self._hook, self._call
        if not self._scales_out():
            return
        with hook.cluster(wrong=SEND_ROLLBACK, advice=_OUT_END) as cluster:
            if cluster:
                now = set(call.servers())
                # Unknown without scale_start; then all VMs that are no members join.
                new = now - set(call.between.get(_SERVERS, now))
                hook.run(ScaleOut(cluster, stacks=new, takes_back=False))

    def scale_rollback_start(self) -> None:
        """Remove the new workers from the cluster before Tacker deletes their VMs."""
        hook, call = self._hook, self._call
        known = call.servers()
        with attached(_OUT_ROLLBACK):
            present = {server.physical_id for server in stack.servers_of(call)}
        if not present - set(known):
            # Refused before a VM existed, maybe because of the parameters.
            LOG.info("There is no new VM to be removed from the cluster")
            return
        with hook.cluster(wrong=SEND_FAIL, advice=_OUT_ROLLBACK) as cluster:
            if cluster:
                hook.run(ScaleOutRollback(cluster, known=known))

    def _scales_out(self) -> bool:
        return bool(self._call.request["type"] == "SCALE_OUT")

    # Heal

    def heal_start(self) -> None:
        """Remove the nodes that Tacker is about to rebuild, or refuse."""
        hook, call = self._hook, self._call
        with hook.cluster(wrong=UNCHANGED_SEND_FAIL) as cluster:
            if not cluster:
                return
            if call.request.get("vnfcInstanceId") == []:
                # Tacker takes it for a heal of VNFCs, and has Heat replace none.
                raise errors.NoVnfcError
            if "vnfcInstanceId" not in call.request:
                listed, kept = call.servers(), partial(_kept, call)
                whole = WholeHealStart(cluster, listed=listed, kept=kept)
                hook.run(whole, followed_by="heal_end")
                return
            call.note_healed()
            servers = {server: vnfc for vnfc, server, _ in call.healed()}
            heal = HealStart(cluster, servers=servers)
            steps = (_find_servers(call, servers), *heal.steps())
            hook.run(Steps(*steps, left=heal.left), followed_by="heal_end")

    def heal_end(self) -> None:
        """Install the cluster again, or join the rebuilt VMs."""
        hook, call = self._hook, self._call
        with hook.cluster(wrong=SEND_FAIL) as cluster:
            if cluster and "vnfcInstanceId" not in call.request:
                hook.run(WholeHealEnd(cluster), advice=V2_HEAL_OF_ALL)
            elif cluster:
                servers: dict[str, str] = {}
                heal = HealEnd(cluster, servers=servers)
                steps = (_find_servers(call, servers), *heal.steps())
                hook.run(Steps(*steps, left=heal.left))

    # Modification

    def modify_information_start(self) -> None:
        """Refuse what cannot be done, before anything changes."""
        hook, call = self._hook, self._call
        call.between[_METADATA_REFUSED] = True
        if concerned(FEATURES, call.patch):
            with hook.cluster(
                wrong=UNCHANGED_SEND_FAIL, advice=CHECK, former=self._former
            ) as cluster:
                if cluster:
                    checks = Modify(cluster, call.patch).start_steps()
                    hook.run(Steps(*checks), followed_by="modify_information_end")
        call.between.pop(_METADATA_REFUSED, None)

    def modify_information_end(self) -> None:
        """Give the cluster what the metadata want.

        :raises ParamError: automatic operations are enabled that could not work.
        """
        hook, call = self._hook, self._call
        if call.between.get(_METADATA_REFUSED):
            return
        see_possible(call)
        if concerned(FEATURES, call.patch):
            with hook.cluster(
                wrong=SEND_FAIL, advice=_MODIFY_END, former=self._former
            ) as cluster:
                if cluster:
                    hook.run(Modify(cluster, call.patch))

    def modify_information_rollback_end(self) -> None:
        """Give the cluster what the former metadata want, which Tacker has kept."""
        hook, call = self._hook, self._call
        refused = call.between.get(_METADATA_REFUSED)
        if concerned(FEATURES, call.patch) and not refused:
            with hook.cluster(
                wrong=SEND_FAIL, advice=_UNDONE, former=self._former
            ) as cluster:
                if cluster:
                    hook.run(Modify(cluster, call.patch, checked=False))

    def _former(self) -> Sequence[Mapping[str, Any]]:
        return _former_requests(self._call.vnf_id)

    # External connectivity

    def change_external_connectivity_start(self) -> None:
        """Refuse a change that the cluster cannot follow, before a port changes."""
        hook, call = self._hook, self._call
        call.between[_REFUSED] = True
        with hook.cluster(wrong=UNCHANGED_SEND_ROLLBACK, advice=CHECK) as cluster:
            del call.between[_REFUSED]
            if cluster:
                checks = Steps(*connectivity_start(cluster, _attachments(call)))
                hook.run(checks, followed_by="change_external_connectivity_end")

    def change_external_connectivity_end(self) -> None:
        """Adapt the cluster to the new addresses of its VMs."""
        hook, call = self._hook, self._call
        with hook.cluster(wrong=SEND_FAIL, advice=_CONNECTIVITY_END) as cluster:
            if cluster:
                hook.run(ConnectivityEnd(cluster, points=_attachments(call)))

    def change_external_connectivity_rollback_start(self) -> None:
        """Keep what Tacker's rollback drops."""
        self._call.note_scale_status()

    def change_external_connectivity_rollback_end(self) -> None:
        """Adapt the cluster to the former addresses of its VMs."""
        hook, call = self._hook, self._call
        call.restore_scale_status()
        # Not the other way round: a killed conductor loses this data.
        if call.between.get(_REFUSED):
            return
        with hook.cluster(wrong=SEND_FAIL, advice=_UNDONE) as cluster:
            if cluster:
                steps = ConnectivityEnd(cluster).steps()
                back = Steps(*steps, left=lambda: "Heat has taken the ports back.")
                hook.run(back)

    # Change of the package

    def change_current_package_start(self) -> None:
        """Refuse what cannot work, before any change."""
        hook = self._hook
        with attached(_PACKAGE_START):
            _refuse_changes(self._call)
            request = self._upgrade_request(UNCHANGED_SEND_FAIL)
            if request:
                with hook.open_cluster(request, _PACKAGE_START) as cluster:
                    upgrade = UpgradeStart(cluster)
                    hook.run(upgrade, followed_by="change_current_package_end")

    def change_current_package_end(self) -> None:
        """Upgrade the nodes to the Kubernetes version of the request."""
        hook, call = self._hook, self._call
        with attached(_PACKAGE_END):
            request = self._upgrade_request(SEND_FAIL)
            if request:
                with hook.open_cluster(request, _PACKAGE_END) as cluster:
                    hook.run(Upgrade(cluster))
                    kept = upgrade_plan.kept(call.stored[ATTRIBUTE], cluster.params)
                    call.store({ATTRIBUTE: kept})

    def change_current_package_rollback_start(self) -> None:
        """Refuse to restore the former package once nodes are upgraded.

        :raises UnsupportedOperation: an upgrade has begun.
        """
        hook, call = self._hook, self._call
        call.note_scale_status()
        if not call.names_parameters:
            return
        with hook.cluster(
            wrong=SEND_FAIL, advice=_PACKAGE_ROLLBACK, server_only=True, upgrade=True
        ) as cluster:
            if cluster:
                host = cluster.params.ansible.host
                record = ClusterRecords(cluster.site, host).upgrade()
                if record.aim:
                    raise errors.UnsupportedOperation(
                        detail=f"The upgrade to Kubernetes {record.aim} has begun, and "
                        "Kubernetes cannot go back; nothing was changed."
                    )

    def change_current_package_rollback_end(self) -> None:
        """Restore what Tacker's rollback drops."""
        self._call.restore_scale_status()

    def _upgrade_request(self, wrong: Advice) -> ClusterRequest | None:
        """The request, if it names a Kubernetes version."""
        request = None
        if self._call.names_parameters:
            request = self._hook.request(wrong=wrong, upgrade=True)
        if request is None or request.cluster.kubernetes_version is None:
            LOG.info("No Kubernetes version is asked for: only the package changes")
            return None
        return request


def _left_behind(hook: V2Hook, error: errors.ParamError) -> None:
    LOG.warning(
        "VNF instance %s: a cluster directory, if there is any, stays on the "
        "Ansible server: %s",
        hook.vnf_id,
        error,
    )


def _removal(cluster: OperationContext) -> Sequence[Step]:
    """The steps that remove what the driver has created."""
    return terminate_end(cluster.vnf_id, cluster.site.vims, cluster.site)


def _see_counted(call: HookCall) -> None:
    """Refuse if Heat has VMs that Tacker does not count.

    When a group shrinks, Heat deletes the failed members first, then the oldest.
    """
    present = [
        (server.physical_id, (server.stack_id, server.name))
        for server in stack.servers_of(call, failed=False)
    ]
    # At a retry, the operation's own VMs may exist.
    more = call.uncounted(present) - Counter(call.added())
    if more:
        raise errors.UnsupportedOperation(
            detail=f"Heat has {more.total()} VM(s) of an operation that was abandoned "
            "with `fail`, which Tacker does not count: it would have Heat delete other "
            "workers.",
            hint="Nothing was changed; heal one worker, which joins them and has "
            "Tacker count them, then scale.",
        )


def _see_workers(call: HookCall, cluster: OperationContext) -> None:
    """Refuse if the new VMs are of the control plane, or Heat builds others again."""
    machines = cluster.site.machines()
    control_planes = [machine.server_id for machine in machines.control_planes]
    if call.vdus(control_planes) & set(call.added()):
        aspect = call.request.get("aspectId")
        raise errors.UnsupportedOperation(
            detail=f"The scaling aspect {aspect} is that of the control plane, which "
            "cannot be scaled; nothing was changed.",
            hint="Take the aspect out of the VNFD.",
        )
    see_none_rebuilt(cluster)


def _find_servers(call: HookCall, servers: dict[str, str]) -> Step:
    """Add the healed VNFCs to *servers*, with which the other steps work."""

    def look() -> None:
        servers.update(_present(call))

    return Step("find-rebuilt-servers", "find the rebuilt servers", look, reads=True)


def _present(call: HookCall) -> Mapping[str, str]:
    """The healed VNFCs, by the ids of the servers that Heat has in their places."""
    healed = call.noted()
    return {
        resource.physical_id: healed[resource.stack_id, resource.name]
        for resource in stack.resources_of(call)
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
        for resource in stack.resources_of(call)
        if (resource.stack_id, resource.name) not in places
    )


def _former_requests(vnf_id: str) -> Sequence[Mapping[str, Any]]:
    """``additionalParams`` of the operations that succeeded, latest first.

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


def _attachments(call: HookCall) -> tuple[Attachment, ...]:
    """The connection points that a change of external connectivity names."""
    return tuple(Attachment(*connection) for connection in call.connections())


def _refuse_changes(call: HookCall) -> None:
    """See that Tacker will not change the VMs.

    :raises UnsupportedOperation: with everything that would make Tacker change them.
    """
    findings = list(_changes(call))
    if findings:
        raise errors.UnsupportedOperation(
            detail="A change of the VNF package upgrades Kubernetes on the VMs that "
            f"there are, and replaces none: {'; '.join(findings)}; nothing was "
            "changed."
        )


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
