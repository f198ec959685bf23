# SPDX-License-Identifier: Apache-2.0
"""JSON from another host, from a cluster or from a request."""

import json
import math
from collections.abc import Callable
from typing import Any


def parse(
    text: str | bytes, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """The value of a JSON text.

    :param pairs: makes the value of an object; default: a dictionary.
    :raises ValueError: it is none. Nor is a text that is nested too deeply, or that has
        numbers which are no numbers, as the standard library reads them.
    """
    try:
        return json.loads(
            text,
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=pairs,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)
