"""One member: elects, replicates, knows when it has no majority.

This is Raft, with a log whose entries each replace all of the one before: a newer
document is the whole truth, so only the newest is kept and sent.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from .document import Disk, Document, Peer, document_of
from .errors import EtcdError, no_leader, not_leader, timed_out

Message = dict[str, Any]


@dataclass(frozen=True)
class Times:
    """Seconds. A laboratory's machine is busy: late is not dead.

    :param election: the shortest silence after which a member wants to lead.
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
    :param probe: the newest :attr:`Member._probe` that it has answered.
    """

    at: int = -1
    probe: int = 0
    last: float = 0.0


class Member:
    """This member; its threads run from :meth:`start` to :meth:`stop`.

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
        self._lease_ends = 0.0
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
                    self._step_down_if_alone(now)
                elif now - self._silent_since > self._patience:
                    self._leader = 0
                    self._listen()
                    threading.Thread(target=self._campaign, daemon=True).start()

    # --- what it knows ---

    @property
    def id(self) -> int:
        return self._disk.id

    def _leads(self) -> bool:
        return self._leader == self._disk.id

    def _majority(self, agree: Callable[[int], bool]) -> bool:
        """Whether more than half of the members do, this one included."""
        ids = [one.id for one in self._disk.document.members]
        count = sum(one == self._disk.id or agree(one) for one in ids)
        return count > len(ids) // 2

    def status(self) -> Message:
        """What can be said without asking anybody."""
        with self._lock:
            return {
                "member_id": self._disk.id,
                "leader": self._leader,
                "raft_term": self._disk.term,
                "revision": self._disk.document.revision,
                "size": len(self._disk.document.value),
            }

    def read(self) -> Document:
        """The newest document, by the leader alone and with a majority behind it.

        :raises EtcdError: this is not the leader, or it has no majority.
        """
        with self._lock:
            self._must_lead()
            self._probe += 1
            wanted, term = self._probe, self._disk.term
            self._lock.notify_all()

            def confirmed() -> bool:
                return self._disk.document.revision <= self._committed and (
                    self._majority(lambda one: self._heard_of(one).probe >= wanted)
                )

            self._wait(confirmed, term)
            return self._disk.document

    def change(self, to: Callable[[Document], Document]) -> Document:
        """Make a new document of the newest one, and have a majority keep it.

        :raises EtcdError: as :meth:`read`, or what ``to`` raises. After a request that
            timed out nobody knows yet whether it was done.
        """
        with self._lock:
            self._must_lead()
            new = self._append(to(self._disk.document))
            self._wait(lambda: self._committed >= new.revision, new.term)
            return new

    def lease(self, holder: str, release: bool = False) -> Message:
        """Let an API server serve for the next :attr:`Times.lease` seconds.

        It is renewed for the one that has it, and given to another when it has ended.

        :param release: give it back instead.
        :returns: who has it.
        :raises EtcdError: as :meth:`read`.
        """
        with self._lock:
            document, now = self.read(), time.monotonic()
            if release and document.holder == holder:
                self._lease_ends = now
            elif not release:
                if document.holder != holder and now > self._lease_ends:
                    document = self.change(lambda newest: newest.held_by(holder))
                if document.holder == holder:
                    self._lease_ends = now + self._times.lease
            return {"holder": document.holder, "epoch": document.epoch}

    def _must_lead(self) -> None:
        if self._leads():
            return
        leader = self._disk.document.member(self._leader)
        raise not_leader(leader.client_url) if leader else no_leader()

    def _wait(self, done: Callable[[], bool], term: int) -> None:
        self._lock.wait_for(
            lambda: done() or not self._leads() or self._disk.term != term,
            self._times.request,
        )
        if not self._leads() or self._disk.term != term:
            raise no_leader()
        if not done():
            raise timed_out()

    # --- leading ---

    def _append(self, document: Document) -> Document:
        revision = self._disk.document.revision + 1
        self._disk.document = replace(
            document, term=self._disk.term, revision=revision
        )
        self._disk.save()
        self._start_senders()
        self._commit()
        self._lock.notify_all()
        return self._disk.document

    def _commit(self) -> None:
        revision = self._disk.document.revision
        if self._majority(lambda one: self._heard_of(one).at >= revision):
            self._committed = revision
            if self._disk.document.member(self._disk.id) is None:
                self._disk.removed = True
                self._disk.save()

    def _heard_of(self, member_id: int) -> _Heard:
        return self._heard.setdefault(member_id, _Heard())

    def _step_down_if_alone(self, now: float) -> None:
        limit = now - 2 * self._times.election
        if not self._majority(lambda one: self._heard_of(one).last > limit):
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
        term = self._disk.term
        while True:
            with self._lock:
                heard = self._heard_of(member_id)
                self._lock.wait_for(
                    lambda: self.stopped.is_set() or self._has_news(heard),
                    self._times.heartbeat,
                )
                peer = self._disk.document.member(member_id)
                if self.stopped.is_set() or not self._leads() or peer is None:
                    return
                if self._disk.term != term:
                    term = self._disk.term
                message = self._news(heard)
            try:
                answer = self._transport.send(peer, "/raft/append", message)
            except OSError:
                self.stopped.wait(self._times.heartbeat)
                continue
            self._heard_from(heard, message, answer)

    def _has_news(self, heard: _Heard) -> bool:
        behind = heard.at < self._disk.document.revision or heard.probe < self._probe
        return behind or not self._leads()

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

        The first question changes nothing, so that one who was cut off for a while
        does not unseat a leader that all others hear.
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
            voters = [one for one in document.members if one.id != self._disk.id]
        asking = [
            threading.Thread(target=self._ask, args=(one, question, votes), daemon=True)
            for one in voters
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
            one.id: _Heard(last=now) for one in self._disk.document.members
        }
        # Who served the API last may go on, so he gets the time to say so.
        self._lease_ends = now + self._times.lease
        # Only what was written in its own term tells a leader what a majority has.
        self._append(self._disk.document)

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
        document = self._disk.document
        if document.member(question["candidate"]) is None and document.members:
            return {"term": self._disk.term, "granted": False, "removed": True}
        heard = time.monotonic() - self._silent_since < self._times.election
        has_leader = self._leads() or bool(self._leader and heard)
        is_newer = tuple(question["age"]) >= document.age
        if has_leader or not is_newer or question["term"] <= self._disk.term - 1:
            return {"term": self._disk.term, "granted": False}
        if question["trial"]:
            granted = question["term"] > self._disk.term
            return {"term": self._disk.term, "granted": granted}
        self._adopt(question["term"])
        granted = (
            question["term"] == self._disk.term
            and self._disk.voted in (0, question["candidate"])
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


_PATHS: Mapping[str, Callable[[Member, Message], Message]] = {
    "/raft/vote": Member._on_vote,
    "/raft/append": Member._on_append,
}


def started(member: Member, peer: Peer) -> Callable[[Document], Document]:
    """The change that tells a member's name and URL, once it runs."""

    def change(document: Document) -> Document:
        if document.member(peer.id) is None:
            raise EtcdError("etcdserver: member not found")
        return document.with_member(peer)

    return change
