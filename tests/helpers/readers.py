# SPDX-License-Identifier: Apache-2.0
"""The readers of texts of others in the package, and texts that are made to harm them.

A reader is a function that makes values of a text: it calls a parser, makes a number of
a text, or gives a client the function that reads an answer.
"""

import ast
import copy
import random
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import tacker_k8s_mgmt
from tests.helpers import hostile

_ROOT = Path(tacker_k8s_mgmt.__file__).parent
# By the module: the functions that read a text or a value of one.
_PARSERS = {
    "untrusted": {"parse_json", "json_stream", "number", "checked"},
    "yaml_text": {"parse_yaml", "yaml_documents", "check_yaml"},
    "kubernetes_yaml": {"document", "documents"},
    "json": {"load", "loads", "JSONDecoder"},
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "compose_all", "parse"},
    "ast": {"literal_eval"},
    "pickle": {"load", "loads"},
    "manifests": {"parse"},
}
_NUMBERS = {"int", "float"}
# They may be called without their module.
_OWN = _PARSERS["untrusted"] | _PARSERS["yaml_text"]
#: The module that is a parser itself, and what reads texts in that of the others.
MECHANISM = ("model.kubernetes_yaml", "model.untrusted", "model.yaml_text")
_FIELDS = ("number_of", "moment_of", "text_of", "texts_of", "values_of")


def found(root: Path = _ROOT) -> dict[str, tuple[str, int]]:
    """The readers by their names, such as ``remote.load_balancer.Balancer.status``.

    :returns: file and first line of each.
    """
    readers: dict[str, tuple[str, int]] = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, function in _functions(tree, module):
            if module in MECHANISM and function.name not in _FIELDS:
                continue
            if any(map(_reads, ast.walk(function))):
                above = [one.lineno for one in function.decorator_list]
                readers[name] = (str(path), min([*above, function.lineno]))
    return readers


def _functions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The outermost functions of a module and of its classes."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef):
            yield f"{name}.{inner.name}", inner
        elif isinstance(inner, ast.ClassDef):
            yield from _functions(inner, f"{name}.{inner.name}")


def _reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "validate_json":
        return True
    if not isinstance(node, ast.Call):
        return False
    if any(keyword.arg == "read" for keyword in node.keywords):
        return True
    match node.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name in _PARSERS.get(module, ()) or _asks(node.func)
        case ast.Attribute():
            return _asks(node.func)
        case ast.Name(id=name) if name in _OWN:
            return True
        case ast.Name(id=name) if name in _NUMBERS and node.args:
            return not _is_known(node.args[0])
    return False


def _asks(function: ast.Attribute) -> bool:
    """Whether it is a method of a client that has a function for the answer."""
    owner = ast.unparse(function.value)
    return function.attr in {"table", "objects"} and owner.endswith("client")


def _is_known(value: ast.AST) -> bool:
    """Whether a value is no text: what is counted, compared or calculated here."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in {"all", "any", "len"}:
        return True
    return isinstance(value, ast.Constant | ast.Compare | ast.BinOp)


def reached(readers: dict[str, tuple[str, int]], call: Callable[[], Any]) -> set[str]:
    """The readers that a call enters, in this thread."""
    by_place = {place: name for name, place in readers.items()}
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and (code.co_filename, code.co_firstlineno) in by_place:
            seen.add(by_place[code.co_filename, code.co_firstlineno])

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


HUGE = 10**400
_DEEP: Any = "x"
for _ in range(300):
    _DEEP = [_DEEP]
#: In place of any value.
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, HUGE, float("nan"), "", "a", "1e999", "9" * 5000, "\0"),
    *("\ud800", "²", "http://[", [], {}, [None], [{}], {"a": None}, {"": {}}, _DEEP),
)


def mutations(valid: Any, name: str, most: int) -> Iterator[Any]:
    """Values that differ from a valid one at one place or two, the same each time.

    :param most: of them; all kinds of differences have the same part in it.
    """
    chance = random.Random(name)  # noqa: S311
    places = list(hostile.places(valid))
    singles = [(place, value) for place in places for value in VALUES]
    chance.shuffle(singles)
    for place, value in singles[:most]:
        yield changed(valid, place, value)
    for place in places[: most // 4]:
        if place:
            yield without(valid, place)
    for _ in range(most // 4):
        one = changed(valid, chance.choice(places), chance.choice(VALUES))
        inner = list(hostile.places(one))[:500]
        yield changed(one, chance.choice(inner), chance.choice(VALUES))


def changed(valid: Any, place: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at a place."""
    if not place:
        return value
    made = copy.deepcopy(valid)
    holder = made
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return made


def without(valid: Any, place: tuple[Any, ...]) -> Any:
    """A copy without what is at a place."""
    made = copy.deepcopy(valid)
    holder = made
    for step in place[:-1]:
        holder = holder[step]
    del holder[place[-1]]
    return made


def spoils(name: str, most: int) -> Iterator[Callable[[str], str]]:
    """Functions that damage a text as such, the same each time."""
    for whole in WHOLE:
        yield lambda _, whole=whole: whole  # type: ignore[misc]
    yield lambda text: text * 2
    yield lambda text: text[::-1]
    yield lambda text: f"{text}\0"
    yield lambda text: f"\ufeff{text}"
    yield lambda text: re.sub(r'"(\w+)": ', r'"\1": null, "\1": ', text)
    yield lambda text: re.sub(r'("\w+": )([^{}[\]]*?)([,}])', r"\1\2, \1[]\3", text)
    for number in range(most):
        yield partial(_spoiled, random.Random(f"{name} {number}"))  # noqa: S311


def _spoiled(chance: random.Random, text: str) -> str:
    at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
    part = chance.choice(("", "\0", "\ud800", '"', "\n", "]", "{", "1" * 5000, "²"))
    inserted = f"{text[:at]}{part}{text[at:]}"
    return chance.choice((text[:at], inserted, f"{text[:at]}{text[to:]}"))


#: In place of a whole text.
WHOLE = (
    *(
        "",
        " ",
        "\n",
        "\0",
        "\ud800",
        "null",
        "[]",
        "{}",
        '""',
        "0",
        "-",
        "NaN",
        "Infinity",
    ),
    *(
        "1" * 5000,
        "1e999",
        ":".join(["1"] * 400),
        "a" * 100_000,
        "²",
        "٣",
        "[" * 100_000,
    ),
    *('{"a":' * 5000, hostile.ESCAPES, hostile.ITSELF, hostile.LAUGHS, hostile.STAIRS),
    *(
        f"a: {'1' * 5000}",
        f"a: {':'.join(['1'] * 400)}.5",
        "a: 2024-99-99",
        "!!binary é",
    ),
)
