"""Termination and rollback of an instantiation: what we made is taken away again.

Both work on a whole cluster, a half-made one and one whose VMs are gone, because in
``terminate_end`` Tacker has deleted the stack already (and calls it with no request at
all when an instantiation is rolled back).
"""

import logging

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_PATIENCE = 60.0  # seconds for an operation that ends because its VMs are gone


class TerminateStart:
    """What is checked while everything still stands."""

    def __init__(self, vims: ports.Vims) -> None:
        self._vims = vims

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        return (Step("check that no VNF uses the cluster's VIM", self._check_unused),)

    def _check_unused(self) -> None:
        if self._vims.in_use():
            raise errors.VimError(
                detail="The cluster is still used as a VIM by another VNF.",
                hint="Terminate and delete the VNFs that run on it; nothing was "
                "changed.",
            )


class TerminateEnd:
    """What is taken away when the VMs are gone.

    :param site: None when the parameters never were good enough for a directory to
        be made.
    """

    def __init__(self, vnf_id: str, vims: ports.Vims, site: ports.Site | None) -> None:
        self._vnf_id = vnf_id
        self._vims = vims
        self._site = site

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        vim = Step("remove the cluster's VIM", self._vims.remove)
        site = self._site
        if site is None:
            return (vim,)
        directory = "remove the inventory directory"
        return (vim, Step(directory, lambda: self._remove_directory(site)))

    def _remove_directory(self, site: ports.Site) -> None:
        """Best effort: the VMs are gone, so a failure here must not keep the VNF."""
        try:
            self._remove_own(site)
        except (errors.K8sMgmtError, OSError, ValueError) as exc:
            # Unreachable, not as we left it, or no place for the server's host key.
            LOG.warning(
                "The inventory directory could not be removed and stays behind; "
                "delete it by hand: %s",
                exc,
            )

    def _remove_own(self, site: ports.Site) -> None:
        workdir = site.workdir
        owner = workdir.owner()
        if owner != self._vnf_id:
            LOG.info("%s belongs to %s and is left alone", workdir.path, owner)
            return
        try:
            site.lock(_PATIENCE)
        except (errors.LockedError, errors.RemoteError) as error:
            LOG.warning(
                "%s is removed without the cluster's lock, for its VMs are gone: %s",
                workdir.path,
                error,
            )
        site.playbooks.stop()
        site.workdir.remove()
