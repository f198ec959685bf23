# SPDX-License-Identifier: Apache-2.0
"""The kubelet of a node, through systemd."""

from tacker_k8s_mgmt.remote.ssh.session import Session

# A VM on which kubespray has not begun has none.
_RESTART = "! systemctl is-active kubelet >/dev/null || systemctl restart kubelet"
_LIMIT = 120.0  # seconds; systemd gives a service 90 to stop


def restart(session: Session) -> None:
    """Restart it if it runs, so that it makes its Node object if there is none.

    :raises RemoteError: systemd could not be asked, or did not restart it.
    """
    session.run(["sh", "-c", _RESTART], timeout=_LIMIT, sudo=True)
