# SPDX-License-Identifier: Apache-2.0
"""A thing of the code has one name, and what a text names is there."""

import ast
import builtins
import re
from collections.abc import Iterator

from tests.helpers import source
from tests.tree import ROOT

PACKAGE = "tacker_k8s_mgmt"
#: Modules of one name in two packages that a third one needs.
TWINS = {"v1_lookup", "v2_lookup"}
_RAISES = re.compile(r":raises ([\w.]+):")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        yield str(path.relative_to(ROOT / PACKAGE)), source.module(path)


def imported(module: ast.Module) -> Iterator[tuple[str, ast.alias]]:
    """What is imported of ours, each with the module that it is imported from."""
    for node in ast.walk(module):
        match node:
            case ast.ImportFrom(module=str(place), names=names):
                if place.partition(".")[0] == PACKAGE:
                    yield from ((place, alias) for alias in names)
            case ast.Import(names=names):
                yield from (("", a) for a in names if a.name.startswith(PACKAGE))


def renamed(module: ast.Module) -> list[str]:
    """What is imported under another name; ``v1_lookup`` is that of a twin."""
    return [
        f"{place}.{alias.name} as {alias.asname}"
        for place, alias in imported(module)
        if alias.asname
        and not (
            alias.asname in TWINS
            and alias.asname == f"{place.rpartition('.')[2]}_{alias.name}"
        )
    ]


def test_nothing_is_imported_under_another_name():
    found = {name: renamed(module) for name, module in modules()}
    assert {name: one for name, one in found.items() if one} == {}
    used = {
        alias.asname
        for _, one in modules()
        for _, alias in imported(one)
        if alias.asname
    }
    assert used == TWINS


def errors_of(module: ast.Module) -> set[str]:
    """The errors that the docstrings of a module say to be raised."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = (
        ast.get_docstring(node) or ""
        for node in ast.walk(module)
        if isinstance(node, kinds)
    )
    return {name.rpartition(".")[2] for text in texts for name in _RAISES.findall(text)}


def classes() -> set[str]:
    """Those of the code, what it imports, and Python's own."""
    found = set(dir(builtins))
    for _, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute):
                # Such as that of http.client.HTTPException.
                found.add(node.attr)
    return found


def test_each_error_that_a_docstring_names_is_there():
    known = classes()
    wrong = {name: errors_of(module) - known for name, module in modules()}
    assert {name: one for name, one in wrong.items() if one} == {}


def test_a_name_that_is_not_there_is_noticed():
    text = 'def f():\n    """Do it.\n\n    :raises NoSuch: always.\n    """\n'
    assert errors_of(ast.parse(text)) == {"NoSuch"}
    text = f"from {PACKAGE}.model import clock_skew as skew\n"
    assert renamed(ast.parse(text)) == [f"{PACKAGE}.model.clock_skew as skew"]
    assert renamed(ast.parse(f"import {PACKAGE}.model.nodes as n")) != []
    assert renamed(ast.parse(f"from {PACKAGE}.a.v1 import lookup as v1_lookup")) == []
