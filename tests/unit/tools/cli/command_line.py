# SPDX-License-Identifier: Apache-2.0
"""The commands and their help."""

import re
import shlex

from tacker_k8s_mgmt.tools.cli import main
from tacker_k8s_mgmt.tools.cli.app import App, Commands

COMMANDS = [tuple(name.split()) for name, _ in sorted(Commands())]
VERBS = [words for words in COMMANDS if len(words) == 2]


def help_of(capsys, *words):
    assert main(["help", *words]) == 0
    return capsys.readouterr().out


def parsed(words):
    """The arguments of a command line, and its command; it must be a right one."""
    app = App()
    app.options, rest = app.parser.parse_known_args(words)
    factory, name, arguments = app.command_manager.find_command(rest)
    command = factory(app, app.options)
    return command, command.get_parser(name).parse_args(arguments)


def commands_in(text):
    """The command lines of this program in a text, without what a shell does."""
    joined = text.replace("\\\n", " ")
    for line in re.findall(r"^[\s$#]*(tacker-k8s-mgmt .*)$", joined, re.MULTILINE):
        words = shlex.split(line, comments=True)[1:]
        for end in ("<", ">", "|"):
            words = [word for word in words if not word.startswith(end)]
        yield words
