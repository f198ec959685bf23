# SPDX-License-Identifier: Apache-2.0
"""Wrong input is refused in one line before anything is written."""

import pytest

from tests.unit.balancer.sandbox import INSTALL

CP = ("--control-plane", "cp=10.0.0.1")
WEB = ("expose", "web", "--port", "80", "--node-port", "30080")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no verb"),
        (("frob",), "'frob' is not known"),
        (("install",), "at least one --control-plane"),
        (("install", *CP, "--frob", "1"), "'--frob'"),
        (("install", "--api-port"), "needs a value"),
        (("install", *CP, "--api-port", "0"), "port number"),
        (("install", *CP, "--api-port", "65536"), "port number"),
        (("install", *CP, "--api-port", "0x50"), "port number"),
        (("install", *CP, "--api-port", "8404"), "used twice"),
        (("install", *CP, *CP), "given twice"),
        (
            ("install", *CP, "--worker", "w=10.0.0.2", "--worker", "w=10.0.0.3"),
            "given twice",
        ),
        (
            ("install", *CP, "--worker", "w=10.0.0.2", "--worker", "x=10.0.0.2"),
            "already that of worker",
        ),
        (("install", *CP, "--worker", "w=10.0.0.2:80"), "without a port"),
        (("install", "--control-plane", "cp=10.0.0.1:"), "port"),
        (("install", *CP, "--http-proxy", "ftp://u:s3cret@p"), "http"),
        (("install", *CP, "--http-proxy", "-"), "standard input"),
        (("add-worker", "w=10.0.0.2"), "not installed"),
        (("remove-worker", "w"), "not installed"),
        (WEB, "not installed"),
        (("unexpose", "web"), "not installed"),
        (("add-worker",), "needs NAME"),
        (("remove-worker",), "needs NAME"),
        (("unexpose",), "needs NAME"),
        (("expose",), "needs NAME"),
        (("expose", "web", "--port", "80"), "--node-port"),
        ((*WEB, "--protocol", "sctp"), "tcp or udp"),
        ((*WEB, "--protocol", "udp", "--proxy-protocol", "yes"), "for TCP only"),
        ((*WEB, "--proxy-protocol", "v1"), "'yes'"),
        ((*WEB, "--health-port", "0"), "port number"),
        ((*WEB, *WEB[1:]), "given twice"),
        (("expose", "--port", "80"), "needs NAME before"),
        ((*WEB, "other"), "--port and --node-port"),
        ((*WEB, "--source", "10.0.0.1"), "ADDRESS/PREFIX"),
        ((*WEB, "--source", "10.0.0.0/33"), "PREFIX"),
        ((*WEB, "--source", "x/8"), "PREFIX"),
        ((*WEB, "--check-port", "x"), "port number"),
        (("status", "now"), "no argument"),
    ],
)
def test_is_refused_and_nothing_is_written(fresh, arguments, said):
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
def test_garbage_is_refused(shared, value):
    before = shared.written()
    shared.refused("add-worker", "good=10.0.0.77", value)
    assert shared.written() == before
    assert shared.acts() == []


def test_addresses_of_both_families_are_taken(serving):
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
def test_a_port_that_is_taken_is_refused(shared, port):
    before = shared.written()
    line = shared.refused("expose", "web-2", "--port", port, "--node-port", "30081")
    assert f"port {port} is used twice" in line
    assert shared.written() == before


def test_the_api_port_may_not_move_onto_a_service(shared):
    line = shared.refused("install", "--api-port", "80", *CP)
    assert "used twice" in line
    assert "web" in line


@pytest.mark.parametrize("line", ["worker", "worker a", "service web 80 30080"])
def test_a_damaged_state_is_not_guessed_at(balancer, line):
    balancer.state.write_text(f"{balancer.state.read_text()}{line}\n")
    before = balancer.written()
    assert "damaged" in balancer.refused("remove-worker", "worker5")
    assert balancer.written() == before


def test_a_state_of_a_later_format_is_not_guessed_at(balancer):
    state = balancer.state.read_text()
    balancer.state.write_text(state.replace("format 1", "format 2"))
    before = balancer.written()
    line = balancer.refused("remove-worker", "worker5")
    assert "newer script (format 2)" in line
    assert "csar build" in line
    assert balancer.written() == before


def test_a_control_character_does_not_break_the_one_line(fresh):
    line = fresh.refused(*INSTALL, "--worker", "a\n\x1b[31mb\r=10.0.0.1")
    assert line.isprintable()
