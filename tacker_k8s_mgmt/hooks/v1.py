"""Tacker's v1 API: the driver class behind the frozen shim, hook by hook.

What Tacker passes to each hook and when: ``tacker/vnflcm/vnflcm_driver.py``. One
driver object serves all threads of a conductor, so it keeps no state.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log
from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.cluster import params as cluster_params
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.cluster.redact import Redactor
from tacker_k8s_mgmt.cluster.runs import Progress
from tacker_k8s_mgmt.hooks import vim
from tacker_k8s_mgmt.hooks.site import V1Site
from tacker_k8s_mgmt.lifecycle import check
from tacker_k8s_mgmt.lifecycle.instantiate import Instantiate
from tacker_k8s_mgmt.lifecycle.step import Runner, Step, SystemClock
from tacker_k8s_mgmt.lifecycle.terminate import TerminateEnd, TerminateStart

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

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
            self._state_path, vnf_instance.id, name, LOG.warning
        )

    def site(self, params: InstallParams) -> V1Site:
        """What an operation on this VNF instance may touch."""
        return V1Site(
            self.context, self.instance, params, self.options, self._state_path
        )

    def run(
        self,
        steps: Sequence[Step],
        secrets: Sequence[str] = (),
        left: Callable[[], str] = lambda: "",
    ) -> None:
        """Take *steps*; *secrets* are kept out of every error text."""
        runner = Runner(self._name, self._journal, self.clock, Redactor(secrets), left)
        runner.run(steps)

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
            tasks=progress.tasks,
            results=progress.results,
        )


def _parse(vnf_instance: Any, request: Any) -> InstallParams | None:
    """The parameters of the request or, where it has none, of the instantiation."""
    given = getattr(request, "additional_params", None)
    if not given and vnf_instance.instantiated_vnf_info is not None:
        given = vnf_instance.instantiated_vnf_info.additional_params
    params = cluster_params.parse(given)
    for warning in params.warnings if params else ():
        LOG.warning("VNF instance %s: %s", vnf_instance.id, warning)
    return params


def _is_cluster(vnf_instance: Any) -> bool:
    """Whether the VNF instance was instantiated with our parameters, good or bad."""
    try:
        return _parse(vnf_instance, None) is not None
    except errors.ParamError:
        return True


def _refuse(vnf_instance: Any, what: str, hint: str) -> None:
    """Refuse what this release cannot do with a cluster; other VNFs are not ours."""
    if _is_cluster(vnf_instance):
        raise errors.UnsupportedOperation(
            detail=f"This release of the driver cannot {what}", hint=hint
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
        params = _parse(vnf_instance, instantiate_vnf_request)
        if params is None:
            return
        hook = Hook("instantiate_start", context, vnf_instance)
        with hook.site(params) as site:
            steps = (check.Preflight(params, vnf_instance.id, site).step(),)
            hook.run(steps, params.secrets())

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
        hook = Hook("instantiate_end", context, vnf_instance)
        with hook.site(params) as site:
            work = Instantiate(
                params,
                vnf_instance.id,
                site,
                hook.clock,
                ready_timeout=hook.options.ready_timeout,
                poll_interval=hook.options.poll_interval,
                on_progress=hook.progress,
            )
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
        **kwargs: Any,
    ) -> None:
        """Refuse a scale-in before a VM goes; Tacker calls it for nothing else."""
        _refuse(
            vnf_instance,
            "take workers out of a cluster; no VM was deleted.",
            "Send `fail` for this operation.",
        )

    def scale_end(
        self,
        context: Any,
        vnf_instance: Any,
        scale_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse a scale-out; Tacker has no hook before the new VMs are made."""
        _refuse(
            vnf_instance,
            "join workers to a cluster; Tacker has made the new VMs, and they are not "
            "in the cluster.",
            "Send `rollback` for this operation: it deletes them. `retry` would leave "
            "them, for Tacker then ends the operation without a hook.",
        )

    def heal_start(
        self,
        context: Any,
        vnf_instance: Any,
        heal_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse a heal before a VM is touched."""
        _refuse(
            vnf_instance,
            "heal a cluster; no VM was touched.",
            "Send `fail` for this operation.",
        )

    def heal_end(
        self,
        context: Any,
        vnf_instance: Any,
        heal_vnf_request: Any,
        **kwargs: Any,
    ) -> None:
        """Refuse, for a package that names this hook and not ``heal_start``."""
        _refuse(
            vnf_instance,
            "heal a cluster; Tacker has rebuilt the VMs, and they are not in the "
            "cluster.",
            "Send `fail` for this operation, then terminate and instantiate the VNF.",
        )

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
