# SPDX-License-Identifier: Apache-2.0
"""Progress for people."""

import io
import time

import pytest

from lab.report import Report


def test_a_step_is_one_line_with_its_seconds():
    stream, clock = io.StringIO(), iter([10.0, 12.34])
    with Report(stream, clock=lambda: next(clock)).step("mariadb"):
        pass
    assert stream.getvalue().split() == ["mariadb", "2.3", "s"]


def test_a_long_step_is_announced_and_shows_that_it_goes_on():
    stream = io.StringIO()
    with Report(stream, quiet=0.02, tick=0.02).step("apt"):
        time.sleep(0.15)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "  apt ..."
    assert len(lines) >= 3
    assert lines[-1].endswith(" s")


def test_a_step_that_fails_does_not_look_done():
    stream = io.StringIO()
    with pytest.raises(OSError, match="full"), Report(stream).step("apt"):
        raise OSError("full")
    assert stream.getvalue() == ""
