"""SSH private keys: read from the operator's directory, decrypted, checked.

No reason given here quotes a key, a passphrase, or what a file holds.
"""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tacker_k8s_mgmt.remote import restricted_files

_LARGEST = 32 * 1024  # bytes
_OPENSSH = "-----BEGIN OPENSSH PRIVATE KEY-----"
# A ValueError before cryptography 45, since then a TypeError as with other formats.
_LOCKED = "Key is password-protected."
_KINDS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)


class UnusableKey(Exception):
    """Why a key cannot be used, in words that follow its name."""


def read(path: str, directory: str) -> str:
    """The text of a file with a private key.

    :param directory: where files with keys may lie; "" where none may be read.
    :raises UnusableKey: it may not or cannot be read.
    """
    try:
        data = restricted_files.read(
            path, directory, kept="keys", option="key_directory", largest=_LARGEST
        )
    except restricted_files.Refused as error:
        raise UnusableKey(str(error)) from None
    return data.decode("ascii", errors="replace")


def opened(text: str, passphrase: str | None) -> str:
    """The same key without passphrase, in OpenSSH's own format.

    A passphrase that the key does not need is no mistake, as with OpenSSH.

    :raises UnusableKey: it is no key, it does not open, or SSH has no use for it.
    """
    key = _loaded(text, passphrase)
    try:
        if not isinstance(key, _KINDS):
            raise ValueError
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
    except ValueError:
        raise UnusableKey(
            "is of a kind that SSH servers do not take; RSA, Ed25519, and ECDSA on "
            "a NIST curve work"
        ) from None
    return pem.decode()


def _loaded(text: str, passphrase: str | None) -> object:
    data = text.strip().encode()
    load = (
        serialization.load_ssh_private_key
        if text.lstrip().startswith(_OPENSSH)
        else serialization.load_pem_private_key
    )
    try:
        return load(data, None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        if not isinstance(error, TypeError) and str(error) != _LOCKED:
            raise UnusableKey("is damaged or not an SSH private key") from None
    if passphrase is None:
        raise UnusableKey("has a passphrase, which is missing")
    try:
        return load(data, passphrase.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("does not open with its passphrase") from None
