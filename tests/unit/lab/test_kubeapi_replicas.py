# SPDX-License-Identifier: Apache-2.0
"""Several API servers on one etcd: who serves, who hands on, what survives."""

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab.kubeapi import replica
from lab.kubeapi.cluster import Cluster
from lab.kubeapi.etcd import Files
from lab.kubeapi.server import Server, start, stop
from lab.kubeapi.settings import Listener, Replication
from tests.helpers.backends import free_ports
from tests.helpers.kubeapi import ADMIN_TOKEN, QUICK, wait_for
from tests.unit.lab.etcd_ensemble import ETCD, Ensemble

pytestmark = pytest.mark.skipif(not ETCD, reason="no etcd on PATH")

MAPS = "/api/v1/namespaces/default/configmaps"


class Plane:
    """API servers, each beside a member of etcd."""

    def __init__(self, directory: Path) -> None:
        self.etcd = Ensemble(directory, 3)
        self.servers: dict[int, Server] = {}
        for _ in range(3):
            self.add()

    def add(self, version: str = QUICK.version) -> None:
        (port,) = free_ports(1)
        endpoints = self.etcd.endpoints
        self.servers[port] = start(
            Listener(port=port, admin_tokens=frozenset({ADMIN_TOKEN})),
            replace(QUICK, version=version),
            replication=Replication(f"http://127.0.0.1:{port}", endpoints, Files()),
        )

    def request(self, port: int, method: str, path: str, body=None) -> tuple[int, dict]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        is_text = answer.getheader("Content-Type", "").startswith("text/plain")
        return answer.status, {} if is_text else json.loads(content)

    def serving(self) -> int:
        """The port of the one that serves; the others know it."""

        def one() -> int:
            places = {p: s.replica.place() for p, s in self.servers.items()}
            own = [p for p, place in places.items() if isinstance(place, Cluster)]
            known = {place for place in places.values() if isinstance(place, str)}
            url = f"http://127.0.0.1:{own[0]}" if own else ""
            return own[0] if len(own) == 1 and known <= {url} else 0

        return int(wait_for(one))

    def other(self) -> int:
        serving = self.serving()
        return next(port for port in self.servers if port != serving)

    def stop(self, port: int) -> None:
        stop(self.servers.pop(port))

    def kill(self, port: int) -> None:
        """It ends without giving anything back."""
        server = self.servers.pop(port)
        server.replica._stopping.set()
        server.replica._thread.join()
        server.shutdown()
        server.server_close()

    def close(self) -> None:
        for port in list(self.servers):
            self.stop(port)
        self.etcd.stop()


@pytest.fixture
def plane(tmp_path) -> Iterator[Plane]:
    made = Plane(tmp_path)
    yield made
    made.close()


def config_map(name: str) -> dict:
    return {"metadata": {"name": name}, "data": {"key": "value"}}


def test_what_one_has_written_all_of_them_read(plane):
    first, *others = plane.servers
    assert plane.request(first, "POST", MAPS, config_map("one"))[0] == 201
    for port in others:
        assert plane.request(port, "GET", f"{MAPS}/one")[1]["data"] == {"key": "value"}
    status, refused = plane.request(others[0], "POST", MAPS, config_map("one"))
    assert (status, refused["reason"]) == (409, "AlreadyExists")


def test_each_api_server_reports_its_own_version(plane):
    plane.stop(plane.serving())
    plane.add("v1.99.0")
    newest = list(plane.servers)[-1]
    told = {
        port: plane.request(port, "GET", "/version")[1]["gitVersion"]
        for port in plane.servers
    }
    assert told.pop(newest) == "v1.99.0"
    assert set(told.values()) == {QUICK.version}


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_another_one_goes_on_when_the_one_that_served_is_gone(plane, end):
    plane.request(plane.other(), "POST", MAPS, config_map("kept"))
    getattr(plane, end)(plane.serving())
    for port in plane.servers:
        assert plane.request(port, "GET", f"{MAPS}/kept")[0] == 200
    assert plane.serving()


def test_watches_go_through_and_end_with_the_one_that_served(plane):
    port = plane.other()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    connection.request("GET", f"{MAPS}?watch=true", headers=headers)
    answer = connection.getresponse()
    plane.request(port, "POST", MAPS, config_map("seen"))
    event = json.loads(answer.readline())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "seen")
    plane.stop(plane.serving())
    assert b"ERROR" not in answer.read()


def test_without_a_majority_of_etcd_nothing_is_served(plane, monkeypatch):
    port = plane.serving()
    assert plane.request(port, "GET", "/readyz")[0] == 200
    plane.etcd.stop(*plane.etcd.names[:2])
    wait_for(lambda: plane.request(port, "GET", "/readyz")[0] == 500)
    assert plane.request(port, "GET", "/livez")[0] == 500
    with monkeypatch.context() as meanwhile:
        # Each of them waits that long for someone who serves.
        meanwhile.setattr(replica, "_PATIENCE", 1.0)
        for one in plane.servers:
            assert plane.request(one, "GET", "/api/v1/nodes")[0] == 503
    plane.etcd.start(plane.etcd.names[0])
    wait_for(lambda: plane.request(port, "GET", "/readyz")[0] == 200)
    assert plane.request(port, "GET", "/api/v1/nodes")[0] == 200


def test_a_write_that_etcd_does_not_keep_is_no_write(plane):
    port = plane.serving()
    plane.etcd.stop(*plane.etcd.names[:2])
    status, _ = plane.request(port, "POST", MAPS, config_map("lost"))
    assert status == 503
    for name in plane.etcd.names[:2]:
        plane.etcd.start(name)
    wait_for(lambda: plane.request(port, "GET", "/readyz")[0] == 200)
    assert plane.request(port, "GET", "/api/v1/nodes")[0] == 200


def test_many_writes_at_once_are_all_kept(plane):
    ports = list(plane.servers) * 4
    plane.serving()

    def write(port: int, name: str) -> None:
        # On a busy machine etcd may lose its leader: 503, and the client asks again.
        # 409: it was kept when the answer had been 503.
        wait_for(
            lambda: (
                plane.request(port, "POST", MAPS, config_map(name))[0] in (201, 409)
            ),
            limit=60,
        )

    threads = [
        threading.Thread(target=write, args=(port, f"m{number}"))
        for number, port in enumerate(ports)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    plane.kill(plane.serving())
    found = plane.request(plane.other(), "GET", MAPS)[1]["items"]
    assert {one["metadata"]["name"] for one in found} == {
        f"m{number}" for number in range(len(ports))
    }
