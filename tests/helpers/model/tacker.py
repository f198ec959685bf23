# SPDX-License-Identifier: Apache-2.0
"""What both APIs of Tacker have in common: operations, their verbs, their failures."""

import abc
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tacker_k8s_mgmt import errors
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.journal import FakeJournal
from tests.helpers.model.faults import NONE, ConductorDied, Ported, Trouble
from tests.helpers.model.site import ModelSite
from tests.helpers.requests import additional_params

_DEFECT = "This is a defect or an unforeseen answer"
#: Clauses that say what not to send, or what a verb would do.
_OTHERWISE = re.compile(r"would|[Dd]o not send|^\s*If there|could not")
SECRETS = ("n0de-secret", "serv3r-secret", "b4lancer-secret", "t0ken")


class Kind(Enum):
    """The operations, by the name of their hooks."""

    INSTANTIATE = "instantiate"
    SCALE_OUT = "scale"
    SCALE_IN = "scale "
    HEAL = "heal"
    HEAL_ALL = "heal "
    MODIFY = "modify_information"
    TERMINATE = "terminate"

    @property
    def hook(self) -> str:
        """What the names of its hooks begin with."""
        return self.value.strip()


class Stage(Enum):
    """How far an operation is."""

    START = "start"
    HEAT = "heat"
    END = "end"


@dataclass(frozen=True)
class Troubles:
    """What goes wrong during one try of an operation.

    :param heat: "": nothing; "refuses": Heat does nothing; "unfinished": a VM is not
        completed; "dies": the conductor is killed when Heat has done its work.
    """

    start: Trouble = NONE
    heat: str = ""
    end: Trouble = NONE


CALM = Troubles()


@dataclass
class Operation:
    """One operation occurrence.

    :ivar vnfcs: ids of the VNFCs that are healed.
    :ivar everything: whether the v2 API is to delete and create the whole stack.
    :ivar stage: where it has failed.
    :ivar text: its error text; "" if it is none of ours.
    :ivar died: whether its conductor was killed.
    """

    kind: Kind
    vnfcs: tuple[str, ...] = ()
    patch: Mapping[str, Any] = field(default_factory=dict)
    everything: bool = False
    stage: Stage = Stage.START
    text: str = ""
    died: bool = False
    refused: bool = False
    data: dict[str, Any] = field(default_factory=dict)


class HeatFailed(Exception):
    """Tacker's own error of an operation."""


class Tacker(abc.ABC):
    """One VNF instance, and the operation that has failed temporarily, if one has.

    :ivar instantiated: whether Tacker lists the instance as instantiated.
    :ivar failed: the operation in FAILED_TEMP.
    :ivar fired: whether something has gone wrong in the last try.
    """

    def __init__(self, load_balancer: bool = True) -> None:
        self.site = ModelSite(load_balancer)
        self.instantiated = False
        self.failed: Operation | None = None
        self.fired = False
        without = {} if load_balancer else {"external_lb_param": None}
        self.params = additional_params(**without)
        self.clock = FakeClock()
        self.journal = FakeJournal()

    @property
    def violations(self) -> list[str]:
        """What was done that must not be."""
        return self.site.gate.violations

    # Verbs

    def send(self, operation: Operation, troubles: Troubles = CALM) -> bool:
        """Send the request of an operation; returns whether it has succeeded."""
        return self._try(operation, troubles)

    def retry(self, troubles: Troubles = CALM) -> bool:
        """Have the failed operation tried again."""
        assert self.failed is not None
        return self._try(self.failed, troubles)

    def fail(self) -> None:
        """Give the failed operation up."""
        self.failed = None

    def rollback(self, troubles: Troubles = CALM) -> bool:
        """Take the failed operation back."""
        operation = self.failed
        assert operation is not None
        self._begin(operation)
        if done := self._ends_well(operation, lambda: self._undo(operation, troubles)):
            self.failed = None
        return done

    def verbs(self) -> Collection[str]:
        """What can be sent now, as the error text says it, or else as Tacker has it.

        Advice that names a verb which Tacker does not have here is a violation.
        """
        operation = self.failed
        assert operation is not None
        possible = self.possible(operation)
        if not operation.text:
            return sorted(possible)
        advised = set(advised_verbs(operation.text))
        if not advised or not advised <= possible:
            self.violations.append(f"advice to send {advised} in: {operation.text}")
        return sorted(advised & possible)

    # How an operation goes

    def _try(self, operation: Operation, troubles: Troubles) -> bool:
        self._begin(operation)
        self.failed = operation
        work = self._ends_well(operation, lambda: self._process(operation, troubles))
        if work:
            self.failed = None
        return work

    def _begin(self, operation: Operation) -> None:
        free = operation.kind in (Kind.INSTANTIATE, Kind.HEAL_ALL, Kind.TERMINATE)
        self.fired = False
        before = self.in_maintenance(self.metadata())
        after = self.in_maintenance({**self.metadata(), **operation.patch})
        serviced = before | after if operation.patch else ()
        self.site.begin(self.targets(operation), free, serviced)

    def in_maintenance(self, metadata: Mapping[str, Any]) -> frozenset[str]:
        """Ids of the servers whose maintenance these metadata want."""
        return frozenset(
            server
            for vnfc, server in self.vnfcs().items()
            if metadata.get(maintenance(vnfc)) == "true"
        )

    def _ends_well(self, operation: Operation, work: Any) -> bool:
        operation.text, operation.died, operation.refused = "", False, False
        try:
            work()
        except errors.K8sMgmtError as error:
            operation.text = str(error)
            operation.refused = isinstance(
                error.__cause__ or error, errors.UnsupportedOperation
            )
            self._judge(operation.text)
        except HeatFailed:
            self.fired = True
        except ConductorDied:
            operation.died = self.fired = True
        else:
            return True
        return False

    def _judge(self, text: str) -> None:
        """Check an error text: step, what to do, no secrets."""
        if _DEFECT in text:
            self.violations.append(f"unforeseen: {text}")
        # The v2 hooks of a heal look the VNFCs' servers up before their first step.
        has_step = " step " in text or text.startswith("Heat does not answer")
        if not has_step or not advised_verbs(text):
            self.violations.append(f"no step or nothing to send: {text}")
        if any(secret in text for secret in SECRETS):
            self.violations.append(f"a secret in: {text}")

    @contextmanager
    def opened(self, trouble: Trouble, **more: Any) -> Iterator[Any]:
        """The site of one hook."""
        gate = self.site.gate
        gate.open(trouble)
        for name, value in more.items():
            setattr(self.site, name, value)
        try:
            yield Ported(self.site, "site", gate)
        finally:
            self.fired = self.fired or bool(gate.fired)

    # What each API does

    @abc.abstractmethod
    def in_place(self) -> AbstractContextManager[None]:
        """Put the model in the place of Heat and of Tacker's database."""

    @abc.abstractmethod
    def _process(self, operation: Operation, troubles: Troubles) -> None:
        """Both hooks, and Heat's work between them."""

    @abc.abstractmethod
    def _undo(self, operation: Operation, troubles: Troubles) -> None:
        """The rollback."""

    @abc.abstractmethod
    def possible(self, operation: Operation) -> frozenset[str]:
        """The verbs that Tacker has for this operation."""

    @abc.abstractmethod
    def targets(self, operation: Operation) -> frozenset[str]:
        """Ids of the servers that may leave."""

    @abc.abstractmethod
    def vnfcs(self) -> Mapping[str, str]:
        """The server of each VNFC, by the VNFC's id."""

    @abc.abstractmethod
    def vim_count(self) -> int:
        """How many VIMs of the cluster are registered."""

    @abc.abstractmethod
    def metadata(self) -> Mapping[str, Any]:
        """Those of the VNF instance."""


def maintenance(vnfc: str) -> str:
    """The entry of the metadata for the maintenance of a VNFC."""
    return f"k8s_nodes:vnfc:{vnfc}:maintenance"


def advised_verbs(text: str) -> tuple[str, ...]:
    """The verbs that an error text advises to send."""
    clauses = re.split(r"[.;:]\s", text)
    said = " ".join(one for one in clauses if not _OTHERWISE.search(one))
    return tuple(dict.fromkeys(re.findall(r"`(retry|rollback|fail)`", said)))
