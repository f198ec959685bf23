# SPDX-License-Identifier: Apache-2.0
"""Data of others, which may be made to harm: read with limits, of any type and shape.

It comes from packages, requests, other hosts, clusters and damaged journals.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints
from urllib.parse import SplitResult, urlsplit

from tacker_k8s_mgmt import text
from tacker_k8s_mgmt.text import in_line

if TYPE_CHECKING:
    from pydantic import ConfigDict, TypeAdapter

#: Digits of an integer.
MOST_DIGITS = 64
#: Values in a text. All nodes and pods of 1,000 nodes are a third of it.
MOST_JSON_VALUES = 1_000_000
#: Levels of lists and mappings in each other, as in YAML.
DEEPEST = 200
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
def _adapters(kind: type) -> "dict[str, TypeAdapter[Any]]":
    # Late: a command that only reads a journal does not need it.
    from pydantic import ConfigDict

    hints = get_type_hints(kind)
    config = ConfigDict(arbitrary_types_allowed=True)
    return {
        field.name: _adapter(hints[field.name], config)
        for field in dataclasses.fields(kind)
    }


def _adapter(hint: Any, config: "ConfigDict") -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

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
    :raises Damaged: it is not gzip data, or not all of it.
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
