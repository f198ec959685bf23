# SPDX-License-Identifier: Apache-2.0
"""The bastion: the SSH host through which other hosts are reached."""

import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tacker_k8s_mgmt.request import field_types, host_keys
from tacker_k8s_mgmt.request.accounts import SSH_PORT, Account
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import CHANGEABLE

#: In the cluster's directory; no digest of a password may be in a file's name.
PASSWORD_FILE = "bastion-password"  # noqa: S105
_KNOWN_HOSTS = "known_hosts"

# Later connections share the sessions of the first ones, whose number Ansible's forks
# limit: sshd drops some of too many simultaneous logins (MaxStartups). The directory is
# the playbook run's (run_files/run.sh). It is not given as ControlPath, because Ansible
# would use an option of that name for the nodes' connections.
_DIRECTORY = "ANSIBLE_SSH_CONTROL_PATH_DIR"
_SHARED = (
    "-o ControlMaster=auto -o ControlPersist=60s "
    f'-S "${{{_DIRECTORY}-none}}${{{_DIRECTORY}+/bastion}}"'
)
# With ControlPersist, the ssh in the background closes its standard error.
_STDERR = '2>>"${K8S_MGMT_LOG-/dev/null}"'

Connection = Literal["ansible", "vms", "playbooks"]
ALL_CONNECTIONS: tuple[Connection, ...] = ("ansible", "vms", "playbooks")


def _not_empty(value: tuple[Connection, ...]) -> tuple[Connection, ...]:
    if not value:
        raise ValueError(f"must name at least one of {', '.join(ALL_CONNECTIONS)}")
    return value


class Bastion(Structure):
    """An SSH host that forwards connections to hosts without direct access."""

    host: Annotated[field_types.Host, CHANGEABLE] = Field(alias="ip_address")
    """IP address or host name of the bastion."""
    port: Annotated[field_types.Port, CHANGEABLE] = SSH_PORT
    """SSH port of the bastion."""
    username: Annotated[field_types.Name, CHANGEABLE]
    """User name on the bastion. It needs TCP forwarding there, but no shell and no
    sudo."""
    password: Annotated[field_types.OptionalSecret, CHANGEABLE] = None
    """Password of that user. Not needed with private_key; if both are given, the key
    logs in, and the password where the bastion wants it besides."""
    private_key: Annotated[field_types.OptionalPrivateKey, CHANGEABLE] = None
    """SSH private key of that user, as in ansible.private_key."""
    private_key_passphrase: Annotated[field_types.OptionalSecret, CHANGEABLE] = None
    """Passphrase of that key, if it has one."""
    host_key: Annotated[host_keys.OptionalHostKey, CHANGEABLE] = Field(
        default=None, description=f"SSH host key of the bastion: {host_keys.ABOUT}"
    )
    used_for: Annotated[
        tuple[Connection, ...], AfterValidator(_not_empty), CHANGEABLE
    ] = ALL_CONNECTIONS
    """Which connections go through it, a list of: ansible (from Tacker to the Ansible
    server), vms (from Tacker to the nodes and the load balancer), playbooks (from the
    Ansible server to the nodes). Default: all three."""

    @property
    def carries_playbooks(self) -> bool:
        """Whether the Ansible server reaches the nodes through it."""
        return "playbooks" in self.used_for


def ssh_common_args(bastion: Bastion, account: Account, directory: str) -> str:
    """``ansible_ssh_common_args`` for nodes that are reached through the bastion.

    Ansible splits the text like a shell and appends it to ``ANSIBLE_SSH_ARGS``
    (``_build_command`` of its ssh plugin). OpenSSH replaces ``%h`` and ``%p`` by node
    and port and runs the command in a shell.

    :param directory: the cluster's, with the bastion's credentials and host key.
    """
    command = [
        *_password_arguments(account, directory),
        *("ssh", "-p", str(bastion.port), "-l", account.username),
        *("-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null"),
        *("-o", f'UserKnownHostsFile="{directory}/{_KNOWN_HOSTS}"'),
        *("-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=10"),
        *("-o", "ServerAliveCountMax=6", "-o", "ForwardAgent=no"),
        *_login_arguments(account, directory),
    ]
    text = shlex.join(command).replace("%", "%%")
    line = f"{text} {_SHARED} -W '[%h]:%p' -- {shlex.quote(bastion.host)} {_STDERR}"
    return f"-o {shlex.quote(f'ProxyCommand={line}')}"


def _password_arguments(account: Account, directory: str) -> list[str]:
    if account.password is None:
        return []
    # Ansible has its ssh ask Ansible for passwords, which knows only the nodes'.
    no_askpass = ["env", "SSH_ASKPASS_REQUIRE=never"]
    return [*no_askpass, "sshpass", "-f", f"{directory}/{PASSWORD_FILE}"]


def _login_arguments(account: Account, directory: str) -> list[str]:
    """Options for the request's authentication methods only, as Tacker does it."""
    if account.password:
        arguments = ["-o", "NumberOfPasswordPrompts=1"]
        methods = ["password", "keyboard-interactive"]
    else:
        arguments, methods = ["-o", "BatchMode=yes"], []
    if account.private_key:
        methods = ["publickey", *methods]
        path = f"{directory}/{account.private_key.file_name}"
        arguments += ["-o", "IdentitiesOnly=yes", "-o", f'IdentityFile="{path}"']
    return [*arguments, "-o", f"PreferredAuthentications={','.join(methods)}"]
