# SPDX-License-Identifier: Apache-2.0
"""What a VM reports of itself, and whether Ansible can work on it."""

import math
import time

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.ports import MachineIdentity
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.remote.ssh.channel import last_lines
from tacker_k8s_mgmt.remote.ssh.session import Session

_SECONDS = 60.0

# A kubelet reports the first two in its Node object. Some images do not end the line in
# /etc/machine-id.
_IDENTITY = """
printf '%s\\n' "$(cat /etc/machine-id)" "$(cat /proc/sys/kernel/random/boot_id)"
date +%s.%N
ip -j addr show to "$1" || :
"""
# As Ansible does for each module: one file below the home of the login, and others in
# the directory for temporary files, together less than 1 MiB. What a kubelet and
# journald free on a full disk lets small files be made there for moments.
_TEMPORARY = """
for place in "${HOME:-/tmp}" "${TMPDIR:-/tmp}"; do
  made=$(mktemp -d -- "$place/.tacker-k8s-mgmt.XXXXXXXXXX") || exit
  head -c 8388608 /dev/zero >"$made/file"
  ended=$?
  rm -rf -- "$made"
  [ "$ended" = 0 ] || exit "$ended"
done
"""


def probe(session: Session) -> None:
    """Check that the login of a VM can write files, as Ansible has to.

    :raises UnusableError: it cannot.
    :raises RemoteError: it could not be asked.
    """
    result = session.run(["sh", "-c", _TEMPORARY], timeout=_SECONDS, check=False)
    if result.rc:
        reason = last_lines(session.redact(result.stderr)) or "it gives no reason"
        raise errors.UnusableError(host=session.host, reason=reason.rstrip("."))


def read(session: Session, machine: Machine | Node) -> MachineIdentity:
    """What a VM, whose user may use sudo, reports.

    :raises RemoteError: it could not be asked.
    """
    argv = ["sh", "-c", _IDENTITY, "sh", machine.address]
    before = time.time()
    output = session.run(argv, timeout=_SECONDS, sudo=True).stdout
    after = time.time()
    machine_id, boot_id, now, links = (*output.split("\n", 3), *[""] * 4)[:4]
    ahead = _ahead(now, before, after)
    return MachineIdentity(machine_id, boot_id, nic_mtu(links), ahead)


def _ahead(now: str, before: float, after: float) -> float:
    """By how much a clock is ahead, at least; it was read between two moments here."""
    try:
        there = float(now)
    except ValueError:
        return 0.0
    if not math.isfinite(there):
        return 0.0
    return max(0.0, there - after) + min(0.0, there - before)


def nic_mtu(links: str) -> int:
    """The MTU in the output of ``ip -j addr show to ADDRESS``; 0 without any."""
    try:
        nics = json_text.parse(links)
        return next(
            (int(json_text.number(nic["mtu"])) for nic in nics if "mtu" in nic), 0
        )
    except (ValueError, TypeError):
        return 0
