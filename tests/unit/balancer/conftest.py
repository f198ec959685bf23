# SPDX-License-Identifier: Apache-2.0
import shutil
from pathlib import Path

import pytest

from tests.unit.balancer.sandbox import HAPROXY, INSTALL, Sandbox

WEB = ("expose", "web", "--port", "80", "--node-port", "30080")


def _prepared(directory: Path, *verbs: tuple[str, ...]) -> Sandbox:
    if HAPROXY is None:
        pytest.skip("haproxy is not installed (apt-get install haproxy)")
    sandbox = Sandbox(directory)
    for verb in verbs:
        sandbox.do(*verb)
    sandbox.acts()
    return sandbox


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The load balancer that ``balancer`` is a copy of."""
    return _prepared(tmp_path_factory.mktemp("installed"), INSTALL)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The one that ``serving`` is a copy of; for calls that leave it as it is."""
    return _prepared(tmp_path_factory.mktemp("serving"), INSTALL, WEB)


@pytest.fixture
def fresh(tmp_path: Path) -> Sandbox:
    """A VM on which nothing was done yet."""
    return _prepared(tmp_path)


@pytest.fixture
def balancer(installed: Sandbox, tmp_path: Path) -> Sandbox:
    """A VM on which the load balancer was installed."""
    shutil.copytree(installed.directory, tmp_path, dirs_exist_ok=True)
    return Sandbox(tmp_path)


@pytest.fixture
def serving(shared: Sandbox, tmp_path: Path) -> Sandbox:
    """The same, with a service exposed: workers are part of haproxy.cfg."""
    shutil.copytree(shared.directory, tmp_path, dirs_exist_ok=True)
    return Sandbox(tmp_path)
