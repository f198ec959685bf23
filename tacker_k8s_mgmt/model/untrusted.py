# SPDX-License-Identifier: Apache-2.0
"""Data of others, which may be made to harm: read with limits, of any type and shape.

It comes from packages, requests, other hosts, clusters and damaged journals.

* YAML: a few lines with aliases can stand for more values than memory holds, and
  libyaml's loader ends the whole process when it meets a text that is nested deeply
  enough. So the text is read as a stream of events first, which needs neither recursion
  nor memory.
* JSON: a number has a limit of digits. An integer of Python has none, and no float
  holds one of 400 digits.
* Compressed data: a megabyte may be a gigabyte unpacked.
* Python code is read and never run.
* URLs are taken apart.
* Fields of a journal's record: each may be missing or of another type.
"""

import ast
import dataclasses
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints
from urllib.parse import SplitResult, urlsplit

import yaml
from pydantic import ConfigDict, TypeAdapter

from tacker_k8s_mgmt import text
from tacker_k8s_mgmt.text import in_line

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


#: Digits of an integer.
MOST_DIGITS = 64
#: Values in a text. All nodes and pods of 1,000 nodes are a third of it.
MOST_JSON_VALUES = 1_000_000
#: Levels of lists and mappings in each other, as in YAML.
#: More than anything that is counted or measured here, seconds since the epoch too.
LARGEST = 1e12

Value = TypeVar("Value")


def parse_json(
    text: str | bytes, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value of a JSON text.

    :param pairs: makes the value of an object; default: a dictionary.
    :raises ValueError: it is none. Nor is a text with too many values or too many
        levels, or with numbers which are none, as the standard library reads them, or
        too large.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    limit(text)
    try:
        return json.loads(
            text,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=pairs,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def json_stream(text: str) -> list[Any]:
    """The values of JSON texts that follow each other.

    :raises ValueError: one is none, as :func:`parse_json` reads them.
    """
    limit(text)
    values, at = [], _blanks(text, 0)
    try:
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            values.append(value)
            at = _blanks(text, at)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return values


def limit(text: str, most: int = MOST_JSON_VALUES) -> int:
    """Refuse a text that stands for too much, in time and memory of the text itself.

    :param most: values that it may have.
    :returns: how many it has; empty lists and objects may count twice.
    :raises ValueError: it has more, or is nested more than :data:`DEEPEST`.
    """
    begins = text.count("[") + text.count("{")
    values = 1 + begins + text.count(",")
    if begins <= DEEPEST and values <= most:
        return values
    bare = _QUOTED.sub("", text)
    values = 1 + sum(map(bare.count, "[{,"))
    if values > most:
        raise ValueError(f"more than {most} values")
    level = 0
    for found in _BRACKET.finditer(bare):
        level += 1 if found[0] in "[{" else -1
        if level > DEEPEST:
            raise ValueError("nested too deeply")
    return values


def _blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text[:MOST_DIGITS])


def _whole(text: str) -> int:
    if len(text.removeprefix("-")) > MOST_DIGITS:
        raise ValueError(f"a number has more than {MOST_DIGITS} digits")
    return int(text)


def number(value: Any, largest: float = LARGEST) -> float:
    """A number of seconds or things.

    :raises ValueError: it is none, is negative or is larger than *largest*.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # A comparison, as an integer may be too large for a float.
    if not is_number or not 0 <= value <= largest:
        raise ValueError("no number in its limits")
    return float(value)


def checked(value: Value) -> Value:
    """A value whose dataclasses have fields of the types that they declare.

    :raises ValueError: one has a field of another type.
    """
    if isinstance(value, tuple | list):
        for inner in value:
            checked(inner)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name, adapter in _adapters(type(value)).items():
            field = getattr(value, name)
            try:
                adapter.validate_python(field, strict=True)
            except ValueError:
                # Without the value, which may be a secret.
                raise ValueError(f"{name} has another type") from None
            checked(field)
    return value


@cache
def _adapters(kind: type) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind)
    config = ConfigDict(arbitrary_types_allowed=True)
    return {
        field.name: _adapter(hints[field.name], config)
        for field in dataclasses.fields(kind)
    }


def _adapter(hint: Any, config: ConfigDict) -> TypeAdapter[Any]:
    if dataclasses.is_dataclass(hint):
        return TypeAdapter(hint)
    return TypeAdapter(hint, config=config)


# Without its end, too, so that no text is searched again and again.
_QUOTED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(
    parse_constant=_refuse, parse_float=_finite, parse_int=_whole
)


class Damaged(Exception):
    """It cannot be unpacked."""


class TooLarge(Exception):
    """It would be more than the limit when it is unpacked; the text says so."""


def unpack_gzip(data: bytes, largest: int) -> bytes:
    """The content of gzip data.

    :param largest: bytes that it may have.
    :raises Damaged: it is no gzip data, or not all of it.
    :raises TooLarge: it has more bytes.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            content = stream.read(largest + 1)
    except (OSError, EOFError, zlib.error):
        raise Damaged from None
    if len(content) > largest:
        raise TooLarge(f"more than {largest} bytes when it is unpacked")
    return content


_TRIES = 5


def parse_python(source: str | bytes) -> ast.Module | None:
    """The tree of a module; None for what is no Python or too deep.

    Before Python 3.11.5 a thread that reads code disturbs another one that does, for
    instance to print a traceback (cpython issue 106905).
    """
    for _ in range(_TRIES):
        try:
            return ast.parse(source)
        except SystemError:
            continue
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
    return None


def url_parts(url: str, *, any_port: bool = False) -> SplitResult:
    """The parts of a URL.

    :param any_port: whether its port may be no number, and so may not be read.
    :raises ValueError: the text is no URL. The error does not quote it, as Python's
        does, with the login.
    """
    if not url.isprintable():
        # Python drops some of these without a word.
        raise ValueError("must be a URL without control characters")
    try:
        split = urlsplit(url)
        if not any_port:
            _ = split.port
    except ValueError:
        raise ValueError("must be a URL, with a number as its port") from None
    return split


def shown(url: str) -> str:
    """The URL without its query, which may hold a token under any name."""
    start, sign, _ = url.partition("?")
    return f"{start}{sign}{text.STARS}" if sign else url


def url_host(url: str) -> str:
    """The host of a URL; "" for a text that has none."""
    try:
        return url_parts(url, any_port=True).hostname or ""
    except ValueError:
        return ""


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
    """Keys and values of a composed mapping; none if it is no mapping."""
    return node.value if isinstance(node, yaml.MappingNode) else ()


# 2001 and 2100.
_EARLIEST, _LATEST = 1e9, 4.1e9


def number_of(record: Mapping[str, Any], key: str) -> float:
    """A number of seconds or things; 0 if there is none, or it cannot be one."""
    with suppress(ValueError):
        return number(record.get(key))
    return 0.0


def moment_of(record: Mapping[str, Any]) -> float:
    """The time of a record, in seconds since the epoch.

    0 if it has none, or one at which the driver was not there: a host's clock may begin
    in 1970.
    """
    at = number_of(record, "time")
    return at if _EARLIEST <= at < _LATEST else 0.0


def text_of(record: Mapping[str, Any], key: str) -> str:
    """A text without control characters, which names of tasks may have."""
    value = record.get(key)
    return in_line(value) if isinstance(value, str) else ""


def texts_of(record: Mapping[str, Any], key: str) -> Iterator[str]:
    """The texts of a list."""
    for value in values_of(record, key):
        yield text_of({key: value}, key)


def values_of(record: Mapping[str, Any], key: str) -> list[Any]:
    """A list; an empty one if there is none."""
    value = record.get(key)
    return value if isinstance(value, list) else []
