"""Who logs in to a host, and with what: a password, a private key, or both.

With both, the key logs in and the password serves sudo. A private key stands in the
request as its own text or as the path of a file on Tacker's conductor. Only the edge
reads files, so here a path stays a path.
"""

import hashlib
from dataclasses import dataclass

from pydantic import SecretStr


@dataclass(frozen=True)
class PrivateKey:
    """A private key as the request gives it.

    :param attribute: its dotted name in the request, for messages.
    :param given: its text, or the absolute path of a file on the conductor.
    """

    attribute: str
    given: SecretStr
    passphrase: SecretStr | None

    @property
    def path(self) -> str | None:
        """The path, None where the text itself was given."""
        given = self.given.get_secret_value()
        return given if given.startswith("/") else None

    @property
    def file_name(self) -> str:
        """The name of the file that holds it in the cluster's directory.

        Another key has another name, so that nodes which keep their login keep their
        key when an operation brings a new one for others.
        """
        digest = hashlib.sha256(self.given.get_secret_value().encode())
        return f"ssh-key-{digest.hexdigest()[:16]}"


@dataclass(frozen=True)
class Account:
    """A login on one host, or on every VM of a role.

    :param attribute: the structure of the request that gives it, for messages.
    :param private_key: what logs in where it is given; else the password does.
    :param host_keys: what the host's key may be (:mod:`.host_keys`); none for any.
    """

    attribute: str
    username: str
    password: SecretStr | None
    private_key: PrivateKey | None
    host_keys: tuple[str, ...] = ()
