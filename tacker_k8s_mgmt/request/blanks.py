# SPDX-License-Identifier: Apache-2.0
"""Marked blanks: values that ``tacker-k8s-mgmt request init`` could not know.

JSON has no comments, so the mark is the value itself. Every reader of a request reports
it by name, in place of what else would be wrong with such a text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.request.key_aliases import Location

BEGINNING = "<fill in: "
# With a limit: a text may have the beginning many times, and no end.
_MARK = re.compile(re.escape(BEGINNING) + "([^>]{1,500})>")


def mark(meaning: str) -> str:
    """The text that stands for a value which is not known.

    :param meaning: what to put in its place, without a full stop and without >.
    """
    return f"{BEGINNING}{meaning}>"


def is_in(value: Any) -> bool:
    """Whether *value* has a blank, at any depth."""
    return any(True for _ in places(value))


def places(value: Any, place: Location = ()) -> Iterator[tuple[Location, str]]:
    """Where *value* has blanks, at any depth, each with a sentence about it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from places(inner, (*place, str(name)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*place, str(number)))
    elif isinstance(value, str) and (found := _MARK.findall(value)):
        yield place, f"is still to be filled in: {'; '.join(found)}"
