# SPDX-License-Identifier: Apache-2.0
"""Runs of kubespray's playbooks."""

from collections.abc import Iterable

from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest


def run(state: ClusterState, request: PlaybookRequest, nodes: int) -> None:
    """Run a playbook to its end, or wait for the end of the same run.

    :param nodes: how many nodes it works on, which sets its time limit.
    The nodes whose container engine it configures first get what they need to pull
    from the private registries.

    :raises PlaybookError: it failed or exceeded its time limit.
    :raises RemoteError: naming the nodes that could not be prepared.
    """
    state.site.trust_registries(runs.configured(request, state.nodes))
    state.site.playbooks.run(request, nodes, state.deps.on_progress)


def gather_facts(state: ClusterState, without: Iterable[str] = ()) -> None:
    """Gather the facts of all hosts, which kubespray then reads from its cache.

    :param without: names of the nodes that accept no SSH login.
    """
    run(state, runs.facts(without, state.inputs), len(state.nodes))
