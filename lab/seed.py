# SPDX-License-Identifier: Apache-2.0
"""The databases as they are in a new lab: made once, copied into each lab.

Schemas and Keystone's users take half a minute to make. They depend on the
environments and on a few files of ours only, so they are made in a lab of their own
and kept in the cache.
"""

import shutil
from pathlib import Path

from lab import LabError, environments, files
from lab.namespace import Namespace, clean_environment
from lab.report import Report
from lab.settings import (
    PASSWORD,
    PORTS,
    PROJECT,
    REGION,
    SYSTEM_PYTHON,
    USER,
    Settings,
    places,
)

HERE = Path(__file__).parent
DEPENDENCIES = (
    HERE / "etc" / "my.cnf",
    HERE / "etc" / "databases.sql",
    HERE / "services" / "openstack.py",
)
PARTS = ("mysql", "keystone")


def key() -> str:
    """What the databases depend on, in short."""
    built = map(environments.key, ("openstack", "tacker"))
    return files.digest(
        DEPENDENCIES, *built, PASSWORD, PROJECT, REGION, USER, str(PORTS)
    )


def path(settings: Settings) -> Path:
    """Where the databases for the current pins are kept."""
    return settings.cache / "seeds" / key()


def make(settings: Settings, report: Report) -> None:
    """Make the databases unless they are there. The caller holds a lock.

    :raises LabError: it failed; the logs are left to be read.
    """
    target = path(settings)
    if target.exists():
        return
    report.line("databases, for this and every later lab:")
    workshop = Settings(settings.cache / "seeds" / "new", settings.cache)
    namespace = Namespace(workshop)
    # What a command left that failed, or was killed.
    namespace.end()
    files.remove(workshop.state)
    files.claim(workshop.state)
    try:
        namespace.start()
        env = {**clean_environment(), **places(workshop)}
        if namespace.run(
            [SYSTEM_PYTHON, "-m", "lab.services", "create-databases"], env
        ):
            raise LabError(f"The databases could not be made; logs: {workshop.log}")
    finally:
        namespace.end()
    for former in target.parent.glob("[0-9a-f]*"):
        shutil.rmtree(former)
    shutil.move(workshop.data, target)
    files.remove(workshop.state)


def copy(settings: Settings) -> None:
    """Give a new lab its databases.

    :raises LabError: the lab has databases that the current programs may not know.
    """
    stamp = settings.data / "seed"
    if stamp.exists():
        if stamp.read_text() != key():
            raise LabError(
                f"The lab in {settings.state} was made by another version of the"
                " project: python3 -m lab down, then up"
            )
        return
    settings.data.mkdir(exist_ok=True)
    for part in PARTS:
        shutil.rmtree(settings.data / part, ignore_errors=True)
        shutil.copytree(path(settings) / part, settings.data / part)
    stamp.write_text(key())
