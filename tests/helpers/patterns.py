# SPDX-License-Identifier: Apache-2.0
"""The patterns of the package, and texts on which a careless one takes very long."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import tacker_k8s_mgmt
from tests.helpers import source

_CALLS = frozenset(
    [
        "compile",
        "search",
        "match",
        "fullmatch",
        "findall",
        "finditer",
        "sub",
        "subn",
        "split",
    ]
)
_ENOUGH = 24  # repeated parts of a pattern, each after some texts
_BEFORE = 3  # texts before a repeated part


def of_package() -> dict[str, re.Pattern[Any]]:
    """The patterns by their places: compiled ones, and those written in calls."""
    found: dict[str, re.Pattern[Any]] = {}
    for module in _modules():
        for name, value in _values(module):
            found[f"{module.__name__}.{name}"] = value
        for node in ast.walk(source.module(Path(module.__file__))):
            if pattern := _written(node):
                found[f"{module.__name__}:{node.lineno}"] = pattern  # type: ignore[attr-defined]
    return found


def _modules() -> Iterator[Any]:
    path, prefix = tacker_k8s_mgmt.__path__, "tacker_k8s_mgmt."
    for info in pkgutil.walk_packages(path, prefix):
        if not info.name.endswith("__main__") and ".run_files." not in info.name:
            yield importlib.import_module(info.name)


def _values(module: Any) -> Iterator[tuple[str, re.Pattern[Any]]]:
    holders = [("", vars(module))]
    holders += [
        (f"{name}.", vars(value))
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    for prefix, holder in holders:
        for name, value in holder.items():
            for number, one in enumerate(_inside(value)):
                yield f"{prefix}{name}{f'[{number}]' if number else ''}", one


def _inside(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for inner in value:
            yield from _inside(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _inside(key)
            yield from _inside(inner)


def _written(node: ast.AST) -> re.Pattern[Any] | None:
    """The pattern of a call such as ``re.search``, with words for its parts."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    owner = node.func.value
    if node.func.attr not in _CALLS or not isinstance(owner, ast.Name):
        return None
    if owner.id != "re" or not node.args:
        return None
    flags = 0
    for one in (*node.args[2:], *(k.value for k in node.keywords if k.arg == "flags")):
        flag = getattr(re, getattr(one, "attr", ""), 0)
        flags |= flag if isinstance(flag, re.RegexFlag) else 0
    match node.args[0]:
        case ast.Constant(value=str() | bytes() as text):
            return re.compile(text, flags)
        case ast.JoinedStr(values=parts):
            texts = [p.value if isinstance(p, ast.Constant) else "word" for p in parts]
            return re.compile("".join(map(str, texts)), flags)
    return None


def hard_texts(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    """Texts that repeat what the pattern repeats, after what comes before it there."""
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    is_bytes = isinstance(pattern.pattern, bytes)
    seen = set()
    for before, repeated in list(_repeats(parsed, [""]))[:_ENOUGH]:
        for unit in (repeated, before + repeated):
            for end in ("\x01", "\n!"):
                text = (before + unit * (length // len(unit or " ")))[:length] + end
                if unit and text not in seen:
                    seen.add(text)
                    yield text.encode("latin-1", "replace") if is_bytes else text


def _repeats(parsed: Iterable[Any], before: list[str]) -> Iterator[tuple[str, str]]:
    """Each repeated part as a text, and some of what has to come before it."""
    for op, arguments in parsed:
        if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _POSSESSIVE):
            _, most, inner = arguments
            for text in _texts(inner) if most > 50 else ():
                for one in before:
                    yield one, text
                    yield one, text * 2
            yield from _repeats(inner, before)
        elif op is _constants.SUBPATTERN:
            yield from _repeats(arguments[-1], before)
        elif op is _constants.BRANCH:
            for branch in arguments[1]:
                yield from _repeats(branch, before)
        elif op in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _repeats(arguments[1], before)
        texts = list(_texts([(op, arguments)])) or [""]
        before = list(dict.fromkeys(a + b for b in texts for a in before))[:_BEFORE]


_POSSESSIVE = getattr(_constants, "POSSESSIVE_REPEAT", None)


def _texts(parsed: Iterable[Any]) -> Iterator[str]:
    """Some texts that a part matches: one for each of its first characters."""
    options = [""]
    for op, arguments in parsed:
        options = [a + b for a in options for b in _choices(op, arguments)][:8]
    yield from dict.fromkeys(options)


def _choices(op: Any, arguments: Any) -> list[str]:
    if op is _constants.LITERAL:
        return [chr(arguments)]
    if op is _constants.NOT_LITERAL:
        return ["a" if chr(arguments) != "a" else "b", " "]
    if op is _constants.ANY:
        return ["a", " "]
    if op is _constants.IN:
        return _of_set(arguments)
    if op in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _POSSESSIVE):
        least, most, inner = arguments
        count = max(least, 1) if most else 0
        return [text * min(count, 64) for text in _texts(inner)] or [""]
    if op is _constants.SUBPATTERN:
        return list(_texts(arguments[-1]))
    if op is _constants.BRANCH:
        return [text for branch in arguments[1] for text in _texts(branch)][:8]
    return [""]


def _of_set(items: Iterable[Any]) -> list[str]:
    found: list[str] = []
    items = list(items)
    if items and items[0][0] is _constants.NEGATE:
        class_ = re.compile(r"\s")
        refused = set(_of_set(items[1:]))
        candidates = ("a", " ", "-", "0", "/", ":", ".", "\n", "[")
        return [c for c in candidates if c not in refused and not class_.match("")][:3]
    for op, argument in items:
        if op is _constants.LITERAL:
            found.append(chr(argument))
        elif op is _constants.RANGE:
            found.append(chr(argument[0]))
        elif op is _constants.CATEGORY:
            found.append(_CATEGORIES.get(str(argument), "a"))
    return found[:6] or ["a"]


_CATEGORIES = {
    "CATEGORY_DIGIT": "0",
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_NOT_WORD": "-",
}
