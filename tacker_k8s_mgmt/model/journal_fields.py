# SPDX-License-Identifier: Apache-2.0
"""The fields of a journal's record, each of which may be missing or of another type."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.plain_text import in_line

# 2001 and 2100.
_EARLIEST, _LATEST = 1e9, 4.1e9


def number(record: Mapping[str, Any], key: str) -> float:
    """A number of seconds or things; 0 if there is none, or it cannot be one."""
    with suppress(ValueError):
        return json_text.number(record.get(key))
    return 0.0


def moment(record: Mapping[str, Any]) -> float:
    """The time of a record, in seconds since the epoch.

    0 if it has none, or one at which the driver was not there: a host's clock may begin
    in 1970.
    """
    at = number(record, "time")
    return at if _EARLIEST <= at < _LATEST else 0.0


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
