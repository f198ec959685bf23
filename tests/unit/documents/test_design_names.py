# SPDX-License-Identifier: Apache-2.0
"""The page on the design names what is in the code, and its examples fit it."""

import ast
import builtins
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast

import pytest

from tests import tree
from tests.helpers import source

PAGE = tree.ROOT / "doc/source/design.rst"
PACKAGE = tree.ROOT / "tacker_k8s_mgmt"
_LITERAL = re.compile(r"(?<!`)``([^`\n]+)``(?!`)")
_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(\(.*\))?")
_BLOCK = re.compile(
    r"^( *)\.\. code-block:: python\n\n((?:\1   .*\n|\n)+)", re.MULTILINE
)
_ENDS = ("json", "jsonl", "py", "rst", "sh", "state", "yaml", "yml", "cfg", "conf")
#: Names in the examples of what the driver does not have, and names of others.
EXAMPLES = {
    *("EtcdDefrag", "ClusterEtcdDefrag", "ROUTE_REFLECTOR", "route_reflectors"),
    "client_timeout",
}
OTHERS = {
    *("pyproject.toml", "read_limits", "TestTable", "KUBESPRAY_ROOTS"),
    *("Ansible_host", "ansible.posix.jsonl"),
    "userScriptErrHandlingData",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(tree.ROOT).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        yield name, source.module(path)


def names_of(node: ast.AST) -> Iterator[str]:
    """What a node defines or may be reached by."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.alias(name=name, asname=other):
            yield from (name.partition(".")[0], other or name)


@cache
def defined() -> frozenset[str]:
    found = {"tacker_k8s_mgmt"}
    for name, module in modules():
        found |= {*name.split(".")}
        found |= {one for node in ast.walk(module) for one in names_of(node)}
    return frozenset(found)


@cache
def words() -> frozenset[str]:
    """Those of texts of the code, such as names of hooks and of variables."""
    texts = (
        node.value
        for _, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    found = (re.findall(r"\w[\w-]*", text) for text in texts)
    return frozenset(word.replace("-", "_") for text in found for word in text)


def unknown(page: str) -> set[str]:
    """The names in code font that nothing has."""
    found = set()
    for literal in _LITERAL.findall(_BLOCK.sub("", page)):
        match = _NAME.fullmatch(literal)
        if not match or literal in OTHERS:
            continue
        parts = match[1].split(".")
        if parts[-1] in _ENDS:
            continue
        ours = match[2] or len(parts) > 1 or re.match("_|[A-Z][a-z]", literal)
        known = defined() if ours else defined() | words()
        if not set(parts) <= known | EXAMPLES:
            found.add(literal)
    return found


def blocks(page: str) -> list[str]:
    return [textwrap.dedent(match[2]) for match in _BLOCK.finditer(page)]


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


def test_every_name_is_in_the_code() -> None:
    page = PAGE.read_text()
    assert unknown(page) == set()
    assert [name for name in sorted(OTHERS | EXAMPLES) if name not in page] == []


@pytest.mark.parametrize("block", blocks(PAGE.read_text()))
def test_an_example_fits_the_code(block: str) -> None:
    assert misfits(block) == set()


def test_a_name_or_a_call_that_is_not_in_the_code_is_noticed() -> None:
    assert unknown("``Becomes``, ``_no_such()`` and ``Hook.no_such``; ``Step``") == {
        *("Becomes", "_no_such()", "Hook.no_such")
    }
    assert misfits('Step("drain the leaving nodes", leave.drain),') == {
        "Step('drain the leaving nodes', leave.drain)"
    }
    assert misfits("_no_such().run(1)") == {"_no_such"}
    assert misfits('Step("drain", "drain the leaving nodes", leave.drain)') == set()
