"""The directive ``option-table``: the driver's options as ``tacker.conf`` has them."""

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from tacker_k8s_mgmt import config


class OptionTable(Directive):
    """A definition list with one entry for each option."""

    def run(self) -> list[nodes.Node]:
        """The list."""
        items = []
        for option in config.OPTIONS:
            term = nodes.term("", "", nodes.literal(text=option.name))
            if option.default is not None:
                term += nodes.Text(f"  (default {option.default})")
            text = nodes.definition("", nodes.paragraph(text=option.help))
            items.append(nodes.definition_list_item("", term, text))
        return [nodes.definition_list("", *items)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("option-table", OptionTable)
    return {"parallel_read_safe": True}
