# SPDX-License-Identifier: Apache-2.0
"""A real HAProxy with the rendered configuration, on loopback, as any user."""

import contextlib
import http.client
import http.server
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from tests.helpers.backends import (
    ApiServer,
    Echo,
    Worker,
    free_ports,
    make_certificate,
    serving,
)
from tests.unit.balancer.live import Live, wait_until
from tests.unit.balancer.sandbox import each_haproxy

pytestmark = each_haproxy


@pytest.fixture
def live(tmp_path, haproxy):
    sandbox = Live(tmp_path, haproxy)
    yield sandbox
    sandbox.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    make_certificate(path)
    return path


def answer(live: Live, certificate: Path) -> str:
    """Who answers for the API through the load balancer, its certificate verified."""
    context = ssl.create_default_context(cafile=str(certificate))
    connection = http.client.HTTPSConnection(
        "127.0.0.1", live.api_port, timeout=60, context=context
    )
    with contextlib.closing(connection):
        connection.request("GET", "/api")
        return connection.getresponse().read().decode()


def test_traffic_goes_only_to_control_planes_that_are_ready(live, certificate):
    readyz = {"ready": 200, "no-anonymous": 401, "starting": 403, "not-ready": 500}
    with contextlib.ExitStack() as stack:
        planes = []
        for name, status in readyz.items():
            server = ApiServer(name, status, certificate)
            port = stack.enter_context(serving(server))
            planes += ["--control-plane", f"{name}=127.0.0.1:{port}"]
        (dead_port,) = free_ports(1)
        planes += ["--control-plane", f"dead=127.0.0.1:{dead_port}"]
        live.do("install", "--api-port", str(live.api_port), *planes)

        def states() -> dict[str, str]:
            return {
                control_plane.name: control_plane.state
                for control_plane in live.report().control_planes
            }

        wanted = dict.fromkeys(("starting", "not-ready", "dead"), "DOWN")
        wanted |= dict.fromkeys(("ready", "no-anonymous"), "UP")
        wait_until(lambda: states() == wanted)
        answers = {answer(live, certificate) for _ in range(10)}
        assert answers == {"ready", "no-anonymous"}


@pytest.fixture
def service(live):
    """Three workers with a CNF; the first is routed, on the port that is given."""
    port, node_port = free_ports(2)
    with contextlib.ExitStack() as stack:
        for address in ("127.0.0.2", "127.0.0.3", "127.0.0.5"):
            worker = Worker((address, node_port), Echo)
            stack.enter_context(serving(worker))
        live.do(
            *("install", "--api-port", str(live.api_port)),
            *("--control-plane", "cp=127.0.0.1:9", "--worker", "w-1=127.0.0.2"),
        )
        live.do("expose", "cnf", "--port", str(port), "--node-port", str(node_port))
        yield port


def say(connection: socket.socket, text: str) -> str:
    connection.sendall(f"{text}\n".encode())
    return connection.recv(100).decode().strip()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def workers_behind(port: int) -> set[str]:
    seen = set()
    for _ in range(8):
        with connect(port) as connection:
            seen.add(say(connection, "hello").split()[0])
    return seen


class Talk(threading.Thread):
    """A connection that is never silent, and the first answer that was wrong."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self.answers, self.failure = 0, ""
        self._connection, self._done = connection, threading.Event()

    def run(self) -> None:
        worker = ""
        while not self._done.is_set() and not self.failure:
            said = f"line {self.answers}"
            try:
                worker, _, answer = say(self._connection, said).partition(" ")
            except OSError as error:
                answer = str(error)
            if answer != said:
                self.failure = f"after {self.answers} lines with {worker}: {answer!r}"
            self.answers += 1

    def goes_on(self) -> bool:
        """Whether lines that are said from now on are still answered."""
        seen = self.answers
        wait_until(lambda: self.failure != "" or self.answers > seen + 2)
        return self.failure == ""

    def end(self) -> None:
        self._done.set()
        self.join()


def hold(stack: contextlib.ExitStack, port: int, worker: str) -> socket.socket:
    """An open connection that this worker serves."""
    while True:
        connection = stack.enter_context(connect(port))
        if say(connection, "hello").split()[0] == worker:
            return connection


def test_open_connections_go_on_while_workers_come_and_go(live, service):
    live.do("add-worker", "w-2=127.0.0.3")
    with contextlib.ExitStack() as stack:
        talk = Talk(hold(stack, service, "127.0.0.2"))
        leaving = hold(stack, service, "127.0.0.3")
        stack.callback(talk.end)
        talk.start()
        assert live.do("add-worker", "w-3=127.0.0.5") == "changed"
        assert talk.goes_on(), talk.failure
        assert live.do("remove-worker", "w-2") == "changed"
        assert workers_behind(service) == {"127.0.0.2", "127.0.0.5"}
        assert talk.goes_on(), talk.failure

        # The removed worker's own connection ends when the worker ends it, not before.
        assert say(leaving, "still here") == "127.0.0.3 still here"
        leaving.sendall(b"bye\n")
        assert leaving.recv(100) == b""
        assert talk.goes_on(), talk.failure


def test_no_connection_is_refused_while_reloading(live, service):
    failures: list[OSError] = []
    done = threading.Event()

    def knock() -> None:
        while not done.is_set():
            try:
                with connect(service) as connection:
                    assert say(connection, "x").endswith(" x")
            except OSError as error:
                failures.append(error)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        live.do("add-worker", "w-2=127.0.0.3")
        live.do("remove-worker", "w-2")
    finally:
        done.set()
        thread.join()
    assert failures == []


def sessions(live: Live) -> int:
    """How many connections of clients HAProxy holds."""
    port = int(live.environment["LB_STATS_PORT"])
    with connect(port) as connection, connection.makefile("rw") as asked:
        asked.write("show info\n")
        asked.flush()
        (line,) = [line for line in asked if line.startswith("CurrConns:")]
    return int(line.split()[1])


class Deaf(socketserver.BaseRequestHandler):
    """A CNF that does not look at what its client closes."""

    def handle(self) -> None:
        threading.Event().wait(120)


class Leaver(socketserver.BaseRequestHandler):
    """A CNF that closes its side, and serves on only to read."""

    def handle(self) -> None:
        self.request.shutdown(socket.SHUT_WR)
        threading.Event().wait(120)


@pytest.mark.parametrize("handler", [Deaf, Leaver])
def test_what_one_side_has_closed_ends_though_the_other_does_not(
    live, service, handler
):
    live.environment["LB_HALF_CLOSED"] = "1s"
    (web,) = live.report().services
    with contextlib.ExitStack() as stack:
        stack.enter_context(serving(Worker(("127.0.0.4", web.node_port), handler)))
        quiet = stack.enter_context(connect(service))
        assert say(quiet, "hello") == "127.0.0.2 hello"
        live.do("add-worker", "w-2=127.0.0.4")
        live.do("remove-worker", "w-1")
        closed = stack.enter_context(connect(service))
        if handler is Deaf:
            closed.shutdown(socket.SHUT_WR)
        assert closed.recv(100) == b""
        # The one that nobody has closed is with the former process.
        wait_until(lambda: sessions(live) == 0, 40)
        assert say(quiet, "still here") == "127.0.0.2 still here"


def test_a_connection_that_is_half_closed_may_still_answer(live, service):
    class Slow(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            text = self.rfile.read()  # until its client has closed its side
            for number in range(6):
                self.wfile.write(text + str(number).encode())
                self.wfile.flush()
                threading.Event().wait(0.5)

    live.environment["LB_HALF_CLOSED"] = "2s"
    (web,) = live.report().services
    with serving(Worker(("127.0.0.4", web.node_port), Slow)):
        live.do("add-worker", "w-2=127.0.0.4")
        live.do("remove-worker", "w-1")
        with connect(service) as connection:
            connection.sendall(b"x")
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                assert answer.read() == b"x0x1x2x3x4x5"


def version_of(haproxy: str) -> tuple[int, ...]:
    """Major and minor number."""
    said = subprocess.check_output([haproxy, "-v"], text=True, timeout=60)
    return tuple(map(int, said.split()[2].split(".")[:2]))


@pytest.fixture
def former(live, service):
    """haproxy.cfg as it was before frontends had names of their own.

    :return: whether this HAProxy takes it; 3.3 and later refuse it.
    """
    text = live.config.read_text().replace("frontend clients-of-", "frontend ")
    former = "".join(line for line in text.splitlines(True) if "client-fin" not in line)
    live.config.write_text(former.replace("server-fin", "queue"))
    check = [live.haproxy, "-c", "-f", str(live.config)]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)
    is_taken = version_of(live.haproxy) < (3, 3)
    assert (done.returncode == 0) is is_taken, done.stderr
    return is_taken


def test_the_former_releases_configuration_is_replaced(live, service, former):
    with contextlib.ExitStack() as stack:
        if former:
            live.do_reload()
            connection = stack.enter_context(connect(service))
            assert say(connection, "before") == "127.0.0.2 before"
        else:
            # The VM has booted again since its HAProxy is that new.
            live.stop()
            assert not live.start_service()
            assert not live.report().active
        assert live.do("add-worker", "w-2=127.0.0.3") == "changed"
        if former:
            assert say(connection, "after") == "127.0.0.2 after"
        assert workers_behind(service) == {"127.0.0.2", "127.0.0.3"}
    status = live.report()
    assert (status.active, status.current) == (True, True)
    assert "frontend clients-of-service-cnf\n" in live.config.read_text()


@pytest.mark.parametrize(
    ("verb", "change"),
    [
        ("add-worker", ("w-1=127.0.0.2",)),
        ("remove-worker", ("none",)),
        ("unexpose", ("none",)),
    ],
)
def test_a_verb_that_changes_nothing_replaces_it_too(
    live, service, former, verb, change
):
    """As the remedy of `cluster check` says of another configuration."""
    assert live.do(verb, *change) == "changed"
    assert live.report().current
    assert live.do(verb, *change) == "unchanged"
    assert "frontend clients-of-service-cnf\n" in live.config.read_text()


def test_a_port_that_another_program_uses_brings_the_old_configuration_back(
    live, service
):
    before = live.written()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))  # and does not listen: only HAProxy finds out
        port = str(other.getsockname()[1])
        line = live.refused(
            *("expose", "taken", "--port", port, "--node-port", "30080"),
            LB_VERIFY_SECONDS="3",
        )
    assert line.endswith("is one of its ports in use? (journalctl -u haproxy)")
    assert live.written() == before
    assert workers_behind(service) == {"127.0.0.2"}
    assert live.report().current
    assert live.do("add-worker", "w-2=127.0.0.3") == "changed"


def test_a_port_that_another_program_serves_is_refused_before_the_reload(live, service):
    before = live.written()
    live.acts()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        line = live.refused("expose", "x", "--port", port, "--node-port", "30080")
    assert line == f"port {port} is in use by another program on the load balancer"
    assert live.acts() == []
    assert live.written() == before


def test_a_worker_that_does_not_answer_gets_no_traffic(live, service):
    live.do("add-worker", "w-2=127.0.0.4")

    def down() -> bool:
        (exposed,) = live.report().services
        states = {server.name: server.state for server in exposed.servers}
        return states == {"w-1": "UP", "w-2": "DOWN"}

    wait_until(down)
    assert workers_behind(service) == {"127.0.0.2"}


def expose(service: int, live: Live, *options: str) -> None:
    (web,) = live.report().services
    ports = ("--port", str(service), "--node-port", str(web.node_port))
    live.do("expose", "cnf", *ports, *options)


def test_only_clients_of_the_sources_are_connected(live, service):
    live.environment["LB_BIND"] = "::"  # where IPv4 clients have mapped addresses
    expose(service, live, "--source", "10.0.0.0/8", "--source", "127.0.0.1/32")
    assert workers_behind(service) == {"127.0.0.2"}
    expose(service, live, "--source", "10.0.0.0/8", "--source", "fd00::/8")
    with contextlib.suppress(ConnectionError), connect(service) as connection:
        connection.sendall(b"hello\n")
        assert connection.recv(100) == b""
    expose(service, live)
    assert workers_behind(service) == {"127.0.0.2"}


def test_a_connection_begins_with_the_header_of_the_proxy_protocol(live, service):
    class Header(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            # A check resets the connection.
            with contextlib.suppress(ConnectionError):
                header = self.rfile.read(16)
                (rest,) = struct.unpack("!H", header[14:])
                headers.append(header + self.rfile.read(rest))

    headers: list[bytes] = []
    (web,) = live.report().services
    with serving(Worker(("127.0.0.4", web.node_port), Header)):
        live.do("add-worker", "w-2=127.0.0.4")
        live.do("remove-worker", "w-1")
        expose(service, live, "--proxy-protocol", "yes")
        with connect(service) as connection:
            client = connection.getsockname()
            assert connection.recv(100) == b""
        signature = b"\r\n\r\n\0\r\nQUIT\n"
        check = signature + b"\x20\x00\0\0"
        wait_until(lambda: check in headers)
    ours = b"\x21\x11" + struct.pack("!H", 12) + socket.inet_aton(client[0])
    ports = struct.pack("!HH", client[1], service)
    assert signature + ours + socket.inet_aton("127.0.0.1") + ports in headers


def test_workers_without_a_pod_get_nothing_where_the_policy_is_local(
    live, service, certificate
):
    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/healthz"
            self.send_response(200 if pods[self.server.server_address[0]] else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    pods = {"127.0.0.2": 1, "127.0.0.3": 0}
    (health_port,) = free_ports(1)
    live.do("add-worker", "w-2=127.0.0.3")
    with contextlib.ExitStack() as stack:
        for address in pods:
            server = http.server.ThreadingHTTPServer((address, health_port), Health)
            stack.enter_context(serving(server))
        expose(service, live, "--health-port", str(health_port))

        def states() -> list[str]:
            (exposed,) = live.report().services
            return [server.state for server in exposed.servers]

        wait_until(lambda: states() == ["UP", "DOWN"])
        assert workers_behind(service) == {"127.0.0.2"}
        pods.update({"127.0.0.2": 0, "127.0.0.3": 1})
        wait_until(lambda: states() == ["DOWN", "UP"])
        assert workers_behind(service) == {"127.0.0.3"}


def test_status_follows_what_runs(live):
    live.do(
        *("install", "--api-port", str(live.api_port)),
        *("--control-plane", "cp=127.0.0.1:9"),
    )
    live.acts()
    assert live.do("add-worker", "w-1=127.0.0.2") == "changed"
    assert live.acts() == [], "nothing is exposed: nothing to reload"
    status = live.report()
    assert (status.active, status.enabled, status.current) == (True, True, True)
    assert [worker.name for worker in status.workers] == ["w-1"]
    live.stop()
    status = live.report()
    assert (status.active, status.current) == (False, False)
    assert status.control_planes[0].state == ""
