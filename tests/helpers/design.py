# SPDX-License-Identifier: Apache-2.0
"""The page on the design, and the names that the code has."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests import tree
from tests.helpers import source

PAGE = tree.ROOT / "doc/source/design.rst"
PACKAGE = tree.ROOT / "tacker_k8s_mgmt"
BLOCK = re.compile(
    r"^( *)\.\. code-block:: python\n\n((?:\1   .*\n|\n)+)", re.MULTILINE
)
#: Names in the examples of what the driver does not have, and names of others.
EXAMPLES = {
    *("EtcdDefrag", "ClusterEtcdDefrag", "ROUTE_REFLECTOR", "route_reflectors"),
    "client_timeout",
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
