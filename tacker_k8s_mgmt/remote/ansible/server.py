# SPDX-License-Identifier: Apache-2.0
"""The installed software of the Ansible server."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tacker_k8s_mgmt.kubespray import checkout as checkouts
from tacker_k8s_mgmt.kubespray.checkout import Checkout
from tacker_k8s_mgmt.remote.ssh.session import Session

_SECONDS = 60.0
# Runs Python code in Ansible's own interpreter, found in the first line of the program:
# `ansible-playbook --version` takes eight times as long.
_ANSIBLE_QUERY = """
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
# Not with Ansible's own lookup, which would import each collection.
_REPORT = """
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
    """The installed software, for the preflight checks.

    :param missing: what kubespray needs besides Ansible and Ansible's Python lacks;
        empty if that could not be determined.
    """

    checkout: Checkout
    ansible_version: str | None
    has_sshpass: bool
    missing: frozenset[str] = frozenset()


def survey(session: Session, kubespray_root: str, venv: str | None) -> Survey:
    """Inspect the server; changes nothing.

    :param venv: the virtual environment with Ansible; None to search PATH.
    :raises RemoteError: the session broke.
    """
    with ThreadPoolExecutor(1) as pool:
        ansible = pool.submit(_query_ansible, session, kubespray_root, venv)
        galaxy = session.get(f"{kubespray_root}/{checkouts.GALAXY_FILE}")
        limits = session.get(f"{kubespray_root}/{checkouts.ANSIBLE_VERSION_FILE}")
        checks = _output(session, "cat", kubespray_root, checkouts.CHECK_FILES)
        # From the section's name to the next top-level key.
        section = f"/^{checkouts.CHECKSUM_SECTION}:/,/^[a-z]/p"
        files = checkouts.CHECKSUM_FILES
        sums = _output(session, "sed", kubespray_root, files, "-n", section)
        sshpass = session.run(
            ["sh", "-c", "command -v sshpass"], timeout=_SECONDS, check=False
        )
    return Survey(
        checkout=Checkout.from_texts(_text(galaxy), _text(limits), checks, sums),
        ansible_version=checkouts.ansible_version_from(ansible.result()),
        has_sshpass=sshpass.rc == 0,
        missing=checkouts.missing_from(ansible.result()),
    )


def _query_ansible(session: Session, kubespray_root: str, venv: str | None) -> str:
    program = f"{venv}/bin/ansible-playbook" if venv else "ansible-playbook"
    # Ansible requires a UTF-8 locale (see run_files/run.sh).
    query = ["sh", "-c", _ANSIBLE_QUERY, "sh", program, kubespray_root]
    argv = ["env", "LC_ALL=C.UTF-8", *query, _REPORT, *checkouts.BESIDE_ANSIBLE]
    return session.run(argv, timeout=_SECONDS, check=False).stdout


def _output(
    session: Session, program: str, root: str, files: Sequence[str], *options: str
) -> str:
    """Return a program's output for those files of a checkout that exist."""
    argv = [program, *options, "--", *(f"{root}/{name}" for name in files)]
    return session.run(argv, timeout=_SECONDS, check=False).stdout


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
