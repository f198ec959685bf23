# SPDX-License-Identifier: Apache-2.0
"""What all commands have in common: help, errors, and forms of their output."""

import abc
import argparse
import difflib
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, ClassVar, NoReturn

import cliff.command
import cliff.lister
import cliff.show
from cliff.columns import FormattableColumn

from tacker_k8s_mgmt import files
from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.errors import K8sMgmtError, TackerConfigError
from tacker_k8s_mgmt.model.timeline import clock
from tacker_k8s_mgmt.plain_text import printable

_JSON = "json"


class Parser(argparse.ArgumentParser):
    """Names the nearest option to one that does not exist."""

    def _print_message(self, message: str, file: Any = None) -> None:
        try:
            super()._print_message(message, file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SystemExit(common.lost(error)) from None

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit with 2."""
        hints = []
        known = [o for action in self._actions for o in action.option_strings]
        if message.startswith("unrecognized arguments"):
            for word in re.findall(r"(?<=\s)--[\w-]+", message):
                near = difflib.get_close_matches(word, known, n=1)
                hints += [f"; did you mean {near[0]}?"] if near else []
        super().error(message + "".join(hints[:1]))


class Reporting(cliff.command.Command):
    """A command whose errors become a line and an exit code."""

    def _load_hooks(self) -> None:
        # Of other packages. A search for them takes longer than most commands.
        self._hooks = []

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run it; its errors become a line and an exit code."""
        return self._reported(lambda: self.take_action(parsed_args) or common.OK)

    def _reported(self, act: Callable[[], int]) -> int:
        try:
            return act()
        except BrokenPipeError:
            raise
        except Exception as error:
            if self.app.options.debug:
                common.complain(traceback.format_exc())
            if isinstance(error, OSError) and common.is_lost(error):
                return common.lost(error)
            code, text = _judged(error)
        common.complain(text)
        return code


class Command(Reporting):
    """A command; see :mod:`.commands` for how one is written."""

    #: Whole command lines.
    examples: ClassVar[Sequence[str]] = ()
    exit_codes: ClassVar[str] = common.EXIT_CODES
    #: Whether the output has all failures, so that logs of libraries add nothing.
    reports_failures: ClassVar[bool] = False
    #: As a plugin of ``openstack``: nothing here logs in to the cloud by its options.
    auth_required = False

    @classmethod
    def words(cls) -> str:
        """Its name on the command line, such as ``cluster check``."""
        return cls.__module__.rpartition(".")[2].replace("_", " ")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options, with the help."""
        # In another program the name is longer: openstack vnf k8s cluster check.
        program = prog_name.removesuffix(self.words()).strip() or common.PROGRAM
        lines = "".join(f"  {line}\n" for line in self.examples)
        return Parser(
            prog=prog_name,
            description=self.get_description(),
            epilog=f"examples:\n{lines.replace(common.PROGRAM, program)}\n"
            f"exit codes: {self.exit_codes}\n",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def cloud_name(self, parsed_args: argparse.Namespace) -> str | None:
        """Return the cloud that ``--os-cloud`` names, here or to ``openstack``."""
        outer = getattr(self.app.options, "cloud", None)
        return parsed_args.os_cloud or outer or None

    def status(self, text: str) -> Any:
        """A context in which a terminal shows that the command works on something."""
        if self.app.options.verbose_level == 0:
            return nullcontext()
        # Imported late: most commands have nothing to wait for.
        from tacker_k8s_mgmt.cli.render.console import Console

        return Console(stderr=True).status(text)


def _judged(error: Exception) -> tuple[int, str]:
    """The exit code and the text of an error."""
    if isinstance(error, UsageError | TackerConfigError):
        return common.USAGE, str(error)
    if isinstance(error, common.NotDone | K8sMgmtError):
        return common.PROBLEMS, str(error)
    if isinstance(error, files.NotWritten):
        return common.USAGE, str(error)
    if isinstance(error, OSError) and error.filename is not None:
        name = os.fsdecode(error.filename)
        return common.USAGE, f"{name}: {files.reason(error)}"
    if isinstance(error, OSError):
        return common.PROBLEMS, files.reason(error)
    return common.PROBLEMS, f"{type(error).__name__}: {error}"


@contextmanager
def _unknown_columns() -> Iterator[None]:
    """Names of columns are a part of the command line."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error


def _printable(value: Any) -> Any:
    """A value without what steers a terminal; JSON has escapes for that itself."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_printable(name): _printable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(inner) for inner in value]
    if isinstance(value, FormattableColumn):
        return type(value)(_printable(value._value))
    return value


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        action="store_const",
        dest="formatter",
        const=_JSON,
        help="the same as -f json",
    )


class Lister(cliff.lister.Lister, Command):
    """A command that lists things."""

    #: The exit code when nothing went wrong.
    _code = common.OK

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, with the options for forms of output."""
        parser = super().get_parser(prog_name)
        _add_json(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run it and print the list."""
        return self._reported(
            lambda: super(Lister, self).run(parsed_args) or self._code
        )

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        """Print it in the form that was chosen."""
        rows = data
        if parsed_args.formatter != _JSON:
            rows = (tuple(map(_printable, row)) for row in data)
        with _unknown_columns():
            return super().produce_output(parsed_args, column_names, rows)


class Time(FormattableColumn[Any]):
    """A time in seconds since the epoch: local for people, UTC for programs."""

    def human_readable(self) -> str:
        """Return it as `runs show` prints it."""
        return clock(self._value)

    def machine_readable(self) -> str | None:
        """Return it in ISO 8601; None if it is not known."""
        if not self._value:
            return None
        at = datetime.fromtimestamp(self._value, timezone.utc)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Outcome:
    """What a command has found.

    :param document: for programs.
    :param show: prints it for people.
    :param code: the exit code.
    """

    document: Mapping[str, Any]
    show: Callable[[], None]
    code: int = common.OK


class Report(cliff.show.ShowOne, Command):
    """A command with a text for people, and a document for programs.

    Without ``-f`` people are addressed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, with the options for forms of output."""
        parser = super().get_parser(prog_name)
        for action in self._formatter_group._group_actions:
            if action.dest == "formatter":
                action.default = None
                action.help = "a document in this format, in place of text"
        _add_json(parser)
        return parser

    @abc.abstractmethod
    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Do what the command is for."""

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[Any]]:
        """Return the names and values of the document."""
        outcome = self.find(parsed_args)
        self._code = outcome.code
        return tuple(outcome.document), tuple(outcome.document.values())

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Sequence[Any],
    ) -> int:
        """Print the document in the form that was chosen."""
        if parsed_args.formatter != _JSON:
            data = tuple(map(_printable, data))
        with _unknown_columns():
            return super().produce_output(parsed_args, column_names, data)

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run it, and print what was found in the form that was chosen."""

        def act() -> int:
            if parsed_args.formatter is None and not parsed_args.columns:
                outcome = self.find(parsed_args)
                outcome.show()
                return outcome.code
            parsed_args.formatter = parsed_args.formatter or self.formatter_default
            super(Report, self).run(parsed_args)
            return self._code

        return self._reported(act)
