# SPDX-License-Identifier: Apache-2.0
"""What the guides tell an operator where an error does not: read from their tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.chaos import operations

PAGES = Path(__file__).resolve().parents[2] / "doc" / "source"
_VERB = re.compile(r"``(retry|rollback|fail)``")
_NOT = re.compile(r"not ``(retry|rollback|fail)``")
_SCALE_OUT, _SCALE_IN = "scale out", "scale in"
#: What Tacker's v1 API and its hooks are called there, by operation and whether a hook
#: has failed.
_ROWS = {
    ("instantiate", "start"): "instantiate_start",
    ("instantiate", "vms"): "instantiate: creation of the VMs",
    ("instantiate", "end"): "instantiate_end",
    (_SCALE_OUT, "start"): "scale_start (scale-out)",
    (_SCALE_OUT, "vms"): "scale-out: creation of the VMs",
    (_SCALE_OUT, "end"): "scale_end (scale-out)",
    (_SCALE_IN, "start"): "scale_start (scale-in)",
    (_SCALE_IN, "vms"): "scale-in: deletion of the VMs",
    ("heal", "start"): "heal_start",
    ("heal", "vms"): "heal: creation of the VMs",
    ("heal", "end"): "heal_end",
    ("modify", "start"): "modification of the VNF instance",
    ("modify", "vms"): "modification of the VNF instance",
    ("modify", "end"): "modification of the VNF instance",
    ("terminate", "start"): "terminate_start",
    ("terminate", "vms"): "terminate_end",
    ("terminate", "end"): "terminate_end",
}


@dataclass(frozen=True)
class Row:
    """A row of the table of failed operations.

    :param verbs: what it says to send, in its order.
    """

    failed_in: str
    text: str
    verbs: tuple[str, ...]


@cache
def rows() -> dict[str, Row]:
    """The table of ``operations.rst``, by its first column."""
    found = {}
    for first, second in _table((PAGES / "operations.rst").read_text()):
        name = first.replace("``", "")
        # What differs in the v1 API comes last.
        text = second.rpartition("; v1: ")[2]
        never = _NOT.findall(text)
        verbs = [verb for verb in _VERB.findall(text) if verb not in never]
        found[name] = Row(name, second, tuple(dict.fromkeys(verbs)))
    return found


def _table(text: str) -> Iterator[tuple[str, str]]:
    """The rows of the page's first simple table with two columns."""
    lines = text.splitlines()
    rules = [place for place, line in enumerate(lines) if re.match("=+ +=+$", line)]
    width = lines[rules[0]].index(" ")
    first, second = "", ""
    for line in lines[rules[1] + 1 : rules[2]]:
        left, right = line[:width].strip(), line[width:].strip()
        if left and first:
            yield first, second
            first, second = "", ""
        first, second = f"{first} {left}".strip(), f"{second} {right}".strip()
    yield first, second


def after(operation: str, place: str) -> Row | None:
    """What to do after a failure.

    :param operation: of the catalogue.
    :param place: ``start``, ``end``: in this hook; ``vms``: between them.
    """
    kind = operation.split()[0] if operation.startswith("heal") else ""
    if operation in operations.CNF:
        kind = operation.removesuffix(" CNF").replace("scale", _SCALE_OUT)
    if operation in operations.MODIFICATIONS:
        kind = "modify"
    name = _ROWS.get((kind or operation, place))
    return rows().get(name or "")


def place_of(error: str) -> str:
    """Where an operation has failed, by its error: ``start``, ``vms`` or ``end``."""
    match = re.search(r"\b[a-z]+_(start|end)\b", error)
    return match[1] if match else "vms"
