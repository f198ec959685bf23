# SPDX-License-Identifier: Apache-2.0
"""An object of Kubernetes as wanted, compared with it as the API server has it."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

_QUANTITY = re.compile(
    r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(m|[kMGTPE]i?|Ki|[eE][+-]?[0-9]+)?"
)
_FACTORS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("MGTPE", 2)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def differences(wanted: Any, actual: Any, path: str = "") -> Iterator[str]:
    """The paths of what is otherwise than wanted; what others have added is left out.

    Quantities are compared by value, for the API server writes them in its own way.
    """
    if isinstance(wanted, Mapping):
        present = actual if isinstance(actual, Mapping) else {}
        for name, value in wanted.items():
            below = f"{path}.{name}" if path else str(name)
            yield from differences(value, present.get(name), below)
    elif isinstance(wanted, list):
        # The API server leaves out empty lists.
        items = actual if isinstance(actual, list) else []
        if len(wanted) != len(items):
            yield path
            return
        for number, (value, other) in enumerate(zip(wanted, items, strict=True)):
            yield from differences(value, other, f"{path}[{number}]")
    elif wanted != actual and not _are_equal(wanted, actual):
        yield path


def _are_equal(wanted: Any, actual: Any) -> bool:
    values = [_quantity(value) for value in (wanted, actual)]
    return values[0] is not None and values[0] == values[1]


def _quantity(value: Any) -> Decimal | None:
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    number, unit = Decimal(found[1]), found[2] or ""
    if unit in _FACTORS:
        return number * _FACTORS[unit]
    return Decimal(f"{number}{unit}")
