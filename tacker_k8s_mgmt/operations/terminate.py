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
from tacker_k8s_mgmt.operations import application_removal
from tacker_k8s_mgmt.operations.records import ClusterRecords
from tacker_k8s_mgmt.operations.state import ClusterState, Dependencies
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.site import Site

LOG = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds for an operation that ends because its VMs are gone


def terminate_start(vims: Vims) -> tuple[Step, ...]:
    """The steps of ``terminate_start``: checks while everything is still there."""

    def check_unused() -> None:
        if vims.in_use():
            raise errors.VimError(
                detail="The cluster is still used as a VIM by another VNF.",
                hint="Terminate and delete the VNFs that run on it; nothing was "
                "changed.",
            )

    return (Step("check that no VNF uses the cluster's VIM", check_unused),)


def refuse_exposed(vnf_id: str, server: Site, host: str) -> Step:
    """The step that refuses to terminate a cluster whose load balancer exposes CNFs.

    A record that cannot be read refuses nothing: it must not keep the VNF.

    :param host: the Ansible server, for error texts.
    """

    def check_unexposed() -> None:
        try:
            own = server.workdir.owner() == vnf_id
            recorded = ClusterRecords(server, host).exposures() if own else ()
        except (errors.K8sMgmtError, OSError, ValueError) as error:
            LOG.warning("Whether CNFs are exposed is not known: %s", error)
            return
        # An application goes with the cluster.
        exposures = [one for one in recorded or () if not one.is_of_application]
        if exposures:
            owners = {exposure.owner: exposure.title for exposure in exposures}
            listed = ", ".join(f"{owner} (port {owners[owner]})" for owner in owners)
            raise errors.ClusterError(
                detail=f"The load balancer exposes CNFs on the cluster: {listed}.",
                hint="Terminate these VNFs first, or terminate the cluster with "
                "terminationType FORCEFUL; nothing was changed.",
            )

    return Step("check that the load balancer exposes no CNF", check_unexposed)


def delete_volumes(deps: Dependencies) -> tuple[Step, ...]:
    """The step that deletes volumes of applications while their cluster is there.

    They may be outside of its VMs. Best effort: a failure must not keep the VNF.
    """
    if not deps.params.deletes_volumes:
        return ()

    def delete() -> None:
        try:
            state = ClusterState(deps)
            state.nodes = state.listed()
            application_removal.delete_volumes(state.applications())
        except (errors.K8sMgmtError, OSError, ValueError) as error:
            LOG.warning(
                "Volumes of applications may stay behind; delete them by hand: %s",
                error,
            )

    return (Step("delete the volumes of applications", delete),)


def terminate_end(
    vnf_id: str,
    vims: Vims,
    server: Site | None,
) -> tuple[Step, ...]:
    """The steps of ``terminate_end``, in the order of work.

    :param server: the Ansible server; None if the parameters were never good enough
        for a directory to be made.
    """
    remove_vim = Step("remove the cluster's VIM", vims.remove)
    if server is None:
        return (remove_vim,)
    directory = "remove the inventory directory"
    return (remove_vim, Step(directory, lambda: _remove_directory(vnf_id, server)))


def _remove_directory(vnf_id: str, server: Site) -> None:
    """Best effort: the VMs are gone, so a failure here must not keep the VNF."""
    try:
        remove_own(vnf_id, server)
    except (errors.K8sMgmtError, OSError, ValueError) as exc:
        # Unreachable, spoiled, or the server's host key cannot be stored.
        LOG.warning(
            "The inventory directory could not be removed and stays behind; delete it "
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
