"""Whether an Ansible server is ready for a cluster: keys, kubespray, directory."""

from collections.abc import Callable
from dataclasses import dataclass

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import checkout
from tacker_k8s_mgmt.remote.ansible import disk_space, lingering, server
from tacker_k8s_mgmt.remote.ansible.work_directory import WorkDir
from tacker_k8s_mgmt.remote.ssh import bastion_errors, probe
from tacker_k8s_mgmt.remote.ssh.logins import Logins
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.params import InstallParams

# Of a cluster's directory: most of it are the logs and events of its last runs, and
# the facts of its nodes.
_MEBIBYTES, _FILES = 100, 500


@dataclass(frozen=True)
class Readiness:
    """What stands in the way, one sentence each, with its fix.

    :param keys: private keys that cannot be used.
    :param connection: why the server could not be asked; then nothing is known of
        what follows.
    :param installed: kubespray, Ansible, sshpass, the way to the bastion, and whether
        playbooks outlive a connection.
    :param directory: the cluster's directory on the server, and the room for it.
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
    session: Callable[[], Session],
    owner_id: str,
) -> Readiness:
    """Look at keys and server; changes nothing.

    :param session: gives a session with the server.
    :param owner_id: the VNF instance whose the directory may be already.
    """
    ansible = params.ansible
    keys = logins.findings()
    try:
        found = server.survey(session(), ansible.kubespray_root, ansible.venv)
        foreign = WorkDir(session(), ansible.directory, owner_id).obstacle()
        space = _space(params, session())
        way = _way(params, session())
        ended = _ended(params, session())
    except errors.PrivateKeyError:
        return Readiness(keys)
    except bastion_errors.BastionError as error:
        return Readiness(keys, connection=(f"bastion: {error}",))
    except errors.RemoteError as error:
        return Readiness(keys, connection=(f"ansible: {error}",))
    installed = checkout.findings(
        found.checkout,
        found.ansible_version,
        found.has_sshpass,
        params,
        found.missing,
    )
    directory = (*((foreign,) if foreign else ()), *space)
    return Readiness(keys, (), (*installed, *way, *ended), directory)


def _space(params: InstallParams, session: Session) -> tuple[str, ...]:
    """Why there is no room for the cluster's directory."""
    directory = params.ansible.directory
    space = disk_space.free(session, directory)
    if space is None or space.suffices(_MEBIBYTES, _FILES):
        return ()
    return (
        f"ansible.transferring_inventory_path: {directory} needs {_MEBIBYTES} MiB and "
        f"{_FILES} inodes, and on {session.host} there are {space}; make room there",
    )


def _ended(params: InstallParams, session: Session) -> tuple[str, ...]:
    """Why a playbook would not outlive the connection that it was started through."""
    if not lingering.ended_with_login(session):
        return ()
    user = params.ansible.username
    return (
        f"on {session.host}, systemd-logind ends what user {user} leaves running, so "
        "playbooks would end with the SSH connection (KillUserProcesses=yes): name the "
        "user in KillExcludeUsers= in /etc/systemd/logind.conf, and restart "
        "systemd-logind",
    )


def _way(params: InstallParams, session: Session) -> tuple[str, ...]:
    """Why the bastion cannot be reached from the server, if playbooks go that way."""
    bastion = params.bastion
    if bastion is None or not bastion.carries_playbooks:
        return ()
    why = probe.port(session, bastion.host, bastion.port)
    if not why:
        return ()
    hint = "If the Ansible server reaches the nodes itself, take playbooks out of "
    return (f"bastion: {why} {hint}bastion.used_for",)
