# SPDX-License-Identifier: Apache-2.0
"""A laboratory's settings and its report, for tests that start none."""

import io

import pytest

from lab.report import Report
from lab.settings import Settings


@pytest.fixture
def lab(tmp_path):
    return Settings(tmp_path / "state", tmp_path / "cache")


@pytest.fixture
def report():
    return Report(io.StringIO())
