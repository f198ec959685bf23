# SPDX-License-Identifier: Apache-2.0
"""The examples of the page on the design fit the code, Tacker's hooks among it."""

import ast
import builtins
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tests.helpers.design import (
    BLOCK,
    EXAMPLES,
    PAGE,
    defined,
    modules,
    names_of,
    words,
)


def blocks(page: str) -> list[str]:
    return [textwrap.dedent(match[2]) for match in BLOCK.finditer(page)]


def parse(block: str) -> ast.AST:
    """An example may be statements, or rows of a table in between."""
    try:
        return ast.parse(block)
    except SyntaxError:
        parts = block.strip().split("\n\n")
        if len(parts) == 1:
            return ast.parse(f"{{{block}}}")
        return ast.Module([cast(ast.stmt, parse(part)) for part in parts], [])


def callables(name: str) -> Iterator[Callable[..., Any]]:
    """The classes and functions of this name that are ours."""
    for module, parsed in modules():
        if any(name in names_of(node) for node in parsed.body):
            yield getattr(importlib.import_module(module), name)


def misfits(block: str) -> set[str]:
    """The names that nothing has, and the calls that their callee would refuse."""
    module = parse(block)
    own = {name for node in ast.walk(module) for name in names_of(node)}
    known = defined() | words() | own | set(dir(builtins)) | EXAMPLES
    found = set()
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name not in known:
                found.add(name)
            case ast.Call(func=ast.Name(id=name)) if name not in own:
                ours = list(callables(name))
                if ours and not any(binds(one, node) for one in ours):
                    found.add(ast.unparse(node))
    return found


def binds(callee: Callable[..., Any], call: ast.Call) -> bool:
    try:
        keywords = {word.arg or "": None for word in call.keywords}
        inspect.signature(callee).bind(*call.args, **keywords)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("block", blocks(PAGE.read_text()))
def test_an_example_fits_the_code(block: str) -> None:
    assert misfits(block) == set()


def test_a_name_or_a_call_that_is_not_in_the_code_is_noticed() -> None:
    assert misfits('Step("drain the leaving nodes", leave.drain),') == {
        "Step('drain the leaving nodes', leave.drain)"
    }
    assert misfits("_no_such().run(1)") == {"_no_such"}
    assert misfits('Step("drain", "drain the leaving nodes", leave.drain)') == set()
