# SPDX-License-Identifier: Apache-2.0
"""The fields of a journal's record, each of which may be missing or of another type."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.plain_text import in_line


def number(record: Mapping[str, Any], key: str) -> float:
    """A finite number; 0 if there is none."""
    value = record.get(key)
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return 0.0


def text(record: Mapping[str, Any], key: str) -> str:
    """A text without control characters, which names of tasks may have."""
    value = record.get(key)
    return in_line(value) if isinstance(value, str) else ""


def texts(record: Mapping[str, Any], key: str) -> Iterator[str]:
    """The texts of a list."""
    for value in values(record, key):
        yield text({key: value}, key)


def values(record: Mapping[str, Any], key: str) -> list[Any]:
    """A list; an empty one if there is none."""
    value = record.get(key)
    return value if isinstance(value, list) else []
