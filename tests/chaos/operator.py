# SPDX-License-Identifier: Apache-2.0
"""An operator who knows nothing but the texts of errors, and looks into the guide.

What an error leaves open is recorded as a finding.
"""

import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab import client
from tests.chaos import advice, catalogue, guide, operations
from tests.chaos.record import ACTION, ERROR, FINDING, STATE, VERB, Record
from tests.chaos.subject import Subject
from tests.integration.laboratory import CONDUCTOR, services

FINAL = ("COMPLETED", "FAILED", "ROLLED_BACK")
_UNSETTLED = "in task_state"
_MOST_VERBS, _MOST_RETRIES = 8, 3
_PATIENT = 60.0
_HOOK = re.compile(r"\b[a-z]+(?:_[a-z]+)*_(?:start|end)\b")
_FILE = re.compile(r"The file (\S+) on the Ansible server")


@dataclass
class Course:
    """How an operation went.

    :ivar state: the last one; ``stuck``: nothing worked any more.
    :ivar verbs: those that were sent.
    :ivar refused: those of them that Tacker has refused.
    :ivar joins: a scaling or heal has to continue with it.
    :ivar again: another request has to be sent.
    """

    state: str = ""
    verbs: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    joins: bool = False
    again: bool = False


@dataclass(frozen=True)
class Decision:
    """The next verb, and who says so."""

    verb: str
    source: str
    advice: advice.Advice


class Operator:
    """Sees operations of one cluster through.

    :param away: what the fault has killed needs the guide's remedy for it.
    """

    def __init__(
        self, subject: Subject, record: Record, chance: random.Random, fault: str
    ) -> None:
        self._subject = subject
        self._pace = subject.pace
        self._record = record
        self._chance = chance
        self._errs = fault == "wrong verb"
        self._interrupted = fault.startswith(catalogue.INTERRUPTING)
        self._operation = ""
        self._restarted = self._corrected = ""
        #: Called before something is sent for an operation that has failed.
        self.between: Callable[[], object] = lambda: None

    def see_through(self, operation: str, name: str) -> Course:
        """Wait for an operation, and send what is to be sent, until it has ended.

        :param operation: its id.
        :param name: what it is in the catalogue.
        """
        self._operation = operation
        course = Course()
        while len(course.verbs) <= _MOST_VERBS:
            course.state, error = self._wait(name)
            course.again |= self._corrected == operation
            if course.state in FINAL or course.state == "stuck":
                return course
            self.between()
            decision = self._decide(error, name, course)
            course.joins = decision.verb == "fail" and decision.advice.joins
            course.again = decision.verb == "fail" and decision.advice.again
            self._mend(error, decision.advice)
            course.verbs.append(decision.verb)
            if not self._send(decision):
                course.refused.append(decision.verb)
        course.state = "stuck"
        return course

    def _wait(self, name: str) -> tuple[str, str]:
        """The state in which the operation rests, and its error."""
        began = changed = time.monotonic()
        moved, state = client.moved(), ""
        found: dict[str, Any] = {}
        while True:
            found = self._occurrence() or found
            if found.get("operationState", state) != state:
                state = found["operationState"]
                self._record.add(STATE, operation=self._operation, state=state)
                changed = time.monotonic()
            if state in FINAL or state == "FAILED_TEMP":
                return state, self._error(found)
            now = client.moved()
            if now != moved:
                moved, changed = now, time.monotonic()
            silent = time.monotonic() - changed
            pace, lasted = self._pace, time.monotonic() - began
            if (
                silent > pace.silence
                and self._interrupted
                and self._give_up(state, name)
            ):
                changed = time.monotonic()
            elif silent > pace.long_silence or lasted > pace.longest:
                return "stuck", self._error(found)
            time.sleep(0.5)

    def _occurrence(self) -> dict[str, Any]:
        try:
            return dict(self._subject.lab.tacker.occurrence(self._operation))
        except Exception:
            # Tacker's API, Keystone or the database is away.
            return {}

    def _error(self, found: dict[str, Any]) -> str:
        text = str((found.get("error") or {}).get("detail") or "")
        if found.get("operationState") == "FAILED_TEMP" or text:
            self._record.add(ERROR, operation=self._operation, text=text)
        return text

    def _give_up(self, state: str, name: str) -> bool:
        """What the guide says of an operation that no conductor executes."""
        if self._subject.is_v2:
            return self._restart_conductor()
        if name in operations.MODIFICATIONS:
            # No verb is accepted; the same request is to be sent again.
            self._correct("operation_state = 'FAILED'")
            self._corrected = self._operation
            return True
        if state == "ROLLING_BACK":
            self._correct("operation_state = 'FAILED_TEMP'")
            return True
        if state != "PROCESSING":
            return False
        path = f"/vnflcm/v1/vnf_lcm_op_occs/{self._operation}/cancel"
        body = {"cancelMode": "FORCEFUL"}
        status, text = self._subject.lab.tacker.refused("POST", path, json=body)
        self._record.add(ACTION, text="cancel", source="guide", status=status)
        if status == 500:
            self._correct("operation_state='FAILED_TEMP', error_point=3")
        elif status >= 400:
            self._record.add(STATE, operation=self._operation, state=text[:200])
        return True

    def _restart_conductor(self) -> bool:
        """What ends an operation of the v2 API that none executes."""
        if self._restarted == self._operation:
            return False
        self._restarted = self._operation
        self._record.add(ACTION, text="restart tacker-conductor", source="guide")
        services("restart", CONDUCTOR)
        return True

    def _correct(self, change: str) -> None:
        """The guide's correction of Tacker's database."""
        self._record.add(ACTION, text=f"SQL: {change}", source="guide")
        statement = f"UPDATE vnf_lcm_op_occs SET {change} WHERE id='{self._operation}'"  # noqa: S608
        client.in_database("tacker", statement)

    def _decide(self, error: str, name: str, course: Course) -> Decision:
        told = advice.read(error)
        tired = course.verbs.count("retry") >= _MOST_RETRIES
        done = [*course.refused, *(["retry"] if tired else [])]
        usable = [verb for verb in told.verbs if verb not in done]
        if self._errs:
            self._errs = False
            wrong = [verb for verb in advice.VERBS if verb not in told.verbs]
            return Decision(self._chance.choice(wrong), "a mistake", told)
        if usable:
            # What comes first is meant first; the rest is to be as safe.
            others = usable[1:] if self._chance.random() < 0.2 else []
            return Decision(self._chance.choice(others or usable[:1]), "error", told)
        if told.verbs:
            return Decision("fail", "operator: no retry helps", told)
        if _HOOK.search(error):
            self._record.add(
                FINDING, text="the driver's error names no verb", error=error
            )
        return self._by_guide(error, name, told, tired)

    def _by_guide(
        self, error: str, name: str, told: advice.Advice, tired: bool
    ) -> Decision:
        if self._subject.is_v2:
            verb, source = ("fail" if tired else "retry"), "guide: v2"
        elif self._interrupted and error in ("", "None"):
            verb = "fail" if name == "scale out" or tired else "retry"
            source = "guide: a conductor that was killed"
        elif row := guide.after(name, guide.place_of(error)):
            verbs = [one for one in row.verbs if not (tired and one == "retry")]
            verb, source = next(iter(verbs), "fail"), f"guide: {row.failed_in}"
        else:
            self._record.add(FINDING, text="neither error nor guide names a verb")
            verb, source = "fail", "nothing"
        return Decision(verb, source, told)

    def _mend(self, error: str, told: advice.Advice) -> None:
        """Do what the error says besides verbs."""
        for command in told.commands:
            if command.startswith("openstack stack update"):
                self._record.add(ACTION, text=command, source="error")
                client.command(command.split(), limit=300)
        spoiled = _FILE.search(error)
        if spoiled and told.deletes:
            self._record.add(ACTION, text=f"rm {spoiled[1]}", source="error")
            self._subject.lab.ansible(f"rm -f {spoiled[1]}")

    def _send(self, decision: Decision) -> bool:
        """Send a verb, again while Tacker does not answer; whether it was accepted."""
        self._record.add(
            VERB, operation=self._operation, verb=decision.verb, source=decision.source
        )
        deadline = time.monotonic() + _PATIENT
        while True:
            try:
                self._subject.lab.tacker.handle(self._operation, decision.verb)
                return True
            except Exception as error:
                text = str(error)[:400]
            self._record.add(STATE, operation=self._operation, state=text)
            # The guide: Tacker has not stored everything yet.
            refused = "HTTP 4" in text and _UNSETTLED not in text
            if refused and decision.source == "error":
                self._record.add(FINDING, text=f"`{decision.verb}` was refused: {text}")
            if refused or time.monotonic() > deadline:
                return False
            time.sleep(3)
