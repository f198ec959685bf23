"""Walking through YAML that may be of any shape."""

from collections.abc import Mapping, Sequence
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """*value* if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """*value* if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def dig(value: Any, *path: str) -> Any:
    """What is at *path* of nested mappings, or None."""
    for key in path:
        value = mapping(value).get(key)
    return value
