# SPDX-License-Identifier: Apache-2.0
"""The program ``tacker-k8s-mgmt``: its own options, commands, logs, completion.

``tacker-k8s-mgmt complete`` prints the script with which a shell completes commands.
"""

import argparse
import importlib.metadata
import logging
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from itertools import takewhile
from typing import Any

import cliff.app
import cliff.command
import cliff.commandmanager
import cliff.complete
import cliff.help
from stevedore.extension import Extension, ExtensionManager

from tacker_k8s_mgmt.text import printable
from tacker_k8s_mgmt.tools.cli import base, commands
from tacker_k8s_mgmt.tools.cli.base import Parser, Reporting

_NOWHERE = EntryPoint("", "", "")
_ZSH = """#compdef {name}
{function}() {{
  local -A following=(
{following}
  )
  local typed='' word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word != -* ]] || break
    word="${{typed:+${{typed}}_}}$word"
    (( ${{+following[$word]}} )) || break
    typed=$word
  done
  if [[ ${{following[$typed]}} == -* && $PREFIX != -* ]]; then
    _files
  else
    compadd -- ${{=following[$typed]}}
  fi
}}
compdef {function} {name}
"""


class Zsh(cliff.complete.CompleteShellBase):
    """The script for zsh."""

    def get_header(self) -> str:
        """Return nothing: :meth:`write` makes all of it."""
        return ""

    get_trailer = get_header

    def write(self, cmdo: str, data: list[tuple[str, str]]) -> None:
        """Write it.

        :param cmdo: the first words of commands.
        :param data: the words or options that follow others, which underscores join.
        """
        lines = [f"    '{before}' '{words}'" for before, words in (("", cmdo), *data)]
        function = f"_{self.escaped_name}"
        script = _ZSH.format(
            name=self.name, function=function, following="\n".join(lines)
        )
        self.output.write(script)


class Complete(cliff.complete.CompleteCommand, Reporting):
    """Print the script with which a shell completes commands and their options."""

    def __init__(
        self, app: Any, app_args: argparse.Namespace, cmd_name: str | None = None
    ) -> None:
        super().__init__(app, app_args, cmd_name)
        shells = (("bash", cliff.complete.CompleteBash), ("zsh", Zsh))
        self._formatters = ExtensionManager.make_test_instance(
            [Extension(name, _NOWHERE, shell, None) for name, shell in shells]
        )

    def get_epilog(self) -> str:
        """Return nothing: a search for the command's package takes seconds."""
        return ""


_DESCRIPTION = "Kubernetes cluster VNFs with Tacker and kubespray."
_EXAMPLES = """examples:
  tacker-k8s-mgmt csar build simple -o simple.zip
  tacker-k8s-mgmt runs follow
  tacker-k8s-mgmt csar check --help
"""
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO)


class Commands(cliff.commandmanager.CommandManager):
    """All of :data:`.commands.COMMANDS`, each imported when it is used."""

    def __init__(self) -> None:
        super().__init__(commands.__name__)

    def _load_commands(self) -> None:
        for name, target in commands.COMMANDS.items():
            self.commands[name] = importlib.metadata.EntryPoint(
                name, target, commands.__name__
            )

    def groups(self) -> dict[str, list[str]]:
        """The verbs of each group; none for a command by itself."""
        found: dict[str, list[str]] = {}
        for name in sorted(self.commands):
            group, _, verb = name.partition(" ")
            found.setdefault(group, []).extend([verb] if verb else [])
        return found


class Help(cliff.help.HelpCommand, Reporting):
    """Show the help of the program, or of a group of commands, or of a command."""

    app: "App"

    def get_epilog(self) -> str:
        """Return nothing: a search for the command's package takes seconds."""
        return ""

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Print it."""
        words = parsed_args.cmd
        known = self.app.groups()
        if text := base.unknown(words, known):
            base.complain(text)
            return base.USAGE
        if not words or (len(words) == 1 and known[words[0]]):
            self.app.print_overview(sys.stdout, *words)
            return base.OK
        return super().take_action(parsed_args)


class App(cliff.app.App):
    """The program, for one command line."""

    NAME = base.PROGRAM
    LOG = logging.getLogger(base.PROGRAM)
    command_manager: Commands

    def __init__(self) -> None:
        super().__init__(_DESCRIPTION, _version(), Commands(), deferred_help=True)
        self._handler: logging.Handler | None = None
        # Levels of loggers before, by their names.
        self._former: dict[str, int] = {}
        self.command_manager.add_command("help", Help)
        self.command_manager.add_command("complete", Complete)

    def build_option_parser(
        self,
        description: str | None,
        version: str | None,
        argparse_kwargs: dict[str, Any] | None = None,
    ) -> argparse.ArgumentParser:
        """Return the parser of the options that all commands have."""
        # They may be anywhere among those of a command, so none may be abbreviated.
        parser = Parser(
            self.NAME, description=description, add_help=False, allow_abbrev=False
        )
        parser.add_argument(
            "--version", action="version", version=f"{self.NAME} {version}"
        )
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            "-v",
            "--verbose",
            action="count",
            dest="verbose_level",
            default=self.DEFAULT_VERBOSE_LEVEL,
            help="show what is logged; twice: with the details of this program",
        )
        group.add_argument(
            "-q",
            "--quiet",
            action="store_const",
            const=0,
            dest="verbose_level",
            help="show neither warnings of libraries nor that a command is at work",
        )
        parser.add_argument(
            "--debug", action="store_true", help="show where an error comes from"
        )
        parser.add_argument(
            "-h",
            "--help",
            action="store_true",
            dest="deferred_help",
            help="show the help of the program, or of a command",
        )
        return parser

    def configure_logging(self) -> None:
        """Send logs to standard error, as far as they were asked for.

        Details are this program's alone: those of Tacker would show secrets.
        """
        level = self.options.verbose_level
        self._handler = logging.StreamHandler(self.stderr)
        self._handler.setFormatter(_Plain(self.CONSOLE_MESSAGE_FORMAT))
        logging.captureWarnings(True)
        # A library's advice to its users is of no use to those of this program.
        is_default = level <= self.DEFAULT_VERBOSE_LEVEL
        kept_off = logging.CRITICAL if is_default else logging.NOTSET
        self._set_level("py.warnings", kept_off)
        logging.getLogger().addHandler(self._handler)
        self._set_level("", _LEVELS[min(level, len(_LEVELS) - 1)])
        if level >= len(_LEVELS):
            self._set_level("tacker_k8s_mgmt", logging.DEBUG)

    def _set_level(self, name: str, level: int) -> None:
        """Set the level of a logger, until the command has ended."""
        logger = logging.getLogger(name)
        self._former.setdefault(name, logger.level)
        logger.setLevel(level)

    def prepare_to_run_command(self, cmd: Any) -> None:
        """Keep logs of libraries off the screen, unless they were asked for."""
        silent = getattr(cmd, "reports_failures", False)
        default = self.options.verbose_level <= self.DEFAULT_VERBOSE_LEVEL
        if silent and default and self._handler:
            self._handler.setLevel(logging.CRITICAL + 1)

    def initialize_app(self, argv: list[str]) -> None:
        """Drop the options of a command whose help is asked for."""
        if argv[:1] == ["help"]:
            options = (i for i, word in enumerate(argv) if word.startswith("-"))
            del argv[next(options, len(argv)) :]

    def groups(self) -> dict[str, list[str]]:
        """The verbs of each group; none for a command by itself."""
        return self.command_manager.groups()

    def print_help_if_requested(self) -> None:
        """Print the help of the program, and end."""
        if self.options.deferred_help:
            self.print_overview(sys.stdout)
            raise SystemExit(base.OK)

    def interact(self) -> None:
        """Show the help: there is no shell."""
        self.print_overview(sys.stderr)

    def run(self, argv: list[str]) -> int:
        """Run the command of this command line, and return the exit code."""
        for word in argv:
            if not base.is_text(word):
                base.complain(f"The argument {word!r} is no text in UTF-8.")
                return base.USAGE
        try:
            code = super().run(argv)
        finally:
            if self._handler:
                logging.getLogger().removeHandler(self._handler)
                logging.captureWarnings(False)
            for name, level in self._former.items():
                logging.getLogger(name).setLevel(level)
        return base.USAGE if self.interactive_mode else code

    def run_subcommand(self, argv: list[str]) -> int:
        """Run a command, or name those that there are."""
        words = list(takewhile(lambda word: not word.startswith("-"), argv))
        known = self.groups()
        if text := base.unknown(words, known):
            base.complain(text)
            return base.USAGE
        if not words:
            self.parser.error(f"unrecognized arguments: {' '.join(argv)}")
        if len(words) == 1 and known[words[0]]:
            self.print_overview(sys.stderr, words[0])
            return base.USAGE
        return super().run_subcommand(argv)

    def print_overview(self, file: Any, group: str = "") -> None:
        """Print what commands there are, in all or of one group."""
        listed = dict(self._listed(group))
        width = max(map(len, listed))
        if not group:
            self.parser.print_help(file)
        lines = ["", "commands:"] if not group else ["commands:"]
        examples = []
        for name, command in listed.items():
            lines.append(f"  {name:<{width}}  {_line(command)}")
            examples += [f"  {line}" for line in getattr(command, "examples", ())[:1]]
        base.show("\n".join(lines), "\n\n", file)
        shown = "\n".join(["examples:", *examples]) if group else _EXAMPLES.rstrip()
        base.show(shown, file=file)

    def _listed(self, group: str) -> Iterator[tuple[str, Any]]:
        for name, point in sorted(self.command_manager):
            if not group or name.split()[0] == group:
                yield name, point.load()


class _Plain(logging.Formatter):
    """Names and texts of others, and tracebacks with them, cannot steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _line(command: Any) -> str:
    return (command.__doc__ or "").strip().splitlines()[0].rstrip(".")


def _version() -> str:
    try:
        return importlib.metadata.version("tacker-k8s-mgmt")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
