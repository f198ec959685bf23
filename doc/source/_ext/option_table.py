# SPDX-License-Identifier: Apache-2.0
"""The directive ``option-table``: the driver's options as ``tacker.conf`` has them."""

from docutils import nodes
from docutils.parsers.rst import Directive
from entries import entry
from sphinx.application import Sphinx

from tacker_k8s_mgmt import config


class OptionTable(Directive):
    """A definition list with one entry for each option."""

    def run(self) -> list[nodes.Node]:
        """The list."""
        env = self.state.document.settings.env
        items = []
        for option in config.OPTIONS:
            known = option.default is not None
            remark = f"default {option.default}" if known else ""
            items.append(entry(env, "option", option.name, remark, option.help or ""))
        return [nodes.definition_list("", *items)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("option-table", OptionTable)
    return {"parallel_read_safe": True}
