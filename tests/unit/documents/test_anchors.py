# SPDX-License-Identifier: Apache-2.0
"""Messages and questions of the pages have addresses."""

import importlib.util

from docutils import nodes
from docutils.core import publish_doctree

from tests.documents import blocks
from tests.tree import ROOT

SOURCE = ROOT / "doc" / "source"
TERMS = """
"Heat has … members"
    Text.

"Heat has … members"
    Again.

…
    Nothing to name it by.
"""


def named(text):
    """The anchors of the terms of a page."""
    path = SOURCE / "_ext" / "anchors.py"
    spec = importlib.util.spec_from_file_location("anchors", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    doctree = publish_doctree(text, settings_overrides=blocks.QUIET)
    module.name_terms(None, doctree)
    return [list(term["ids"]) for term in doctree.findall(nodes.term)]


def test_a_term_has_an_anchor_made_of_its_text():
    assert named(TERMS) == [["heat-has-members"], [], []]


def test_every_message_of_the_troubleshooting_page_has_one():
    found = named((SOURCE / "troubleshooting.rst").read_text())
    assert len(found) > 60
    assert all(found)
