# SPDX-License-Identifier: Apache-2.0
import shutil
from pathlib import Path

import pytest

from tests.unit.balancer.sandbox import HAPROXIES, INSTALL, Sandbox

WEB = ("expose", "web", "--port", "80", "--node-port", "30080")


@pytest.fixture(scope="session")
def haproxy(request):
    """The HAProxy that a test runs with: that of the system, but for `each_haproxy`."""
    program = HAPROXIES[getattr(request, "param", next(iter(HAPROXIES)))]
    assert program, "haproxy is not there: python3 -m lab install --with-tests"
    assert Path(program).exists(), "python3 -m lab install --with-tests"
    return program


def _prepared(directory: Path, haproxy: str, *verbs: tuple[str, ...]) -> Sandbox:
    sandbox = Sandbox(directory, haproxy)
    for verb in verbs:
        sandbox.do(*verb)
    sandbox.acts()
    return sandbox


@pytest.fixture(scope="session")
def installed(tmp_path_factory, haproxy):
    """The load balancer that ``balancer`` is a copy of."""
    return _prepared(tmp_path_factory.mktemp("installed"), haproxy, INSTALL)


@pytest.fixture(scope="session")
def shared(tmp_path_factory, haproxy):
    """The one that ``serving`` is a copy of; for calls that leave it as it is."""
    return _prepared(tmp_path_factory.mktemp("serving"), haproxy, INSTALL, WEB)


@pytest.fixture
def fresh(tmp_path, haproxy):
    """A VM on which nothing was done yet."""
    return _prepared(tmp_path, haproxy)


@pytest.fixture
def balancer(installed, tmp_path):
    """A VM on which the load balancer was installed."""
    shutil.copytree(installed.directory, tmp_path, dirs_exist_ok=True)
    return Sandbox(tmp_path, installed.haproxy)


@pytest.fixture
def serving(shared, tmp_path):
    """The same, with a service exposed: workers are part of haproxy.cfg."""
    shutil.copytree(shared.directory, tmp_path, dirs_exist_ok=True)
    return Sandbox(tmp_path, shared.haproxy)
