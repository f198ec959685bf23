# SPDX-License-Identifier: Apache-2.0
"""Checks of an Ansible server before a cluster: keys, kubespray, directory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import checkout
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ansible.work_directory import WorkDir, cluster_above
from tacker_k8s_mgmt.remote.ssh import bastion_errors, disk_space, probe
from tacker_k8s_mgmt.remote.ssh.logins import Logins
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.params import InstallParams

# For a cluster's directory: logs and events of its last runs, and facts of its nodes.
_MEBIBYTES, _FILES = 100, 500
_LIMIT = 30.0  # seconds
# logind.conf(5). Without a session id, logind does not know of the login.
_ENDED_BY_LOGIND = r"""
[ -n "${XDG_SESSION_ID:-}" ] || exit 1
manager="org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
setting() { busctl get-property $manager "$1"; }
user=\"$(id -un)\"
[ "$(setting KillUserProcesses)" = "b true" ] || exit 1
case $(setting KillExcludeUsers) in *"$user"*) exit 1 ;; esac
case $(setting KillOnlyUsers) in "as 0" | *"$user"*) ;; *) exit 1 ;; esac
"""


@dataclass(frozen=True)
class Readiness:
    """Findings, one sentence each, with the fix.

    :param keys: private keys that cannot be used.
    :param connection: why the server cannot be reached; the rest is then unknown.
    :param installed: kubespray, Ansible, sshpass, the connection to the bastion, and
        whether playbooks outlive an SSH connection.
    :param directory: the cluster's directory, and its disk space.
    """

    keys: tuple[str, ...] = ()
    connection: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()
    directory: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.keys, *self.connection, *self.installed, *self.directory)


def look(
    params: InstallParams,
    logins: Logins,
    connect: Callable[[], Session],
    owner_id: str,
) -> Readiness:
    """Check private keys and server; changes nothing.

    :param connect: returns a session with the server.
    :param owner_id: the VNF instance that may own the directory already.
    """
    ansible = params.ansible
    keys = logins.findings()
    try:
        survey = server.survey(connect(), ansible.kubespray_root, ansible.venv)
        foreign = WorkDir(connect(), ansible.directory, owner_id).obstacle()
        directory = (foreign, _space(params, connect()))
        others = [_way(params, connect()), _ended(params, connect())]
        others += _inside(params, connect())
    except errors.PrivateKeyError:
        return Readiness(keys)
    except bastion_errors.BastionError as error:
        return Readiness(keys, connection=(f"bastion: {error}",))
    except errors.RemoteError as error:
        return Readiness(keys, connection=(f"ansible: {error}",))
    installed = checkout.findings(
        survey.checkout,
        survey.ansible_version,
        survey.has_sshpass,
        params,
        survey.missing,
    )
    return Readiness(
        keys,
        installed=(*installed, *filter(None, others)),
        directory=tuple(filter(None, directory)),
    )


def _space(params: InstallParams, session: Session) -> str:
    """Return why the disk space for the cluster's directory is too small, or ""."""
    directory = params.ansible.directory
    space = disk_space.free(session, directory)
    if space is None or space.suffices(_MEBIBYTES, _FILES):
        return ""
    return (
        f"ansible.transferring_inventory_path: {directory} needs {_MEBIBYTES} MiB and "
        f"{_FILES} inodes, and on {session.host} there are {space}; make room there"
    )


def _inside(params: InstallParams, session: Session) -> Iterator[str]:
    """Yield a finding for each installation that is deleted with another cluster."""
    ansible = params.ansible
    installed = {
        "kubespray_root_path": ansible.kubespray_root,
        "venv_path": ansible.venv,
    }
    for name, path in installed.items():
        if path and (above := cluster_above(session, path)):
            yield (
                f"ansible.{name}: {path} on {session.host} is inside {above}, the "
                "directory of a cluster, and would be deleted with it; install it "
                "elsewhere"
            )


def _ended(params: InstallParams, session: Session) -> str:
    """Return why a playbook would end with the connection that started it, or "".

    Neither ``setsid`` nor, without lingering, a scope of the user's service manager
    prevents it. No finding if logind cannot be queried.
    """
    argv = ["sh", "-c", _ENDED_BY_LOGIND]
    if session.run(argv, timeout=_LIMIT, check=False).rc != 0:
        return ""
    return (
        f"on {session.host}, systemd-logind ends what user {params.ansible.username} "
        "leaves running, so playbooks would end with the SSH connection "
        "(KillUserProcesses=yes): name the user in KillExcludeUsers= in "
        "/etc/systemd/logind.conf, and restart systemd-logind"
    )


def _way(params: InstallParams, session: Session) -> str:
    """Return why playbooks cannot reach the bastion that they need, or ""."""
    bastion = params.bastion
    if bastion is None or not bastion.carries_playbooks:
        return ""
    why = probe.port(session, bastion.host, bastion.port)
    hint = "If the Ansible server reaches the nodes itself, take playbooks out of "
    return f"bastion: {why} {hint}bastion.used_for" if why else ""
