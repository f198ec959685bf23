# SPDX-License-Identifier: Apache-2.0
"""How the members agree: elections, and a document that a majority has.

This is Raft, with a log whose entries each replace all of the one before: a newer
document is the whole truth, so only the newest is kept and sent.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Protocol

from .document import Disk, Document, Peer, document_of

Message = dict[str, Any]


@dataclass(frozen=True)
class Times:
    """Seconds. A laboratory's machine is busy: late is not dead.

    :param election: the shortest silence after which a member becomes a candidate.
    :param lease: how long an API server may serve without asking again.
    """

    heartbeat: float = 0.5
    election: float = 2.0
    request: float = 5.0
    lease: float = 4.0


class Transport(Protocol):
    """How messages reach another member."""

    def send(self, peer: Peer, path: str, message: Message) -> Message:
        """:raises OSError: it did not answer."""


@dataclass
class _Heard:
    """What the leader knows of another member.

    :param at: the newest revision that it has.
    :param probe: the newest :attr:`Raft._probe` that it has answered.
    """

    at: int = -1
    probe: int = 0
    last: float = 0.0


class Raft:
    """One member of the consensus; its threads run from :meth:`start` to :meth:`stop`.

    :param disk: with the member's id and at least its first document.
    """

    def __init__(self, disk: Disk, transport: Transport, times: Times) -> None:
        self._disk = disk
        self._transport = transport
        self._times = times
        self._lock = threading.Condition(threading.RLock())
        self._leader = 0
        self._committed = 0
        self._probe = 0
        self._heard: dict[int, _Heard] = {}
        self._patience = 0.0
        self._silent_since = 0.0
        self._senders: dict[int, threading.Thread] = {}
        self.stopped = threading.Event()

    # --- life ---

    def start(self) -> None:
        """Take part."""
        with self._lock:
            self._listen()
        threading.Thread(target=self._tick, daemon=True).start()

    def stop(self) -> None:
        """Take part no longer."""
        with self._lock:
            self.stopped.set()
            self._lock.notify_all()

    def _listen(self) -> None:
        """Begin to wait for a leader's next sign."""
        self._silent_since = time.monotonic()
        self._patience = self._times.election * random.uniform(1, 2)

    def _tick(self) -> None:
        while not self.stopped.wait(self._times.heartbeat / 5):
            with self._lock:
                now = time.monotonic()
                if self._disk.removed:
                    self.stop()
                elif self._leads():
                    self._start_senders()
                    self._step_down_if_alone(now)
                elif now - self._silent_since > self._patience:
                    self._leader = 0
                    self._listen()
                    threading.Thread(target=self._campaign, daemon=True).start()

    @property
    def id(self) -> int:
        return self._disk.id

    def _leads(self) -> bool:
        return self._leader == self._disk.id

    def _majority(self, agree: Callable[[int], bool]) -> bool:
        """Whether more than half of the members do, this one included."""
        ids = [member.id for member in self._disk.document.members]
        count = sum(one == self._disk.id or agree(one) for one in ids)
        return count > len(ids) // 2

    # --- leading ---

    def _append(self, document: Document) -> Document:
        revision = self._disk.document.revision + 1
        self._disk.document = replace(document, term=self._disk.term, revision=revision)
        self._disk.save()
        self._start_senders()
        self._commit()
        self._lock.notify_all()
        return self._disk.document

    def _commit(self) -> None:
        revision = self._disk.document.revision
        if self._majority(lambda member: self._heard_of(member).at >= revision):
            self._committed = revision
            if self._disk.document.member(self._disk.id) is None:
                self._disk.removed = True
                self._disk.save()

    def _heard_of(self, member_id: int) -> _Heard:
        return self._heard.setdefault(member_id, _Heard())

    def _step_down_if_alone(self, now: float) -> None:
        limit = now - 2 * self._times.election
        if not self._majority(lambda member: self._heard_of(member).last > limit):
            self._follow(0)

    def _start_senders(self) -> None:
        for peer in self._disk.document.members:
            thread = self._senders.get(peer.id)
            if peer.id != self._disk.id and not (thread and thread.is_alive()):
                thread = threading.Thread(
                    target=self._keep_informed, args=(peer.id,), daemon=True
                )
                self._senders[peer.id] = thread
                thread.start()

    def _keep_informed(self, member_id: int) -> None:
        """Tell one member of this one's leadership and document, while it leads."""
        while True:
            with self._lock:
                heard = self._heard_of(member_id)
                self._lock.wait_for(
                    partial(self._has_news, heard), self._times.heartbeat
                )
                peer = self._disk.document.member(member_id)
                if self.stopped.is_set() or not self._leads() or peer is None:
                    return
                message = self._news(heard)
            try:
                answer = self._transport.send(peer, "/raft/append", message)
            except OSError:
                self.stopped.wait(self._times.heartbeat)
                continue
            self._heard_from(heard, message, answer)

    def _has_news(self, heard: _Heard) -> bool:
        behind = heard.at < self._disk.document.revision or heard.probe < self._probe
        return behind or not self._leads() or self.stopped.is_set()

    def _news(self, heard: _Heard) -> Message:
        document = self._disk.document
        is_behind = heard.at < document.revision
        return {
            "term": self._disk.term,
            "leader": self._disk.id,
            "revision": document.revision,
            "committed": self._committed,
            "probe": self._probe,
            "document": asdict(document) if is_behind else None,
        }

    def _heard_from(self, heard: _Heard, sent: Message, answer: Message) -> None:
        with self._lock:
            if answer["term"] > self._disk.term:
                self._adopt(answer["term"])
                self._follow(0)
            elif self._leads() and self._disk.term == sent["term"]:
                heard.last = time.monotonic()
                heard.probe = max(heard.probe, sent["probe"])
                heard.at = answer["revision"]
                self._commit()
            self._lock.notify_all()

    # --- electing ---

    def _campaign(self) -> None:
        """Ask whether the others would elect this member, and then to do it.

        The first question changes nothing, so that a member that was cut off for a
        while does not unseat a leader that all others reach.
        """
        if self._ask_for_votes(trial=True) and self._ask_for_votes(trial=False):
            with self._lock:
                self._lead()

    def _ask_for_votes(self, trial: bool) -> bool:
        with self._lock:
            if self._leader or self._disk.removed:
                return False
            term = self._disk.term + 1
            if not trial:
                self._adopt(term)
                self._disk.voted = self._disk.id
                self._disk.save()
            document = self._disk.document
            question = {
                "term": term,
                "candidate": self._disk.id,
                "age": document.age,
                "trial": trial,
            }
            votes: set[int] = set()
            voters = [
                member for member in document.members if member.id != self._disk.id
            ]
        asking = [
            threading.Thread(
                target=self._ask, args=(voter, question, votes), daemon=True
            )
            for voter in voters
        ]
        for thread in asking:
            thread.start()
        deadline = time.monotonic() + self._times.election
        with self._lock:
            self._lock.wait_for(
                lambda: self._majority(votes.__contains__) or bool(self._leader),
                deadline - time.monotonic(),
            )
            expected = self._disk.term + 1 if trial else self._disk.term
            won = self._majority(votes.__contains__)
            return won and not self._leader and term == expected

    def _ask(self, peer: Peer, question: Message, votes: set[int]) -> None:
        try:
            answer = self._transport.send(peer, "/raft/vote", question)
        except OSError:
            return
        with self._lock:
            if answer.get("removed"):
                self._disk.removed = True
                self._disk.save()
            elif answer["term"] > question["term"]:
                self._adopt(answer["term"])
            elif answer["granted"]:
                votes.add(peer.id)
            self._lock.notify_all()

    def _lead(self) -> None:
        now = time.monotonic()
        self._leader = self._disk.id
        self._heard = {
            member.id: _Heard(last=now) for member in self._disk.document.members
        }
        self._elected(now)
        # A leader knows what a majority has only from writes of its own term.
        self._append(self._disk.document)

    def _elected(self, now: float) -> None:
        """What else a new leader has to do, before it writes."""

    def _adopt(self, term: int) -> None:
        if term > self._disk.term:
            self._disk.term, self._disk.voted = term, 0
            self._disk.save()

    def _follow(self, leader: int) -> None:
        if self._leader != leader:
            self._leader = leader
            self._lock.notify_all()
        self._listen()

    # --- being asked by other members ---

    def hear(self, path: str, message: Message) -> Message:
        """Answer another member."""
        with self._lock:
            return _PATHS[path](self, message)

    def _on_vote(self, question: Message) -> Message:
        document, age = self._disk.document, tuple(question["age"])
        if document.member(question["candidate"]) is None and document.age >= age:
            return {"term": self._disk.term, "granted": False, "removed": True}
        heard = time.monotonic() - self._silent_since < self._times.election
        has_leader = self._leads() or bool(self._leader and heard)
        if has_leader or age < document.age or question["term"] < self._disk.term:
            return {"term": self._disk.term, "granted": False}
        if question["trial"]:
            granted = question["term"] > self._disk.term
            return {"term": self._disk.term, "granted": granted}
        self._adopt(question["term"])
        granted = question["term"] == self._disk.term and self._disk.voted in (
            0,
            question["candidate"],
        )
        if granted:
            self._disk.voted = question["candidate"]
            self._disk.save()
            self._listen()
        return {"term": self._disk.term, "granted": granted}

    def _on_append(self, message: Message) -> Message:
        if message["term"] < self._disk.term:
            return {"term": self._disk.term, "revision": -1}
        self._adopt(message["term"])
        self._follow(message["leader"])
        if message["document"] is not None:
            newer = document_of(message["document"])
            if newer.age > self._disk.document.age or newer.term == message["term"]:
                self._disk.document = newer
                self._disk.save()
        document = self._disk.document
        is_same = document.age == (message["term"], message["revision"])
        if is_same and document.member(self._disk.id) is None:
            self._disk.removed = True
            self._disk.save()
        revision = document.revision if is_same else -1
        return {"term": self._disk.term, "revision": revision}


_PATHS: Mapping[str, Callable[[Raft, Message], Message]] = {
    "/raft/vote": Raft._on_vote,
    "/raft/append": Raft._on_append,
}
