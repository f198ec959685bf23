# SPDX-License-Identifier: Apache-2.0
"""What all commands share: help, arguments, files, errors, exit codes, output."""

import abc
import argparse
import contextlib
import difflib
import errno
import math
import os
import pwd
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import cliff.command
import cliff.lister
import cliff.show
from cliff.columns import FormattableColumn

from tacker_k8s_mgmt import files
from tacker_k8s_mgmt.errors import K8sMgmtError, TackerConfigError
from tacker_k8s_mgmt.model.timeline import clock
from tacker_k8s_mgmt.text import printable

#: A VNF instance in examples.
EXAMPLE_ID = "0f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
PROGRAM = "tacker-k8s-mgmt"
OK, PROBLEMS, USAGE = 0, 1, 2

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

EXIT_CODES = "0 no problem, 1 problems were found, 2 wrong or unreadable input"


class UsageError(Exception):
    """The command line is wrong, or an input cannot be read: exit code 2."""


class NotDone(Exception):
    """There is nothing to show, or what was asked for did not happen: exit code 1."""


def add_cloud(parser: argparse.ArgumentParser) -> None:
    """Add the option for a cloud."""
    parser.add_argument(
        "--os-cloud",
        metavar="NAME",
        help="the cloud of this name in clouds.yaml (default: OS_CLOUD, or the login "
        "in OS_AUTH_URL and so on)",
    )


def by_name(values: Iterable[str]) -> dict[str, str]:
    """``["VALUE", "NAME=VALUE"]`` by name, "" for the one without."""
    pairs = [value.rpartition("=") for value in values]
    return {name: value for name, _, value in pairs}


def unknown(argv: Sequence[str], known: Mapping[str, Sequence[str]]) -> str:
    """Why there is no such command; "" if there is.

    :param known: the verbs of each group; none for a command by itself.
    """
    words = [word for word in argv[:2] if not word.startswith("-")]
    if words and words[0] not in known:
        return _unknown(words[0], PROGRAM, list(known))
    if len(words) == 2 and known[words[0]] and words[1] not in known[words[0]]:
        return _unknown(words[1], f"{PROGRAM} {words[0]}", known[words[0]])
    return ""


def _unknown(word: str, where: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"{where} has no command {word!r}{hint} It has: {', '.join(known)}"


def is_text(word: str) -> bool:
    """Whether a word of the environment is UTF-8, as documents have to be."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def show(text: str, end: str = "\n", file: Any = None) -> None:
    """Print a text, in which names and texts of others may be.

    No command prints otherwise, but by the tables of :mod:`.render.console`.

    :param file: standard output by default.
    """
    print(printable(text), end=end, file=file, flush=not end)


def complain(text: str, end: str = "\n") -> None:
    """Print an error or a question, apart from the output."""
    # With standard error on a full disk, too, the exit code is left.
    with contextlib.suppress(OSError):
        show(text, end, sys.stderr)


def is_lost(error: Exception) -> bool:
    """Whether an error is that standard output takes no more, as on a full disk."""
    return (
        isinstance(error, OSError) and error.filename is None and (error.errno in _FULL)
    )


def lost(error: OSError) -> int:
    """Say that standard output takes no more, and drop the rest of it.

    :returns: the exit code.
    """
    complain(f"The output cannot be written: {files.reason(error)}")
    # Python would write the rest at its end.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PROBLEMS


def seconds(text: str) -> float:
    """A duration on the command line.

    :raises ValueError: it is none, which argparse reports by this function's name.
    """
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value


def count(text: str) -> int:
    """A number of things on the command line.

    :raises ValueError: as of :func:`seconds`.
    """
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write a file completely or not at all, readable by its owner only.

    :param force: replace an existing file.
    :raises UsageError: it exists.
    :raises NotWritten: it cannot be written.
    """
    check_output(path, force=force)
    with files.replacing(path, mode=0o600) as temporary:
        temporary.write_text(text, encoding="utf-8")


def check_output(path: Path, *, force: bool) -> None:
    """Check that a file can be put at *path*, before the work that ends with it.

    :param force: replace an existing file.
    :raises UsageError: it exists, or its directory does not.
    :raises NotWritten: it is not a file that may be replaced.
    """
    if files.exists(path) and not force:
        raise UsageError(f"{path} exists; --force replaces it")
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent}")


#: Seconds between two outputs with ``--watch``.
WATCH_SECONDS = 5.0
_JSON = "json"
#: The form of output for people.
TABLE = "table"


class Parser(argparse.ArgumentParser):
    """Names the nearest option to one that does not exist."""

    def _print_message(self, message: str, file: Any = None) -> None:
        try:
            super()._print_message(message, file)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise SystemExit(lost(error)) from None

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
        return self._reported(lambda: self.take_action(parsed_args) or OK)

    def _watched(self, parsed_args: argparse.Namespace, act: Callable[[], int]) -> int:
        """Do it once, or with ``--watch`` until Ctrl-C."""
        # Programs get one document after the other, and nothing between them.
        for_people = getattr(parsed_args, "formatter", None) in (None, TABLE)
        while getattr(parsed_args, "watch", False):
            if for_people:
                # A terminal has the latest only, a file or pipe all of them.
                show("\x1b[H\x1b[2J\x1b[3J" if sys.stdout.isatty() else "\n", end="")
                show(f"{clock(time.time())}, every {WATCH_SECONDS:g} s until Ctrl-C")
            self._reported(act)
            time.sleep(WATCH_SECONDS)
        return self._reported(act)

    def _reported(self, act: Callable[[], int]) -> int:
        try:
            return act()
        except BrokenPipeError:
            raise
        except Exception as error:
            if self.app.options.debug:
                complain(traceback.format_exc())
            if isinstance(error, OSError) and is_lost(error):
                return lost(error)
            code, text = _judged(error)
        complain(text)
        return code


class Command(Reporting):
    """A command; see :mod:`.commands` for how one is written."""

    #: Whole command lines.
    examples: ClassVar[Sequence[str]] = ()
    exit_codes: ClassVar[str] = EXIT_CODES
    #: Whether the output has all failures, so that logs of libraries add nothing.
    reports_failures: ClassVar[bool] = False
    #: As a plugin of ``openstack``: nothing here logs in to the cloud by its options.
    auth_required = False

    @classmethod
    def words(cls) -> str:
        """Its name on the command line, such as ``cluster check``."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        # In another program the name is longer: openstack vnf k8s cluster check.
        program = prog_name.removesuffix(self.words()).strip() or PROGRAM
        lines = "".join(f"  {line}\n" for line in self.examples)
        return Parser(
            prog=prog_name,
            description=self.get_description(),
            epilog=f"examples:\n{lines.replace(PROGRAM, program)}\n"
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
        from tacker_k8s_mgmt.tools.render.console import Console

        return Console(stderr=True).status(text)


def _judged(error: Exception) -> tuple[int, str]:
    """The exit code and the text of an error."""
    if isinstance(error, UsageError | TackerConfigError):
        return USAGE, str(error)
    if isinstance(error, NotDone | K8sMgmtError):
        return PROBLEMS, str(error)
    if isinstance(error, files.NotWritten):
        return USAGE, str(error)
    if isinstance(error, OSError) and error.filename is not None:
        name = os.fsdecode(error.filename)
        return USAGE, f"{name}: {files.reason(error)}{_way_out(error)}"
    if isinstance(error, OSError):
        return PROBLEMS, files.reason(error)
    return PROBLEMS, f"{type(error).__name__}: {error}"


def _way_out(error: OSError) -> str:
    """Who may read or write the file, where this user may not."""
    if not isinstance(error, PermissionError) or os.geteuid() == 0:
        return ""
    # The innermost directory that this user can look into tells who owns the rest.
    path = Path(os.fsdecode(error.filename)).absolute()
    for place in (path, *path.parents):
        with contextlib.suppress(OSError, KeyError):
            owner = pwd.getpwuid(place.stat().st_uid).pw_name
            return f". It belongs to {owner}: use sudo, or be that user."
    return ""


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


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that replaces the file of an output."""
    parser.add_argument("--force", action="store_true", help="replace an existing FILE")


def add_private_output(
    parser: argparse.ArgumentParser, default: str, more: str = ""
) -> None:
    """Add the options for a file that has secrets.

    :param default: its name, as the help has it.
    """
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=f"readable by its owner only (default: {default}){more}",
    )
    add_force(parser)


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Add the option that repeats a list or report."""
    parser.add_argument(
        "--watch",
        action="store_true",
        help=f"show it again every {WATCH_SECONDS:g} seconds, until Ctrl-C",
    )


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

    #: The columns of a table, which fits 80 characters with them. ``--long`` and other
    #: forms of output have all.
    main_columns: Sequence[str] = ()
    #: The exit code when nothing went wrong.
    _code = OK

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_json(parser)
        parser.add_argument(
            "--long", action="store_true", help="show all columns in the table"
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run it and print the list."""
        return self._watched(
            parsed_args, lambda: super(Lister, self).run(parsed_args) or self._code
        )

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
    ) -> int:
        """Print it in the form that was chosen."""
        rows = data
        if parsed_args.formatter == TABLE and not parsed_args.long:
            parsed_args.columns = parsed_args.columns or list(self.main_columns)
        if parsed_args.formatter != _JSON:
            rows = (tuple(map(_printable, row)) for row in data)
        with _unknown_columns():
            return super().produce_output(parsed_args, column_names, rows)


class Name(FormattableColumn[Any]):
    """Name and id of a VNF instance: for people the id if it has no name."""

    def human_readable(self) -> str:
        """Return what people call it."""
        name, vnf_id = self._value
        return str(name or vnf_id)

    def machine_readable(self) -> str:
        """Return the name, which may be empty."""
        name, _ = self._value
        return str(name)


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
    code: int = OK


class Report(cliff.show.ShowOne, Command):
    """A command with a text for people, and a document for programs.

    Without ``-f`` people are addressed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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

        return self._watched(parsed_args, act)
