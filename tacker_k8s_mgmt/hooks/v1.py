"""Tacker's v1 API: the driver class behind the frozen shim, hook by hook.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it keeps no state.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from oslo_config import cfg
from oslo_log import log
from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.cluster import params as cluster_params
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.cluster.redact import Redactor
from tacker_k8s_mgmt.cluster.runs import Progress
from tacker_k8s_mgmt.hooks import checkpoint, vim
from tacker_k8s_mgmt.hooks.site import V1Site
from tacker_k8s_mgmt.lifecycle import check
from tacker_k8s_mgmt.lifecycle.heal import HealEnd, HealStart
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.operation import Operation
from tacker_k8s_mgmt.lifecycle.scale_in import ScaleIn
from tacker_k8s_mgmt.lifecycle.scale_out import ScaleOut
from tacker_k8s_mgmt.lifecycle.step import Runner, Step, SystemClock
from tacker_k8s_mgmt.lifecycle.terminate import TerminateEnd, TerminateStart

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

Work = TypeVar("Work", bound=Operation)

TYPE = "mgmt-drivers-kubespray"


class Hook:
    """One call of a hook: what it is about, and how its steps are run."""

    def __init__(self, name: str, context: Any, vnf_instance: Any) -> None:
        config.register(cfg.CONF)
        self.context = context
        self.instance = vnf_instance
        self.options = cfg.CONF[config.GROUP]
        self.clock = SystemClock()
        self._state_path = config.state_path(cfg.CONF)
        self._name = name
        self._play = 0
        self._journal = journal.Journal(
            self._state_path,
            vnf_instance.id,
            name,
            LOG.warning,
            keep=self.options.journal_keep,
        )

    def site(self, params: InstallParams) -> V1Site:
        """What an operation on this VNF instance may touch."""
        return V1Site(
            self.context,
            self.instance,
            params,
            self.options,
            self._state_path,
            self._name,
        )

    def run(
        self,
        steps: Sequence[Step],
        secrets: Sequence[str] = (),
        on_failure: Callable[[], str] = lambda: "",
    ) -> None:
        """Take *steps*; *secrets* are kept out of every error text."""
        redact = Redactor(secrets)
        runner = Runner(self._name, self._journal, self.clock, redact, on_failure)
        runner.run(steps)

    def operation(
        self,
        kind: Callable[..., Work],
        params: InstallParams,
        site: V1Site,
        **arguments: Any,
    ) -> Work:
        """An operation on the cluster's nodes, with the limits of the options."""
        return kind(
            params,
            self.instance.id,
            site,
            self.clock,
            ready_timeout=self.options.ready_timeout,
            poll_interval=self.options.poll_interval,
            on_progress=self.progress,
            **arguments,
        )

    def progress(self, progress: Progress) -> None:
        """Tell how far a playbook is: the log each play, the journal each change."""
        if progress.play_number != self._play:
            self._play = progress.play_number
            LOG.info("%s: %s", self._name, progress.where())
        self._journal.record(
            "progress",
            text=progress.where(),
            play=progress.play_number,
            plays=progress.plays,
            play_name=progress.play,
            task=progress.task,
            tasks=progress.tasks,
            results=progress.results,
        )


def _stored(vnf_instance: Any) -> Any:
    """The additionalParams of the instantiation, as Tacker keeps them."""
    info = vnf_instance.instantiated_vnf_info
    return info.additional_params if info is not None else None


def _parse(vnf_instance: Any, request: Any) -> InstallParams | None:
    """The parameters of an instantiation's request or, without one, as stored."""
    given = getattr(request, "additional_params", None)
    return _warned(vnf_instance, cluster_params.parse(given or _stored(vnf_instance)))


def _merged(vnf_instance: Any, request: Any) -> InstallParams | None:
    """The stored parameters with what a later request gives in their place."""
    given = getattr(request, "additional_params", None)
    params = cluster_params.merged(_stored(vnf_instance), given)
    return _warned(vnf_instance, params)


def _warned(vnf_instance: Any, params: InstallParams | None) -> InstallParams | None:
    for warning in params.warnings if params else ():
        LOG.warning("VNF instance %s: %s", vnf_instance.id, warning)
    return params


def _is_cluster(vnf_instance: Any) -> bool:
    """Whether the VNF instance was instantiated with our parameters, good or bad."""
    try:
        return _parse(vnf_instance, None) is not None
    except errors.ParamError:
        return True


def _servers(vnf_instance: Any, request: Any) -> dict[str, str]:
    """The VNFCs that a heal request names: their ids by the ids of their servers.

    Tacker's v1 API takes the ids of ``vnfcResourceInfo`` (not of ``vnfcInfo``).
    """
    wanted = set(request.vnfc_instance_id or ())
    return {
        vnfc.compute_resource.resource_id: vnfc.id
        for vnfc in vnf_instance.instantiated_vnf_info.vnfc_resource_info
        if vnfc.id in wanted
    }


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
        params = _parse(vnf_instance, instantiate_vnf_request)
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = Hook("instantiate_start", context, vnf_instance)
        with hook.site(params) as site:
            steps = (check.Preflight(params, vnf_instance.id, site).step(),)
            hook.run(steps, params.secrets())
        checkpoint.save(context, vnf_instance, checkpoint.STACK)

    def instantiate_end(
        self,
        context: Any,
        vnf_instance: Any,
        instantiate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Make a Kubernetes cluster of the VMs."""
        try:
            params = _parse(vnf_instance, instantiate_vnf_request)
        except errors.ParamError as exc:
            # The package does not name instantiate_start, which would have told.
            exc.hint = (
                "Send `rollback`, which deletes the VMs, then a corrected request."
            )
            raise
        if params is None:
            return
        checkpoint.save(context, vnf_instance, checkpoint.END, kwargs.get("vnf"))
        hook = Hook("instantiate_end", context, vnf_instance)
        with hook.site(params) as site:
            work = hook.operation(Instantiate, params, site)
            hook.run(work.steps(), params.secrets(), work.left)

    def terminate_start(
        self,
        context: Any,
        vnf_instance: Any,
        terminate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse while other VNFs run on the cluster."""
        if not _is_cluster(vnf_instance):
            return
        checkpoint.save(context, vnf_instance, checkpoint.START)
        hook = Hook("terminate_start", context, vnf_instance)
        hook.run(TerminateStart(vim.VimRegistry(context, vnf_instance)).steps())

    def terminate_end(
        self,
        context: Any,
        vnf_instance: Any,
        terminate_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Take away what we made; also the rollback of an instantiation."""
        if not _is_cluster(vnf_instance):
            return
        checkpoint.save(context, vnf_instance, checkpoint.END)
        hook = Hook("terminate_end", context, vnf_instance)
        vims = vim.VimRegistry(context, vnf_instance)
        try:
            params = _parse(vnf_instance, None)
        except errors.ParamError as exc:
            # They were refused before anything was made, or an older release took
            # them; what does not depend on them must still go.
            LOG.warning(
                "VNF instance %s: an inventory directory, if there is any, stays on "
                "the Ansible server, since its place is not known: %s",
                vnf_instance.id,
                exc,
            )
            params = None
        if params is None:
            hook.run(TerminateEnd(vnf_instance.id, vims, None).steps())
            return
        with hook.site(params) as site:
            work = TerminateEnd(vnf_instance.id, vims, site)
            hook.run(work.steps(), params.secrets())

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
        params = _merged(vnf_instance, scale_vnf_request)
        if params is None:
            return
        hook = Hook("scale_start", context, vnf_instance)
        with hook.site(params) as site:
            work = hook.operation(ScaleIn, params, site, stacks=scale_out_id_list)
            hook.run(work.steps(), params.secrets(), work.left)

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
        params = _merged(vnf_instance, scale_vnf_request)
        if params is None:
            return
        hook = Hook("scale_end", context, vnf_instance)
        with hook.site(params) as site:
            work = hook.operation(ScaleOut, params, site, stacks=scale_out_id_list)
            hook.run(work.steps(), params.secrets(), work.left)

    def heal_start(
        self,
        context: Any,
        vnf_instance: Any,
        heal_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Take out of the cluster what is about to be built anew, or refuse."""
        params = _merged(vnf_instance, heal_vnf_request)
        if params is None:
            return
        hook = Hook("heal_start", context, vnf_instance)
        with hook.site(params) as site:
            if not heal_vnf_request.vnfc_instance_id:
                steps = (
                    check.Preflight(params, vnf_instance.id, site).step(),
                    *TerminateStart(site.vims).steps(),
                    *TerminateEnd(vnf_instance.id, site.vims, site).steps(),
                )
                hook.run(steps, params.secrets())
                return
            servers = _servers(vnf_instance, heal_vnf_request)
            work = hook.operation(HealStart, params, site, servers=servers)
            hook.run(work.steps(), params.secrets(), work.left)

    def heal_end(
        self,
        context: Any,
        vnf_instance: Any,
        heal_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Make a cluster, or members of it, of the VMs that were built anew."""
        params = _merged(vnf_instance, heal_vnf_request)
        if params is None:
            return
        hook = Hook("heal_end", context, vnf_instance)
        with hook.site(params) as site:
            work: Instantiate | HealEnd
            if heal_vnf_request.vnfc_instance_id:
                servers = _servers(vnf_instance, heal_vnf_request)
                work = hook.operation(HealEnd, params, site, servers=servers)
            else:
                work = hook.operation(Instantiate, params, site)
            hook.run(work.steps(), params.secrets(), work.left)

    def change_external_connectivity_start(
        self,
        context: Any,
        vnf_instance: Any,
        change_ext_conn_request: Any,
        **kwargs: Any,
    ) -> None:
        """Nothing to do before the ports change."""

    def change_external_connectivity_end(
        self,
        context: Any,
        vnf_instance: Any,
        change_ext_conn_request: Any,
        **kwargs: Any,
    ) -> None:
        """Nothing to do after the ports have changed."""

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
