# SPDX-License-Identifier: Apache-2.0
"""Shared by all commands: exit codes, error messages, arguments, files."""

import argparse
import contextlib
import difflib
import errno
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import files
from tacker_k8s_mgmt.plain_text import printable

#: A VNF instance in examples.
EXAMPLE_ID = "0f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
PROGRAM = "tacker-k8s-mgmt"
OK, PROBLEMS, USAGE = 0, 1, 2

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

EXIT_CODES = "0 all is well, 1 problems were found, 2 wrong or unreadable input"


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
    :raises NotWritten: it is no file that may be replaced.
    """
    if files.exists(path) and not force:
        raise UsageError(f"{path} exists; --force replaces it")
    if not path.parent.is_dir():
        raise UsageError(f"there is no directory {path.parent}")
