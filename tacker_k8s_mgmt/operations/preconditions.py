# SPDX-License-Identifier: Apache-2.0
"""Preconditions, checked before an operation changes anything.

``instantiate_start`` checks them before a VM exists. ``instantiate_end`` checks them
again, because a package need not name the ``_start`` hook and things may have changed.

The clocks of the VMs are compared with that of this host. Certificates and tokens are
valid from a moment on, and etcd's and Kubernetes' leases are of seconds; a node whose
clock is far ahead or behind fails in ways that do not name the clock.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import clock_skew
from tacker_k8s_mgmt.model.nodes import ROLES, Machine, Node, of_role
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Step
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.reader import ClusterRequest


def step(
    deps: OperationContext,
    others: Callable[[], Iterable[str]] = tuple,
    meanwhile: Callable[[], None] = lambda: None,
) -> Step:
    """The checks as the step of an operation.

    :param others: findings of other checks.
    :param meanwhile: begins what later steps need.
    """

    def act() -> None:
        meanwhile()
        check(deps, *others())

    name = "check package, VIM name and Ansible server"
    return Step("preconditions", name, act, reads=True)


def check(deps: OperationContext, *others: str) -> None:
    """Check everything that an instantiation needs.

    :param others: findings of other checks.
    :raises PreflightError: with all findings.
    """
    findings = (
        *others,
        *deps.params.metadata_problems,
        *(text for one in deps.features for text in one.precondition_problems(deps)),
    )
    check_server(deps.site, *findings, *names_taken(deps))


def names_taken(deps: OperationContext) -> Iterator[str]:
    """A problem if the cluster's VIM cannot have its name."""
    return name_taken(deps, vim_name(deps.params, deps.vnf_id))


def name_taken(deps: OperationContext, name: str, tenant: str = "") -> Iterator[str]:
    """A problem if a VIM cannot have this name.

    :param tenant: whose VIM it is to be; "" for the cluster's own.
    """
    if deps.site.vims.name_taken(name, tenant):
        where = f"tenant {tenant}: vim_name" if tenant else "vim_name"
        yield (
            f"{where}: a VIM named {name!r} is registered already in this project; "
            "choose another name or delete that VIM"
        )


def check_server(site: Site, *findings: str) -> None:
    """Check the VNF package and the Ansible server.

    :param findings: of other checks.
    :raises PreflightError: with all findings.
    """
    findings = (*site.package_findings(), *findings, *site.server_findings())
    if findings:
        raise errors.PreflightError(findings)


def vim_name(params: ClusterRequest, vnf_id: str) -> str:
    """The name of the cluster's VIM: the request's, or one made of the VNF's id."""
    return params.vim_name or f"kubernetes_vim_{vnf_id}"


def see_enough(nodes: Sequence[Machine], params: ClusterRequest) -> None:
    """Check that the cluster has as many nodes of each role as it needs.

    :param nodes: those that it is to have.
    :raises UnsupportedOperation: it would have fewer.
    """
    for role in params.node_groups:
        spec, count = ROLES[role], len(of_role(nodes, role))
        if count < (spec.least or 0):
            raise errors.UnsupportedOperation(
                detail=f"The cluster needs {spec.least} VM(s) of the role {role.value} "
                f"({spec.parameter}) at least, and would have {count}.",
                hint="Let the VNFD and the request have so many.",
            )


LOG = logging.getLogger(__name__)

_FAR = 60.0  # seconds


def see(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Check the clocks of nodes, before a playbook runs.

    :param nodes: those that have been logged in to in this operation count.
    :raises ClusterError: naming those that are far ahead or behind.
    """
    ahead = state.site.clocks()
    seen = {n.name: ahead[n.server_id] for n in nodes if n.server_id in ahead}
    far = clock_skew.listed(seen, _FAR)
    if far:
        raise errors.ClusterError(
            detail=f"The clocks of these VMs differ from that of Tacker's conductor by "
            f"more than {_FAR:g} s: {far}. No playbook was run.",
            hint=clock_skew.HINT,
        )
    if late := clock_skew.listed(seen, clock_skew.NOTED):
        LOG.warning(
            "The clocks of these VMs differ from that of Tacker's conductor: %s. %s",
            late,
            clock_skew.HINT,
        )
