"""Tacker's v1 API: the driver class behind the frozen shim, hook by hook.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it keeps no state.
"""

from collections.abc import Sequence
from typing import Any

from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.v1 import (
    checkpoint,
    group_size,
    requests,
    rollback,
    scale_level,
    terminate,
    vim,
)
from tacker_k8s_mgmt.hooks.v1.context import V1Hook
from tacker_k8s_mgmt.hooks.v1.keystone import forget_vim, secrets_of
from tacker_k8s_mgmt.hooks.v1.stale_stack import LeftStack
from tacker_k8s_mgmt.lifecycle.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.lifecycle.connectivity_check import ConnectivityStart
from tacker_k8s_mgmt.lifecycle.heal import HealEnd, HealStart
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.terminate import TerminateEnd, TerminateStart

TYPE = "mgmt-drivers-kubespray"
_CONNECTIVITY_END = hints.Advice(
    "`retry` goes on from here; after `fail`, the same request sent again does."
)


class MgmtDriver(vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):  # type: ignore[misc]
    """All hooks of Tacker's v1 management-driver interface."""

    def get_type(self) -> str:
        """The name in ``[tacker] vnflcm_mgmt_driver`` and in the VNFD."""
        return TYPE

    def get_name(self) -> str:
        """The same as the type."""
        return TYPE

    def get_description(self) -> str:
        """One line about the driver."""
        return "Kubernetes cluster VNF with kubespray"

    def instantiate_start(
        self,
        context: Any,
        vnf_instance: Any,
        instantiate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse what cannot work before a VM exists."""
        params = requests.parse(
            vnf_instance,
            instantiate_vnf_request,
            hints.ROLLBACK,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = V1Hook("instantiate_start", context, vnf_instance)
        with hook.site(params) as site:
            steps = (
                preflight.Preflight(params, vnf_instance.id, site).step(),
                LeftStack(context, vnf_instance, site).step(),
            )
            hook.run(steps, params.secrets(), advice=hints.INSTANTIATE_START)
        checkpoint.save(context, vnf_instance, checkpoint.STACK)

    def instantiate_end(
        self,
        context: Any,
        vnf_instance: Any,
        instantiate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Make a Kubernetes cluster of the VMs."""
        # A package need not name instantiate_start, which would have told.
        params = requests.parse(
            vnf_instance,
            instantiate_vnf_request,
            hints.VMS_GO,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.END, kwargs.get("vnf"))
        hook = V1Hook("instantiate_end", context, vnf_instance)
        with hook.site(params) as site:
            work = Instantiate(hook.dependencies(params, site))
            advice = hints.INSTANTIATE_END
            hook.run(work.steps(), params.secrets(), work.left, advice=advice)

    def terminate_start(
        self,
        context: Any,
        vnf_instance: Any,
        terminate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse while other VNFs run on the cluster, or when it could not go whole."""
        if not requests.is_cluster(vnf_instance):
            return
        terminate.refuse_leftovers(context, vnf_instance, terminate_vnf_request)
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = V1Hook("terminate_start", context, vnf_instance)
        vims = vim.VimRegistry(context, vnf_instance)
        hook.run(TerminateStart(vims).steps(), advice=hints.MENDED)
        terminate.keep_vim(vnf_instance, terminate_vnf_request)

    def terminate_end(
        self,
        context: Any,
        vnf_instance: Any,
        terminate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Take away what we made; also the rollback of an instantiation."""
        if not requests.is_cluster(vnf_instance):
            return
        checkpoint.save(context, vnf_instance, checkpoint.END)
        hook = V1Hook("terminate_end", context, vnf_instance)
        vims = vim.VimRegistry(context, vnf_instance)
        params = terminate.servers_login(context, vnf_instance, terminate_vnf_request)
        advice = terminate.advice(params, terminate_vnf_request)
        if params is None:
            hook.run(TerminateEnd(vnf_instance.id, vims, None).steps(), advice=advice)
        else:
            with hook.site(params) as site:
                work = TerminateEnd(vnf_instance.id, vims, site)
                hook.run(work.steps(), params.secrets(), advice=advice)
        forget_vim(vnf_instance)

    def scale_start(
        self,
        context: Any,
        vnf_instance: Any,
        scale_vnf_request: Any,
        scale_out_id_list: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        """Take the workers out whose VMs Tacker is about to delete.

        Tacker calls it for scale-in only, with the ids of the group members' stacks
        (``VnfLcmDriver._scale_vnf_pre``).
        """
        params = requests.merged(
            vnf_instance,
            scale_vnf_request,
            hints.FAIL,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        requests.refuse_planes(params, scale_vnf_request, hints.FAIL_ALREADY)
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = V1Hook("scale_start", context, vnf_instance)
        with hook.site(params) as site:
            work = ScaleIn(hook.dependencies(params, site), stacks=scale_out_id_list)
            advice = hints.GOES_ON
            hook.run(work.steps(), params.secrets(), work.left, advice=advice)

    def scale_end(
        self,
        context: Any,
        vnf_instance: Any,
        scale_vnf_request: Any,
        scale_out_id_list: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        """Make workers of the VMs that Tacker has added.

        Tacker calls it for scale-out only, with the ids of the new members' stacks
        (``VnfLcmDriver._scale_vnf_post``).
        """
        secrets = secrets_of(context, vnf_instance)
        params = requests.merged(
            vnf_instance, scale_vnf_request, hints.VMS_GO, secrets, retried=False
        )
        if params is None:
            return
        requests.refuse_planes(params, scale_vnf_request, hints.PLANES_GO)
        checkpoint.save(context, vnf_instance, checkpoint.END)
        hook = V1Hook("scale_end", context, vnf_instance)
        with hook.site(params) as site:
            work = ScaleOut(hook.dependencies(params, site), stacks=scale_out_id_list)
            hook.run(
                work.steps(),
                params.secrets(),
                work.left,
                advice=lambda error: rollback.way_on(
                    context,
                    vnf_instance,
                    scale_vnf_request.aspect_id,
                    work.workers_before(),
                ),
            )
            scale_level.follow_scale_out(context, vnf_instance, site)

    def heal_start(
        self,
        context: Any,
        vnf_instance: Any,
        heal_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Take out of the cluster what is about to be built anew, or refuse."""
        params = requests.merged(
            vnf_instance,
            heal_vnf_request,
            hints.FAIL,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = V1Hook("heal_start", context, vnf_instance)
        with hook.site(params) as site:
            if not heal_vnf_request.vnfc_instance_id:
                steps = (
                    preflight.Preflight(params, vnf_instance.id, site).step(),
                    *TerminateStart(site.vims).steps(),
                    *TerminateEnd(vnf_instance.id, site.vims, site).steps(),
                )
                hook.run(steps, params.secrets(), advice=hints.GOES_ON)
                return
            servers = requests.servers(vnf_instance, heal_vnf_request)
            work = HealStart(hook.dependencies(params, site), servers=servers)
            steps = (scale_level.step(context, vnf_instance, site), *work.steps())
            hook.run(steps, params.secrets(), work.left, advice=hints.GOES_ON)

    def heal_end(
        self,
        context: Any,
        vnf_instance: Any,
        heal_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Make a cluster, or members of it, of the VMs that were built anew."""
        params = requests.merged(
            vnf_instance,
            heal_vnf_request,
            hints.FAIL_ALREADY,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.END)
        hook = V1Hook("heal_end", context, vnf_instance)
        with hook.site(params) as site:
            work: Instantiate | HealEnd
            if heal_vnf_request.vnfc_instance_id:
                servers = requests.servers(vnf_instance, heal_vnf_request)
                work = HealEnd(hook.dependencies(params, site), servers=servers)
                advice = hints.GOES_ON
            else:
                work = Instantiate(hook.dependencies(params, site))
                advice = hints.HEAL_OF_ALL_END
            hook.run(work.steps(), params.secrets(), work.left, advice=advice)

    def change_external_connectivity_start(
        self,
        context: Any,
        vnf_instance: Any,
        change_ext_conn_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse a change that the cluster cannot follow, before a port changes."""
        params = requests.merged(
            vnf_instance,
            change_ext_conn_request,
            hints.FAIL,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = V1Hook("change_external_connectivity_start", context, vnf_instance)
        with hook.site(params) as site:
            asked = requests.attachments(change_ext_conn_request)
            work = ConnectivityStart(params, vnf_instance.id, site, asked)
            keep = group_size.step(context, vnf_instance, site)
            steps = (*work.steps(), keep)
            hook.run(steps, params.secrets(), advice=hints.MENDED)

    def change_external_connectivity_end(
        self,
        context: Any,
        vnf_instance: Any,
        change_ext_conn_request: Any,
        **kwargs: Any,
    ) -> None:
        """Let the cluster follow to where its VMs are reached now."""
        params = requests.merged(
            vnf_instance,
            change_ext_conn_request,
            hints.FAIL_ALREADY,
            secrets_of(context, vnf_instance),
        )
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.END)
        hook = V1Hook("change_external_connectivity_end", context, vnf_instance)
        with hook.site(params) as site:
            asked = requests.attachments(change_ext_conn_request)
            work = ConnectivityEnd(hook.dependencies(params, site), asked=asked)
            hook.run(work.steps(), params.secrets(), advice=_CONNECTIVITY_END)
        checkpoint.clear(vnf_instance)

    def modify_information_start(
        self,
        context: Any,
        vnf_instance: Any,
        modify_vnf_request: Any = None,
        **kwargs: Any,
    ) -> None:
        """Nothing to do before the VNF instance's information changes."""

    def modify_information_end(
        self,
        context: Any,
        vnf_instance: Any,
        modify_vnf_request: Any = None,
        **kwargs: Any,
    ) -> None:
        """Nothing to do after the VNF instance's information has changed."""
