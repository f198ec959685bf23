# SPDX-License-Identifier: Apache-2.0
"""VMs and Node objects."""

from dataclasses import dataclass

from tacker_k8s_mgmt.model.nodes import Machine, Role


def machine(role: Role, number: int, server: str = "") -> Machine:
    """A VM with this number in its addresses."""
    inner, outer = f"10.10.0.{number}", f"192.0.2.{number + 100}"
    return Machine(role, server or f"server-{number}", outer, inner)


@dataclass(frozen=True)
class FakeNode:
    """A Node object; its identity is the id of the server whose kubelet reports."""

    name: str
    ready: bool = True
    reason: str = ""
    machine_id: str = ""
    boot_id: str = "boot"
    unschedulable: bool = False
    tainted: bool = False
    cordoned_by_us: bool = False
    in_maintenance: bool = False
    internal_ip: str = ""
    kubelet_version: str = "v1.31.9"
