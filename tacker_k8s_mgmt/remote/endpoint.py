"""Where and as whom to log in."""

from dataclasses import dataclass

from pydantic import SecretStr


@dataclass(frozen=True)
class Endpoint:
    """One login on one host.

    :param password: of the login where there is no key, and of sudo.
    :param private_key: in OpenSSH's format, without a passphrase; it alone is tried
        where there is one, and the password only if the host wants it besides.
    """

    host: str
    username: str
    password: SecretStr | None
    port: int = 22
    private_key: SecretStr | None = None

    def revealed_password(self) -> str | None:
        """The password's text."""
        return self.password.get_secret_value() if self.password else None

    def revealed_key(self) -> str | None:
        """The key's text."""
        return self.private_key.get_secret_value() if self.private_key else None
