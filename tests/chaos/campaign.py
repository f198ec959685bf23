# SPDX-License-Identifier: Apache-2.0
"""Goes through a plan: request, fault, operator, invariants, one step after another."""

import contextlib
import random
import time
from collections.abc import Iterable

from tests.chaos import catalogue, invariants, operations
from tests.chaos.checking import Checker
from tests.chaos.faults import Fault
from tests.chaos.operator import Course, Operator
from tests.chaos.plan import Step
from tests.chaos.record import (
    ACTION,
    END,
    OUTCOME,
    REQUEST,
    STATE,
    STEP,
    VIOLATION,
    Record,
)
from tests.chaos.scene import Scene
from tests.chaos.subject import Subject
from tests.integration.processes import Watch

_REQUESTS = 4
_ATTEMPTS = 12
_PAUSE = 4.0
_STRIKES_WITHIN = 60.0
_DELETES = ("VM deleted",)
#: Outcomes, from good to bad.
UNHARMED, RECOVERED, GIVEN_UP, SKIPPED, VIOLATED = (
    *("unharmed", "recovered", "abandoned"),
    *("skipped", "violated"),
)


class Campaign:
    """A plan that is carried out.

    :param subjects: the clusters by their names.
    :param watch: what programs are started with, while it lasts.
    """

    def __init__(
        self, seed: int, subjects: dict[str, Subject], record: Record, watch: Watch
    ) -> None:
        self._seed = seed
        self._subjects = subjects
        self._record = record
        self._watch = watch
        self._secrets = invariants.Secrets()
        self._secrets.found()
        self.violations = 0

    def run(self, steps: Iterable[Step], minutes: float) -> None:
        """Take steps until the time is over; then end the clusters."""
        deadline = time.monotonic() + minutes * 60
        for step in steps:
            self._record.step = step.number
            self._take(step)
            if time.monotonic() > deadline:
                break
        self._record.step = 0
        for subject in self._subjects.values():
            self._end(subject)
        self._record.add(END, violations=self.violations)

    def _take(self, step: Step) -> None:
        subject = self._subjects[step.cluster]
        chance = random.Random(f"{self._seed} {step.number}")
        operator = Operator(subject, self._record, chance, step.fault)
        self._record.add(STEP, plan=step.document())
        began = time.time()
        if reason := self._unprepared(subject, step, operator):
            self._record.add(OUTCOME, outcome=SKIPPED, text=reason, seconds=0)
            return
        subject.cut_off |= step.fault.startswith(catalogue.INTERRUPTING[:2])
        others, servers = self._fingerprints(subject), subject.servers()
        subject.begin_step()
        scene = Scene(subject, step, self._record, chance)
        fault = Fault(scene)
        try:
            course = self._operate(scene, fault, operator)
            found, differed = self._settle(scene, operator, course)
        except Exception as error:
            scene.sent.set()
            scene.rested.set()
            fault.end()
            course, differed = Course(), []
            found = [f"campaign: {type(error).__name__}: {error}"[:600]]
        found += self._of_others(subject, others) + self._of_secrets()
        found += _of_servers(scene, servers) + subject.incidents()
        outcome = _outcome(course, found, differed)
        struck = scene.struck or began
        self._conclude(subject, outcome, found, course, time.time() - struck)

    def _unprepared(self, subject: Subject, step: Step, operator: Operator) -> str:
        """Bring the cluster into the state for the step; why it cannot be."""
        try:
            stands = subject.stands
            if step.operation == operations.FIRST:
                return "it is instantiated" if stands else ""
            if not stands:
                self._without_fault(subject, operations.FIRST, operator)
            if step.operation in operations.ALONE and subject.cnfs.stands:
                self._without_fault(subject, operations.CNF[-1], operator)
                subject.cnfs.settle()
            if step.operation == operations.CNF[0] and subject.cnfs.stands:
                return "it is instantiated"
            subject.put_to_use()
            if needed := subject.prepare(step.operation):
                self._without_fault(subject, needed, operator)
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:400]
        return ""

    def _without_fault(
        self, subject: Subject, operation: str, operator: Operator
    ) -> None:
        self._record.add(REQUEST, operation=operation, prepares=True)
        subject.begin(operation)
        operator.see_through(subject.cluster.operation, operation)

    def _operate(self, scene: Scene, fault: Fault, operator: Operator) -> Course:
        step, subject = scene.step, scene.subject
        if subject.stands:
            scene.choose_victim()
        fault.begin()
        if step.moment == catalogue.BEFORE:
            # Something may be away as long as the request and more take.
            lasts = step.seconds or catalogue.FAULTS[step.fault].lasts
            (scene.broken if lasts else scene.fixed).wait(_STRIKES_WITHIN)
        course, verbs = Course(), []
        for number in range(_REQUESTS):
            self._request(scene, first=not number)
            course = self._see_through(scene, fault, operator)
            verbs += course.verbs
            if course.state != "FAILED" and course.state != "ROLLED_BACK":
                break
            if not (
                course.again or step.operation in (operations.FIRST, operations.LAST)
            ):
                break
        if course.joins:
            self._record.add(ACTION, text="heal worker", source="error: it joins them")
            subject.begin("heal worker")
            operator.see_through(subject.cluster.operation, "heal worker")
        for other in scene.others:
            operator.see_through(other, "scale out")
        course.verbs = verbs
        return course

    def _request(self, scene: Scene, *, first: bool) -> None:
        """Send it, again if Tacker does not answer."""
        step, subject = scene.step, scene.subject
        changes = subject.changes(step.fault, scene.cured) if first else {}
        for number in range(_ATTEMPTS):
            try:
                subject.begin(step.operation, **changes)
                self._record.add(REQUEST, operation=step.operation)
                scene.sent.set()
                return
            except Exception as error:
                self._record.add(STATE, state=f"refused: {error}"[:400])
                scene.sent.set()
                if number == _ATTEMPTS - 1:
                    raise
            time.sleep(_PAUSE)

    def _see_through(self, scene: Scene, fault: Fault, operator: Operator) -> Course:
        operation = scene.subject.cluster.operation
        operator.between = lambda: self._rest(scene, fault)
        course = operator.see_through(operation, scene.step.operation)
        self._rest(scene, fault)
        return course

    def _rest(self, scene: Scene, fault: Fault) -> None:
        """Nothing is sent before what has broken by itself is back."""
        scene.rested.set()
        fault.end()

    def _settle(
        self, scene: Scene, operator: Operator, course: Course
    ) -> tuple[list[str], list[str]]:
        """Compare, fix what differs, and return what is still wrong."""
        subject, found = scene.subject, []
        if course.state == "stuck":
            found.append("the operation is stuck: neither error nor guide helps")
        if not subject.stands:
            return found + invariants.violations(subject, stands=False), []
        if scene.step.fault in catalogue.WITHOUT_WORKER:
            _wait_until_noticed(scene)
        checker = Checker(subject, self._record, operator)
        for _ in range(subject.pace.looks):
            left = checker.until_agreed()
            if not left:
                subject.put_to_use()
            wrong = invariants.violations(subject, stands=True)
            if left or not wrong:
                break
            # A cluster notices only after a while that a node is gone.
        found += [f"cluster check: {left}"] if left else []
        found += wrong
        return found, checker.differences

    def _fingerprints(self, subject: Subject) -> dict[str, str]:
        return {
            name: invariants.fingerprint(other.cluster, other.lab)
            for name, other in self._subjects.items()
            if other is not subject
        }

    def _of_others(self, subject: Subject, before: dict[str, str]) -> list[str]:
        after = self._fingerprints(subject)
        return [
            f"cluster {name}, on which nobody worked, has changed"
            for name, was in before.items()
            if was and after[name] and after[name] != was
        ]

    def _of_secrets(self) -> list[str]:
        seen = {f"{text[:3]}… in arguments of {one}" for one, text in self._watch.found}
        self._watch.found.clear()
        return [f"a secret: {where}" for where in (*self._secrets.found(), *seen)]

    def _conclude(
        self,
        subject: Subject,
        outcome: str,
        found: list[str],
        course: Course,
        seconds: float,
    ) -> None:
        for text in found:
            self._record.add(VIOLATION, text=text)
        self.violations += len(found)
        self._record.add(
            OUTCOME,
            outcome=outcome,
            state=course.state,
            verbs=course.verbs,
            seconds=round(seconds, 1),
        )
        subject.cnfs.settle()
        # It is not reported with every step that follows.
        if found and (course.state == "stuck" or not _is_sound(subject)):
            subject.renew()

    def _end(self, subject: Subject) -> None:
        """Terminate a cluster, and see that nothing of it is left."""
        if subject.stands:
            subject.cnfs.remove()
            operator = Operator(subject, self._record, random.Random(0), "none")
            self._without_fault(subject, operations.LAST, operator)
            for text in invariants.violations(subject, stands=False):
                self._record.add(VIOLATION, text=text)
                self.violations += 1
        subject.close()


def _wait_until_noticed(scene: Scene) -> None:
    """Wait until the cluster does not take a worker for Ready that is off.

    For as long as that takes: an operation may have replaced it.
    """
    deadline = time.monotonic() + scene.subject.pace.notice
    while time.monotonic() < deadline:
        with contextlib.suppress(Exception):
            if not scene.subject.cluster.ready_nodes().get(scene.victims_node):
                return
        time.sleep(1)


def _of_servers(scene: Scene, before: set[str]) -> list[str]:
    """VMs that nobody wanted to have deleted."""
    subject = scene.subject
    lost = before - subject.servers() - subject.leaving
    if scene.step.fault in _DELETES:
        lost -= {scene.victim}
    if len(lost) <= subject.shrinks:
        return []
    return [f"{len(lost)} VMs were deleted that were to stay: {sorted(lost)}"]


def _is_sound(subject: Subject) -> bool:
    """Whether everything holds now."""
    try:
        stands = subject.stands
        return not invariants.violations(subject, stands=stands, patience=0)
    except Exception:
        return False


def _outcome(course: Course, found: list[str], differed: list[str]) -> str:
    if found:
        return VIOLATED
    if course.state != "COMPLETED":
        return GIVEN_UP
    return RECOVERED if course.verbs or differed else UNHARMED
