# SPDX-License-Identifier: Apache-2.0
"""What becomes of the pages on a screen, which no warning of Sphinx tells."""

import re
from collections.abc import Iterator

import pytest

from tests.tree import ROOT

PAGES = [ROOT / "README.rst", *sorted((ROOT / "doc" / "source").rglob("*.rst"))]
#: The end of a first cell of which the next line has more.
_UNFINISHED = re.compile(r"(,|'s| and| or| of| with)$")
_BORDER = re.compile(r" *=+(?: +=+)+ *")


def split_rows(text: str) -> Iterator[str]:
    """Lines of simple tables where a first cell is the rest of another, or has more.

    In a simple table each line with a first cell begins a row.
    """
    lines = ["", *text.splitlines(), ""]
    first: tuple[int, int] | None = None
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        if _BORDER.fullmatch(line):
            if first is None and not before.strip():
                columns = re.search("=+", line)
                first = columns.span() if columns else None
            elif not after.strip():
                first = None
        elif first:
            cell, others = line[: first[1]].strip(), line[first[1] :].strip()
            if cell and (not others or _UNFINISHED.search(cell)):
                yield line.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_cell_of_a_table_is_split_into_rows(page):
    assert list(split_rows(page.read_text())) == []


def test_a_split_cell_is_seen():
    head, end = "\n===  ===\na    b\n===  ===\n", "===  ===\n\nend\n"
    table = f"{head}of   x\ntwo\none  y\n     z\na,   b\nc    d\n{end}"
    assert list(split_rows(table)) == ["two", "a,   b"]


def test_no_page_has_a_table_of_contents_of_its_own():
    """The theme, Furo, has one, and shows a red error in place of another."""
    assert len(PAGES) > 30
    assert [p.name for p in PAGES if "contents::" in p.read_text()] == []
