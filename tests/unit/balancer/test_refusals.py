# SPDX-License-Identifier: Apache-2.0
"""Wrong input is refused in one line before anything is written."""

import pytest

from tests.unit.balancer.sandbox import INSTALL, Sandbox

CP = ("--control-plane", "cp=10.0.0.1")
WEB = ("expose", "web", "--port", "80", "--node-port", "30080")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "no verb", id="nothing at all"),
        pytest.param(("frob",), "'frob' is not known", id="unknown verb"),
        pytest.param(("install",), "at least one --control-plane", id="no node"),
        pytest.param(("install", *CP, "--frob", "1"), "'--frob'", id="unknown option"),
        pytest.param(("install", "--api-port"), "needs a value", id="no value"),
        pytest.param(("install", *CP, "--api-port", "0"), "port number", id="port 0"),
        pytest.param(
            ("install", *CP, "--api-port", "65536"), "port number", id="port 65536"
        ),
        pytest.param(
            ("install", *CP, "--api-port", "0x50"), "port number", id="port in hex"
        ),
        pytest.param(
            ("install", *CP, "--api-port", "8404"), "used twice", id="port of ours"
        ),
        pytest.param(("install", *CP, *CP), "given twice", id="control plane twice"),
        pytest.param(
            ("install", *CP, "--worker", "w=10.0.0.2", "--worker", "w=10.0.0.3"),
            "given twice",
            id="worker twice",
        ),
        pytest.param(
            ("install", *CP, "--worker", "w=10.0.0.2", "--worker", "x=10.0.0.2"),
            "already that of worker",
            id="address twice",
        ),
        pytest.param(
            ("install", *CP, "--worker", "w=10.0.0.2:80"), "without a port", id="port"
        ),
        pytest.param(
            ("install", "--control-plane", "cp=10.0.0.1:"), "port", id="empty port"
        ),
        pytest.param(
            ("install", *CP, "--http-proxy", "ftp://u:s3cret@p"), "http", id="proxy"
        ),
        pytest.param(
            ("install", *CP, "--http-proxy", "-"), "standard input", id="no proxy"
        ),
        pytest.param(("add-worker", "w=10.0.0.2"), "not installed", id="add too early"),
        pytest.param(("remove-worker", "w"), "not installed", id="remove too early"),
        pytest.param(WEB, "not installed", id="expose too early"),
        pytest.param(("unexpose", "web"), "not installed", id="unexpose too early"),
        pytest.param(("add-worker",), "needs NAME", id="add nothing"),
        pytest.param(("remove-worker",), "needs NAME", id="remove nothing"),
        pytest.param(("unexpose",), "needs NAME", id="unexpose nothing"),
        pytest.param(("expose",), "needs NAME", id="expose nothing"),
        pytest.param(("expose", "web", "--port", "80"), "--node-port", id="no port"),
        pytest.param((*WEB, "--protocol", "sctp"), "tcp or udp", id="sctp"),
        pytest.param(
            (*WEB, "--protocol", "udp", "--proxy-protocol", "yes"),
            "for TCP only",
            id="PROXY protocol over UDP",
        ),
        pytest.param((*WEB, "--proxy-protocol", "v1"), "'yes'", id="PROXY version"),
        pytest.param((*WEB, "--health-port", "0"), "port number", id="health port"),
        pytest.param((*WEB, *WEB[1:]), "given twice", id="one name twice"),
        pytest.param(("expose", "--port", "80"), "needs NAME before", id="no name"),
        pytest.param((*WEB, "other"), "--port and --node-port", id="name alone"),
        pytest.param((*WEB, "--source", "10.0.0.1"), "ADDRESS/PREFIX", id="source"),
        pytest.param((*WEB, "--source", "10.0.0.0/33"), "PREFIX", id="source's prefix"),
        pytest.param((*WEB, "--source", "x/8"), "PREFIX", id="source's address"),
        pytest.param((*WEB, "--check-port", "x"), "port number", id="check port"),
        pytest.param(("status", "now"), "no argument", id="status with argument"),
    ],
)
def test_is_refused_and_nothing_is_written(
    fresh: Sandbox, arguments: tuple[str, ...], said: str
) -> None:
    line = fresh.refused(*arguments)
    assert said in line
    assert "s3cret" not in line
    assert fresh.written() == {}
    assert fresh.acts() == []


@pytest.mark.parametrize(
    "value",
    [
        "worker",
        "=10.0.0.1",
        "Worker=10.0.0.1",
        "-w=10.0.0.1",
        "w-=10.0.0.1",
        "w w=10.0.0.1",
        "w\nserver x=10.0.0.1",
        "w;reboot=10.0.0.1",
        "w$(reboot)=10.0.0.1",
        f"{'w' * 254}=10.0.0.1",
        "w=",
        "w=worker.example",
        "w=10.0.0",
        "w=10.0.0.256",
        "w=10.0.0.01",
        "w=0.0.0.0",
        "w=10.0.0.1 backup",
        "w=10.0.0.1\nlisten x",
        "w=::",
        "w=fd00:::1",
        "w=fd00::1::2",
        "w=fd00:1",
        "w=1:2:3:4:5:6:7:8:9",
        "w=12345::1",
        "w=fe80::1%eth0",
        "w=[10.0.0.1]",
        "w=[fd00::1",
    ],
)
def test_garbage_is_refused(shared: Sandbox, value: str) -> None:
    before = shared.written()
    shared.refused("add-worker", "good=10.0.0.77", value)
    assert shared.written() == before
    assert shared.acts() == []


def test_addresses_of_both_families_are_taken(serving: Sandbox) -> None:
    given = {
        "a": ("10.0.0.1", "10.0.0.1"),
        "w.example.org": ("255.255.255.254", "255.255.255.254"),
        "b": ("fd00::1", "[fd00::1]"),
        "c": ("[FD00::2]", "[fd00::2]"),
        "d": ("::1", "[::1]"),
        "e": ("fd00::", "[fd00::]"),
        "f": ("1:2:3:4:5:6:7:8", "[1:2:3:4:5:6:7:8]"),
        "g": ("1:2:3:4:5:6:7::", "[1:2:3:4:5:6:7::]"),
        "0": ("2001:db8:0:1::15", "[2001:db8:0:1::15]"),
    }
    serving.do(
        "add-worker", *(f"{name}={address}" for name, (address, _) in given.items())
    )
    text = serving.config.read_text()
    for name, (_, shown) in given.items():
        assert f"    server {name} {shown}:30080 check " in text


@pytest.mark.parametrize("port", ["6443", "8404", "80"])
def test_a_port_that_is_taken_is_refused(shared: Sandbox, port: str) -> None:
    before = shared.written()
    line = shared.refused("expose", "web-2", "--port", port, "--node-port", "30081")
    assert f"port {port} is used twice" in line
    assert shared.written() == before


def test_the_api_port_may_not_move_onto_a_service(shared: Sandbox) -> None:
    line = shared.refused("install", "--api-port", "80", *CP)
    assert "used twice" in line
    assert "web" in line


@pytest.mark.parametrize("line", ["worker", "worker a", "service web 80 30080"])
def test_a_damaged_state_is_not_guessed_at(balancer: Sandbox, line: str) -> None:
    balancer.state.write_text(f"{balancer.state.read_text()}{line}\n")
    before = balancer.written()
    assert "damaged" in balancer.refused("remove-worker", "worker5")
    assert balancer.written() == before


def test_a_state_of_a_later_format_is_not_guessed_at(balancer: Sandbox) -> None:
    state = balancer.state.read_text()
    balancer.state.write_text(state.replace("format 1", "format 2"))
    before = balancer.written()
    line = balancer.refused("remove-worker", "worker5")
    assert "newer script (format 2)" in line
    assert "csar build" in line
    assert balancer.written() == before


def test_a_control_character_does_not_break_the_one_line(fresh: Sandbox) -> None:
    line = fresh.refused(*INSTALL, "--worker", "a\n\x1b[31mb\r=10.0.0.1")
    assert line.isprintable()
