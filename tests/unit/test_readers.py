# SPDX-License-Identifier: Apache-2.0
"""Each reader of texts of others reads any text, or raises an error of our own."""

import os
import re
import traceback
from collections.abc import Callable

import pytest

from tests.helpers import readers
from tests.helpers.untrusted import FED, TRUSTED, Fed, is_ours
from tests.tree import ROOT

FOUND = readers.found()
LONGEST = 5000  # bytes of an error, which does not quote megabytes
MOST = int(os.environ.get("MOST", 150))


def test_the_readers_are_found():
    modules = {name.partition(".")[0] for name in FOUND}
    assert {"model", "remote", "topology", "hooks", "tools", "journal"} <= modules
    assert len(FOUND) > 100


def test_each_reader_is_fed_or_has_a_reason_not_to_be():
    fed = {name for one in FED.values() for name in one.readers}
    assert sorted(FOUND.keys() - fed - TRUSTED.keys()) == [], "feed them"
    assert sorted((fed | TRUSTED.keys()) - FOUND.keys()) == [], "they are no readers"
    assert sorted(fed & TRUSTED.keys()) == []


def test_the_tests_that_reasons_name_are_there():
    named = {
        (ROOT / "tests" / path, name)
        for reason in TRUSTED.values()
        for path, name in re.findall(r"(\S+\.py)::(\w+)", reason)
    }
    assert named
    assert [n for path, n in named if f"def {n}(" not in path.read_text()] == []


@pytest.mark.parametrize("name", FED)
def test_what_is_valid_reaches_the_readers_and_is_read(name):
    one = FED[name]
    assert set(one.readers) <= readers.reached(FOUND, lambda: one.read(one.valid, str))


@pytest.mark.parametrize("name", FED)
def test_any_text_is_read_or_is_one_of_our_errors(name):
    assert escapes(FED[name], name) == {}


def escapes(one: Fed, name: str) -> dict[str, str]:
    """The errors that are not ours or too long, each with where it came from."""
    plain: Callable[[str], str] = str
    tries = [(value, plain) for value in readers.mutations(one.valid, name, MOST)]
    tries += [(one.valid, spoil) for spoil in readers.spoils(name, MOST // 4)]
    found: dict[str, str] = {}
    for value, spoil in tries:
        try:
            one.read(value, spoil)
        except Exception as error:
            if not is_ours(error) or len(str(error).encode()) > LONGEST:
                frames = traceback.extract_tb(error.__traceback__)
                ours = [f for f in frames if "tacker_k8s_mgmt/" in f.filename] or frames
                place = ours[-1].filename.rpartition("tacker_k8s_mgmt/")[2]
                where = f"{type(error).__name__} at {place}:{ours[-1].lineno}"
                found[where] = str(error)[:100]
    return found
