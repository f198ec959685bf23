# SPDX-License-Identifier: Apache-2.0
"""No pattern of the package takes the square of a text's length."""

import re
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers import patterns

LENGTH = 40_000
#: Seconds of CPU. A search that takes less is quick, and none is left to take longer.
QUICK, LIMIT = 0.02, 1.0
#: For four times the length, a line takes four times as long and a square sixteen.
GROWTH = 8
FOUND = patterns.of_package()


class TooLongError(Exception):
    """A search is not over within the limit."""


def seconds(search: Callable[[Any], Any], text: Any) -> float:
    """The CPU time of a search, up to the limit."""

    def ring(*_: Any) -> None:
        raise TooLongError

    former = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    began = time.thread_time()
    try:
        search(text)
    except TooLongError:
        return LIMIT
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
    return time.thread_time() - began


def is_slow(search: Callable[[Any], Any], text: Any) -> bool:
    """Whether a search takes far more than four times as long for such a text."""
    whole = seconds(search, text)
    if whole < QUICK:
        return False
    # The least of several times counts: others use the machine, too.
    whole = min(whole, seconds(search, text))
    quarter = text[: LENGTH // 4] + text[LENGTH:]
    return whole >= LIMIT or whole > GROWTH * min(
        seconds(search, quarter) for _ in range(3)
    )


def slow_text(pattern: re.Pattern[Any]) -> str:
    """The beginning of a text on which a search is slow; "" if there is none."""
    return next(
        (
            repr(text[:60])
            for text in patterns.hard_texts(pattern, LENGTH)
            for search in (pattern.findall, pattern.fullmatch)
            if is_slow(search, text)
        ),
        "",
    )


def test_the_patterns_of_the_package_are_found():
    modules = {place.partition(":")[0].rpartition(".")[0] for place in FOUND}
    assert "tacker_k8s_mgmt.request.structure" in modules
    assert len(FOUND) > 100


@pytest.mark.parametrize("place", sorted(FOUND))
def test_no_pattern_takes_the_square_of_a_text(place):
    assert slow_text(FOUND[place]) == ""


@pytest.mark.parametrize(
    "pattern",
    [
        "(?s)<fill in: (.+?)>",
        "(a+)+b",
        r"\s+$",
        r"(?s)^.*x.*y",
        r"(?:^|[/-])pause(?:-[a-z0-9]+)?:.+$",
        r"/(?:[a-z]+)+!",
        'Relationship "(.+)" in .* wrong',
    ],
)
def test_a_slow_pattern_is_seen(pattern):
    assert slow_text(re.compile(pattern))
