# SPDX-License-Identifier: Apache-2.0
"""Drains of nodes: whether pods have somewhere to go, and the outcome.

The policy is in :mod:`tacker_k8s_mgmt.request.drain_policy`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.model.cluster import NodeObject
from tacker_k8s_mgmt.model.pods import Budget, Pod, holders

_SHOWN = 8  # pods and budgets in an error text; others are counted


def nowhere_to_go(
    pods: Iterable[Pod], leaving: Collection[str], nodes: Collection[NodeObject]
) -> bool:
    """Whether no node other than the leaving ones accepts any of the pods.

    Then a drain that waits for them to run elsewhere cannot succeed.
    """
    others = [node for node in nodes if node.name not in leaving]
    return not any(pod.placement.fits(node) for pod in pods for node in others)


@dataclass(frozen=True)
class Outcome:
    """The outcome of the drain of one node.

    :param seconds: its duration.
    :param left: pods that should have left the node and have not.
    :param budgets: the cluster's budgets after a failed drain.
    :param error: kubectl's error; "" if there was none.
    :param gone: pods that have left the node.
    """

    node: str
    seconds: float
    left: tuple[Pod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    error: str = ""
    gone: tuple[Pod, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the node is empty."""
        return not self.left and not self.error

    def held(self) -> tuple[tuple[Pod, tuple[Budget, ...]], ...]:
        """The pods that may not be evicted, each with the budgets that forbid it."""
        pairs = ((pod, holders(pod, self.budgets)) for pod in self.left)
        return tuple((pod, budgets) for pod, budgets in pairs if budgets)


def report(outcome: Outcome) -> str:
    """The outcome in one line."""
    if outcome.ok:
        drained = f"{outcome.node} was drained in {outcome.seconds:.0f} s"
        return "; ".join([drained, *_departed(outcome)])
    parts = []
    if outcome.left:
        parts.append(f"still there: {_listed([_shown(pod) for pod in outcome.left])}")
    parts += _blocks(outcome)
    if outcome.error and not _explained(outcome):
        parts.append(f"kubectl: {outcome.error}")
    parts += _departed(outcome)
    waited = f"{outcome.node} was not drained after {outcome.seconds:.0f} s"
    return f"{waited}: {'; '.join(parts)}"


def _departed(outcome: Outcome) -> list[str]:
    """The pods that have left; those without a controller, which are lost, first."""
    bare = [str(pod) for pod in outcome.gone if not pod.controller]
    others = [str(pod) for pod in outcome.gone if pod.controller]
    parts = []
    if bare:
        parts.append(f"deleted for good, as no controller made them: {_listed(bare)}")
    if others:
        parts.append(f"evicted: {_listed(others)}")
    return parts


def _blocks(outcome: Outcome) -> list[str]:
    """A sentence for each budget that forbids evictions."""
    held = outcome.held()
    blocking = list(dict.fromkeys(budget for _, budgets in held for budget in budgets))
    sentences = []
    for budget in blocking[:_SHOWN]:
        kept = [str(pod) for pod, budgets in held if budget in budgets]
        sentences.append(f"PodDisruptionBudget {budget} keeps {_listed(kept)}")
    if len(blocking) > _SHOWN:
        sentences.append(f"{len(blocking) - _SHOWN} more budgets keep others")
    return sentences


def _explained(outcome: Outcome) -> bool:
    """Whether it is known for each pod why it is left, without kubectl's error."""
    held = {pod for pod, _ in outcome.held()}
    return bool(outcome.left) and all(
        pod in held or pod.terminating for pod in outcome.left
    )


def _shown(pod: Pod) -> str:
    return f"{pod} (being deleted)" if pod.terminating else str(pod)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
