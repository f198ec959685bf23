# SPDX-License-Identifier: Apache-2.0
"""JSON from another host, from a cluster or from a request."""

import json
import math
from typing import Any


def parse(text: str | bytes) -> Any:
    """The value of a JSON text.

    :raises ValueError: it is none. Nor is a text that is nested too deeply, or that has
        numbers which are no numbers, as the standard library reads them.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)
