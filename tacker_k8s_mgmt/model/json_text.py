# SPDX-License-Identifier: Apache-2.0
"""JSON from another host, from a cluster or from a request, and the values in it.

A number has a limit of digits: an integer of Python has none, and no float holds one of
400 digits. Values are counted before they are made: three bytes of text are one of 64.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter

#: Digits of an integer.
MOST_DIGITS = 64
#: Values in a text. All nodes and pods of 1,000 nodes are a third of it.
MOST_VALUES = 1_000_000
#: Levels of lists and mappings in each other, as in YAML.
DEEPEST = 200
#: More than anything that is counted or measured here, seconds since the epoch too.
LARGEST = 1e12

Value = TypeVar("Value")


def parse(
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


def stream(text: str) -> list[Any]:
    """The values of JSON texts that follow each other.

    :raises ValueError: one is none, as :func:`parse` reads them.
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


def limit(text: str, most: int = MOST_VALUES) -> int:
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
