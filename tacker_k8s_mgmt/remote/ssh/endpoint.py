"""Where and as whom to log in."""

from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr


class Wire(Protocol):
    """A connection, of a socket's kind."""

    def settimeout(self, timeout: float) -> None: ...
    def send(self, s: bytes) -> int: ...
    def recv(self, nbytes: int) -> bytes: ...
    def close(self) -> None: ...


class Way(Protocol):
    """What leads to hosts that are not reached directly."""

    def open(self, host: str, port: int, timeout: float) -> Wire: ...


@dataclass(frozen=True)
class Endpoint:
    """One login on one host.

    :param password: of the login where there is no key, and of sudo.
    :param private_key: in OpenSSH's format, without a passphrase; it alone is tried
        where there is one, and the password only if the host wants it besides.
    :param host_keys: what its key may be where none is recorded; none for any.
    :param known_as: the name under which its key is recorded; "" for ``host``.
    :param via: the way to it; None where it is reached directly.
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
        """The password's text."""
        return self.password.get_secret_value() if self.password else None

    def revealed_key(self) -> str | None:
        """The key's text."""
        return self.private_key.get_secret_value() if self.private_key else None
