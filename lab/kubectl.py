# SPDX-License-Identifier: Apache-2.0
"""The real kubectl: a copy of the machine's, or the one from Debian's package.

It is put into the cache and never installed: where a machine has a kubectl from
elsewhere, Debian's package would be in conflict with it.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from lab import LabError, command, files
from lab.settings import Settings

PACKAGE = "kubernetes-client"
OLDEST = (1, 24)
LIMIT = 300


def prepare(settings: Settings) -> None:
    """Make ``kubectl`` in the cache's programs.

    :raises LabError: the machine has none and apt cannot get one.
    """
    if settings.kubectl.exists():
        return
    settings.programs.mkdir(parents=True, exist_ok=True)
    own = shutil.which("kubectl")
    if own and version(own) >= OLDEST:
        files.put_program(Path(own), settings.kubectl)
        return
    with tempfile.TemporaryDirectory(dir=settings.cache) as name:
        files.put_program(_download(Path(name)), settings.kubectl)


def version(program: str) -> tuple[int, int]:
    """Version of a kubectl; (0, 0) for what is none, such as a script of that name."""
    with open(program, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return (0, 0)
    done = subprocess.run(
        [program, "version", "--client", "-o", "json"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    try:
        found = json.loads(done.stdout)["clientVersion"]
        return int(found["major"]), int(found["minor"].rstrip("+"))
    except (ValueError, KeyError):
        return (0, 0)


def _download(directory: Path) -> Path:
    fix = f"put a kubectl of version {'.'.join(map(str, OLDEST))} or newer into PATH"
    if not shutil.which("apt-get"):
        raise LabError(f"The lab needs kubectl: {fix}", 2)
    # apt's own user fetches the file.
    directory.chmod(0o777)
    env = command.quiet_environment()
    try:
        command.run(
            ["apt-get", "download", "-q", PACKAGE], limit=LIMIT, cwd=directory, env=env
        )
        (package,) = directory.glob("*.deb")
        command.run(["dpkg-deb", "-x", str(package), str(directory)], limit=LIMIT)
    except LabError as error:
        raise LabError(f"{error}\nWithout apt: {fix}", error.code) from error
    return directory / "usr/bin/kubectl"
