# SPDX-License-Identifier: Apache-2.0
"""SSH logins of a request: accounts, private keys and the bastion.

An account is a user with a password, a private key, or both. With both, the key is for
the login and the password for sudo. A request has a private key as text or as the path
of a file on Tacker's conductor, which is not read here.

The bastion is the SSH host through which other hosts are reached.
"""

import hashlib
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from tacker_k8s_mgmt.request import fields
from tacker_k8s_mgmt.request.host_keys import ABOUT_HOST_KEY, OptionalHostKey
from tacker_k8s_mgmt.request.structure import CHANGEABLE, Structure

SSH_PORT = 22


@dataclass(frozen=True)
class PrivateKey:
    """A private key of the request.

    :param attribute: its dotted name in the request, for messages.
    :param given: its text, or the path of a file on the conductor: absolute, or
        beginning with ``./`` and relative to the operator's directory for keys.
    """

    attribute: str
    given: SecretStr
    passphrase: SecretStr | None

    @classmethod
    def kept(cls, name: str, read: Callable[[str], str | None]) -> "PrivateKey":
        """The key with this file name in the cluster's directory.

        :param read: returns the text of a file there.
        """
        text = SecretStr(read(name) or "")
        return cls(f"{name} in the cluster's directory", text, None)

    @property
    def path(self) -> str | None:
        """The path; None for a key that is given as text."""
        given = self.given.get_secret_value()
        return given if fields.is_path(given) else None

    @property
    def file_name(self) -> str:
        """Its file's name in the cluster's directory, which depends on the key.

        Nodes that keep their login keep their key file when other nodes get a new one.
        """
        digest = hashlib.sha256(self.given.get_secret_value().encode())
        return f"ssh-key-{digest.hexdigest()[:16]}"


@dataclass(frozen=True)
class Account:
    """A login on one host, or on all VMs of a role.

    :param attribute: the structure of the request that has it, for messages.
    :param password: for the login if there is no key, and for sudo.
    :param private_key: takes precedence over the password for the login.
    :param host_keys: accepted host keys; any key if empty.
    """

    attribute: str
    username: str
    password: SecretStr | None
    private_key: PrivateKey | None
    host_keys: tuple[str, ...] = ()
    port: int = SSH_PORT


@dataclass(frozen=True)
class Credential:
    """Marks a credential; another password or private key replaces all of a login.

    :param use: ends the sentence that refuses it without a private key; "" if it may
        be given alone.
    """

    use: str = ""


Password = Annotated[fields.OptionalSecret, CHANGEABLE, Credential()]
KeyText = Annotated[fields.OptionalPrivateKey, CHANGEABLE, Credential()]
Passphrase = Annotated[
    fields.OptionalSecret,
    CHANGEABLE,
    Credential("that it opens"),
    Field(description="Passphrase of that key, if it has one."),
]


class Login(Structure):
    """A structure with a login.

    Each structure declares the attributes among its own, which stand in their order in
    the documentation. Some have other names in requests.
    """

    if TYPE_CHECKING:
        username: str
        password: SecretStr | None
        private_key: SecretStr | None
        private_key_passphrase: SecretStr | None

    @property
    def accepted_keys(self) -> tuple[str, ...]:
        """Host keys that are accepted; any key if there are none."""
        key: str | None = getattr(self, "host_key", None)
        return (key,) if key else ()

    def account(self, attribute: str) -> Account:
        """The login.

        :param attribute: the structure's name in the request.
        """
        key = None
        if self.private_key:
            name = type(self).model_fields["private_key"].alias or "private_key"
            key = PrivateKey(
                f"{attribute}.{name}", self.private_key, self.private_key_passphrase
            )
        return Account(
            attribute,
            self.username,
            self.password,
            key,
            self.accepted_keys,
            getattr(self, "port", SSH_PORT),
        )


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


class Bastion(Login):
    """An SSH host that forwards connections to hosts without direct access."""

    host: Annotated[fields.Host, CHANGEABLE] = Field(alias="ip_address")
    """IP address or host name of the bastion."""
    port: Annotated[fields.Port, CHANGEABLE] = SSH_PORT
    """SSH port of the bastion."""
    username: Annotated[fields.Name, CHANGEABLE]
    """User name on the bastion. It needs TCP forwarding there, but no shell and no
    sudo."""
    password: Password = None
    """Password of that user. Not needed with private_key; if both are given, the key
    logs in, and the password where the bastion wants it besides."""
    private_key: KeyText = None
    """SSH private key of that user, as in ansible.private_key."""
    private_key_passphrase: Passphrase = None
    host_key: Annotated[OptionalHostKey, CHANGEABLE] = Field(
        default=None, description=f"SSH host key of the bastion: {ABOUT_HOST_KEY}"
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


#: The credentials of a login, by the names of their fields in each structure.
CREDENTIALS: Mapping[str, Credential] = {
    name: mark
    for name, info in Bastion.model_fields.items()
    for mark in info.metadata
    if isinstance(mark, Credential)
}


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
