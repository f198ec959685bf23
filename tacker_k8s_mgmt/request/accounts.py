# SPDX-License-Identifier: Apache-2.0
"""SSH accounts: a user with a password, a private key, or both.

With both, the key is for the login and the password for sudo. A request has a private
key as text or as the path of a file on Tacker's conductor, which is not read here.
"""

import hashlib
from dataclasses import dataclass

from pydantic import SecretStr

from tacker_k8s_mgmt.request import field_types

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

    @property
    def path(self) -> str | None:
        """The path; None for a key that is given as text."""
        given = self.given.get_secret_value()
        return given if field_types.is_path(given) else None

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
    :param private_key: takes precedence over the password for the login.
    :param host_keys: accepted host keys (:mod:`.host_keys`); any key if empty.
    """

    attribute: str
    username: str
    password: SecretStr | None
    private_key: PrivateKey | None
    host_keys: tuple[str, ...] = ()
