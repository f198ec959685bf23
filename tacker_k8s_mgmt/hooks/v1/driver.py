# SPDX-License-Identifier: Apache-2.0
"""The hooks of Tacker's v1 API: the class behind the frozen shim.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it has no state.

At a termination the VMs go anyway. So wrong parameters only stop what cannot be removed
without them.

The Heat stack of an abandoned instantiation is deleted. Tacker 16's v1 API keeps it
after ``fail``, and after the rollback of an operation whose conductor was killed while
Heat created the VMs. A later instantiation gives its stack the same name
(``OpenStack._create_stack_with_user_data``), which Heat would refuse.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from oslo_log import log as logging
from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.hooks.advice import (
    CHECK,
    FAIL,
    NO_VM_YET,
    RETRY,
    ROLLBACK,
    SEND_FAIL,
    SEND_ROLLBACK,
    SEND_ROLLBACK_ONLY,
    UNCHANGED_SEND_FAIL,
    UNCHANGED_SEND_ROLLBACK,
    V1_HEAL_OF_ALL,
    VMS_EXIST,
    Advice,
)
from tacker_k8s_mgmt.hooks.hook import SERVER_STRUCTURES
from tacker_k8s_mgmt.hooks.v1 import group_sizes, heal_update, stack, vim_registry
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tacker_k8s_mgmt.hooks.v1.instance import STACK_POINT, V1Instance, V1Request
from tacker_k8s_mgmt.operations import preconditions
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd, connectivity_start
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.instantiate import (
    Instantiate,
    WholeHealEnd,
    WholeHealStart,
)
from tacker_k8s_mgmt.operations.modify import Modify, concerned
from tacker_k8s_mgmt.operations.scale import ScaleIn, ScaleOut
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.operations.step import Step, Steps
from tacker_k8s_mgmt.operations.terminate import terminate_end, terminate_start
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import SECRET_REF

LOG = logging.getLogger(__name__)

TYPE = "mgmt-drivers-kubespray"
_SCALE_OUT = Advice(
    (FAIL,),
    "Send `fail` for this operation: the new VMs stay, and the next scale-out or heal "
    "joins them.",
    refused=SEND_ROLLBACK_ONLY,
)
_CONNECTIVITY_END = Advice(
    (RETRY, FAIL),
    "`retry` continues from here; after `fail`, the same request sent again does.",
)
# Tacker has neither a retry nor a rollback of it.
_MODIFY_START = Advice(
    (FAIL,),
    "Send `fail` for this operation; when that is fixed, or with a corrected request, "
    "modify the VNF instance again.",
)
_MODIFY_END = Advice(
    (FAIL,),
    "Tacker has stored what the request wants. Send `fail` for this operation; the "
    "same request sent again continues, and one with the former values reverts it.",
)
_DIRECTORY_STAYS = Advice(
    (FAIL,),
    "Nothing was changed. Send `fail` for this operation, then a terminate request "
    "with other secrets in its additionalParams, or a FORCEFUL one, which leaves the "
    "cluster's directory on the Ansible server.",
)


class MgmtDriver(vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):  # type: ignore[misc]
    """Tacker's v1 management-driver interface."""

    def get_type(self) -> str:
        """The name in ``[tacker] vnflcm_mgmt_driver`` and in the VNFD."""
        return TYPE

    def get_name(self) -> str:
        """The same as the type."""
        return TYPE

    def get_description(self) -> str:
        """One line about the driver."""
        return "Kubernetes cluster VNF with kubespray"

    def _hook(self, name: str, *passed: Any) -> V1Hook:
        """A call of a hook, with what Tacker passes."""
        return V1Hook(name, *passed)

    def instantiate_start(
        self,
        context: Any,
        vnf_instance: Any,
        instantiate_vnf_request: Any = None,
        **_: Any,
    ) -> None:
        """Refuse what cannot work, before a VM exists; remove what is left."""
        hook = self._hook(
            "instantiate_start", context, vnf_instance, instantiate_vnf_request
        )
        with hook.cluster(wrong=UNCHANGED_SEND_ROLLBACK, advice=NO_VM_YET) as cluster:
            if cluster:
                vims = cluster.site.vims
                check = preconditions.step(
                    cluster, lambda: _unknown_names(cluster.site, hook.sent)
                )
                former = Step(
                    "remove-abandoned-vim",
                    "remove the VIM of an abandoned instantiation",
                    vims.remove,
                    probe=lambda: not vims.registered() and not vims.of_tenants(),
                )
                # Refused while VNFs use that VIM, before their cluster is deleted.
                stale = delete_stale_stack(hook.instance, cluster.site)
                operation = Steps(check, former, stale)
                hook.run(operation, followed_by="instantiate_end")
                hook.instance.checkpoint(STACK_POINT)

    def instantiate_end(
        self,
        context: Any,
        vnf_instance: Any,
        instantiate_vnf_request: Any = None,
        vnf: Any = None,
        **_: Any,
    ) -> None:
        """Install Kubernetes on the VMs.

        A package need not name ``instantiate_start``, which would have refused. Tacker
        has not stored yet what it passes as ``vnf``.
        """
        request = instantiate_vnf_request
        hook = self._hook("instantiate_end", context, vnf_instance, request, vnf)
        with hook.cluster(wrong=SEND_ROLLBACK, advice=VMS_EXIST) as cluster:
            if cluster:
                hook.run(Instantiate(cluster))

    def terminate_start(
        self,
        context: Any,
        vnf_instance: Any,
        terminate_vnf_request: Any = None,
        **_: Any,
    ) -> None:
        """Refuse while other VNFs run on the cluster, or if a part of it would stay."""
        hook = self._hook(
            "terminate_start", context, vnf_instance, terminate_vnf_request
        )
        if not hook.instance.is_cluster:
            return
        forced = not hook.sent or hook.sent.is_forceful
        request = _request_of_termination(hook, forced)
        used = None
        if request and not forced:
            used = hook.with_logins(request, _DIRECTORY_STAYS)
        steps = terminate_start(vim_registry.VimRegistry(hook.instance))
        with hook.open_cluster(used) if used else nullcontext() as cluster:
            if cluster:
                steps += ClusterState(cluster).terminating(forced=False)
            hook.run(Steps(*steps), advice=CHECK, followed_by="terminate_end")
        if request and _needs_barbican(request):
            hook.instance.keep_login_vim()

    def terminate_end(
        self,
        context: Any,
        vnf_instance: Any,
        terminate_vnf_request: Any = None,
        **_: Any,
    ) -> None:
        """Remove what the driver has created; also the rollback of an instantiation."""
        hook = self._hook("terminate_end", context, vnf_instance, terminate_vnf_request)
        if not hook.instance.is_cluster:
            return
        hook.begin()
        vims = vim_registry.VimRegistry(hook.instance)
        request = _server_login_if_any(hook)
        with hook.open_cluster(request) if request else nullcontext() as cluster:
            site = cluster.site if cluster else None
            operation = Steps(*terminate_end(hook.vnf_id, vims, site))
            hook.run(operation, advice=terminate_advice(request, not hook.sent))
        # Without a request it is the rollback of an instantiation.
        (hook.terminated if hook.sent else hook.forget)()

    def scale_start(
        self,
        context: Any,
        vnf_instance: Any,
        scale_vnf_request: Any = None,
        scale_out_id_list: Any = (),
        **_: Any,
    ) -> None:
        """Remove the workers of a scale-in, before Tacker deletes their VMs.

        Called for scale-in only, with the ids of the stacks of the group's members
        (``VnfLcmDriver._scale_vnf_pre``).
        """
        hook = self._hook("scale_start", context, vnf_instance, scale_vnf_request)
        with hook.cluster(wrong=UNCHANGED_SEND_FAIL) as cluster:
            if cluster:
                _refuse_control_planes(cluster.params, hook.sent)
                action, _aspect, steps = hook.sent.scale
                # A rollback of a scale-out may call it, too, without ids.
                counted = steps if steps and action == "SCALE_IN" else 0
                hook.run(ScaleIn(cluster, stacks=scale_out_id_list, steps=counted))

    def scale_end(
        self,
        context: Any,
        vnf_instance: Any,
        scale_vnf_request: Any = None,
        scale_out_id_list: Any = (),
        **_: Any,
    ) -> None:
        """Join the VMs that Tacker has added as workers.

        Called for scale-out only, with the ids of the new ones (``_scale_vnf_post``).
        Tacker ends a retry of a scale-out without calling it.
        """
        hook = self._hook("scale_end", context, vnf_instance, scale_vnf_request)
        with hook.cluster(
            wrong=SEND_ROLLBACK, advice=_SCALE_OUT, retried=False
        ) as cluster:
            if cluster:
                _refuse_control_planes(cluster.params, hook.sent)
                scale_out = ScaleOut(cluster, stacks=scale_out_id_list)

                def advice(error: Exception) -> Advice:
                    group = hook.sent.aspect
                    before = scale_out.members_before(group)
                    return group_sizes.advice_after_scale_out(
                        hook.instance, group, before
                    )

                hook.run(scale_out, advice=advice)
                group_sizes.follow_scale_out(hook.instance, cluster)

    def heal_start(
        self, context: Any, vnf_instance: Any, heal_vnf_request: Any = None, **_: Any
    ) -> None:
        """Remove the nodes that Tacker is about to rebuild, or refuse."""
        hook = self._hook("heal_start", context, vnf_instance, heal_vnf_request)
        with hook.cluster(wrong=UNCHANGED_SEND_FAIL) as cluster:
            if cluster and hook.sent.vnfcs:
                heal = HealStart(cluster, servers=_healed_servers(hook))
                same = heal_update.step(cluster.site, hook.sent)
                level = group_sizes.scale_level_step(hook.instance, cluster)
                operation = Steps(same, level, *heal.steps(), left=heal.left)
                hook.run(operation, followed_by="heal_end")
            elif cluster:
                if hook.instance.names_no_vnfc():
                    raise errors.NoVnfcError
                listed = hook.instance.vnfcs.values()
                hook.run(WholeHealStart(cluster, listed=listed), followed_by="heal_end")

    def heal_end(
        self, context: Any, vnf_instance: Any, heal_vnf_request: Any = None, **_: Any
    ) -> None:
        """Install the cluster again, or join the rebuilt VMs."""
        hook = self._hook("heal_end", context, vnf_instance, heal_vnf_request)
        with hook.cluster(wrong=SEND_FAIL) as cluster:
            if cluster and hook.sent.vnfcs:
                hook.run(HealEnd(cluster, servers=_healed_servers(hook)))
            elif cluster:
                hook.run(WholeHealEnd(cluster), advice=V1_HEAL_OF_ALL)

    def change_external_connectivity_start(
        self,
        context: Any,
        vnf_instance: Any,
        change_ext_conn_request: Any = None,
        **_: Any,
    ) -> None:
        """Refuse a change that the cluster cannot follow, before a port changes."""
        name = "change_external_connectivity_start"
        hook = self._hook(name, context, vnf_instance, change_ext_conn_request)
        with hook.cluster(wrong=UNCHANGED_SEND_FAIL, advice=CHECK) as cluster:
            if cluster:
                checks = connectivity_start(cluster, hook.sent.attachments())
                sizes = group_sizes.group_size_step(hook.instance, cluster)
                hook.run(
                    Steps(*checks, sizes),
                    followed_by="change_external_connectivity_end",
                )

    def change_external_connectivity_end(
        self,
        context: Any,
        vnf_instance: Any,
        change_ext_conn_request: Any = None,
        **_: Any,
    ) -> None:
        """Adapt the cluster to the new addresses of its VMs."""
        name = "change_external_connectivity_end"
        hook = self._hook(name, context, vnf_instance, change_ext_conn_request)
        with hook.cluster(wrong=SEND_FAIL, advice=_CONNECTIVITY_END) as cluster:
            if cluster:
                points = hook.sent.attachments()
                hook.run(ConnectivityEnd(cluster, points=points))
                hook.instance.clear_error()

    def modify_information_start(
        self, context: Any, vnf_instance: Any, modify_vnf_request: Any = None, **_: Any
    ) -> None:
        """Refuse what cannot be done, before Tacker stores what the request wants."""
        hook = self._hook("modify_information_start", context, vnf_instance)
        if not _modifies_cluster(hook):
            return
        with hook.cluster(
            wrong=UNCHANGED_SEND_FAIL, advice=_MODIFY_START, retried=False
        ) as cluster:
            if cluster:
                checks = Modify(cluster, hook.patch).start_steps()
                hook.run(Steps(*checks), followed_by="modify_information_end")

    def modify_information_end(
        self, context: Any, vnf_instance: Any, modify_vnf_request: Any = None, **_: Any
    ) -> None:
        """Give the cluster what the metadata want."""
        hook = self._hook("modify_information_end", context, vnf_instance)
        if not _modifies_cluster(hook):
            return
        with hook.cluster(
            wrong=SEND_FAIL, advice=_MODIFY_END, retried=False
        ) as cluster:
            if cluster:
                hook.run(Modify(cluster, hook.patch))


def _unknown_names(site: Site, sent: V1Request) -> Sequence[str]:
    """Names that the stack will not have; without user data Tacker makes its own."""
    if not reader.path(sent.parameters):
        return ()
    return site.base_hot_findings(sent.flavour)


def _refuse_control_planes(request: ClusterRequest, sent: V1Request) -> None:
    """See that a scale request is for workers.

    For a scale-out, Tacker calls no hook before Heat has created the VMs.

    :raises UnsupportedOperation: it is for the control plane.
    """
    if sent.aspect == request.control_plane.aspect_id:
        raise errors.UnsupportedOperation(
            detail=f"The scaling aspect {sent.aspect} is that of the control "
            "plane (master_node.aspect_id), which cannot be scaled; the cluster was "
            "not touched."
        )


def _healed_servers(hook: V1Hook) -> dict[str, str]:
    """The VNFCs that a heal names: their ids by the ids of their servers."""
    wanted, vnfcs = set(hook.sent.vnfcs), hook.instance.vnfcs
    return {server: vnfc for vnfc, server in vnfcs.items() if vnfc in wanted}


def _modifies_cluster(hook: V1Hook) -> bool:
    """Read the request that modifies a VNF instance: whether it is for a cluster."""
    if not hook.instance.is_cluster:
        return False
    hook.patch = hook.instance.requested_metadata()
    return bool(concerned(FEATURES, hook.patch))


def _request_of_termination(hook: V1Hook, forced: bool) -> ClusterRequest | None:
    """The request; None if the stored parameters are wrong.

    These may be why nothing was created.

    :param forced: whether it is a rollback, or a termination whatever fails. References
        are then not resolved.
    :raises ParamError: the Ansible server's directory, which holds logins, could not be
        deleted.
    """
    try:
        return hook.request(
            wrong=_DIRECTORY_STAYS, server_only=True, resolve=not forced
        )
    except errors.ParamError:
        if not forced and hook.accepts_stored():
            raise
        return None


def _needs_barbican(request: ClusterRequest) -> bool:
    """Whether the Ansible server's login is in Barbican."""
    return any(
        use.reference.kind == SECRET_REF and use.location[0] in SERVER_STRUCTURES
        for use in request.references
    )


def _server_login_if_any(hook: V1Hook) -> ClusterRequest | None:
    """The request with the Ansible server's login, or None without it.

    It was refused before anything was created, or an older release accepted it; what
    does not depend on it must still be removed.
    """
    try:
        return hook.request(wrong=_DIRECTORY_STAYS, server_only=True)
    except errors.ParamError as error:
        LOG.warning(
            "VNF instance %s: a cluster directory, if there is any, stays on the "
            "Ansible server, since its place or the login is not known: %s",
            hook.vnf_id,
            "; ".join(error.problems),
        )
        return None


def terminate_advice(request: ClusterRequest | None, is_rollback: bool) -> Advice:
    """What to send when ``terminate_end`` has failed: `fail` would leave the rest.

    :param is_rollback: of an instantiation.
    """
    verb = ROLLBACK if is_rollback else RETRY
    directory = (
        f" and the directory {request.ansible.directory} on {request.ansible.host}"
        if request
        else ""
    )
    text = (
        f"`{verb.value}` continues from here. Do not send `fail`: Tacker would not "
        f"call the driver again, and the VIM{directory} would stay."
    )
    return Advice((verb,), text, refused=Advice((verb,), text))


_LIMIT = 600.0  # seconds for Heat to delete it
_FAILED = "DELETE_FAILED"


def delete_stale_stack(instance: V1Instance, site: Site) -> Step:
    """Delete the stack with the name of this VNF instance, which has none yet.

    :param site: on its Ansible server, a playbook may still run for the stack's VMs.
    """
    name = f"vnflcm_{instance.vnf_id}"

    def ask(question: Any) -> Any:
        try:
            return question(stack.heat_of(instance))
        except Exception as error:
            # The client, its session and the renewal of tokens raise many kinds.
            raise errors.RemoteError(
                detail=f"Heat could not be asked for the stack {name}: "
                f"{error or type(error).__name__}.",
                hint="Check that Heat answers with the VIM's credentials.",
            ) from error

    def former() -> Any:
        return ask(lambda client: client.find_stack(name=name))

    def delete() -> None:
        if site.workdir.owner() == instance.vnf_id:
            # The operation that holds the lock still works on these VMs.
            site.lock()
            site.playbooks.stop()
        left = former()
        if left is None:
            return
        ask(lambda client: client.delete(left.id))
        waiting = Backoff(_LIMIT)
        while (left := former()) is not None:
            if left.stack_status == _FAILED or waiting.spent():
                raise errors.RemoteError(
                    detail=f"Heat did not delete the stack {name}, which an "
                    f"earlier instantiation left: it is {left.stack_status}.",
                    hint="Look why with `openstack stack failures list --long`, and "
                    "delete it with `openstack stack delete`.",
                )
            waiting.pause()

    return Step(
        "delete-abandoned-stack",
        "delete the stack of an abandoned instantiation",
        delete,
        probe=lambda: former() is None,
    )
