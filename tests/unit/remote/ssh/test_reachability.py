# SPDX-License-Identifier: Apache-2.0
"""Whether a host can be reached: a login with sudo, a port from elsewhere."""

import socket

from tacker_k8s_mgmt.remote.ssh import reachability
from tacker_k8s_mgmt.remote.ssh.reachability import login_problem, port_problem
from tests.helpers.sshd import PASSWORD

SUDO = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'


def test_a_login_that_becomes_root(sshd, redact):
    sshd.program("sudo", SUDO)
    assert login_problem(sshd.endpoint(), redact, 5) == ""
    assert sshd.logins == 1


def test_why_a_login_fails_is_reported_without_its_password(sshd, redact):
    assert "refused the SSH login" in login_problem(sshd.endpoint("wrong"), redact, 5)
    sshd.program("sudo", f"echo '{PASSWORD} is no good' >&2; exit 1\n")
    told = login_problem(sshd.endpoint(), redact, 5)
    assert "`sudo true` ended with exit code 1: *** is no good" in told


def test_a_port_that_answers(session):
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert port_problem(session, "127.0.0.1", server.getsockname()[1]) == ""


def test_a_port_of_ipv6(session):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert port_problem(session, "::1", server.getsockname()[1]) == ""


def test_a_port_without_a_listener(session):
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    told = port_problem(session, "127.0.0.1", closed)
    assert f"to 127.0.0.1, port {closed}: Connection refused. Let routes" in told


def test_a_port_that_does_not_answer(session, sshd, monkeypatch):
    monkeypatch.setattr(reachability, "_CONNECT", 0.2)
    sshd.program("bash", "sleep 30\n")
    told = port_problem(session, "192.0.2.1", 22)
    assert "cannot open a connection to 192.0.2.1, port 22: no answer within" in told


def test_a_session_that_broke(session, sshd):
    session.close()
    assert "connection to 127.0.0.1 was lost" in port_problem(session, "192.0.2.1", 22)
