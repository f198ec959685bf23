"""Emptying nodes: how it is to be done, and how the end of it is told."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tacker_k8s_mgmt.model.pods import Budget, Pod, holders

_SHOWN = 8  # pods and budgets in an error text; the rest is counted


class DrainPolicy(Protocol):
    """How nodes are drained: the parameter ``drain``.

    ``timeout`` and ``grace_period`` are seconds, the latter -1 for each pod's own;
    ``on_failure`` is ``abort`` or ``force``; ``parallel`` is how many nodes are drained
    at once (eight at most).
    """

    @property
    def timeout(self) -> int: ...
    @property
    def grace_period(self) -> int: ...
    @property
    def on_failure(self) -> str: ...
    @property
    def delete_emptydir_data(self) -> bool: ...
    @property
    def disable_eviction(self) -> bool: ...
    @property
    def parallel(self) -> int: ...


class Target(Protocol):
    """A node, as a place for pods."""

    @property
    def name(self) -> str: ...
    @property
    def ready(self) -> bool: ...
    @property
    def unschedulable(self) -> bool: ...
    @property
    def tainted(self) -> bool: ...


def nowhere_to_go(leaving: Collection[str], nodes: Iterable[Target]) -> bool:
    """Tell whether no other node would take the pods of the leaving ones.

    Others are Ready, not cordoned and without a taint that keeps ordinary pods away,
    as a control plane's does. Then a drain cannot end well, whatever is waited for.
    """
    return not any(
        node.ready and not node.unschedulable and not node.tainted
        for node in nodes
        if node.name not in leaving
    )


@dataclass(frozen=True)
class Outcome:
    """How the drain of one node ended.

    :param seconds: how long it took, or was waited.
    :param left: pods that should have left and are still there.
    :param budgets: the cluster's budgets at the end of a failed drain.
    :param words: why it failed, in kubectl's words; "" if it did not.
    :param gone: pods that have left it.
    """

    node: str
    seconds: float
    left: tuple[Pod, ...] = ()
    budgets: tuple[Budget, ...] = ()
    words: str = ""
    gone: tuple[Pod, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the node is empty."""
        return not self.left and not self.words

    def held(self) -> tuple[tuple[Pod, tuple[Budget, ...]], ...]:
        """Return the pods that may not be evicted, each with what forbids it."""
        found = ((pod, holders(pod, self.budgets)) for pod in self.left)
        return tuple((pod, budgets) for pod, budgets in found if budgets)


def report(outcome: Outcome) -> str:
    """Say in one line how the drain of a node ended."""
    if outcome.ok:
        drained = f"{outcome.node} was drained in {outcome.seconds:.0f} s"
        return "; ".join([drained, *_departed(outcome)])
    parts = []
    if outcome.left:
        parts.append(f"still there: {_listed([_shown(pod) for pod in outcome.left])}")
    parts += _blocks(outcome)
    if outcome.words and not _explained(outcome):
        parts.append(f"kubectl: {outcome.words}")
    parts += _departed(outcome)
    waited = f"{outcome.node} was not drained after {outcome.seconds:.0f} s"
    return f"{waited}: {'; '.join(parts)}"


def advice(outcomes: Iterable[Outcome], policy: DrainPolicy) -> str:
    """Say what the operator can do about the drains that failed."""
    failed = [outcome for outcome in outcomes if not outcome.ok]
    held = [budgets for outcome in failed for _, budgets in outcome.held()]
    left = [pod for outcome in failed for pod in outcome.left]
    ways = []
    if held:
        ways.append("relax the budget or add replicas that run elsewhere")
    if any(len(budgets) > 1 for budgets in held):
        ways.append("leave one budget for each pod, for with several none is evicted")
    if any(pod.terminating for pod in left):
        ways.append("see why pods do not end (a finalizer, a long grace period)")
    if not policy.delete_emptydir_data and any(pod.local_storage for pod in left):
        ways.append("allow drain.delete_emptydir_data if the data may be lost")
    then = "; ".join(ways or ["mend the cause"])
    text = f"{then[0].upper()}{then[1:]}."
    if policy.on_failure != "force":
        text += (
            " With drain.on_failure force, pods that are left at the time limit are "
            "deleted."
        )
    return text


def _departed(outcome: Outcome) -> list[str]:
    """The pods that have left: first those for good, which no controller makes anew."""
    bare = [str(pod) for pod in outcome.gone if not pod.controller]
    others = [str(pod) for pod in outcome.gone if pod.controller]
    parts = []
    if bare:
        parts.append(f"deleted for good, as no controller made them: {_listed(bare)}")
    if others:
        parts.append(f"evicted: {_listed(others)}")
    return parts


def _blocks(outcome: Outcome) -> list[str]:
    """One sentence for each budget that keeps pods here."""
    held = outcome.held()
    found = list(dict.fromkeys(budget for _, budgets in held for budget in budgets))
    sentences = []
    for budget in found[:_SHOWN]:
        kept = [str(pod) for pod, budgets in held if budget in budgets]
        sentences.append(f"PodDisruptionBudget {budget} keeps {_listed(kept)}")
    if len(found) > _SHOWN:
        sentences.append(f"{len(found) - _SHOWN} more budgets keep others")
    return sentences


def _explained(outcome: Outcome) -> bool:
    """Whether what keeps each pod is known without kubectl's words."""
    held = {pod for pod, _ in outcome.held()}
    return bool(outcome.left) and all(
        pod in held or pod.terminating for pod in outcome.left
    )


def _shown(pod: Pod) -> str:
    return f"{pod} (being deleted)" if pod.terminating else str(pod)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
