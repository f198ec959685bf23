# SPDX-License-Identifier: Apache-2.0
"""The Ansible server: the host that a site has beside its VNFs, with kubespray on it.

It has users without any rights, Ansible in a virtual environment and kubespray (the
stand-in for it, or a checkout of the real one), at the places where the sample requests
look for them.
"""

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import uuid
from pathlib import Path
from typing import Any

from lab import releases
from lab.cloud import CloudError, base
from lab.cloud.addresses import ANSIBLE_SERVER_ADDRESS, EXTERNAL, mac_of
from lab.cloud.hosts import Host, Hosts
from lab.cloud.settings import Settings

ROLE = "ansible-server"
ACCOUNTS = (
    base.Account("ansible", "ansible"),
    base.Account("deployer", "server-Pa55word-of-the-lab"),
)
ENVIRONMENT = "/opt/kubespray-venv"
KUBESPRAY = "/opt/kubespray"
SOURCE = Path(__file__).parents[1] / "kubespray"
# The stand-in's roles put it on the control planes.
API_SERVER = SOURCE.parent / "kubeapi"
SKIPPED = ("__pycache__", ".mypy_cache", ".ruff_cache")
# Fixed, so that a second prepare finds the host of the first.
ID = str(uuid.uuid5(uuid.NAMESPACE_DNS, "ansible-server.lab"))
LIMIT = 60.0
# One time for all files; zip archives made of them cannot have one before 1980.
LONG_AGO = 946684800

# Arguments: the environment, its place, kubespray's place, the digest of the archive on
# standard input. Nothing happens to what is as it should be: a playbook may be running.
INSTALL = """\
set -eu
ln -sfn "$1" "$2"
[ "$(cat "$3/.digest" 2>/dev/null)" != "$4" ] || exit 0
rm -rf "$3"
mkdir -p "$3"
tar -x -C "$3"
echo "$4" >"$3/.digest"
"""


def document() -> dict[str, Any]:
    """The document from which the Ansible server is created."""
    nic = {
        "bridge": EXTERNAL,
        "address": ANSIBLE_SERVER_ADDRESS,
        "prefix": 24,
        "mac": mac_of(ANSIBLE_SERVER_ADDRESS),
        "port_id": ID,
    }
    return {"id": ID, "name": "ansible-server", "role": ROLE, "nics": [nic]}


def prepare(hosts: Hosts, settings: Settings, release: str = releases.OWN) -> None:
    """Start the server unless it runs, and put the present state of our tools on it.

    :param release: which of kubespray's the stand-in is to act as; the lab's Ansible
        suits each of them. The real kubespray is what it is.
    :raises CloudError: it did not start, or something could not be copied.
    """
    if not hosts.pid(ID):
        hosts.create(document())
    archive = _kubespray(settings, release)
    arguments = [str(settings.ansible_environment), ENVIRONMENT, KUBESPRAY]
    digest = hashlib.sha256(archive).hexdigest()
    script = ["sh", "-c", INSTALL, "install", *arguments, digest]
    done = subprocess.run(
        hosts.enter(Host.from_document(document()), script),
        input=archive,
        capture_output=True,
        timeout=LIMIT,
    )
    if done.returncode:
        raise CloudError(f"The Ansible server: {done.stderr.decode().strip()}")


def _kubespray(settings: Settings, release: str) -> bytes:
    """The tree that goes to :data:`KUBESPRAY`, as a tar archive."""
    if settings.kubespray:
        return pack(settings.kubespray, {})
    extra = {"lab.json": json.dumps({"programs": str(settings.programs)})}
    with tempfile.TemporaryDirectory() as directory:
        return pack(lay_out(Path(directory), release), extra)


def lay_out(directory: Path, release: str) -> Path:
    """The stand-in as one of kubespray's releases, with its API server in it."""
    tree, ignored = directory / "kubespray", shutil.ignore_patterns(*SKIPPED)
    shutil.copytree(SOURCE, tree, ignore=ignored)
    shutil.copytree(API_SERVER, tree / API_SERVER.name, ignore=ignored)
    below = releases.RELEASES[releases.OWN].ansible[1]
    releases.act_as(tree, releases.RELEASES[release], below)
    return tree


def pack(source: Path, extra: dict[str, str]) -> bytes:
    """A tar archive of a tree, owned by the user; the same for the same contents.

    Links are followed: they may lead out of the tree.

    :param extra: more files, with their text.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as archive:
        archive.add(source, arcname=".", filter=_chosen)
        for name, text in extra.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(_owned(member), io.BytesIO(text.encode()))
    return packed.getvalue()


def _chosen(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if Path(member.name).name in SKIPPED else _owned(member)


def _owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = base.FIRST_PERSON
    member.uname = member.gname = ""
    member.mtime = LONG_AGO
    return member
