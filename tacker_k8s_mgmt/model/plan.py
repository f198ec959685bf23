# SPDX-License-Identifier: Apache-2.0
"""What an operation would do to a cluster as it is now, as values.

:mod:`tacker_k8s_mgmt.operations.plan` makes a plan of an operation's own steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

#: What becomes of a node.
LEAVES, REMOVED, REBUILT = "leaves", "is removed", "is rebuilt"
JOINS, UPGRADED = "joins", "is upgraded"
#: As `cluster show` calls it.
LOAD_BALANCER = "load balancer"


@dataclass(frozen=True)
class NodeChange:
    """What becomes of a node.

    :param change: one of those above.
    :param why: more about it; "" for nothing.
    """

    node: str
    change: str
    why: str = ""


@dataclass(frozen=True)
class PodMove:
    """A pod that has to leave its node.

    :param kept_by: why it may not leave now, such as the budgets that forbid it.
    :param blocks: the operation fails if that stays so; else the pod ends all the same.
    :param lost: no controller creates it again.
    :param stranded: no other node accepts it now.
    """

    node: str
    pod: str
    kept_by: tuple[str, ...] = ()
    blocks: bool = False
    lost: bool = False
    stranded: bool = False


@dataclass(frozen=True)
class Difference:
    """A value that changes.

    :param former: None if there is none; likewise *wanted*.
    """

    what: str
    former: str | None
    wanted: str | None


Effect = NodeChange | PodMove | Difference
_Kind = TypeVar("_Kind", NodeChange, PodMove, Difference)


@dataclass(frozen=True)
class PlannedStep:
    """A step as a plan finds it.

    :param hook: whose work it is.
    :param outcome: ``checked`` for one that only reads and was taken; ``to do``;
        ``nothing to do``; ``refused``.
    """

    hook: str
    kind: str
    name: str
    outcome: str
    effects: tuple[Effect, ...] = ()


CHECKED, TO_DO, UNNEEDED, REFUSED = "checked", "to do", "nothing to do", "refused"


@dataclass(frozen=True)
class Refusal:
    """Why the operation would fail, or Tacker refuse it.

    :param step: the name of the step; "" before the first one.
    :param text: the cause that the operation's error would give.
    """

    step: str
    text: str


@dataclass(frozen=True)
class Plan:
    """What an operation would do.

    :param steps: of all its hooks, as far as they are known.
    :param refusal: None if it would begin.
    :param notes: what else is to be known, and what cannot be told; sentences.
    """

    steps: tuple[PlannedStep, ...] = ()
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()

    def __add__(self, more: "Plan") -> "Plan":
        """This plan, and that of the next hook."""
        return Plan(
            (*self.steps, *more.steps),
            self.refusal or more.refusal,
            (*self.notes, *more.notes),
        )

    def noted(self, notes: Iterable[str]) -> "Plan":
        """The same plan with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    @property
    def nodes(self) -> tuple[NodeChange, ...]:
        """The nodes in the order in which they change."""
        return self._of(NodeChange)

    @property
    def pods(self) -> tuple[PodMove, ...]:
        """The pods that have to move."""
        return self._of(PodMove)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The values that change."""
        return self._of(Difference)

    @property
    def held(self) -> tuple[PodMove, ...]:
        """The pods for which the operation would fail, as things are."""
        return tuple(pod for pod in self.pods if pod.blocks)

    def _of(self, kind: type[_Kind]) -> tuple[_Kind, ...]:
        every = (one for step in self.steps for one in step.effects)
        return tuple(one for one in every if isinstance(one, kind))
