# SPDX-License-Identifier: Apache-2.0
"""Highlights blocks with a prompt as what they are: commands with their output."""

from docutils import nodes
from sphinx.application import Sphinx

PROMPT = "$ "


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Have blocks of commands that begin with a prompt read as transcripts."""
    for block in doctree.findall(nodes.literal_block):
        is_shell = block.get("language") == app.config.highlight_language
        if is_shell and block.astext().startswith(PROMPT):
            block["language"] = "console"


def setup(app: Sphinx) -> dict[str, bool]:
    """Do it when a page has been read."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True}
