# SPDX-License-Identifier: Apache-2.0
"""How tests and demo look into a cluster of the lab."""

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
import requests
import yaml

from lab import client
from tests.helpers.kubeapi import make_certificate

ANSWER = b'{"kind": "NodeList", "items": [{"kind": "Node"}]}'
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


class Backend:
    """An API server behind a balancer that lets some connections end unanswered."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.dropped = 0
        self.drop = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                if self.dropped < self.drop:
                    self.dropped += 1
                    connection.recv(4096)
                    continue
                with self._context.wrap_socket(connection, server_side=True) as safe:
                    safe.recv(4096)
                    safe.sendall(HEAD % len(ANSWER) + ANSWER)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    made = Backend(*make_certificate(tmp_path))
    yield made
    made.close()


@pytest.fixture
def api(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> client.ClusterApi:
    certificate, key = (
        base64.b64encode((tmp_path / f"server.{part}").read_bytes()).decode()
        for part in ("crt", "key")
    )
    user = {"client-certificate-data": certificate, "client-key-data": key}
    config = {
        "clusters": [{"cluster": {"certificate-authority-data": certificate}}],
        "users": [{"user": user}],
    }
    monkeypatch.setattr(client, "on_host", lambda *_: yaml.safe_dump(config))
    return client.ClusterApi("host", backend.address, tmp_path / "kubeconfig")


def test_a_list_is_read_again_when_a_connection_ends_without_an_answer(backend, api):
    backend.drop = 2
    assert api.items("/api/v1/nodes") == [{"kind": "Node"}]
    assert backend.dropped == 2


def test_a_list_is_not_asked_for_without_end(backend, api, monkeypatch):
    monkeypatch.setattr(client, "AGAIN", client.AGAIN.new(total=1))
    backend.drop = 10
    with pytest.raises(requests.RequestException):
        api.items("/api/v1/nodes")
    assert backend.dropped == 2


def test_the_administrators_key_is_readable_by_its_owner_only(api, tmp_path):
    for name in ("kubeconfig", "kubeconfig.login.pem"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


class Database:
    """Tacker's, which a test has restarted: one query in it fails."""

    def __init__(self, *rows):
        self._rows = list(rows)
        self.reconnections = 0

    def __call__(self):
        return self

    @contextlib.contextmanager
    def cursor(self):
        yield self

    def execute(self, statement, values):
        assert values == ("op",)

    def fetchone(self):
        row = self._rows.pop(0)
        if row is None:
            raise pymysql.err.OperationalError(2013, "Lost connection")
        return row

    def ping(self, reconnect):
        self.reconnections += reconnect


class Operation(client.Tacker):
    """An operation whose state is looked at."""

    def __init__(self, database, *states):
        auth = dict.fromkeys(("auth_url", "username", "password"), "")
        super().__init__(auth, "", database=database)
        self.states = list(states)

    def occurrence(self, occurrence_id):
        return {"operationState": self.states.pop(0), "stateEnteredTime": ""}


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(client, "GLANCE", 0.001)


def test_tacker_is_asked_when_the_state_has_changed_in_its_database(at_once):
    database = Database("P", "P", "P", None, "P", "C")
    tacker = Operation(database, "PROCESSING", "COMPLETED")
    tacker.wait("op", "COMPLETED")
    assert tacker.states == []
    assert database.reconnections == 1


def test_tacker_is_asked_after_a_while_all_the_same(at_once, monkeypatch):
    monkeypatch.setattr(client, "REST", 0.01)
    tacker = Operation(Database(*"P" * 1000), "PROCESSING", "COMPLETED")
    tacker.wait("op", "COMPLETED")
    assert tacker.states == []
