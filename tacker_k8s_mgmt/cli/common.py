"""What all commands have in common: help, exit codes, complaints, files.

Exit codes: 0 all is well, 1 problems were found, 2 the command line is wrong or an
input cannot be read.
"""

import argparse
import difflib
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = "tacker-k8s-mgmt"
OK, PROBLEMS, USAGE = 0, 1, 2

#: Arguments in, exit code out.
Function = Callable[[argparse.Namespace], int]

_EXIT_CODES = "0 all is well, 1 problems were found, 2 wrong or unreadable input"


class UsageError(Exception):
    """The command line is wrong, or an input cannot be read: exit code 2."""


def add_group(
    subparsers: Any, name: str, text: str, examples: Mapping[str, Sequence[str]]
) -> Any:
    """Add a group of commands; what :func:`add_verb` takes.

    :param examples: command lines of each verb, for the group's own help.
    """
    lines = [lines[0] for lines in examples.values()]
    group = subparsers.add_parser(
        name,
        help=text,
        description=_sentence(text),
        epilog=_epilog(lines, ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group.set_defaults(function=_helper(group))
    return group.add_subparsers(metavar="COMMAND", title="commands")


def add_verb(
    verbs: Any,
    name: str,
    function: Function,
    text: str,
    examples: Sequence[str],
    exit_codes: str = _EXIT_CODES,
) -> argparse.ArgumentParser:
    """Add one command to a group."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=text,
        description=_sentence(text),
        epilog=_epilog(examples, exit_codes),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.set_defaults(function=function)
    return verb


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _epilog(examples: Sequence[str], exit_codes: str) -> str:
    listed = "".join(f"  {line}\n" for line in examples)
    codes = f"\nexit codes: {exit_codes}\n" if exit_codes else ""
    return f"examples:\n{listed}{codes}"


def _helper(group: argparse.ArgumentParser) -> Function:
    """A group alone: show what it has."""

    def show(_: argparse.Namespace) -> int:
        group.print_help(sys.stderr)
        return USAGE

    return show


def unknown(argv: Sequence[str], known: Mapping[str, Sequence[str]]) -> str:
    """Why there is no such command; "" if there is.

    :param known: the verbs of each group; none for what is a command by itself.
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


def complain(text: str) -> None:
    """Say what is wrong, where it does not mix with the output."""
    print(text, file=sys.stderr)


def seconds(text: str) -> float:
    """A duration on the command line.

    :raises ValueError: it is none.
    """
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError(text)
    return value


def count(text: str) -> int:
    """How many of something, on the command line.

    :raises ValueError: it is no such number.
    """
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def write_new(path: Path, text: str, *, force: bool) -> None:
    """Write a file whole or not at all, for its owner only.

    :param force: replace a file that is there already.
    :raises UsageError: it is there already, or cannot be written.
    """
    if not force and (path.exists() or path.is_symlink()):
        raise UsageError(f"{path} exists; --force replaces it")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
