# SPDX-License-Identifier: Apache-2.0
"""The cluster that a CNF runs on: found by the CNF's VIM, and worked on.

The login of the cluster and of its load balancer comes from where the cluster's own
hooks have it, so the CNF's owner needs none. What allows an exposure is that Tacker
runs the CNF on that cluster: the endpoint of the CNF's VIM has to be the cluster's,
also where the request names the cluster, and the VIM's login has to be one that may
create the CNF's Services there. In the v1 API, where Tacker has verified a VIM and
knows its project, a VIM of the cluster's own project is enough.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from tacker import context as tacker_context

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import entry, lookup
from tacker_k8s_mgmt.hooks.v1 import database, vim
from tacker_k8s_mgmt.hooks.v1.context import V1Hook
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.model.cluster import ClusterIdentity
from tacker_k8s_mgmt.model.nodes import same_server
from tacker_k8s_mgmt.remote.kubernetes import api_login


class NoCluster(errors.TackerError):
    """No cluster of this driver has the API that is the CNF's VIM.

    The field ``lives`` says that the cluster that the request names has another API.
    """

    message = (
        "{endpoint}, the VIM of the CNF, is no cluster that this driver made{but}."
    )
    default_hint = (
        "Instantiate the CNF on the VIM that the cluster is registered as, or from a "
        "package without this driver."
    )


def at(
    endpoint: str,
    named: str | None = None,
    check: Callable[[str, bool], None] = lambda vnf_id, is_v1: None,
) -> str:
    """The id of the cluster's VNF instance.

    :param endpoint: URL of the API that is the CNF's VIM.
    :param named: the id in the CNF's request; None if it names none.
    :param check: see :func:`check_login`.
    :raises NoCluster: there is none, or it is not the one that is named.
    :raises TackerError: there are several.
    """
    registered = tuple(_registered())
    at_endpoint = sorted(
        {
            (vnf_id, is_v1)
            for vnf_id, url, is_v1 in registered
            if same_server(url, endpoint)
        }
    )
    known = _known(at_endpoint, endpoint)
    found = [vnf_id for vnf_id, _ in known]
    if named in found:
        check(str(named), dict(known)[str(named)])
        return str(named)
    if named:
        other = f": it is that of VNF instance {found[0]}" if found else ""
        but = f" as VNF instance {named}{other}"
        lives = any(vnf_id == named for vnf_id, *_ in registered)
        raise NoCluster(endpoint=endpoint, but=but, lives=lives)
    if not found:
        raise NoCluster(endpoint=endpoint, but="", lives=False)
    found = _accepting(known, check)
    if len(found) > 1:
        raise errors.TackerError(
            detail=f"{endpoint}, the VIM of the CNF, is the API of several clusters: "
            f"{', '.join(found)}.",
            hint="Name one of them as cluster_vnf_instance_id.",
        )
    return found[0]


def check_login(
    vnf_id: str,
    is_v1: bool,
    *,
    project: str,
    token: Callable[[], str],
    namespaces: Callable[[], Collection[str]],
) -> None:
    """Check that a CNF may use a cluster.

    :param vnf_id: the cluster's VNF instance; of the v1 API, if *is_v1*.
    :param project: of the CNF; "" in the v2 API, which does not know it.
    :param token: returns that of the CNF's VIM.
    :param namespaces: returns those of its Services.
    :raises LoginNotAccepted, OtherCluster, RemoteError: see :func:`.api_login.check`.
    """
    context = tacker_context.get_admin_context()
    if is_v1:
        owner = database.ask(context, partial(vim.project_of, vnf_id=vnf_id))
        if project and project == owner:
            return
    known = (vim if is_v1 else v2_lookup).identity(context, vnf_id)
    if known is None:
        raise api_login.OtherCluster(endpoint="of the CNF's VIM", vnf=vnf_id)
    api_login.check(vnf_id, known, token(), namespaces())


def _known(
    found: Sequence[tuple[str, bool]], endpoint: str
) -> Sequence[tuple[str, bool]]:
    """The clusters that the driver has made, of those that are said to be there.

    Users of the v2 API can write an entry such as the driver's. Beside a cluster that
    is recorded none counts, and otherwise one with a login of an administrator.
    """

    def is_at(known: ClusterIdentity | None) -> bool:
        return known is not None and same_server(known.endpoint, endpoint)

    known = [one for one in found if one[1] or is_at(v2_lookup.recorded(one[0]))]
    if known:
        return known
    context, failure = tacker_context.get_admin_context(), None
    for one in found:
        try:
            if is_at(v2_lookup.identity(context, one[0])):
                known.append(one)
        except errors.RemoteError as error:
            # It may be an entry that leads nowhere, beside the cluster's own.
            failure = failure or error
    if failure and not known:
        raise failure
    return known


def _accepting(
    known: Sequence[tuple[str, bool]], check: Callable[[str, bool], None]
) -> list[str]:
    """The clusters that accept the CNF's login.

    :raises LoginNotAccepted, OtherCluster, RemoteError: none does.
    """
    accepting, failure = [], None
    for vnf_id, is_v1 in known:
        try:
            check(vnf_id, is_v1)
            accepting.append(vnf_id)
        except (errors.TackerError, errors.VimError, errors.RemoteError) as error:
            failure = failure or error
    if failure and not accepting:
        raise failure
    return accepting


def work(
    cluster: str,
    name: str,
    operation: Callable[[Dependencies], entry.Operation],
    advice: Callable[[Exception], str],
    followed_by: str = "",
) -> None:
    """Run an operation on a cluster.

    :param cluster: id of its VNF instance.
    :param name: of the operation, for lock, journal and errors.
    :param advice: returns what to send to Tacker after an error.
    :param followed_by: the operation that comes next for the same request of Tacker's.
    """
    hook, params = lookup.record(cluster).command(name)
    if isinstance(hook, V1Hook):
        database.release(hook.context)
    with hook.site(params) as site:
        made = operation(hook.dependencies(params, site))
        hook.run(made.steps(), params.secrets(), advice, made.left, followed_by)


def _registered() -> Iterator[tuple[str, str, bool]]:
    """Id and URL of each cluster, and whether it is of the v1 API."""
    context = tacker_context.get_admin_context()
    for read, is_v1 in ((vim.registered, True), (v2_lookup.registered, False)):
        # The answer is complete before the session is closed.
        for vnf_id, url in database.ask(context, partial(_all, read)):
            yield vnf_id, url, is_v1


def _all(read: Callable[[Any], Iterator[tuple[str, str]]], context: Any) -> Any:
    return list(read(context))
