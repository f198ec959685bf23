# SPDX-License-Identifier: Apache-2.0
"""YAML of others, which may be made to harm, and walking through what it has.

A few lines with aliases can stand for more values than memory holds, and libyaml's
loader ends the whole process when it meets a text that is nested deeply enough. So the
text is read as a stream of events first, which needs neither recursion nor memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

try:
    # Ten times as fast as the loader in Python.
    from yaml import CSafeLoader as _Fastest
except ImportError:
    from yaml import SafeLoader as _Fastest  # type: ignore[assignment]

#: Levels of lists and mappings in each other; definitions of custom resources have 40.
DEEPEST = 200
#: How many values aliases of a text may stand for, beside ten times what is written.
MOST_BY_ALIAS = 100_000
_GROWTH = 10
#: Values in a text, each of which takes 300 bytes of memory. All definitions of custom
#: resources of a large operator are a quarter of a million.
MOST_VALUES = 500_000
#: Characters of a number; one in base 60 (``1:59:59``) takes the square of its length.
LONGEST_NUMBER = 64
# What PyYAML raises, beside its own errors, for values that are not of their type.
_NO_VALUE = (
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
    RecursionError,
)
_Loader = TypeVar("_Loader", bound=type)


def limited_loader(loader: _Loader) -> _Loader:
    """A class of safe loaders, whose numbers have a limit from now on."""
    for kind in ("int", "float"):
        tag = f"tag:yaml.org,2002:{kind}"
        loader.add_constructor(tag, _number_of(loader.yaml_constructors[tag]))  # type: ignore[attr-defined]
    return loader


def _number_of(construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def number(loader: Any, node: yaml.Node) -> Any:
        if len(node.value) > LONGEST_NUMBER:
            raise _refusal("has a number that is too long", node)
        return construct(loader, node)

    return number


@limited_loader
class SafeLoader(_Fastest):
    """Makes values of the text of others."""


def parse_yaml(text: str, loader: Any = SafeLoader) -> Any:
    """The only document of a text; None if it is empty.

    :param loader: a safe one.
    :raises yaml.YAMLError: it is no YAML, is nested too deeply, stands for too much, or
        has a value that is not of its type.
    """
    check_yaml(text)
    with _refusing():
        return yaml.load(text, Loader=loader)  # noqa: S506


def yaml_documents(text: str, loader: Any = SafeLoader) -> Iterator[Any]:
    """The documents of a text; see :func:`parse_yaml`."""
    check_yaml(text)
    with _refusing():
        yield from yaml.load_all(text, Loader=loader)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except _NO_VALUE:
        # Without the value, which may be a secret.
        problem = "has a value that is not of its type"
        raise yaml.MarkedYAMLError(problem=problem) from None


@dataclass
class _Extent:
    """How much a value is, with all that its aliases stand for."""

    anchor: str | None = None
    values: int = 1
    levels: int = 0

    def take_in(self, inner: "_Extent") -> None:
        self.values += inner.values
        self.levels = max(self.levels, inner.levels + 1)


def check_yaml(text: str, most: int = MOST_VALUES) -> int:
    """Refuse a text that stands for too much.

    :param most: values that it may have.
    :returns: how many it has.
    :raises yaml.YAMLError: see :func:`parse_yaml`.
    """
    anchors: dict[str, _Extent] = {}
    opened = [_Extent()]
    written = values = 0
    for event in _events(text, most):
        if isinstance(event, yaml.DocumentStartEvent):
            # What aliases stand for counts for all documents together.
            anchors, opened = {}, [_Extent(values=opened[0].values)]
        if not isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            continue
        values += isinstance(event, yaml.NodeEvent)
        one = _Extent(getattr(event, "anchor", None))
        written += 1
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append(one)
        elif isinstance(event, yaml.CollectionEndEvent):
            one = opened.pop()
        elif isinstance(event, yaml.AliasEvent):
            if any(one.anchor == outer.anchor for outer in opened):
                raise _refusal("has an alias of what it is in", event)
            one = anchors.get(event.anchor or "", one)
        if len(opened) + one.levels > DEEPEST:
            raise _refusal("is nested too deeply", event)
        if isinstance(event, yaml.CollectionStartEvent):
            continue
        if one.anchor:
            anchors[one.anchor] = one
        opened[-1].take_in(one)
        if opened[-1].values > _GROWTH * written + MOST_BY_ALIAS:
            raise _refusal("has aliases that stand for too much", event)
    return values


def _events(text: str, most: int) -> Iterator[Any]:
    values = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        values += isinstance(event, yaml.NodeEvent)
        if values > most:
            raise _refusal("has too many values", event)
        yield event


def _refusal(problem: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)


def mapping(value: Any) -> Mapping[str, Any]:
    """*value* if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """*value* if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def size(value: Any) -> int:
    """How many values a value is, with all that are in it."""
    values, left = 0, [value]
    while left:
        one = left.pop()
        values += 1
        if isinstance(one, Mapping):
            left += one.values()
        elif isinstance(one, list | tuple):
            left += one
    return values


def dig(value: Any, *path: str) -> Any:
    """The value at *path* of nested mappings, or None."""
    for key in path:
        value = mapping(value).get(key)
    return value


def node_at(node: yaml.Node | None, *path: str) -> yaml.Node | None:
    """As :func:`dig`, in a composed document, whose nodes have line numbers."""
    for step in path:
        node = next((value for key, value in pairs(node) if key.value == step), None)
    return node


def pairs(node: yaml.Node | None) -> Sequence[tuple[yaml.Node, yaml.Node]]:
    """Keys and values of a composed mapping; none if it is not a mapping."""
    return node.value if isinstance(node, yaml.MappingNode) else ()
