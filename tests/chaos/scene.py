# SPDX-License-Identifier: Apache-2.0
"""Where and when a fault strikes: the cluster, its step, the moment."""

import random
import threading
import time
import uuid
from dataclasses import dataclass, field

from lab import settings
from tacker_k8s_mgmt import journal
from tests.chaos import catalogue, operations
from tests.chaos.plan import Step
from tests.chaos.record import Record
from tests.chaos.subject import Subject

_LOOK = 0.02  # seconds


@dataclass
class Scene:
    """What a fault may use.

    :ivar sent: the request was sent, so that delays count.
    :ivar rested: the operation has ended.
    :ivar broken: what the fault does is done, or never will be.
    :ivar fixed: nothing is broken any more that the fault itself fixes.
    :ivar others: operations that the fault has begun.
    :ivar workers: servers of the workers before the operation.
    :ivar cured: file on the Ansible server with which playbooks fail no more.
    """

    subject: Subject
    step: Step
    record: Record
    chance: random.Random
    sent: threading.Event = field(default_factory=threading.Event)
    rested: threading.Event = field(default_factory=threading.Event)
    broken: threading.Event = field(default_factory=threading.Event)
    fixed: threading.Event = field(default_factory=threading.Event)
    others: list[str] = field(default_factory=list)
    workers: frozenset[str] = frozenset()
    victim: str = ""
    victims_node: str = ""
    struck: float = 0.0
    cured: str = field(default_factory=lambda: f"/tmp/cured-{uuid.uuid4().hex}")

    def choose_victim(self) -> None:
        """Choose the worker that something happens to, while all answer."""
        workers = sorted(self.subject.cluster.workers().items())
        self.workers = frozenset(server for _, server in workers)
        if workers:
            address, self.victim = self.chance.choice(workers)
            self.victims_node = f"worker-{address.replace('.', '-')}"

    def wait(self) -> bool:
        """Wait for the moment of the fault; whether it came."""
        step = self.step
        match step.moment:
            case catalogue.BEFORE:
                return True
            case catalogue.AFTER:
                self.rested.wait()
                return True
            case catalogue.DELAYED:
                self.sent.wait()
                return not self.rested.wait(step.delay)
        return self._wait_for_step()

    def _wait_for_step(self) -> bool:
        event = "step-start" if self.step.moment == catalogue.AT else "step-end"
        state_path = str(settings.from_environment().journals)
        if self.step.operation in operations.CNF:
            # Its VNF instance may be made by the request.
            self.sent.wait()
        instance = self.subject.journal_of(self.step.operation)
        path = journal.path_of(state_path, instance)
        with journal.JournalReader(path) as reader:
            reader.read()
            while not self.rested.is_set():
                for one in reader.read():
                    if one["event"] == event and one["kind"] == self.step.at:
                        return True
                time.sleep(_LOOK)
        return False
