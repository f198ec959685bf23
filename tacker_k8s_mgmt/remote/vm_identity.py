# SPDX-License-Identifier: Apache-2.0
"""The identity that a VM reports of itself, and the MTU of its network interface."""

from tacker_k8s_mgmt.lifecycle.ports import MachineIdentity
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.remote.ssh.session import Session

# A kubelet reports the first two in its Node object. Some images do not end the line in
# /etc/machine-id.
_IDENTITY = """
printf '%s\\n' "$(cat /etc/machine-id)" "$(cat /proc/sys/kernel/random/boot_id)"
ip -j addr show to "$1" || :
"""


def read(session: Session, machine: Machine | Node) -> MachineIdentity:
    """What a VM, whose user may use sudo, reports.

    :raises RemoteError: it could not be asked.
    """
    argv = ["sh", "-c", _IDENTITY, "sh", machine.address]
    output = session.run(argv, timeout=60, sudo=True).stdout
    machine_id, boot_id, links = (*output.split("\n", 2), "", "", "")[:3]
    return MachineIdentity(machine_id, boot_id, nic_mtu(links))


def nic_mtu(links: str) -> int:
    """The MTU in the output of ``ip -j addr show to ADDRESS``; 0 without any."""
    try:
        nics = json_text.parse(links)
        return next((int(nic["mtu"]) for nic in nics if "mtu" in nic), 0)
    except (ValueError, TypeError):
        return 0
