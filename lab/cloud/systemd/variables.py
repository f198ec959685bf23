# SPDX-License-Identifier: Apache-2.0
"""Which of kubespray's variables hosts with systemd need, for kubespray as it is.

They are for what a host shares with the machine, so they depend on the machine.
"""

import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.cloud.systemd import cgroups

CAP_SYS_RESOURCE = 24
# kubespray's default for containers.
OPEN_FILES = 65535


def kubespray() -> dict[str, Any]:
    """The variables for hosts on this machine."""
    status = Path("/proc/self/status").read_text()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return needed(status, limit, cgroups.current())


def needed(
    status: str, open_files: int, mounted: Sequence[cgroups.Hierarchy]
) -> dict[str, Any]:
    """The variables for a machine.

    :param status: the text of ``/proc/self/status``.
    :param open_files: the hard limit of open files, -1 for none.
    :param mounted: the machine's hierarchies of cgroups.
    """
    found: dict[str, Any] = {
        # The machine's kernel: no device "dummy", perhaps no ipvs, one size of the
        # table of connections.
        "enable_nodelocaldns": False,
        "kube_proxy_mode": "iptables",
        "kube_proxy_conntrack_max_per_core": 0,
        "kube_proxy_conntrack_min": 0,
    }
    if any(hierarchy.type == cgroups.V1 for hierarchy in mounted):
        # A kubelet from 1.35 on refuses version 1 by default.
        found["kubelet_fail_cgroup_v1"] = False
        found["kubeadm_ignore_preflight_errors"] = ["SystemVerification"]
    if not _may_raise_limits(status):
        # Else runc fails to give important pods a lower OOM score than its own.
        found["containerd_extra_runtime_args"] = {"restrict_oom_score_adj": True}
        if 0 <= open_files < OPEN_FILES:
            found["containerd_base_runtime_spec_rlimit_nofile"] = open_files
    return found


def _may_raise_limits(status: str) -> bool:
    (line,) = (text for text in status.splitlines() if text.startswith("CapBnd:"))
    return bool(int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1)
