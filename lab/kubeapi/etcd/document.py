# SPDX-License-Identifier: Apache-2.0
"""The members' data: the members, the server of the Kubernetes API, and its state."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from .errors import EtcdError


@dataclass(frozen=True)
class Peer:
    """A member as the others know it.

    :param name: "" until it is started for the first time.
    :param client_url: likewise.
    """

    id: int
    peer_url: str
    name: str = ""
    client_url: str = ""


@dataclass(frozen=True)
class Document:
    """One version of everything; later ones have a greater (term, revision).

    :param holder: URL of the API server that serves, or served last.
    :param epoch: grows with each change of the holder; a write of an older one is
        refused.
    :param value: the state of the API, whatever its holder has put.
    """

    term: int = 0
    revision: int = 0
    members: tuple[Peer, ...] = ()
    holder: str = ""
    epoch: int = 0
    value: str = ""

    @property
    def age(self) -> tuple[int, int]:
        """Compared to find the newer of two."""
        return self.term, self.revision

    def member(self, member_id: int) -> Peer | None:
        return next((member for member in self.members if member.id == member_id), None)

    def at(self, peer_url: str) -> Peer | None:
        return next(
            (member for member in self.members if member.peer_url == peer_url), None
        )

    def with_member(self, peer: Peer) -> "Document":
        """:raises EtcdError: another one has its URL."""
        known = self.at(peer.peer_url)
        if known and known.id != peer.id:
            raise EtcdError("etcdserver: Peer URLs already exists")
        others = tuple(member for member in self.members if member.id != peer.id)
        members = sorted((*others, peer), key=lambda one: one.peer_url)
        return replace(self, members=tuple(members))

    def without_member(self, member_id: int) -> "Document":
        """:raises EtcdError: there is none."""
        if self.member(member_id) is None:
            raise EtcdError("etcdserver: member not found")
        others = tuple(member for member in self.members if member.id != member_id)
        return replace(self, members=others)

    def held_by(self, holder: str) -> "Document":
        return replace(self, holder=holder, epoch=self.epoch + 1)

    def with_value(self, value: str, epoch: int) -> "Document":
        """:raises EtcdError: another server serves the API by now."""
        if epoch != self.epoch:
            raise EtcdError(f"the API is served by {self.holder} by now")
        return replace(self, value=value)


def member_id(peer_url: str, salt: str) -> int:
    """An id for a member, of 63 bits.

    :param salt: what makes it another one when the member is added again.
    """
    digest = hashlib.sha256(f"{salt} {peer_url}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1 or 1


def first_document(cluster: Mapping[str, str], token: str) -> Document:
    """What every member of a new cluster begins with, each by itself.

    :param cluster: peer URLs by the members' names.
    """
    members = [Peer(member_id(url, token), url, name) for name, url in cluster.items()]
    return Document(members=tuple(sorted(members, key=lambda member: member.peer_url)))


@dataclass
class Disk:
    """What a member must not forget.

    :param id: its own; 0 before it has one.
    :param term: the newest that it has seen.
    :param voted: the candidate of its vote in that term; 0: none.
    :param removed: it was taken out, and has to stay away.
    """

    path: Path
    id: int = 0
    term: int = 0
    voted: int = 0
    removed: bool = False
    document: Document = field(default_factory=Document)

    @classmethod
    def open(cls, directory: Path) -> "Disk":
        """What is in the directory, which need not be there."""
        path = directory / "member.json"
        if not path.exists():
            return cls(path)
        kept = json.loads(path.read_text())
        return cls(path, **{**kept, "document": document_of(kept["document"])})

    def save(self) -> None:
        """Write all of it in one step, for root alone: it holds the API's secrets."""
        kept = {**asdict(self), "document": asdict(self.document)}
        del kept["path"]
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self.path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(kept, file)
        new.replace(self.path)


def document_of(kept: Mapping[str, Any]) -> Document:
    """A document that came as JSON."""
    return Document(**{**kept, "members": peers_of(kept["members"])})


def peers_of(kept: Iterable[Mapping[str, Any]]) -> tuple[Peer, ...]:
    return tuple(Peer(**fields) for fields in kept)
