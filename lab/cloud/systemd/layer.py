# SPDX-License-Identifier: Apache-2.0
"""The layer between the Debian root and a host's own files: what makes it a lab's host.

Made anew in memory at each start of a lab, as those of ordinary hosts are.
"""

import os
import shutil
import subprocess
from pathlib import Path

from lab.cloud import CloudError, base
from lab.cloud.systemd.root import listed

HERE = Path(__file__).parent
FILES = HERE / "files"
NAME = "systemd"
LIMIT = 60

# Ansible's module for kernel modules reads /proc/modules before it asks what is built
# in, and a file cannot be added to /proc.
NO_MODULES = '''\
"""Gives Python an empty /proc/modules: this kernel has no loadable modules."""

import builtins
import io

_open = builtins.open


def _open_known(file, *args, **kwargs):
    return io.StringIO() if file == "/proc/modules" else _open(file, *args, **kwargs)


builtins.open = _open_known
'''
PYTHON = "usr/lib/python3/dist-packages"


def make(layer: Path, root: Path) -> None:
    """Make the layer.

    :param root: the Debian root file system below it.
    :raises CloudError: a program failed.
    """
    shutil.copytree(FILES, layer)
    for unit in listed(HERE / "masked.txt"):
        mask = layer / "etc/systemd/system" / unit
        mask.parent.mkdir(parents=True, exist_ok=True)
        mask.symlink_to("/dev/null")
    default = layer / "etc/systemd/system/default.target"
    default.symlink_to("/lib/systemd/system/multi-user.target")
    base.write_login_settings(layer, root)
    base.write(layer / "etc/environment", base.ENVIRONMENT)
    _make_modules(layer)


def _make_modules(layer: Path) -> None:
    """Have modprobe find what the machine's kernel has, and find it there already."""
    release = os.uname().release
    directory = layer / "usr/lib/modules" / release
    base.write(directory / "modules.order", "")
    names = "\n".join(listed(HERE / "modules.txt"))
    base.write(directory / "modules.builtin", f"{names}\n")
    argv = ["depmod", "-b", str(layer / "usr"), release]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise CloudError(f"depmod: {done.stderr.strip()}")
    if not Path("/proc/modules").exists():
        base.write(layer / PYTHON / "lab_no_modules.py", NO_MODULES)
        base.write(layer / PYTHON / "lab_no_modules.pth", "import lab_no_modules\n")
