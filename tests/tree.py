# SPDX-License-Identifier: Apache-2.0
"""The project's files, in a checkout and in an unpacked source distribution."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What .gitignore leaves out of a checkout.
_BY_PRODUCTS = (
    *("__pycache__", "build", "dist", ".hypothesis", ".tox", ".venv"),
    "CHANGELOG.rst",
)
_SUFFIXES = ("_cache", ".egg-info", ".zip")


def files(root: Path = ROOT) -> list[str]:
    """The names of all files, without what was made of them."""
    found = _known_to_git(root) if (root / ".git").exists() else _below(root)
    return sorted(name for name in found if (root / name).is_file())


def _known_to_git(root: Path) -> list[str]:
    wanted = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        wanted, cwd=root, capture_output=True, text=True, check=True
    ).stdout
    return listed.split("\0")


def _below(root: Path) -> Iterator[str]:
    for path in root.rglob("*"):
        name = path.relative_to(root)
        if not any(
            part in _BY_PRODUCTS or part.endswith(_SUFFIXES) for part in name.parts
        ):
            yield str(name)
