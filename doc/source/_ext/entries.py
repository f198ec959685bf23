# SPDX-License-Identifier: Apache-2.0
"""Entries of generated lists: a name with an anchor, and what is said of it."""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.environment import BuildEnvironment

#: Names of attributes, options, variables and files, addresses and URLs.
_NAME = re.compile(r"(?:\[\w+\] )?[\w.*{}:/-]*[_/](?:[\w.*{}:/-]*[\w}*/])?")


def marked(text: str) -> Iterator[nodes.Node]:
    """A text with its names as literals."""
    end = 0
    for found in _NAME.finditer(text):
        yield nodes.Text(text[end : found.start()])
        yield nodes.literal(text=found[0])
        end = found.end()
    yield nodes.Text(text[end:])


def entry(
    env: BuildEnvironment, kind: str, name: str, remark: str, text: str
) -> nodes.definition_list_item:
    """An item of a definition list, which ``:ref:`` finds as ``KIND-NAME``.

    :param remark: what stands behind the name, in parentheses.
    """
    place = f"{kind}-{name}"
    # Dots would have to be escaped in addresses' fragments of some tools.
    anchor = place.replace(".", "-").replace("_", "-")
    link = nodes.reference("", "¶", refuri=f"#{anchor}", classes=["headerlink"])
    term = nodes.term("", "", nodes.literal(text=name), ids=[anchor])
    if remark:
        term += nodes.Text(f"  ({remark})")
    term += link
    env.domains.standard_domain.note_hyperlink_target(place, env.docname, anchor, name)
    definition = nodes.definition("", nodes.paragraph("", "", *marked(text)))
    return nodes.definition_list_item("", term, definition)
