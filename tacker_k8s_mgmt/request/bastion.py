"""The bastion: the SSH host through which others are reached."""

import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tacker_k8s_mgmt.request import field_types, host_keys
from tacker_k8s_mgmt.request.accounts import Account
from tacker_k8s_mgmt.request.key_aliases import Structure
from tacker_k8s_mgmt.request.option_metadata import CHANGEABLE

SSH_PORT = 22
#: In the cluster's directory; no digest of a password may be in a file's name.
PASSWORD_FILE = "bastion-password"  # noqa: S105
_KNOWN_HOSTS = "known_hosts"

# Whoever comes after the first ones, which Ansible's forks bound, shares their session:
# of too many logins at once sshd drops some (MaxStartups). The directory is that of the
# playbook run (run_files/run.sh). By the name ControlPath, Ansible would take it for
# that of the nodes.
_DIRECTORY = "ANSIBLE_SSH_CONTROL_PATH_DIR"
_SHARED = (
    "-o ControlMaster=auto -o ControlPersist=60s "
    f'-S "${{{_DIRECTORY}-none}}${{{_DIRECTORY}+/bastion}}"'
)
# The other ssh, for ControlPersist, takes its standard error away.
_TOLD = '2>>"${K8S_MGMT_LOG-/dev/null}"'

Connection = Literal["ansible", "vms", "playbooks"]
ALL_CONNECTIONS: tuple[Connection, ...] = ("ansible", "vms", "playbooks")


def _some(value: tuple[Connection, ...]) -> tuple[Connection, ...]:
    if not value:
        raise ValueError(f"must name at least one of {', '.join(ALL_CONNECTIONS)}")
    return value


class Bastion(Structure):
    """A host that passes SSH connections on to those that are not reached directly."""

    host: Annotated[field_types.Host, CHANGEABLE] = Field(
        alias="ip_address", description="IP address or host name of the bastion."
    )
    port: Annotated[field_types.Port, CHANGEABLE] = Field(
        default=SSH_PORT, description="SSH port of the bastion."
    )
    username: Annotated[field_types.Name, CHANGEABLE] = Field(
        description="User name on the bastion. It needs TCP forwarding there, but no "
        "shell and no sudo."
    )
    password: Annotated[field_types.OptionalSecret, CHANGEABLE] = Field(
        default=None,
        description="Password of that user. Not needed with private_key; if both are "
        "given, the key logs in, and the password where the bastion wants it besides.",
    )
    private_key: Annotated[field_types.OptionalPrivateKey, CHANGEABLE] = Field(
        default=None,
        description="SSH private key of that user, as in ansible.private_key.",
    )
    private_key_passphrase: Annotated[field_types.OptionalSecret, CHANGEABLE] = Field(
        default=None, description="Passphrase of that key, if it has one."
    )
    host_key: Annotated[host_keys.OptionalHostKey, CHANGEABLE] = Field(
        default=None, description=f"SSH host key of the bastion: {host_keys.ABOUT}"
    )
    used_for: Annotated[
        tuple[Connection, ...],
        AfterValidator(_some),
        CHANGEABLE,
    ] = Field(
        default=ALL_CONNECTIONS,
        description="Which connections go through it, a list of: ansible (from Tacker "
        "to the Ansible server), vms (from Tacker to the nodes and the load balancer), "
        "playbooks (from the Ansible server to the nodes). Default: all three.",
    )

    @property
    def carries_playbooks(self) -> bool:
        """Whether the Ansible server reaches the nodes through it."""
        return "playbooks" in self.used_for


def ssh_common_args(bastion: Bastion, account: Account, directory: str) -> str:
    """``ansible_ssh_common_args`` for nodes that are reached through the bastion.

    Ansible splits the text like a shell and adds it behind ``ANSIBLE_SSH_ARGS``
    (``_build_command`` of its ssh plugin); OpenSSH gives the command to a shell, after
    it has replaced ``%h`` and ``%p`` by node and port.

    :param directory: the cluster's, with the bastion's credentials and host key.
    """
    command = [
        *_password_words(account, directory),
        *("ssh", "-p", str(bastion.port), "-l", account.username),
        *("-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=/dev/null"),
        *("-o", f'UserKnownHostsFile="{directory}/{_KNOWN_HOSTS}"'),
        *("-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=10"),
        *("-o", "ServerAliveCountMax=6", "-o", "ForwardAgent=no"),
        *_key_words(account, directory),
    ]
    words = shlex.join(command).replace("%", "%%")
    line = f"{words} {_SHARED} -W '[%h]:%p' -- {shlex.quote(bastion.host)} {_TOLD}"
    return f"-o {shlex.quote(f'ProxyCommand={line}')}"


def _password_words(account: Account, directory: str) -> list[str]:
    if account.password is None:
        return []
    # Ansible tells its own ssh to ask Ansible, which knows the node's password only.
    quiet = ["env", "SSH_ASKPASS_REQUIRE=never"]
    return [*quiet, "sshpass", "-f", f"{directory}/{PASSWORD_FILE}"]


def _key_words(account: Account, directory: str) -> list[str]:
    """Which ways to log in are tried: those of the request, as Tacker does."""
    words = ["-o", "NumberOfPasswordPrompts=1"] if account.password else []
    words += [] if account.password else ["-o", "BatchMode=yes"]
    ways = ["password", "keyboard-interactive"] if account.password else []
    if account.private_key:
        ways = ["publickey", *ways]
        path = f"{directory}/{account.private_key.file_name}"
        words += ["-o", "IdentitiesOnly=yes", "-o", f'IdentityFile="{path}"']
    return [*words, "-o", f"PreferredAuthentications={','.join(ways)}"]
