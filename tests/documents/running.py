# SPDX-License-Identifier: Apache-2.0
"""Runs commands of the guides as they are printed, but for the site's own values."""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.documents.blocks import Command

LIMIT = 900  # seconds; on a slow machine a whole instantiation is followed
#: Ids that pages show are those of a VNF instance.
EXAMPLE = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
#: Where the journals and host keys are unless a site says otherwise.
STATE_PATH = "/var/lib/tacker/k8s_mgmt"
#: Commands that need options for another place.
STATEFUL = re.compile(r"^tacker-k8s-mgmt (runs \w+|preflight)\b")


def with_values(text: str, values: Mapping[str, str]) -> str:
    """A command with what a site has in place of placeholders.

    :param values: by the placeholder, such as ``VNF_INSTANCE_ID``, and the state path
        by :data:`STATE_PATH`.
    """
    if "VNF_INSTANCE_ID" in values:
        text = EXAMPLE.sub("VNF_INSTANCE_ID", text)
    if STATE_PATH in values:
        text = STATEFUL.sub(rf"\g<0> --state-path {STATE_PATH}", text)
    for name in sorted(values, key=len, reverse=True):
        whole = rf"(?<![A-Z0-9])(?<![A-Z0-9]_){re.escape(name)}(?![A-Z0-9_])"
        text = re.sub(whole, values[name], text)
    return text


def script(commands: Iterable[Command], values: Mapping[str, str]) -> str:
    """A program for bash that ends at the first command that fails.

    What several pages print alike is run once.
    """
    lines = {with_values(command.text, values): command.where for command in commands}
    marked = (f"echo '==> {where}' >&2\n{text}\n" for text, where in lines.items())
    return "set -euo pipefail\n" + "".join(marked)


def run(
    program: str,
    place: Path,
    environment: Mapping[str, str],
    *,
    stdin: str = "",
    expect: int = 0,
) -> str:
    """What a program for bash prints.

    :param place: the directory in which it is run.
    :param stdin: what it reads.
    :param expect: its exit code.
    """
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=place,
        env=dict(environment),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == expect, f"{program}\n{done.stdout}\n{done.stderr}"
    return done.stdout
