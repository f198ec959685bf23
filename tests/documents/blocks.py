# SPDX-License-Identifier: Apache-2.0
"""Reads the commands out of the guides, each as a shell takes it."""

import functools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
from docutils.core import publish_doctree

from tests.tree import ROOT

PAGES = (ROOT / "README.rst", *sorted((ROOT / "doc" / "source").glob("*.rst")))
# A block without a language is one of commands.
SHELLS = {"bash", "console", "sh", "shell"}
PROMPT = "$ "
# Roles and directives of Sphinx are unknown to docutils, which is no matter here.
QUIET = {"report_level": 5, "halt_level": 5, "file_insertion_enabled": False}


@dataclass(frozen=True)
class Command:
    """One command of a page.

    :ivar where: the page and the line of the command's block.
    :ivar text: the command, as it is printed and without a prompt.
    :ivar shown: the output that the page prints below it.
    """

    where: str
    text: str
    shown: tuple[str, ...] = ()


@functools.cache
def commands() -> tuple[Command, ...]:
    """Every command of every page, in their order."""
    return tuple(one for page in PAGES for one in of_page(page.name, page.read_text()))


def of_page(name: str, text: str) -> Iterator[Command]:
    """The commands of one page.

    :param name: the page's.
    :param text: its reStructuredText.
    """
    tree = publish_doctree(text, settings_overrides=QUIET)
    for block in tree.findall(nodes.literal_block):
        language = [class_ for class_ in block["classes"] if class_ != "code"]
        ours = not language or language[0] in SHELLS
        # What docutils does not know it quotes in a message of its own.
        if ours and not isinstance(block.parent, nodes.system_message):
            for command, shown in _parts(block.astext()):
                yield Command(f"{name}:{block.line}", command, shown)


@functools.cache
def code(language: str) -> tuple[str, ...]:
    """Every block of a language of every page, in their order."""
    return tuple(
        block.astext()
        for page in PAGES
        for block in publish_doctree(
            page.read_text(), settings_overrides=QUIET
        ).findall(nodes.literal_block)
        if language in block["classes"]
    )


def _parts(block: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each command of a block, and what is shown below it."""
    transcript = block.startswith(PROMPT)
    command, shown, complete = "", list[str](), True
    for line in block.splitlines():
        begins = complete and (not transcript or line.startswith(PROMPT))
        if begins:
            if command:
                yield command, tuple(shown)
            command, shown = line.removeprefix(PROMPT) if transcript else line, []
        elif not complete:
            command += f"\n{line}"
        else:
            shown.append(line)
            continue
        complete, empty = _read(command)
        if empty:
            command = ""
    if command:
        yield command, tuple(shown)


def _read(command: str) -> tuple[bool, bool]:
    """Whether a command is complete, and whether there is none but a comment."""
    try:
        return True, not shlex.split(command, comments=True)
    except ValueError:
        # An open quotation, or a backslash at the end of the line.
        return False, False
