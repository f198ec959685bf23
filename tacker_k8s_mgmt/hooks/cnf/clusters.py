# SPDX-License-Identifier: Apache-2.0
"""The cluster that a CNF runs on: found by the CNF's VIM, and worked on.

The login of the cluster and of its load balancer comes from where the cluster's own
hooks have it, so the CNF's owner needs none. What allows an exposure is that Tacker
runs the CNF on that cluster: the endpoint of the CNF's VIM has to be the cluster's,
also where the request names the cluster.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tacker import context as tacker_context

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import entry, lookup
from tacker_k8s_mgmt.hooks.v1 import database, vim
from tacker_k8s_mgmt.hooks.v1.context import V1Hook
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.model.nodes import same_server


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


def at(endpoint: str, named: str | None = None) -> str:
    """The id of the cluster's VNF instance.

    :param endpoint: URL of the API that is the CNF's VIM.
    :param named: the id in the CNF's request; None if it names none.
    :raises NoCluster: there is none, or it is not the one that is named.
    :raises TackerError: there are several.
    """
    registered = tuple(_registered())
    found = sorted({vnf_id for vnf_id, url in registered if same_server(url, endpoint)})
    if named in found:
        return str(named)
    if named:
        other = f": it is that of VNF instance {found[0]}" if found else ""
        but = f" as VNF instance {named}{other}"
        lives = any(vnf_id == named for vnf_id, _ in registered)
        raise NoCluster(endpoint=endpoint, but=but, lives=lives)
    if not found:
        raise NoCluster(endpoint=endpoint, but="", lives=False)
    if len(found) > 1:
        raise errors.TackerError(
            detail=f"{endpoint}, the VIM of the CNF, is the API of several clusters: "
            f"{', '.join(found)}.",
            hint="Name one of them as cluster_vnf_instance_id.",
        )
    return found[0]


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


def _registered() -> Iterator[tuple[str, str]]:
    context = tacker_context.get_admin_context()
    for read in (vim.registered, v2_lookup.registered):
        # The answer is complete before the session is closed.
        yield from database.ask(context, partial(_all, read))


def _all(read: Callable[[Any], Iterator[tuple[str, str]]], context: Any) -> Any:
    return list(read(context))
