# SPDX-License-Identifier: Apache-2.0
"""Sessions through a bastion, with servers that really run the commands."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import login, session
from tacker_k8s_mgmt.remote.ssh import routes as ssh_bastion
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.routes import BastionTunnel
from tests.helpers.sshd import PASSWORD, Sshd

BASTION_PASSWORD = "wr0ng b4stion"


@pytest.fixture
def bastion(tmp_path):
    server = Sshd(tmp_path / "bastion")
    yield server
    server.close()


@pytest.fixture
def way(bastion, redact):
    """Give a way through the bastion whose log-in can be changed."""
    made: Any = BastionTunnel(lambda: made.log_in())
    keys = bastion.host_keys()
    made.tries = []
    # Tests in which the bastion does not answer spare themselves the waiting.
    made.patience = 30

    def log_in():
        made.tries.append(made.endpoint)
        settings = {"host_keys": keys, "redact": redact, "deadline": made.patience}
        return login.open_ssh(made.endpoint, **settings)

    made.endpoint, made.log_in = bastion.endpoint(), log_in
    yield made
    made.close()


@pytest.fixture
def beyond(sshd, bastion, way):
    """Where a host is that the bastion alone knows."""
    bastion.hosts["node.internal"] = sshd.port
    return replace(sshd.endpoint(), host="node.internal", via=way)


class TestWay:
    def test_commands_and_files_go_through(self, beyond, log_in, bastion, tmp_path):
        session = log_in(endpoint=beyond)
        assert session.host == "node.internal"
        assert session.run(["cat"], stdin="x" * 200_000, timeout=60).stdout[-1] == "x"
        assert session.put(str(tmp_path / "file"), b"y" * 300_000)
        assert session.get(str(tmp_path / "file")) == b"y" * 300_000
        assert bastion.forwarded == [("node.internal", beyond.account.port)]
        assert bastion.commands == []

    def test_one_session_serves_all(self, beyond, log_in, bastion, sshd):
        with ThreadPoolExecutor(6) as pool:
            sessions = list(pool.map(lambda _: log_in(endpoint=beyond), range(6)))
        assert {s.run(["echo", "in"], timeout=60).stdout for s in sessions} == {"in\n"}
        assert (bastion.logins, sshd.logins) == (1, 6)

    def test_there_is_no_login_before_a_connection_is_needed(self, way, bastion):
        assert (way.tries, bastion.tried) == ([], [])

    def test_a_broken_session_is_opened_again(self, beyond, log_in, bastion):
        first = log_in(endpoint=beyond)
        bastion.drop()
        with pytest.raises(errors.ConnectionLost):
            first.run(["true"], timeout=60)
        assert log_in(endpoint=beyond).run(["true"], timeout=60).rc == 0
        assert bastion.logins == 2

    def test_the_hosts_key_is_recorded_under_its_own_name(self, beyond, log_in):
        keys = HostKeys()
        log_in(endpoint=beyond, host_keys=keys)
        assert keys.text().startswith(f"[node.internal]:{beyond.account.port} ecdsa-")

    def test_an_alias_keeps_hosts_of_one_private_address_apart(self, beyond, log_in):
        keys = HostKeys()
        endpoint = replace(beyond, known_as="node.internal%bastion")
        log_in(endpoint=endpoint, host_keys=keys)
        assert keys.text().startswith(f"[node.internal%bastion]:{beyond.account.port} ")

    def test_closing_it_ends_what_goes_through(self, beyond, log_in, way):
        session = log_in(endpoint=beyond)
        way.close()
        with pytest.raises(errors.ConnectionLost):
            session.run(["true"], timeout=60)


class TestHostsBehind:
    def test_one_that_boots_is_tried_again(self, beyond, log_in, sshd, bastion):
        sshd.refuse_connections = 2
        assert log_in(endpoint=beyond).run(["true"], timeout=60).rc == 0
        assert bastion.logins == 1

    def test_one_that_does_not_listen_is_a_connect_error(self, log_in, sshd, way):
        endpoint = replace(sshd.endpoint(port=1), via=way)
        with pytest.raises(errors.ConnectError, match="the bastion 127") as caught:
            log_in(endpoint=endpoint, deadline=0.5)
        assert not isinstance(caught.value, errors.BastionError)
        assert "ansible@127.0.0.1:1 within" in str(caught.value)

    def test_silence_of_one_is_not_taken_for_that_of_the_bastion(
        self, beyond, log_in, bastion, way, monkeypatch
    ):
        monkeypatch.setattr(ssh_bastion, "_SIGN_OF_LIFE", 20)
        bastion.holds_tunnels = 1.5
        with pytest.raises(errors.ConnectError) as caught:
            log_in(endpoint=beyond, deadline=1, connect_timeout=1)
        assert not isinstance(caught.value, errors.BastionError)
        assert "no answer within 1 s" in str(caught.value)
        assert way.session().alive

    def test_a_wrong_password_there_is_not_the_bastions(self, beyond, log_in, sshd):
        endpoint = replace(beyond, account=sshd.endpoint("wr0ng").account)
        with pytest.raises(errors.AuthError, match=r"^node\.internal:") as caught:
            log_in(endpoint=endpoint)
        assert not isinstance(caught.value, errors.BastionError)


class TestBastionThatDoesNotServe:
    def test_a_wrong_password_names_it_and_is_tried_once(
        self, beyond, log_in, way, bastion, sshd
    ):
        way.endpoint = bastion.endpoint(BASTION_PASSWORD)
        for _ in range(3):
            with pytest.raises(errors.BastionRefused) as caught:
                log_in(endpoint=beyond, deadline=30)
        assert f"The bastion 127.0.0.1:{bastion.port} refused" in str(caught.value)
        assert "structure `bastion`" in str(caught.value)
        assert BASTION_PASSWORD not in str(caught.value)
        assert bastion.tried == ["password"]
        assert sshd.tried == []

    def test_after_a_while_it_is_tried_again(
        self, beyond, log_in, way, bastion, monkeypatch
    ):
        monkeypatch.setattr(ssh_bastion, "FAILURE_HOLDS", 0)
        good, way.endpoint = way.endpoint, bastion.endpoint(BASTION_PASSWORD)
        with pytest.raises(errors.BastionRefused):
            log_in(endpoint=beyond)
        way.endpoint = good
        assert log_in(endpoint=beyond).run(["true"], timeout=60).rc == 0

    def test_one_that_is_gone_is_named(self, beyond, log_in, bastion, way):
        bastion.close()
        way.patience = 0.5
        with pytest.raises(errors.BastionUnreachable) as caught:
            log_in(endpoint=beyond, deadline=30)
        assert f"the bastion ansible@127.0.0.1:{bastion.port}" in str(caught.value)

    def test_one_that_vanishes_later_is_not_taken_for_the_host(
        self, beyond, log_in, bastion, way
    ):
        log_in(endpoint=beyond)
        bastion.close()
        way.patience = 0.5
        with pytest.raises(errors.BastionUnreachable):
            log_in(endpoint=beyond, deadline=30)

    def test_one_that_breaks_again_and_again_is_not_taken_for_the_host(
        self, beyond, log_in, bastion, way, monkeypatch
    ):
        def breaks(*_):
            bastion.drop()
            return real(*_)

        real = session.Session.tunnel
        monkeypatch.setattr(session.Session, "tunnel", breaks)
        with pytest.raises(errors.BastionLost, match="to the bastion 127"):
            log_in(endpoint=beyond, deadline=30)
        assert len(way.tries) == 2

    def test_threads_share_one_failure(self, beyond, log_in, way, bastion):
        bastion.close()
        way.patience = 0.5

        def fails(_):
            with pytest.raises(errors.BastionUnreachable):
                log_in(endpoint=beyond)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(fails, range(6)))
        assert len(way.tries) == 1

    def test_a_changed_host_key_gets_no_password(self, beyond, log_in, way, bastion):
        line = f"[127.0.0.1]:{bastion.port} ecdsa-sha2-nistp256 b3RoZXI=\n"
        keys = HostKeys(line, "/state/known_hosts")
        way.log_in = lambda: login.open_ssh(
            way.endpoint, host_keys=keys, redact=str, deadline=60
        )
        with pytest.raises(errors.BastionKeyError, match="/state/known_hosts"):
            log_in(endpoint=beyond)
        assert bastion.tried == []

    def test_a_bastion_without_forwarding_says_what_to_configure(
        self, beyond, log_in, bastion
    ):
        bastion.forwards = False
        with pytest.raises(errors.BastionForbids) as caught:
            log_in(endpoint=beyond, deadline=30)
        assert "does not pass a connection on to node.internal" in str(caught.value)
        assert "AllowTcpForwarding" in str(caught.value)
        assert len(bastion.forwarded) == 1

    def test_a_bastion_that_stops_answering_is_closed_and_reported(
        self, beyond, log_in, bastion, way, monkeypatch
    ):
        monkeypatch.setattr(ssh_bastion, "_SIGN_OF_LIFE", 0.3)
        way.session()
        bastion.holds_tunnels = 30
        bastion.stop_listening()
        way.patience = 0.5
        with pytest.raises(errors.BastionUnreachable):
            log_in(endpoint=beyond, deadline=30, connect_timeout=0.5)


def test_what_goes_wrong_behind_shows_no_secret(beyond, log_in, bastion, caplog):
    caplog.set_level("DEBUG")
    session = log_in(endpoint=beyond)
    threading.Timer(0.2, bastion.drop).start()
    with pytest.raises(errors.ConnectionLost) as caught:
        session.run(["bash", "-c", "sleep 20", "_", PASSWORD], timeout=30)
    logged = [record.getMessage() for record in caplog.records]
    assert PASSWORD not in str(caught.value) + str(logged)
    assert login.__name__ not in {record.name for record in caplog.records}
