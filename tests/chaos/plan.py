# SPDX-License-Identifier: Apache-2.0
"""What a seed will do: operation after operation, with a fault and its moment.

The same seed, clusters and length give the same plan on every machine.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tests.chaos import catalogue, operations


@dataclass(frozen=True)
class Kind:
    """A kind of cluster.

    :param api: Tacker's.
    :param balanced: whether it has a load balancer.
    :param available: whether it has three control planes.
    """

    api: str
    balanced: bool = True
    available: bool = False


CLUSTERS = {
    "v1": Kind("v1"),
    "v2": Kind("v2"),
    "v1-plain": Kind("v1", balanced=False),
    "v2-plain": Kind("v2", balanced=False),
    "v1-ha": Kind("v1", available=True),
    "v2-ha": Kind("v2", available=True),
}
DEFAULT = ("v1", "v2")
_FEWEST, _MOST = 2, 5
_LONGEST_DELAY, _SHORT = 12.0, 3.0
# In the real laboratory, for operations of the catalogue.
_SELDOM, _PLAYBOOKS = 0.04, 0.2


@dataclass(frozen=True)
class Step:
    """One operation and its fault.

    :param moment: when the fault comes: ``before`` the request, ``delayed`` by so many
        seconds after it, ``at`` the beginning of a step of the journal or when it is
        ``past``, or ``after`` the operation.
    :param at: the kind of that step.
    :param delay: seconds after the request.
    :param seconds: how long something is away.
    """

    number: int
    cluster: str
    operation: str
    fault: str
    moment: str = catalogue.BEFORE
    at: str = ""
    delay: float = 0.0
    seconds: int = 0

    def document(self) -> dict[str, Any]:
        """For a record."""
        return asdict(self)

    def when(self) -> str:
        """The moment, for people."""
        match self.moment:
            case catalogue.DELAYED:
                return f"{self.delay:.1f} s after the request"
            case catalogue.AT | catalogue.PAST:
                begins = "at" if self.moment == catalogue.AT else "after"
                return f"{begins} “{self.at}”"
        return f"{self.moment} the operation"


def of_document(document: dict[str, Any]) -> Step:
    """A step of a record.

    :raises TypeError: it is none.
    """
    return Step(**document)


class _Deck:
    """Pairs of operation and fault in random order.

    Every fault comes once before one comes twice, each time with another operation.
    """

    def __init__(self, chance: random.Random, pairs: Sequence[tuple[str, str]]) -> None:
        self._chance = chance
        self._pairs = pairs
        self._left: list[tuple[str, str]] = []

    def draw(self, operations: Sequence[str]) -> tuple[str, str]:
        """The next pair of one of the operations."""
        for _ in range(2):
            for place, pair in enumerate(self._left):
                if pair[0] in operations:
                    return self._left.pop(place)
            self._left += self._shuffled()
        raise ValueError(f"no fault for {operations}")

    def _shuffled(self) -> list[tuple[str, str]]:
        pairs = [*self._pairs]
        self._chance.shuffle(pairs)
        seen: dict[str, int] = {}
        rounds: list[tuple[int, tuple[str, str]]] = []
        for pair in pairs:
            seen[pair[1]] = seen.get(pair[1], -1) + 1
            rounds.append((seen[pair[1]], pair))
        return [pair for _, pair in sorted(rounds, key=lambda one: one[0])]


def of_cluster(
    seed: int, cluster: str, only: Sequence[str] = (), lab: str = catalogue.QUICK
) -> Iterator[Step]:
    """The endless plan of one cluster; its steps are not numbered yet.

    :param only: names of faults; (): every one.
    :param lab: which kind of laboratory, see the catalogue.
    """
    # Of text, which is the same in every process.
    chance = random.Random(f"{seed} {cluster}")
    kind = CLUSTERS[cluster]
    deck = _Deck(chance, _pairs(kind, only, lab))
    state = _State()
    while True:
        possible = state.possible(kind, lab)
        if lab == catalogue.REAL:
            possible = _biased(chance, possible)
        operation, fault = deck.draw(possible)
        yield _step(chance, cluster, operation, fault)
        state = state.after(operation)


def _pairs(kind: Kind, only: Sequence[str], lab: str) -> list[tuple[str, str]]:
    missing: tuple[str, ...] = ()
    missing += () if kind.balanced else catalogue.BALANCER_FAULTS
    missing += () if kind.available else catalogue.QUORUM_FAULTS
    return [
        (operation, fault)
        for operation in _operations(kind, lab)
        for fault in catalogue.of_lab(lab)
        if fault not in missing
        and catalogue.suits(fault, operation)
        and (not only or fault in only or fault == "none")
    ]


def _operations(kind: Kind, lab: str) -> list[str]:
    missing: tuple[str, ...] = ()
    missing += operations.ONLY_QUICK if lab == catalogue.REAL else ()
    missing += () if kind.balanced else operations.BALANCED
    missing += () if kind.available else operations.AVAILABLE
    return [name for name in operations.OPERATIONS if name not in missing]


@dataclass(frozen=True)
class _State:
    """A cluster as planned."""

    exists: bool = False
    workers: int = _FEWEST
    maintained: bool = False
    has_cnf: bool = False

    def possible(self, kind: Kind, lab: str) -> list[str]:
        """What can be done with it."""
        if not self.exists:
            return [operations.FIRST]
        if self.maintained:
            return [operations.RESUME]
        begin, *later = operations.CNF
        left = {operations.FIRST, operations.RESUME}
        left |= {"scale in"} if self.workers <= _FEWEST else set()
        left |= {"scale out"} if self.workers >= _MOST else set()
        left |= {begin, *operations.ALONE} if self.has_cnf else {*later}
        return [name for name in _operations(kind, lab) if name not in left]

    def after(self, operation: str) -> "_State":
        """What becomes of it."""
        if operation == operations.LAST:
            return _State()
        begin, *_, end = operations.CNF
        return _State(
            exists=True,
            workers=self.workers + operations.OPERATIONS[operation].workers,
            maintained=operation == operations.MAINTAIN,
            has_cnf=operation == begin or (self.has_cnf and operation != end),
        )


def _biased(chance: random.Random, possible: list[str]) -> list[str]:
    """Those of the possible operations that come next, the long ones less often."""
    drawn = chance.random()
    seldom, playbooks = operations.SELDOM, operations.PLAYBOOK_OPERATIONS
    kinds = (
        [name for name in possible if drawn < _SELDOM and name in seldom],
        [name for name in possible if drawn < _PLAYBOOKS and name in playbooks],
        [name for name in possible if name not in (*seldom, *playbooks)],
    )
    return next(names for names in kinds if names)


def _step(chance: random.Random, cluster: str, operation: str, fault: str) -> Step:
    known, steps = catalogue.FAULTS[fault], operations.OPERATIONS[operation].steps
    steps = tuple(one for one in steps if not known.steps or one in known.steps)
    moment = chance.choice(known.moments)
    named = moment in (catalogue.AT, catalogue.PAST)
    longest = _SHORT if operation in operations.MODIFICATIONS else _LONGEST_DELAY
    return Step(
        number=0,
        cluster=cluster,
        operation=operation,
        fault=fault,
        moment=moment,
        at=chance.choice(steps) if named else "",
        delay=round(chance.uniform(0, longest), 1)
        if moment == catalogue.DELAYED
        else 0.0,
        seconds=chance.choice(known.seconds),
    )


def endless(
    seed: int,
    clusters: Sequence[str] = DEFAULT,
    only: Sequence[str] = (),
    lab: str = catalogue.QUICK,
) -> Iterator[Step]:
    """The plan of clusters side by side: one step of each after the other."""
    plans = [of_cluster(seed, cluster, only, lab) for cluster in clusters]
    number = 0
    while True:
        for plan in plans:
            number += 1
            yield Step(**{**next(plan).document(), "number": number})


def lines(steps: Sequence[Step]) -> Iterator[str]:
    """The plan for people."""
    for step in steps:
        away = f", for {step.seconds} s" if step.seconds else ""
        fault = "no fault" if step.fault == "none" else f"{step.fault}{away}"
        when = "" if step.fault == "none" else f", {step.when()}"
        yield f"{step.number:>4}  {step.cluster:<9}{step.operation:<20}{fault}{when}"
