# SPDX-License-Identifier: Apache-2.0
"""Termination, and rollback of an instantiation: what the driver made is removed.

Both handle a whole cluster, a half-made one and one whose VMs are gone: before
``terminate_end`` Tacker has deleted the stack, and for the rollback of an instantiation
it passes no request at all.
"""

from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.vim import Vims
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.site import Site

LOG = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds for an operation that ends because its VMs are gone


def terminate_start(vims: Vims) -> tuple[Step, ...]:
    """The steps of ``terminate_start``: checks while everything is still there."""

    def check_unused() -> None:
        if users := vims.users():
            raise errors.VimError(
                detail=f"The cluster is still used as a VIM by {', '.join(users)}.",
                hint="Terminate and delete the VNFs that run on it; nothing was "
                "changed.",
            )

    return (
        Step(
            "check-vim-unused",
            "check that no VNF uses the cluster's VIM",
            check_unused,
            reads=True,
        ),
    )


def terminate_end(vnf_id: str, vims: Vims, server: Site | None) -> tuple[Step, ...]:
    """The steps of ``terminate_end``, in the order of work.

    :param server: the Ansible server; None if the parameters were never good enough
        for a directory to be made.
    """
    remove_vim = Step("remove-vim", "remove the cluster's VIM", vims.remove)
    if server is None:
        return (remove_vim,)
    directory = "remove the cluster's directory"
    return (
        remove_vim,
        Step("remove-directory", directory, lambda: _remove_directory(vnf_id, server)),
    )


def _remove_directory(vnf_id: str, server: Site) -> None:
    """Best effort: the VMs are gone, so a failure here must not keep the VNF."""
    try:
        remove_own(vnf_id, server)
    except (errors.K8sMgmtError, OSError, ValueError) as exc:
        # Unreachable, damaged, or the server's host key cannot be stored.
        LOG.warning(
            "The cluster's directory could not be removed and stays behind; delete it "
            "by hand: %s",
            exc,
        )


def remove_own(vnf_id: str, server: Site, keep: Sequence[str] | None = None) -> None:
    """Stop what runs for the cluster, whose VMs are gone, and remove its directory.

    :param keep: names of the files that stay in a directory that is only emptied.
    """
    workdir = server.workdir
    owner = workdir.owner()
    if owner != vnf_id:
        LOG.info("%s belongs to %s and is left alone", workdir.path, owner)
        return
    try:
        server.lock(_PATIENCE)
    except (errors.LockedError, errors.RemoteError) as error:
        LOG.warning(
            "%s is removed without the cluster's lock, for its VMs are gone: %s",
            workdir.path,
            error,
        )
    server.playbooks.stop()
    if keep is None:
        server.workdir.remove()
    else:
        server.workdir.clear(keep)
