# SPDX-License-Identifier: Apache-2.0
"""YAML as kubectl, Helm and the API server read it, which is by no YAML standard.

They turn it into JSON with ``sigs.k8s.io/yaml``: `12:30:45` and dates are text, `0o17`
is a number, `y` is true, keys are texts, unknown tags say nothing, and a merge replaces
what is written before it. PyYAML follows YAML 1.1, which differs in each of these.
"""

import base64
import binascii
import json
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import yaml

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.yaml_text import MOST_VALUES, SafeLoader, check_yaml

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{f"{s}.{w}": float(f"{s}inf") for s in ("", "+", "-") for w in ("inf", "Inf")},
    **{f"{sign}.INF": float(f"{sign}inf") for sign in ("", "+", "-")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_INTEGER = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))"
)
_BASES = (16, 2, 8, 10)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_UNSIGNED = 2**64
# Underscores that are not between digits.
_STRAY = re.compile(r"(?<![0-9])_|_(?![0-9])")
# Go's JSON has no exponent below this.
_WHOLE = 1e21

_TAG = "tag:yaml.org,2002:"
_PLAIN = f"{_TAG}plain"
_TYPES: dict[str, tuple[type, ...]] = {
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int,),
    f"{_TAG}float": (int, float),
    f"{_TAG}null": (type(None),),
}


class _Loader(SafeLoader):
    """Composes nodes; a scalar without quotes and tag is marked as such."""

    def resolve(self, kind: type, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


def document(text: str) -> Any:
    """The first document of a text; see :func:`documents`."""
    return next(iter(documents(text)), None)


def documents(text: str) -> list[Any]:
    """The documents of a text, as values that JSON has.

    :raises yaml.YAMLError: kubectl would not read it either, it is nested too deeply,
        or it stands for too much.
    """
    if text.lstrip().startswith("{"):
        with suppress(ValueError, OverflowError, RecursionError):
            untrusted.limit(text, MOST_VALUES)
            return list(_json(text))
    check_yaml(text)
    return [_value(node) for node in yaml.compose_all(text, _Loader)]


def _json(text: str) -> Iterator[Any]:
    decoder, place = json.JSONDecoder(parse_int=_whole), 0
    while text := text[place:].lstrip():
        value, place = decoder.raw_decode(text)
        yield value


def _whole(digits: str) -> int | float:
    value = int(digits)
    return value if _LOWEST <= value <= _HIGHEST else float(value)


def _value(node: yaml.Node | None) -> Any:
    match node:
        case None:
            return None
        case yaml.MappingNode():
            return _mapping(node)
        case yaml.SequenceNode():
            return [_value(inner) for inner in node.value]
    value = _scalar(node)
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        value = int(value)
    if isinstance(value, int) and not _LOWEST <= value <= _HIGHEST:
        return float(value)
    return value


def _mapping(node: yaml.MappingNode) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, inner in node.value:
        if key.tag == _PLAIN and key.value == "<<":
            for one in _merged(inner):
                made.update(one)
        else:
            made[_key(key)] = _value(inner)
    return made


def _merged(node: yaml.Node) -> list[dict[str, Any]]:
    """The mappings of a merge, in the order in which each replaces the former ones."""
    several = isinstance(node, yaml.SequenceNode)
    merged = []
    for one in reversed(node.value) if several else [node]:
        if not isinstance(one, yaml.MappingNode):
            raise _refusal("merges what is no mapping", node)
        merged.append(_mapping(one))
    return merged


def _key(node: yaml.Node) -> str:
    value = _scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _short(value)
    if value is None or (isinstance(value, int) and not _LOWEST <= value <= _HIGHEST):
        raise _refusal("has a key that JSON cannot have", node)
    return str(value)


def _scalar(node: yaml.Node) -> Any:
    """:raises yaml.YAMLError: its tag demands another type, or it is out of range."""
    text, tag = str(node.value), node.tag
    if tag == _PLAIN:
        return _resolved(text)
    if tag == f"{_TAG}binary":
        try:
            decoded = base64.b64decode("".join(text.splitlines()), validate=True)
        except (binascii.Error, ValueError):
            raise _refusal("has binary data that is no base64", node) from None
        return decoded.decode(errors="replace")
    if tag not in _TYPES:
        return text
    value, types = _resolved(text), _TYPES[tag]
    if type(value) not in types:
        raise _refusal(f"has a value that is no {tag.removeprefix(_TAG)}", node)
    return value


def _resolved(text: str) -> Any:
    """What a scalar without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("."):
        return text if _STRAY.search(text) else _float(text.replace("_", ""), text)
    if text[0] not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    if found := _INTEGER.fullmatch(plain):
        sign, *parts = found.groups()
        digits, base = next(
            (d, b) for d, b in zip(parts, _BASES, strict=True) if d is not None
        )
        # Python refuses texts of thousands of digits.
        digits = digits.lstrip("0") or "0"
        value = int(sign + digits, base) if len(digits) <= 64 else _UNSIGNED
        if _LOWEST <= value <= _HIGHEST or (not sign and value < _UNSIGNED):
            return value
    return _float(plain, text)


def _float(plain: str, text: str) -> float | str:
    """A number; *text* if it is none, or is too large for one."""
    value = float(plain) if _FLOAT.fullmatch(plain) else float("inf")
    return text if abs(value) == float("inf") else value


def _short(value: float) -> str:
    """A number as Go writes it with the precision of 32 bits."""
    try:
        packed = struct.pack("f", value)
    except OverflowError:
        return ".inf" if value > 0 else "-.inf"
    (value,) = struct.unpack("f", packed)
    if value != value:
        return ".nan"
    if abs(value) == float("inf"):
        return ".inf" if value > 0 else "-.inf"
    digits = next(
        n for n in range(17) if struct.pack("f", float(f"{value:.{n}e}")) == packed
    )
    _, exponent = f"{value:.{digits}e}".split("e")
    if -5 < int(exponent) < 6:
        return f"{value:.{max(digits - int(exponent), 0)}f}"
    return f"{value:.{digits}e}"


def _refusal(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
