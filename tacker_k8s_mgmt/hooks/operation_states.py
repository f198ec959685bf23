# SPDX-License-Identifier: Apache-2.0
"""The states of operations, which both APIs of Tacker name alike."""

from collections.abc import Iterable

COMPLETED = "COMPLETED"
#: An operation in one of these is over. Tacker's v1 API has no constant for the last.
ENDED = (COMPLETED, "FAILED", "ROLLED_BACK")


def described(occurrences: Iterable[tuple[object, object, object]]) -> str:
    """Operations in words.

    :param occurrences: operation, id and state of each.
    """
    return ", ".join(f"{name} {id_} is {state}" for name, id_, state in occurrences)
