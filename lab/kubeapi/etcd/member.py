# SPDX-License-Identifier: Apache-2.0
"""One member: its requests, and which server serves the Kubernetes API."""

import time
from collections.abc import Callable

from .document import Disk, Document, Peer
from .errors import EtcdError, no_leader, not_leader, timed_out
from .raft import Message, Raft, Times, Transport


class Member(Raft):
    """This member.

    :param disk: with the member's id and at least its first document.
    """

    def __init__(self, disk: Disk, transport: Transport, times: Times) -> None:
        super().__init__(disk, transport, times)
        self._lease_ends = 0.0

    def _elected(self, now: float) -> None:
        # The last server of the API may go on, so it gets the time to report that.
        self._lease_ends = now + self._times.lease

    def status(self) -> Message:
        """The status as this member knows it."""
        with self._lock:
            return {
                "member_id": self._disk.id,
                "leader": self._leader,
                "raft_term": self._disk.term,
                "revision": self._disk.document.revision,
                "size": len(self._disk.document.value),
            }

    def newest(self) -> Document:
        """The newest document here, whether a majority has it or not."""
        with self._lock:
            return self._disk.document

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
                    self._majority(lambda peer: self._heard_of(peer).probe >= wanted)
                )

            self._wait(confirmed, term)
            return self._disk.document

    def change(self, to: Callable[[Document], Document]) -> Document:
        """Make a new document of the newest one, and have a majority keep it.

        :raises EtcdError: as :meth:`read`, or what ``to`` raises. After a request that
            timed out it is unknown yet whether it was done.
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
        :returns: the server that has it.
        :raises EtcdError: as :meth:`read`.
        """
        with self._lock:
            document, now = self.read(), time.monotonic()
            if release and document.holder == holder:
                self._lease_ends = now
            elif not release:
                free = not document.holder or now > self._lease_ends
                if document.holder != holder and free:
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


def started(peer: Peer) -> Callable[[Document], Document]:
    """The change that publishes a member's name and URL, once it runs."""

    def change(document: Document) -> Document:
        if document.member(peer.id) is None:
            raise EtcdError("etcdserver: member not found")
        return document.with_member(peer)

    return change
