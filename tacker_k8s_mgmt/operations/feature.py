# SPDX-License-Identifier: Apache-2.0
"""What operations know of features: where in their steps a feature may have work.

A feature is something optional that a cluster has beside Kubernetes, such as tenants.
Operations name none. They get those of :mod:`tacker_k8s_mgmt.features.table` with what
else they work with, and call the :class:`Work` of each in that order.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.status.facts import Contribution

if TYPE_CHECKING:
    from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
    from tacker_k8s_mgmt.operations.state import (
        ClusterState,
        NodeObjects,
        OperationContext,
    )
    from tacker_k8s_mgmt.request.reader import ClusterRequest


class Work:
    """What one feature does in one operation; by default nothing.

    :param state: the cluster as the operation knows it.
    """

    def __init__(self, state: "ClusterState") -> None:
        self._state = state

    # Every operation

    def check_metadata(self) -> None:
        """Refuse an operation on an existing cluster, before it begins.

        :raises ProblemList: entries of the metadata are wrong.
        """

    def compared(self, seen: "NodeObjects") -> None:
        """Note what matters of the cluster, once the operation knows its nodes.

        :param seen: the Node objects.
        """

    def in_service(self, node: Node) -> bool:
        """Whether the load balancer may have a route to a node."""
        return True

    # New nodes, and a new cluster

    def joined(
        self,
        new: Callable[[], Sequence[Node]],
        what: str,
        without: Callable[[], Collection[str]],
    ) -> Sequence[Step]:
        """Steps after new nodes are Ready, before they get routes.

        :param new: returns the new nodes, when a step is taken.
        :param what: the new nodes, for the steps' names.
        :param without: returns the names of the nodes that cannot be used.
        """
        return ()

    def built(self) -> Sequence[Step]:
        """Steps after a new cluster is registered as a VIM."""
        return ()

    # Records and load balancer

    def restore_records(self) -> None:
        """Rebuild damaged records of the feature, at the beginning of an operation.

        :raises DamagedFile: the content of one cannot be had from elsewhere.
        """

    def balancer_leaves(self) -> None:
        """Record what the load balancer has, whose VM is about to be rebuilt.

        :raises K8sMgmtError: it does not say so.
        """

    def balancer_installed(self) -> None:
        """Give a new load balancer what the former one had."""

    def balancer_replaced(self, unless: Callable[[], bool] | None) -> Sequence[Step]:
        """Steps once the nodes are Ready behind a load balancer that may be new.

        :param unless: tells whether it is not; None: it may be at another address.
        """
        return ()

    # Termination

    def termination_checks(self) -> Sequence[Step]:
        """Steps that refuse a termination which nothing forces, and change nothing."""
        return ()

    def terminating(self) -> Sequence[Step]:
        """Steps while the cluster is still there, when all features' checks passed.

        The v1 API leaves them out of a termination that is forced. The logins of the
        VMs are there only if :meth:`.Feature.terminates_on_nodes` asks for them.
        """
        return ()

    # Change of external connectivity

    def follow_api(self) -> None:
        """Bring to the API's present address what has a former one."""

    def follows_api(self) -> bool:
        """Whether there is nothing for :meth:`follow_api` to do."""
        return True

    # Modification of the VNF instance's metadata

    def inspect(self, seen: "NodeObjects") -> None:
        """Compare what is wanted with the cluster, and change nothing.

        :param seen: the Node objects.
        """

    def problems(self) -> Iterable[str]:
        """Why it cannot be done; each problem names the entry of the metadata."""
        return ()

    def changes(self) -> Sequence[Step]:
        """The steps in the order of work, for what :meth:`inspect` has found."""
        return ()

    def left(self) -> str:
        """What stays behind when a step of a modification fails."""
        return ""


class Feature:
    """One feature; the operations make its :class:`Work`."""

    #: Names of files in the cluster's directory that stay in a heal of the whole VNF.
    kept_files: tuple[str, ...] = ()

    def owns(self, entry: str) -> bool:
        """Whether an entry of the VNF instance's metadata is for this feature."""
        return False

    def precondition_problems(self, deps: "OperationContext") -> Iterable[str]:
        """What is wrong before a cluster is made, as sentences."""
        return ()

    def terminates_on_nodes(self, params: "ClusterRequest") -> bool:
        """Whether :meth:`.Work.terminating` needs the logins of the VMs."""
        return False

    def report(self, survey: "ClusterInspection") -> Contribution:
        """Its part of ``cluster check``; reads what it needs through the survey."""
        return Contribution()

    def work(self, state: "ClusterState") -> Work:
        """Its work in one operation."""
        return Work(state)
