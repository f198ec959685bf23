# SPDX-License-Identifier: Apache-2.0
"""A cloud for the tests of what asks one."""

from collections.abc import Iterator

import pytest

from tests.helpers.openstack_cloud import OpenStack


@pytest.fixture
def openstack(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenStack]:
    """A cloud whose login is in the environment; nothing was made in it."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.delenv("OS_CLOUD", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(home)
    with OpenStack().running() as running:
        for name, value in running.environment(home).items():
            monkeypatch.setenv(name, value)
        yield running
