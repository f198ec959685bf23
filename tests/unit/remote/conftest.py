# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a server to talk to, and sessions with it."""

import contextlib
import shutil

import pytest

from tacker_k8s_mgmt.remote.ssh import login
from tests.helpers import applications, kubectl_server
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
def state(request, tmp_path):
    """The file with what is in the cluster at first, or None: its nodes alone.

    A test that begins with an application names it as the parameter of this fixture,
    see ``with_shop`` and ``with_wiki``; it is brought once for all of them.
    """
    if not hasattr(request, "param"):
        return None
    made = request.getfixturevalue(f"state_with_{request.param}")
    return shutil.copy(made, tmp_path / "state.json")


@pytest.fixture
def site(sshd, api_certificate, state):
    """A cluster of m1, w1, w10 and w2 behind the SSH server."""
    certificate, key = api_certificate
    site = kubectl_server.open_site(sshd, certificate, key, state=state)
    yield site
    kubectl_server.close_site(site)


@pytest.fixture(scope="session")
def state_with_shop(tmp_path_factory, api_certificate):
    return _state_with(tmp_path_factory.mktemp("shop"), api_certificate, "shop")


@pytest.fixture(scope="session")
def state_with_wiki(tmp_path_factory, api_certificate):
    return _state_with(tmp_path_factory.mktemp("wiki"), api_certificate, "wiki")


def _state_with(directory, api_certificate, name):
    """The file of a cluster to which one application was brought."""
    certificate, key = api_certificate
    with contextlib.ExitStack() as stack:
        sshd = stack.enter_context(contextlib.closing(Sshd(directory / "home")))
        state = directory / "state.json"
        site = kubectl_server.open_site(sshd, certificate, key, state=state)
        stack.callback(kubectl_server.close_site, site)
        logged_in = login.open_ssh(
            sshd.endpoint(), host_keys=sshd.host_keys(), redact=str, deadline=60
        )
        session = stack.enter_context(logged_in)
        applications.bring_first(site, session, name)
    return state
