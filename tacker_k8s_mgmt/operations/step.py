# SPDX-License-Identifier: Apache-2.0
"""Steps, and the runner that takes them in order.

A step first probes whether its outcome is already there, acts only if not, and verifies
the outcome. So each hook can be run again, which Tacker's retry needs.
"""

import abc
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.journal import Journal
from tacker_k8s_mgmt.model.plan import Effect
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.text import Redactor, printable

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """One step of an operation.

    :param kind: its stable name, for statistics and for programs that read the journal.
    :param name: what it does, for log, journal and errors.
    :param act: does it, idempotently; raises if it cannot.
    :param probe: whether it is already done; None: act every time.
    :param verify: raises if the outcome is not as it should be.
    :param reads: it changes nothing but what a plan keeps in memory, such as files of
        the cluster's directory; a plan takes it.
    :param rehearsed: it writes files of the cluster's directory, and nothing else; a
        plan takes it for what later steps need, and it is still to do.
    :param effects: what *act* would do, or what it shows to be done, for a plan; called
        when the steps up to here that read have been taken.
    """

    kind: str
    name: str
    act: Callable[[], object]
    probe: Callable[[], bool] | None = None
    verify: Callable[[], None] | None = None
    reads: bool = False
    rehearsed: bool = False
    effects: Callable[[], Iterable[Effect]] = tuple

    def take(self) -> str:
        """Take the step; returns the outcome for log and journal."""
        if self.probe is not None and self.probe():
            return "nothing to do"
        self.act()
        if self.verify is not None:
            self.verify()
        return "done"


class Operation(abc.ABC):
    """What is done to a cluster, in steps."""

    @abc.abstractmethod
    def steps(self) -> Sequence[Step]:
        """The steps in the order of work; a list may grow while they are taken."""

    def left(self) -> str:
        """What a failed step leaves behind, in whole sentences; may undo something."""
        return ""


class Steps(Operation):
    """The operation of these steps.

    :param left: returns what a failed step leaves behind.
    """

    def __init__(self, *steps: Step, left: Callable[[], str] = lambda: "") -> None:
        self._steps, self._left = steps, left

    def steps(self) -> Sequence[Step]:
        return self._steps

    def left(self) -> str:
        return self._left()


@dataclass(frozen=True)
class Runner:
    """Takes the steps of one operation, and logs and records each.

    :param operation: its name, for log, journal and errors.
    :param on_failure: called after a failed step; may undo something, and returns in
        whole sentences what stays behind.
    :param advice: returns what to send to Tacker after this error, and its verbs.
    :param followed_by: the hook of the same operation that is recorded next; "" for
        none.
    :param details: what the journal records of the operation at its start.
    """

    operation: str
    journal: Journal
    clock: Clock
    redact: Redactor
    on_failure: Callable[[], str] = lambda: ""
    advice: Callable[[Exception], tuple[str, Sequence[str]]] = lambda error: ("", ())
    followed_by: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def run(self, steps: Sequence[Step]) -> None:
        """Take *steps* in order; a step may append others to the list.

        :raises StepFailed: at the first step that fails; a :class:`K8sMgmtError` is
            chained, any other cause is logged without secrets.
        """
        name, began = self.operation, self.clock.now()
        self.journal.record(
            "operation-start", operation=name, steps=len(steps), **self.details
        )
        try:
            for number, step in enumerate(steps, 1):
                self._take(step, number, len(steps))
        except errors.StepFailed as exc:
            details = _details(exc, self.redact)
            self._end("failed", began, error=str(exc), **details)
            raise
        self._end("completed", began, followed_by=self.followed_by)

    def _end(self, outcome: str, began: float, **fields: Any) -> None:
        seconds = round(self.clock.now() - began, 1)
        self.journal.record(
            "operation-end",
            operation=self.operation,
            outcome=outcome,
            seconds=seconds,
            **fields,
        )
        LOG.info("%s %s after %.1f s", self.operation, outcome, seconds)

    def _take(self, step: Step, number: int, total: int) -> None:
        place = f"{self.operation} step {number}/{total}"
        LOG.info("%s: %s", place, step.name)
        fields = {"number": number, "total": total, "step": step.name}
        named = {**fields, "kind": step.kind}
        self.journal.record("step-start", **named)
        began = self.clock.now()
        outcome, trace = "failed", ""
        try:
            outcome = step.take()
        except errors.K8sMgmtError as exc:
            raise self._failure(exc, fields) from exc
        except Exception as exc:
            # Not chained: Tacker logs the chain, and this cause is not redacted.
            trace = self.redact(traceback.format_exc())
            raise self._failure(exc, fields) from None
        finally:
            if trace:
                # Not above: oslo.log adds the text of the exception being handled.
                LOG.error("%s: %s", place, printable(trace))
            seconds = round(self.clock.now() - began, 1)
            self.journal.record("step-end", **named, outcome=outcome, seconds=seconds)
            LOG.info("%s: %s %s, %.1f s", place, step.name, outcome, seconds)

    def _failure(self, exc: Exception, fields: dict[str, Any]) -> errors.StepFailed:
        if isinstance(exc, errors.K8sMgmtError):
            cause, hint = str(exc), ""
        else:
            cause = f"{type(exc).__name__}: {exc}"
            hint = "This is a defect or an unforeseen answer; see the conductor's log. "
        left = self.redact(self.on_failure())
        advice, verbs = self.advice(exc)
        return errors.StepFailed(
            operation=self.operation,
            **fields,
            cause=self.redact(cause),
            left=f" {left}" if left else "",
            hint=f"{hint}{self.redact(advice)}".rstrip(),
            verbs=verbs,
        )


def _details(failure: errors.StepFailed, redact: Redactor) -> dict[str, Any]:
    """What the text of a failure says, as the journal's fields for lists."""
    cause = failure.__cause__
    hint = redact(cause.hint) if isinstance(cause, errors.K8sMgmtError) else ""
    advice = f"{hint} {failure.hint}".strip()
    details: dict[str, Any] = {"advice": advice, "verbs": failure.fields["verbs"]}
    if isinstance(cause, errors.PlaybookFailed) and cause.tasks:
        details["failed_tasks"] = [
            {key: redact(text) for key, text in task.items()} for task in cause.tasks
        ]
    elif isinstance(cause, errors.ProblemList):
        details["problems"] = [redact(problem) for problem in cause.problems]
    return details
