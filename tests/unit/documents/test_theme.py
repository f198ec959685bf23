# SPDX-License-Identifier: Apache-2.0
"""What the theme of the pages, Furo, makes of them."""

from tests.tree import ROOT

PAGES = sorted((ROOT / "doc" / "source").rglob("*.rst"))


def test_no_page_has_a_table_of_contents_of_its_own():
    """The theme has one, and shows a red error in place of another; Sphinx does not."""
    assert len(PAGES) > 30
    assert [p.name for p in PAGES if "contents::" in p.read_text()] == []
