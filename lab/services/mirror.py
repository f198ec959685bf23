# SPDX-License-Identifier: Apache-2.0
"""The mirror: what the real kubespray and its nodes download in the lab.

Files over HTTP and a registry, on the controller's address of the external network.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from lab.artifacts import mirror
from lab.cloud.addresses import CONTROLLER_ADDRESS
from lab.services import rest
from lab.services.process import Service
from lab.settings import SYSTEM_PYTHON, Settings

FILES = "files"
REGISTRY = "registry"
FILES_PORT = 8080
REGISTRY_ADDRESS = f"{CONTROLLER_ADDRESS}:5001"
#: What ``cluster.offline.files_repo`` of a VNF is.
FILES_URL = f"http://{CONTROLLER_ADDRESS}:{FILES_PORT}"


def root(settings: Settings) -> Path:
    """What a lab serves: all its mirrors, as one directory."""
    return settings.state / "mirror"


def is_there(settings: Settings) -> bool:
    """Whether a lab has a mirror."""
    return root(settings).is_dir()


def link(settings: Settings, mirrors: Sequence[Path]) -> None:
    """Let a lab serve mirrors, from its next ``up`` on.

    Every file becomes a link, so one can be replaced without harm to the cache. Names
    of files and of blobs have a version or a digest in them, so mirrors do not collide.

    :param mirrors: the later ones' tags win.
    """
    work = root(settings).with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    for each in mirrors:
        for part in ("files", "images"):
            for source in (each / part).rglob("*"):
                if not source.is_dir():
                    target = work / source.relative_to(each)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.unlink(missing_ok=True)
                    target.symlink_to(source.absolute())
    shutil.rmtree(root(settings), ignore_errors=True)
    work.rename(root(settings))


def files(settings: Settings) -> Service:
    """The files."""
    place = ("--bind", CONTROLLER_ADDRESS, str(FILES_PORT))
    what = ("--protocol", "HTTP/1.1", "--directory", str(root(settings) / "files"))
    return Service(
        name=FILES,
        argv=(SYSTEM_PYTHON, "-m", "http.server", *what, *place),
        ready=lambda _: rest.answers(FILES_URL),
        patience=1.0,
    )


def registry(settings: Settings) -> Service:
    """The images."""
    config = settings.etc / "registry.yml"
    return Service(
        name=REGISTRY,
        argv=(str(mirror.registry(settings)), "serve", str(config)),
        ready=lambda _: rest.answers(f"http://{REGISTRY_ADDRESS}/v2/"),
        # It would look for a collector of traces.
        environment={"OTEL_TRACES_EXPORTER": "none"},
        files=(config,),
    )
