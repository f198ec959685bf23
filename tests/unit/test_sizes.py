# SPDX-License-Identifier: Apache-2.0
"""A module is one idea that one can keep in mind, a function fits a screen."""

import ast
from collections.abc import Iterator

import pytest

from tests import tree
from tests.helpers import source

MODULE, FUNCTION = 700, 60  # lines, blank ones and comments included
PACKAGES = (
    *("tacker_k8s_mgmt", "lab", "benchmarks", "doc"),
    *("tests/documents", "tests/helpers"),
)
MODULES = [
    name
    for name in tree.files()
    if name.endswith(".py") and name.startswith(tuple(f"{p}/" for p in PACKAGES))
]


def long_functions(module: ast.Module) -> Iterator[str]:
    """Functions and methods over the limit; decorators count, too."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            assert node.end_lineno is not None
            if (length := node.end_lineno - first + 1) > FUNCTION:
                yield f"{node.name} has {length} lines"


@pytest.mark.parametrize("name", MODULES)
def test_module_and_its_functions_are_short(name: str) -> None:
    path = tree.ROOT / name
    assert len(path.read_text().splitlines()) <= MODULE
    assert not list(long_functions(source.module(path)))


def test_every_package_is_counted() -> None:
    assert all(
        any(name.startswith(f"{package}/") for name in MODULES) for package in PACKAGES
    )


def test_a_long_function_is_noticed() -> None:
    def found(text: str) -> list[str]:
        return list(long_functions(ast.parse(text)))

    body = "\n".join(["    pass"] * FUNCTION)
    assert found(f"async def f():\n{body}") == ["f has 61 lines"]
    nested = (
        f"class A:\n    @property\n    def f(self):\n{body.replace('    ', '        ')}"
    )
    assert found(nested) == ["f has 62 lines"]
    assert not found(f"def f():\n{body[9:]}")
