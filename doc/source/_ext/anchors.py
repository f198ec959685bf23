# SPDX-License-Identifier: Apache-2.0
"""Gives each term of a definition list an anchor, made of its text.

So a message of the troubleshooting page, or a question of a guide, has an address.
"""

from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_LONGEST = 60


def name_terms(app: "Sphinx | None", doctree: nodes.document) -> None:
    """Give anchors to terms that have none."""
    taken = {name for node in doctree.findall() for name in _ids(node)}
    for term in doctree.findall(nodes.term):
        if term["ids"]:
            continue
        # What is only marks has no text for an anchor.
        anchor = nodes.make_id(term.astext())[:_LONGEST].strip("-")
        if anchor and anchor not in taken:
            taken.add(anchor)
            term["ids"].append(anchor)
            term += nodes.reference(
                "", "¶", refuri=f"#{anchor}", classes=["headerlink"]
            )


def _ids(node: nodes.Node) -> list[str]:
    return list(node["ids"]) if isinstance(node, nodes.Element) else []


def setup(app: "Sphinx") -> dict[str, bool]:
    """Do it when a page has been read."""
    app.connect("doctree-read", name_terms)
    return {"parallel_read_safe": True}
