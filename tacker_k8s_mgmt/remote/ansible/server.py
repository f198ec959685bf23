"""The Ansible server: what lies on it, and its recorded host keys."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from tacker_k8s_mgmt.kubespray import checkout as checkouts
from tacker_k8s_mgmt.kubespray.checkout import Checkout
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, RecordedKeys
from tacker_k8s_mgmt.remote.ssh.session import Session

#: The file with their keys, below ``[k8s_mgmt] state_path``.
KNOWN_HOSTS = "known_hosts"
_SECONDS = 60.0
# The program is a script of the Python that has Ansible, and takes eight times as long.
_ASK_ANSIBLE = """
program=$(command -v "$1") && read -r line <"$program"
root=$2
shift 2
[ -e "$root/ansible.cfg" ] && export ANSIBLE_CONFIG=$root/ansible.cfg
case $line in
"#!"*" "*) ;;
"#!"*python*) "${line#??}" -c "$@" && exit ;;
esac 2>/dev/null
exec "$program" --version
"""
# What is there without Ansible's own look-up, which would import each collection.
_SAY_WHAT_IS_THERE = """
import importlib.util, os, sys
from ansible.release import __version__
print('ansible', __version__)
from ansible import constants
roots = [*constants.COLLECTIONS_PATHS, *sys.path]
for name in sys.argv[1:]:
    *namespace, last = name.split('.')
    place = ('ansible_collections', *namespace, last)
    there = (
        any(os.path.isdir(os.path.join(root, *place)) for root in roots)
        if namespace
        else importlib.util.find_spec(name)
    )
    if not there:
        print('missing', name)
"""


@dataclass(frozen=True)
class Survey:
    """What the preflight checks want to know.

    :param missing: of what kubespray needs beside Ansible, what Ansible's Python does
        not have; nothing is known to be missing where it cannot be asked.
    """

    checkout: Checkout
    ansible_version: str | None
    has_sshpass: bool
    missing: frozenset[str] = frozenset()


def survey(session: Session, kubespray_root: str, venv: str | None) -> Survey:
    """Look at the server; changes nothing.

    :param venv: the virtual environment whose Ansible is used; None for the PATH's.
    :raises RemoteError: the session broke.
    """
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_ask_ansible, session, kubespray_root, venv)
        galaxy = session.get(f"{kubespray_root}/{checkouts.GALAXY_FILE}")
        limits = session.get(f"{kubespray_root}/{checkouts.ANSIBLE_VERSION_FILE}")
        checks = _told(session, "cat", kubespray_root, checkouts.CHECK_FILES)
        # From the section's name to the next line that begins with a name.
        wanted = f"/^{checkouts.CHECKSUM_SECTION}:/,/^[a-z]/p"
        files = checkouts.CHECKSUM_FILES
        sums = _told(session, "sed", kubespray_root, files, "-n", wanted)
        sshpass = session.run(
            ["sh", "-c", "command -v sshpass"], timeout=_SECONDS, check=False
        )
    return Survey(
        checkout=Checkout.from_texts(_text(galaxy), _text(limits), checks, sums),
        ansible_version=checkouts.ansible_version_from(asked.result()),
        has_sshpass=sshpass.rc == 0,
        missing=checkouts.missing_from(asked.result()),
    )


def _ask_ansible(session: Session, kubespray_root: str, venv: str | None) -> str:
    program = f"{venv}/bin/ansible-playbook" if venv else "ansible-playbook"
    # Ansible insists on UTF-8, whatever the login has (see run_files/run.sh).
    ask = ["sh", "-c", _ASK_ANSIBLE, "sh", program, kubespray_root]
    return session.run(
        ["env", "LC_ALL=C.UTF-8", *ask, _SAY_WHAT_IS_THERE, *checkouts.BESIDE_ANSIBLE],
        timeout=_SECONDS,
        check=False,
    ).stdout


def _told(
    session: Session, program: str, root: str, files: Sequence[str], *options: str
) -> str:
    """What a program prints of those of a checkout's files that are there."""
    argv = [program, *options, "--", *(f"{root}/{name}" for name in files)]
    return session.run(argv, timeout=_SECONDS, check=False).stdout


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


class KeyFile:
    """The ``known_hosts`` file of Ansible servers and bastions on the conductor's host.

    They outlive clusters, so their keys are kept beside the journals and not
    in a cluster's directory. Hooks run side by side, so the file is used under a lock.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> HostKeys:
        """The keys as they are now."""
        with self._locked() as file:
            return HostKeys(file.read(), self._path)

    def add(self, keys: HostKeys) -> None:
        """Store what was learnt since *keys* was loaded."""
        with self._locked() as file:
            known = file.read()
            there = {line.strip() for line in known.splitlines()}
            new = [
                line for line in keys.text().splitlines() if line.strip() not in there
            ]
            # People edit this file, and not every editor ends the last line.
            start = "\n" if new and known and not known.endswith("\n") else ""
            file.write(start + "".join(f"{line}\n" for line in new))

    @contextmanager
    def _locked(self) -> Iterator[TextIO]:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


class ReadOnlyKeyFile(KeyFile):
    """The same file, which is not made and to which nothing is added."""

    def load(self) -> RecordedKeys:
        """The keys as they are now; none where there is no file."""
        try:
            with open(self._path, encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return RecordedKeys(file.read(), self._path)
        except FileNotFoundError:
            return RecordedKeys("", self._path)

    def add(self, keys: HostKeys) -> None:
        """Add nothing."""
