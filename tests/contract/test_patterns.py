# SPDX-License-Identifier: Apache-2.0
"""No pattern of the package takes the square of a text's length."""

import re
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.helpers import patterns

LENGTH = 120_000
LIMIT = 0.3  # seconds of CPU; what takes the square of the length takes a second
FOUND = patterns.of_package()


class TooLongError(Exception):
    """A search is not over within the limit."""


def is_slow(search: Callable[[], Any]) -> bool:
    def ring(*_: Any) -> None:
        raise TooLongError

    former = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        search()
    except TooLongError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
    return False


def slow_texts(pattern: re.Pattern[Any]) -> list[Any]:
    return [
        text[:60]
        for text in patterns.hard_texts(pattern, LENGTH)
        for search in (pattern.findall, pattern.fullmatch)
        # Once more, as a machine may stand still for a moment.
        if all(is_slow(partial(search, text)) for _ in range(2))
    ]


def test_the_patterns_of_the_package_are_found():
    modules = {place.partition(":")[0].rpartition(".")[0] for place in FOUND}
    assert "tacker_k8s_mgmt.request.blanks" in modules
    assert len(FOUND) > 100


@pytest.mark.parametrize("place", sorted(FOUND))
def test_no_pattern_takes_the_square_of_a_text(place):
    assert slow_texts(FOUND[place]) == []


@pytest.mark.parametrize(
    "pattern",
    [
        "<fill in: (.+?)>",
        "(a+)+b",
        r"\s+$",
        r"^.*x.*y",
        r"(?:^|[/-])pause(?:-[a-z0-9]+)?:.+$",
        r"/(?:[a-z]+)+!",
        'Relationship "(.+)" in .* wrong',
    ],
)
def test_a_slow_pattern_is_seen(pattern):
    assert slow_texts(re.compile(pattern, re.DOTALL))
