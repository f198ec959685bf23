# SPDX-License-Identifier: Apache-2.0
"""Runs of the real Ansible on the stand-in for kubespray, without hosts."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.helpers.tool_warnings import warnings_in


def run(
    root: Path, directory: Path, *argv: str | Path, expected: Iterable[str] = ()
) -> tuple[int, str]:
    """Exit code and output of a program of Ansible.

    It has no other warnings than those that are expected.

    :param root: of the stand-in.
    :param directory: for facts and temporary files.
    :param expected: parts of lines.
    """
    done = subprocess.run(
        argv,
        cwd=root,
        env={
            **os.environ,
            "HOME": str(directory),
            "ANSIBLE_CONFIG": str(root / "ansible.cfg"),
            "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(directory / "facts"),
            "ANSIBLE_NOCOLOR": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    output = done.stdout + done.stderr
    assert warnings_in(output, *expected) == []
    return done.returncode, output
