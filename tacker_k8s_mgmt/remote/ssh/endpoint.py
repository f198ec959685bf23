# SPDX-License-Identifier: Apache-2.0
"""Host and credentials of a login."""

import socket
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr


class Way(Protocol):
    """Opens connections to hosts that cannot be reached directly."""

    def open(self, host: str, port: int, timeout: float) -> socket.socket: ...


@dataclass(frozen=True)
class Endpoint:
    """One login on one host.

    :param password: for the login if there is no key, and for sudo.
    :param private_key: in OpenSSH's format, without a passphrase. With a key, the
        password is only tried if the host requires both.
    :param host_keys: accepted host keys if none is recorded; empty to accept any.
    :param known_as: the name under which the host key is recorded; "" for ``host``.
    :param via: None for a direct connection.
    """

    host: str
    username: str
    password: SecretStr | None
    port: int = 22
    private_key: SecretStr | None = None
    host_keys: tuple[str, ...] = ()
    known_as: str = ""
    via: Way | None = None

    def revealed_password(self) -> str | None:
        """Return the password as plain text."""
        return self.password.get_secret_value() if self.password else None

    def revealed_key(self) -> str | None:
        """Return the private key as plain text."""
        return self.private_key.get_secret_value() if self.private_key else None
