"""Fixtures: a server to talk to, and sessions with it."""

import contextlib

import pytest

from tacker_k8s_mgmt.remote import ssh
from tests.unit.remote.sshd import PASSWORD, Sshd


@pytest.fixture
def sshd(tmp_path):
    server = Sshd(tmp_path / "home")
    yield server
    server.close()


@pytest.fixture
def redact():
    return lambda text: text.replace(PASSWORD, "***")


@pytest.fixture
def log_in(sshd, redact):
    """Return a function that opens a session, closed at the end of the test."""
    keys = sshd.host_keys()
    with contextlib.ExitStack() as stack:

        def open_session(**options):
            endpoint = options.pop("endpoint", sshd.endpoint())
            settings = {"host_keys": keys, "redact": redact, "deadline": 5} | options
            return stack.enter_context(ssh.connect(endpoint, **settings))

        yield open_session


@pytest.fixture
def session(log_in):
    return log_in()
