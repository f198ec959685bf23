# SPDX-License-Identifier: Apache-2.0
"""The tests that the page of threats names are there."""

import ast
import re

import pytest

from tests.tree import ROOT

PAGE = (ROOT / "doc" / "source" / "threats.rst").read_text()
NAMED = re.findall(r"``((?:unit|contract|integration|real)/[^`]+)``", PAGE)


@pytest.mark.parametrize("named", sorted(set(NAMED)))
def test_each_named_test_is_there(named):
    path, *names = named.split("::")
    place: ast.AST = ast.parse((ROOT / "tests" / path).read_text())
    assert names, named
    for name in names:
        found = [
            one
            for one in ast.iter_child_nodes(place)
            if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name == name
        ]
        assert found, f"{path} has no {name}"
        place = found[0]


def test_each_threat_names_a_test():
    body, _, _ = PAGE.partition(".. _least-privilege:")
    rows = body.count("\n   * - ") - body.count("\n   * - Threat\n")
    assert rows > 60
    cells = re.split(r"\n   \* - ", body)[1:]
    without = [
        cell.splitlines()[0]
        for cell in cells
        if not cell.startswith("Threat\n") and ".py::" not in cell
    ]
    assert not without
