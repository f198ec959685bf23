# SPDX-License-Identifier: Apache-2.0
"""What API servers keep in etcd: their objects by key, and which of them serves.

etcd is asked through its own JSON gateway, because Python has HTTP and no gRPC.
"""

import base64
import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .objects import name_of, namespace_of
from .store import State

#: Seconds that an API server may serve without asking again.
LEASE = 4
_CONNECT_LIMIT = 1.0  # seconds
# All that is kept has keys from here to the character after "/".
_ROOT, _AFTER = "/registry", "/registry0"
_SERVING = "/serving"
_MOST_AT_ONCE = 50  # operations; etcd admits 128, and 1.5 MiB
_HEADERS = {
    "Content-Type": "application/json",
    # Refuse at once instead of waiting for a leader.
    "Grpc-Metadata-hasleader": "true",
}

Message = dict[str, Any]


class EtcdError(Exception):
    """A request that was not done, in etcd's words where it has some."""


@dataclass(frozen=True)
class Files:
    """PEM files; without a certificate all of it is plain HTTP, for tests."""

    ca: str = ""
    certificate: str = ""
    key: str = ""

    def context(self) -> ssl.SSLContext | None:
        """For connections to etcd."""
        if not self.certificate:
            return None
        context = ssl.create_default_context(cafile=self.ca)
        context.load_cert_chain(self.certificate, self.key)
        return context


@dataclass(frozen=True)
class Claim:
    """Which API server serves.

    :param url: its address for the others.
    :param epoch: grows with each change of it.
    """

    url: str
    epoch: int


class Etcd:
    """An API server's connection to etcd.

    :param endpoints: URLs of members.
    :param limit: seconds for one request to one member.
    """

    def __init__(self, endpoints: Sequence[str], files: Files, limit: float) -> None:
        self._endpoints = list(endpoints)
        self._context = files.context()
        self._limit = limit
        self._lease = ""

    def ask(self, path: str, message: Mapping[str, Any]) -> Message:
        """The answer of the first member that can do it.

        :raises EtcdError: none can.
        """
        problem = "context deadline exceeded"
        for url in tuple(self._endpoints):
            try:
                answer = self._post(url, path, json.dumps(message).encode())
            except (OSError, http.client.HTTPException, ValueError):
                continue
            if "error" not in answer:
                # It is asked first from now on.
                self._endpoints.sort(key=lambda one: one != url)
                return answer
            problem = str(answer["error"])
        raise EtcdError(problem)

    def change(
        self,
        epoch: int,
        operations: Sequence[Message],
        otherwise: Sequence[Message] = (),
    ) -> Message:
        """Do operations if the claim of that epoch holds (0: if there is none).

        :param otherwise: what to do if not.
        """
        held = {"key": _packed(_SERVING), "target": "CREATE", "create_revision": epoch}
        return self.ask(
            "/v3/kv/txn",
            {"compare": [held], "success": [*operations], "failure": [*otherwise]},
        )

    def claim(self, url: str) -> Claim:
        """Have an API server serve for :data:`LEASE` seconds, unless another one does.

        :returns: the one that does.
        :raises EtcdError: etcd does not answer.
        """
        if self._lease:
            kept = self.ask("/v3/lease/keepalive", {"ID": self._lease})["result"]
            self._lease = self._lease if kept.get("TTL") else ""
        if not self._lease:
            self._lease = self.ask("/v3/lease/grant", {"TTL": LEASE})["ID"]
        claim = _put(_SERVING, url, lease=self._lease)
        look = {"request_range": {"key": _packed(_SERVING)}}
        answer = self.change(0, [claim], [look])
        if answer.get("succeeded"):
            return Claim(url, int(answer["header"]["revision"]))
        (found,) = answer["responses"][0]["response_range"]["kvs"]
        holder = Claim(_unpacked(found["value"]), int(found["create_revision"]))
        if holder.url == url and found.get("lease") != self._lease:
            # Our own, from before this server was started again.
            self.change(holder.epoch, [claim])
        return holder

    def release(self) -> None:
        """Let another API server serve at once."""
        if self._lease:
            with contextlib.suppress(EtcdError):
                self.ask("/v3/lease/revoke", {"ID": self._lease})

    def _post(self, url: str, path: str, body: bytes) -> Message:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname or "", parts.port
        connection = http.client.HTTPConnection(host, port, timeout=_CONNECT_LIMIT)
        if self._context:
            connection = http.client.HTTPSConnection(
                host, port, timeout=_CONNECT_LIMIT, context=self._context
            )
        with contextlib.closing(connection):
            connection.connect()
            connection.sock.settimeout(self._limit)
            connection.request("POST", path, body, _HEADERS)
            answer: Message = json.load(connection.getresponse())
            return answer


class EtcdKeeper:
    """The state in etcd, as long as no other server serves the API.

    :param epoch: of our claim.
    """

    def __init__(self, etcd: Etcd, epoch: int) -> None:
        self._etcd = etcd
        self._epoch = epoch
        self._kept: dict[str, Any] = {}

    def load(self) -> State | None:
        """:raises EtcdError: etcd does not answer."""
        wanted = {"key": _packed(_ROOT), "range_end": _packed(_AFTER)}
        found = self._etcd.ask("/v3/kv/range", wanted).get("kvs", ())
        kept = {
            _unpacked(kv["key"]): json.loads(_unpacked(kv["value"])) for kv in found
        }
        rest: State | None = kept.pop(_ROOT, None)
        if rest is None:
            return None
        self._kept = kept
        objects: dict[tuple[str, ...], list[Any]] = {}
        for key, value in kept.items():
            group, plural = key.removeprefix(f"{_ROOT}/").split("/")[:2]
            objects.setdefault((group, plural), []).append(value)
        return {**rest, "objects": [[*key, values] for key, values in objects.items()]}

    def save(self, state: State) -> None:
        """Write what was changed since the last time.

        :raises EtcdError: etcd does not answer, or another server serves the API.
        """
        wanted = {
            f"{_ROOT}/{group}/{plural}/{namespace_of(one) or ''}/{name_of(one)}": one
            for group, plural, objects in state["objects"]
            for one in objects
        }
        rest = {name: value for name, value in state.items() if name != "objects"}
        operations = [
            *(_put(k, json.dumps(v)) for k, v in wanted.items() if self._is_new(k, v)),
            *(_delete(key) for key in self._kept.keys() - wanted.keys()),
            _put(_ROOT, json.dumps(rest)),
        ]
        for start in range(0, len(operations), _MOST_AT_ONCE):
            part = operations[start : start + _MOST_AT_ONCE]
            if not self._etcd.change(self._epoch, part).get("succeeded"):
                raise EtcdError("the API is served by another server by now")
        self._kept = wanted

    def _is_new(self, key: str, value: Any) -> bool:
        # The store never changes an object: it puts another one in its place.
        return self._kept.get(key) is not value


def _packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _unpacked(text: str) -> str:
    return base64.b64decode(text).decode()


def _put(key: str, value: str, **more: str) -> Message:
    return {"request_put": {"key": _packed(key), "value": _packed(value), **more}}


def _delete(key: str) -> Message:
    return {"request_delete_range": {"key": _packed(key)}}
