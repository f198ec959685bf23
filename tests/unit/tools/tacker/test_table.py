# SPDX-License-Identifier: Apache-2.0
"""The table of verbs, as the documentation shows it."""

import re

import pytest

from tacker_k8s_mgmt.hooks.advice import FAIL, RETRY, ROLLBACK
from tacker_k8s_mgmt.tools.tacker import table
from tests.tree import ROOT

ROW = re.compile(r"^``([A-Z_]+)`` {2,}(.+?) {2,}(.+?) {2,}(.+)$", re.MULTILINE)


def documented():
    """The APIs that have a verb for a kind of operation, as cli.rst has it."""
    text = (ROOT / "doc" / "source" / "cli.rst").read_text()
    return {
        (kind, verb): set(re.findall(r"\bv[12]\b", cell))
        for kind, *cells in ROW.findall(text)
        for verb, cell in zip((RETRY, ROLLBACK, FAIL), cells, strict=True)
    }


def test_the_documentation_has_the_table():
    kinds = frozenset().union(*table.OPERATIONS.values())
    assert documented() == {
        (kind, verb): {a for a in table.OPERATIONS if kind in table.HANDLED[a, verb]}
        for kind in kinds
        for verb in (RETRY, ROLLBACK, FAIL)
    }


@pytest.mark.parametrize(
    ("api", "kind", "error", "verbs"),
    [
        ("v1", "SCALE_OUT", "scale_end: step 5/9 failed", (ROLLBACK, FAIL)),
        ("v1", "SCALE_OUT", "Heat has no room", (RETRY, ROLLBACK, FAIL)),
        ("v2", "SCALE_OUT", "scale_end: step 5/9 failed", (RETRY, ROLLBACK, FAIL)),
        ("v1", "SCALE_IN", "scale_end", (RETRY, FAIL)),
        ("v1", "MODIFY_INFO", "", (FAIL,)),
        ("v2", "of a newer Tacker", "", ()),
    ],
)
def test_verbs_that_have_an_effect(api, kind, error, verbs):
    assert table.verbs_for(api, kind, error) == verbs


@pytest.mark.parametrize(
    ("api", "error", "verbs"),
    [
        ("v2", "scale_start failed: b'scale_start: step 2/3", (RETRY, FAIL)),
        ("v2", "scale_end failed: b'scale_end: step 7/9", (RETRY, ROLLBACK, FAIL)),
        ("v2", "Resource UPDATE failed", (RETRY, ROLLBACK, FAIL)),
        ("v1", "scale_end: step 5/9 failed", (ROLLBACK, FAIL)),
    ],
)
def test_a_rollback_that_deletes_uncounted_vms_is_not_advised(api, error, verbs):
    assert table.advised(api, "SCALE_OUT", error) == verbs
