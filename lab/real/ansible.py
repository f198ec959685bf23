# SPDX-License-Identifier: Apache-2.0
"""kubespray's own Ansible: a virtual environment of what its requirements.txt names."""

import os
import shutil
from pathlib import Path

from lab import command, environments, files
from lab.real.checkout import Checkout
from lab.report import Report
from lab.settings import SYSTEM_PYTHON, Settings


def path(settings: Settings, checkout: Checkout) -> Path:
    """Directory of the environment, whether it is built or not.

    Beside the checkouts and not among the quick laboratory's environments, which are
    removed when their pins change.
    """
    # The name of the file that it really is has the version: python3.11.
    key = files.digest([checkout.requirements], os.path.realpath(SYSTEM_PYTHON))
    return settings.cache / "kubespray" / f"venv-{checkout.version}-{key}"


def prepare(settings: Settings, report: Report, checkout: Checkout) -> Path:
    """Build the environment unless it is there; its directory.

    :raises LabError: an installation failed.
    """
    target = path(settings, checkout)
    complete = target / environments.COMPLETE
    if complete.exists():
        return target
    environments.prepare_tools(settings, report)
    with report.step(f"Ansible of kubespray {checkout.version}"):
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        argv = [SYSTEM_PYTHON, "-m", "venv", "--without-pip", str(target)]
        command.run(argv, limit=environments.LIMIT)
        wanted = ["-r", str(checkout.requirements)]
        environments.install(settings, target, wanted)
        complete.touch()
    return target
