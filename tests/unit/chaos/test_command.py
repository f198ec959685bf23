# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab chaos`` passes its options on."""

import argparse

import pytest

from lab import chaos
from tests.chaos import __main__ as command


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--seed 7 --minutes 2.5 --steps 3 --plan",
        "--clusters v2-plain --record /r --replay /q --faults route_deleted",
    ],
)
def test_words_reach_the_campaign(words):
    parser = argparse.ArgumentParser()
    chaos.add_arguments(parser)
    given = parser.parse_args(words.split())
    assert command.parser().parse_args(chaos.words(given)) == given


def test_unknown_names_are_refused(monkeypatch):
    for option in ("--clusters", "--faults"):
        monkeypatch.setattr("sys.argv", ["chaos", "--plan", option, "none such"])
        with pytest.raises(SystemExit, match="none such; there are"):
            command.main()
