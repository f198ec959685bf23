# SPDX-License-Identifier: Apache-2.0
"""What answers at the node ports of a node, at an address of loopback."""

import importlib.util
import itertools
import socket
import urllib.request
from pathlib import Path

import pytest

FILE = Path(__file__).parents[3] / "lab/kubespray/roles/kubeadm/files/node_ports.py"
ADDRESS = "127.0.0.1"
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {}}}
_numbers = itertools.count()


def load():
    spec = importlib.util.spec_from_file_location("node_ports", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ports():
    made = load().NodePorts("w1", ADDRESS)
    yield made
    follow(made.services, BOOKMARK)


@pytest.fixture
def port():
    with socket.create_server((ADDRESS, 0)) as free:
        return free.getsockname()[1]


def follow(kind, *events):
    assert [*kind(iter(events))] == [*events]


def of(kind, *objects):
    return [{"type": kind, "object": one} for one in objects]


def named(name, **more):
    metadata = {"name": name, "namespace": "default", "uid": name, **more}
    return {"metadata": metadata}


def service(
    port, name="web", kind="NodePort", protocol="TCP", annotations=None, **spec
):
    listed = [{"port": 80, "nodePort": port, "protocol": protocol}]
    wanted = {"type": kind, "selector": {"app": "web"}, "ports": listed, **spec}
    return {**named(name, annotations=annotations or {}), "spec": wanted}


def pod(name="web-1", node="w1", ready="True", app="web", **metadata):
    return {
        **named(name, labels={"app": app, "more": "x"}, **metadata),
        "spec": {"nodeName": node},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def is_open(port):
    try:
        socket.create_connection((ADDRESS, port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


def page(port):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{ADDRESS}:{port}/", timeout=20) as answer:
        return answer.read().decode()


def test_http_gets_the_names_of_the_pods_in_turn(ports, port):
    follow(ports.services, *of("ADDED", service(port)), BOOKMARK)
    follow(ports.pods, *of("ADDED", pod(), pod("web-2", "w2")), BOOKMARK)
    assert {page(port), page(port)} == {"web-1 on w1\n", "web-2 on w2\n"}


def test_other_connections_and_datagrams_get_back_what_they_send(ports, port):
    follow(ports.pods, *of("ADDED", pod()))
    both = (service(port), service(port, "udp", protocol="UDP"))
    follow(ports.services, *of("ADDED", *both))
    with socket.create_connection((ADDRESS, port), 20) as held:
        held.sendall(b"one")
        assert held.recv(9) == b"one"
        follow(ports.pods, *of("DELETED", pod()))
        assert not is_open(port)
        # It was open before.
        held.sendall(b"two")
        assert held.recv(9) == b"two"
    follow(ports.pods, *of("ADDED", pod()))
    with socket.socket(type=socket.SOCK_DGRAM) as flow:
        flow.settimeout(20)
        flow.connect((ADDRESS, port))
        flow.send(b"three")
        assert flow.recv(9) == b"three"


@pytest.mark.parametrize(
    "one",
    [
        pod(ready="False"),
        pod(app="other"),
        pod(deletionTimestamp="2026-01-01T00:00:00Z"),
        {**pod(), "metadata": {**pod()["metadata"], "namespace": "other"}},
        {**pod(), "status": {}},
    ],
    ids=["not ready", "another's", "leaves", "elsewhere", "new"],
)
def test_without_a_ready_pod_it_is_closed(ports, port, one):
    follow(ports.services, *of("ADDED", service(port)))
    follow(ports.pods, *of("ADDED", pod()))
    assert is_open(port)
    follow(ports.pods, *of("MODIFIED", {**one, "metadata": {**one["metadata"]}}))
    assert not is_open(port)


@pytest.mark.parametrize(
    "one",
    [
        {"kind": "ClusterIP"},
        {"selector": None},
        {"annotations": {"kapi.sim/answers": "false"}},
        {"protocol": "SCTP"},
    ],
)
def test_services_that_are_not_answered(ports, port, one):
    follow(ports.pods, *of("ADDED", pod()))
    follow(ports.services, *of("ADDED", service(port, **one)))
    assert not is_open(port)


def test_local_traffic_needs_a_pod_of_this_node(ports, port):
    follow(ports.services, *of("ADDED", service(port, externalTrafficPolicy="Local")))
    follow(ports.pods, *of("ADDED", pod(node="w2")))
    assert not is_open(port)
    follow(ports.pods, *of("ADDED", pod("web-2")))
    assert page(port) == "web-2 on w1\n"


def test_what_went_while_nothing_was_watched_is_gone(ports, port):
    follow(ports.services, *of("ADDED", service(port)), BOOKMARK)
    follow(ports.pods, *of("ADDED", pod()), BOOKMARK)
    assert is_open(port)
    follow(ports.pods, BOOKMARK)
    assert not is_open(port)
    follow(ports.pods, *of("ADDED", pod()), {"type": "ERROR", "object": {}}, BOOKMARK)
    assert is_open(port)
    follow(ports.services, BOOKMARK)
    assert not is_open(port)


def test_a_port_of_another_program_is_taken_when_it_is_free(ports, port):
    with socket.create_server((ADDRESS, port)):
        follow(ports.pods, *of("ADDED", pod()))
        follow(ports.services, *of("ADDED", service(port)))
    assert not is_open(port)
    follow(ports.pods, *of("ADDED", pod("web-2")))
    assert is_open(port)
