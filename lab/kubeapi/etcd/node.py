# SPDX-License-Identifier: Apache-2.0
"""A member as a program: its configuration, its beginning, what it answers clients."""

import sys
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .document import (
    Disk,
    Document,
    Peer,
    document_of,
    first_document,
    member_id,
)
from .errors import EtcdError
from .member import Member, started
from .raft import Times
from .wire import Client, Connections, Files, Listener, Message, PeerTransport

VERSION = "3.5.21"  # what it claims
_JOIN_PAUSE = 0.5  # seconds


@dataclass(frozen=True)
class Configuration:
    """The settings of kubespray's ``/etc/etcd.env``.

    :param cluster: peer URLs of the members by their names.
    :param new: the cluster is made, or this member joins one that is there.
    """

    name: str
    directory: Path
    client_url: str
    peer_url: str
    listen_client: tuple[str, ...]
    listen_peer: tuple[str, ...]
    cluster: Mapping[str, str]
    new: bool
    token: str = ""
    files: Files = field(default_factory=Files)


def configuration(environment: Mapping[str, str]) -> Configuration:
    """:raises KeyError: something is missing."""
    pairs = [one for one in environment["ETCD_INITIAL_CLUSTER"].split(",") if one]
    return Configuration(
        name=environment["ETCD_NAME"],
        directory=Path(environment["ETCD_DATA_DIR"]),
        client_url=environment["ETCD_ADVERTISE_CLIENT_URLS"],
        peer_url=environment["ETCD_INITIAL_ADVERTISE_PEER_URLS"],
        listen_client=tuple(environment["ETCD_LISTEN_CLIENT_URLS"].split(",")),
        listen_peer=tuple(environment["ETCD_LISTEN_PEER_URLS"].split(",")),
        cluster=dict(pair.split("=", 1) for pair in pairs),
        new=environment["ETCD_INITIAL_CLUSTER_STATE"] == "new",
        token=environment.get("ETCD_INITIAL_CLUSTER_TOKEN", ""),
        files=Files(
            environment.get("ETCD_TRUSTED_CA_FILE", ""),
            environment.get("ETCD_CERT_FILE", ""),
            environment.get("ETCD_KEY_FILE", ""),
        ),
    )


class Node:
    """A member that runs.

    :raises EtcdError: it cannot begin: it was removed, or the cluster that it shall
        join does not know it, or knows it as one that has been there.
    """

    def __init__(self, wanted: Configuration, times: Times | None = None) -> None:
        self._wanted = wanted
        self._times = times or Times()
        connections = Connections(wanted.files, self._times.request)
        self._connections = connections
        disk = Disk.open(wanted.directory)
        if disk.removed:
            raise EtcdError("the member has been permanently removed from the cluster")
        if not disk.id:
            self._begin(disk)
        self.member = Member(disk, PeerTransport(connections), self._times)
        self._listeners = [
            Listener(host, port, wanted.files, self.answer)
            for host, port in map(
                _address, (*wanted.listen_client, *wanted.listen_peer)
            )
        ]
        self.member.start()
        threading.Thread(target=self._introduce, daemon=True).start()

    def stop(self) -> None:
        """Stop for this time."""
        self.member.stop()
        for listener in self._listeners:
            listener.shutdown()
            listener.server_close()

    # --- the first start ---

    def _begin(self, disk: Disk) -> None:
        wanted = self._wanted
        if wanted.new:
            document = first_document(wanted.cluster, wanted.token)
        else:
            document = self._joined()
        own = document.at(wanted.peer_url)
        known = {member.peer_url for member in document.members}
        # Names are not compared: two members with one name count as one.
        if own is None or known != set(wanted.cluster.values()):
            raise EtcdError("error validating peerURLs: member count is unequal")
        if not wanted.new and own.client_url:
            raise EtcdError(f"member {own.id:x} has already been bootstrapped")
        disk.id, disk.document = own.id, document
        disk.save()

    def _joined(self) -> Document:
        """The newest document that the other members have."""
        found = []
        for url in self._wanted.cluster.values():
            if url == self._wanted.peer_url:
                continue
            try:
                answer = self._connections.post(url, "/raft/document", {})
            except (OSError, EtcdError):
                continue
            found.append(document_of(answer))
        if not found:
            raise EtcdError("cannot fetch cluster info from peer urls")
        return max(found, key=lambda one: one.age)

    def _introduce(self) -> None:
        """Tell the cluster this member's name and URL, until it knows them."""
        wanted = self._wanted
        own = Peer(self.member.id, wanted.peer_url, wanted.name, wanted.client_url)
        endpoint = [_reachable(wanted.listen_client)]
        client = Client(endpoint, wanted.files, self._times.request)
        while not self.member.stopped.wait(_JOIN_PAUSE):
            try:
                client.ask("/v3/started", asdict(own))
            except EtcdError as error:
                if error.retryable:
                    continue
                print(error, file=sys.stderr, flush=True)
            return

    # --- what clients ask ---

    def answer(self, path: str, message: Message) -> Any:
        """:raises EtcdError: it is refused, or nothing is at that path."""
        if self.member.stopped.is_set():
            raise EtcdError("etcdserver: server stopped", retryable=True)
        if path in ("/raft/vote", "/raft/append"):
            return self.member.hear(path, message)
        match path:
            case "/raft/document":
                return asdict(self.member.newest())
            case "/v3/status":
                return {**self.member.status(), "version": VERSION}
            case "/v3/health":
                return {"revision": self.member.read().revision}
            case "/v3/members":
                return asdict(self.member.read())["members"]
            case "/v3/state":
                return asdict(self.member.read())
            case "/v3/lease":
                return self.member.lease(message["holder"], message["release"])
        document = self.member.change(_change(path, message))
        return {"revision": document.revision, "members": asdict(document)["members"]}


def _change(path: str, message: Message) -> Callable[[Document], Document]:
    match path:
        case "/v3/put":
            epoch, value = message["epoch"], message["value"]
            return lambda document: document.with_value(value, epoch)
        case "/v3/started":
            return started(Peer(**message))
        case "/v3/member-add":
            url = message["peer_url"]

            def add(document: Document) -> Document:
                salt = str(document.revision)
                return document.with_member(Peer(member_id(url, salt), url))

            return add
        case "/v3/member-remove":
            return lambda document: document.without_member(message["id"])
    raise EtcdError(f"there is nothing at {path}")


def _address(url: str) -> tuple[str, int]:
    parts = urllib.parse.urlsplit(url)
    return parts.hostname or "", parts.port or 0


def _reachable(urls: tuple[str, ...]) -> str:
    return next((url for url in urls if "127.0.0.1" not in url), urls[0])
