# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a server to talk to, and sessions with it."""

import contextlib

import pytest

from tacker_k8s_mgmt.remote.ssh import login
from tests.helpers import kubectl_server
from tests.helpers.kubeapi import make_certificate
from tests.helpers.sshd import PASSWORD, Sshd


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
            settings = {"host_keys": keys, "redact": redact, "deadline": 60} | options
            return stack.enter_context(login.open_ssh(endpoint, **settings))

        yield open_session


@pytest.fixture
def session(log_in):
    return log_in()


@pytest.fixture(scope="session")
def api_certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("api"))


@pytest.fixture
def site(sshd, api_certificate):
    """A cluster of m1, w1, w10 and w2 behind the SSH server."""
    site = kubectl_server.open_site(sshd, *api_certificate)
    yield site
    kubectl_server.close_site(site)
