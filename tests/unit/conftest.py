# SPDX-License-Identifier: Apache-2.0
"""Fixtures for all unit tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_HERE = Path(__file__).parent
#: Whether a session has unit tests alone.
_OURS = pytest.StashKey[bool]()
_IMPORTED = "a unit test imports Tacker"

# A busy machine is not a failed test, and nothing is to be left in the tree.
settings.register_profile(
    "unit",
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unit")


def pytest_collection_finish(session: pytest.Session) -> None:
    """See that Tacker, which patches Python's modules, is left to the contract tests.

    In a patched process, servers in threads wait for themselves.
    """
    session.stash[_OURS] = all(p.path.is_relative_to(_HERE) for p in session.items)
    assert not session.stash[_OURS] or "eventlet" not in sys.modules, _IMPORTED


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """The same of what a test imports while it runs: later ones may hang."""
    assert not item.session.stash[_OURS] or "eventlet" not in sys.modules, _IMPORTED


@pytest.fixture(scope="session")
def decimal_comma(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a login in whose locale 1.5 is written 1,5."""
    directory = tmp_path_factory.mktemp("locales")
    build = ["localedef", "-i", "de_DE", "-f", "UTF-8", str(directory / "de_DE.UTF-8")]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    locale = {"LOCPATH": str(directory), "LC_ALL": "de_DE.UTF-8"}
    number = subprocess.check_output(
        ["stat", "-c", "%.3Y", directory], env={**os.environ, **locale}, text=True
    )
    assert "," in number
    return locale
