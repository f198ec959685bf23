# SPDX-License-Identifier: Apache-2.0
"""The table of figures beside the targets of the project."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Row

OWN_LIMIT = 2.0  # seconds of an operation with one control plane and two workers
HEAT_LIMIT = 4  # calls per hook
LOGIN_LIMIT = 1  # per host and hook
GROWTH_LIMIT = 0.05  # seconds of our own for each further node
SMALL = "1+2"


@dataclass(frozen=True)
class Growth:
    """How our own overhead grows with the cluster, in seconds per further node."""

    case: str
    name: str
    per_node: float


def workers(case: str) -> int:
    """The workers of a case such as ``1+10``."""
    return int(case.rpartition("+")[2].split()[0])


def growths(rows: Sequence[Row], small: str, large: str) -> list[Growth]:
    """What an operation costs more in the large case than in the small, per node."""
    further = workers(large) - workers(small)
    before = {row.name: row.own for row in rows if row.case == small}
    return [
        Growth(f"{small} to {large}", row.name, (row.own - before[row.name]) / further)
        for row in rows
        if row.case == large and row.name in before
    ]


def judged(value: float, limit: float, text: str) -> str:
    """A figure with a tick or a cross."""
    return f"{text} {'✓' if value <= limit else '✗'}"


_COLUMNS: Sequence[tuple[str, Callable[[Row], str]]] = (
    ("case", lambda row: row.case),
    ("operation", lambda row: row.name),
    ("runs", lambda row: str(row.runs)),
    ("whole s", lambda row: f"{row.seconds:.1f}"),
    ("Tacker, Heat s", lambda row: f"{row.tacker:.1f}"),
    ("hooks s", lambda row: f"{row.hooks:.1f}"),
    ("Ansible s", lambda row: f"{row.ansible:.1f}"),
    ("waits s", lambda row: f"{row.waits:.1f}"),
    ("own s", lambda row: own(row)),
    ("Heat calls", lambda row: judged(row.heat_calls, HEAT_LIMIT, f"{row.heat_calls}")),
    ("logins", lambda row: logins(row)),
)


def own(row: Row) -> str:
    """Our own overhead; its target is for the small case."""
    text = f"{row.own:.2f}"
    return judged(row.own, OWN_LIMIT, text) if row.case == SMALL else text


def logins(row: Row) -> str:
    """The most logins of a hook on one host; fakes have no hosts."""
    if row.case.startswith("fakes"):
        return "-"
    return judged(row.logins, LOGIN_LIMIT, f"{row.logins}")


def table(rows: Sequence[Row]) -> Table:
    """All figures."""
    found = Table(title="Medians of the runs; of counts per hook, the most")
    for name, _ in _COLUMNS:
        found.add_column(name, justify="left" if name == "operation" else "right")
    for row in rows:
        found.add_row(*(text(row) for _, text in _COLUMNS))
    return found


def growth_table(found: Sequence[Growth]) -> Table:
    """How our own overhead grows."""
    shown = Table(title="Growth of our own overhead")
    for name in ("case", "operation", "s per node"):
        shown.add_column(name, justify="right" if name == "s per node" else "left")
    for one in found:
        text = judged(one.per_node, GROWTH_LIMIT, f"{one.per_node:.3f}")
        shown.add_row(one.case, one.name, text)
    return shown


def tell(console: Console, rows: Sequence[Row], growing: Sequence[Growth]) -> None:
    """Print the tables: drawn on a terminal, one line for each row in a pipe."""
    if console.is_terminal:
        console.print(table(rows))
        if growing:
            console.print(growth_table(growing))
        return
    print("\t".join(name for name, _ in _COLUMNS))
    for row in rows:
        print("\t".join(text(row) for _, text in _COLUMNS))
    for one in growing:
        text = judged(one.per_node, GROWTH_LIMIT, f"{one.per_node:.3f}")
        print(f"growth {one.case}\t{one.name}\t{text} s per node")
    print(
        f"targets: own at {SMALL} <= {OWN_LIMIT:g} s, Heat calls per hook <= "
        f"{HEAT_LIMIT}, logins per host and hook <= {LOGIN_LIMIT}, growth <= "
        f"{GROWTH_LIMIT:g} s per node"
    )
