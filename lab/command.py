# SPDX-License-Identifier: Apache-2.0
"""Running a program whose output matters only when it fails."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab import LabError

TAIL_LINES = 12


def run(
    argv: Sequence[str],
    *,
    limit: float,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a program to its end and return what it printed.

    :param limit: in seconds.
    :param log: file that takes the output as well.
    :raises LabError: it is missing, failed or took longer; with the end of its output.
    """
    name = Path(argv[0]).name
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit,
            env=None if env is None else dict(env),
            cwd=cwd,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{name} is missing: python3 -m lab install") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{name} took longer than {limit:.0f} s") from error
    if log:
        with log.open("a") as file:
            file.write(done.stdout)
    if done.returncode:
        where = f" (all of it: {log})" if log else ""
        raise LabError(
            f"{name} failed with exit code {done.returncode}{where}:\n"
            f"{tail(done.stdout)}"
        )
    return done.stdout


def tail(text: str, lines: int = TAIL_LINES) -> str:
    """The last lines of a text, indented."""
    return "\n".join(f"    {line}" for line in text.strip().splitlines()[-lines:])


def quiet_environment() -> dict[str, str]:
    """This process's environment, fit for programs whose output is compared."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
