"""Steps, and the runner that takes them one after the other.

A step probes first ("is it already so?"), acts only when needed, and verifies the
outcome. That makes a second run of any hook harmless, which Tacker's retry needs.
"""

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.model.redaction import Redactor

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class SystemClock:
    """The real :class:`~tacker_k8s_mgmt.lifecycle.ports.Clock`."""

    def now(self) -> float:
        """Seconds on a clock that never jumps."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Pause this thread."""
        time.sleep(seconds)


@dataclass(frozen=True)
class Step:
    """One thing that an operator would do by hand.

    :param name: what it does, as it appears in logs, journal and error texts.
    :param act: does it; raises when it cannot.
    :param probe: tells whether it is already done; absent: act every time (acts are
        idempotent themselves).
    :param verify: looks at the outcome; raises when it is not as it should be.
    """

    name: str
    act: Callable[[], object]
    probe: Callable[[], bool] | None = None
    verify: Callable[[], None] | None = None


class Runner:
    """Takes the steps of one operation and tells about each.

    :param operation: the operation's name for people, e.g. ``instantiate``.
    :param on_failure: is called when a step has failed; it may take something back, and
        says in whole sentences what stays behind.
    :param advise: says what the operator sends to Tacker after this error.
    """

    def __init__(
        self,
        operation: str,
        journal: ports.Journal,
        clock: ports.Clock,
        redact: Redactor,
        on_failure: Callable[[], str] = lambda: "",
        advise: Callable[[Exception], str] = lambda error: "",
    ) -> None:
        self._operation = operation
        self._journal = journal
        self._clock = clock
        self._redact = redact
        self._on_failure = on_failure
        self._advise = advise

    def run(self, steps: Sequence[Step]) -> None:
        """Take *steps* in order; a step may append others to the list.

        :raises StepFailed: at the first step that fails; a cause of ours is chained,
            any other one is logged without secrets.
        """
        began = self._clock.now()
        self._journal.record(
            "operation-start", operation=self._operation, steps=len(steps)
        )
        try:
            for number, step in enumerate(steps, 1):
                self._take(step, number, len(steps))
        except errors.StepFailed as exc:
            self._end("failed", began, error=str(exc))
            raise
        self._end("completed", began)

    def _end(self, outcome: str, began: float, **fields: str) -> None:
        seconds = round(self._clock.now() - began, 1)
        self._journal.record(
            "operation-end",
            operation=self._operation,
            outcome=outcome,
            seconds=seconds,
            **fields,
        )
        LOG.info("%s %s after %.1f s", self._operation, outcome, seconds)

    def _take(self, step: Step, number: int, total: int) -> None:
        place = f"{self._operation} step {number}/{total}"
        LOG.info("%s: %s", place, step.name)
        fields = {"number": number, "total": total, "step": step.name}
        self._journal.record("step-start", **fields)
        began = self._clock.now()
        outcome, trace = "failed", ""
        try:
            outcome = self._perform(step)
        except errors.K8sMgmtError as exc:
            raise self._failure(step, number, total, exc) from exc
        except Exception as exc:
            # Not chained: Tacker logs the chain as it is, and this one is not redacted.
            trace = self._redact(traceback.format_exc())
            raise self._failure(step, number, total, exc) from None
        finally:
            if trace:
                # Not above: oslo.log adds the text of the exception being handled.
                LOG.error("%s: %s", place, trace)
            seconds = round(self._clock.now() - began, 1)
            self._journal.record("step-end", **fields, outcome=outcome, seconds=seconds)
            LOG.info("%s: %s %s, %.1f s", place, step.name, outcome, seconds)

    @staticmethod
    def _perform(step: Step) -> str:
        if step.probe is not None and step.probe():
            return "already so"
        step.act()
        if step.verify is not None:
            step.verify()
        return "done"

    def _failure(
        self, step: Step, number: int, total: int, exc: Exception
    ) -> errors.StepFailed:
        if isinstance(exc, errors.K8sMgmtError):
            cause, hint = str(exc), ""
        else:
            cause = f"{type(exc).__name__}: {exc}"
            hint = "This is a defect or an unforeseen answer; see the conductor's log. "
        left = self._redact(self._on_failure())
        return errors.StepFailed(
            operation=self._operation,
            number=number,
            total=total,
            step=step.name,
            cause=self._redact(cause),
            left=f" {left}" if left else "",
            hint=f"{hint}{self._redact(self._advise(exc))}".rstrip(),
        )
