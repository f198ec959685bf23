# SPDX-License-Identifier: Apache-2.0
"""SSH private keys: read from the operator's directory, decrypted, checked.

No error text here quotes a key, a passphrase, or the content of a file.
"""

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tacker_k8s_mgmt.remote import restricted_files
from tacker_k8s_mgmt.remote.restricted_files import Refused

_LARGEST = 32 * 1024  # bytes
_OPENSSH = b"-----BEGIN OPENSSH PRIVATE KEY-----"
# cryptography raised it as a ValueError before release 45, as a TypeError since then.
_LOCKED = "Key is password-protected."
_KINDS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)


def read(path: str, directory: str) -> str:
    """Return the text of a private key file.

    :param directory: the operator's directory for keys; "" if there is none.
    :raises Refused: the file may not or cannot be read.
    """
    place = restricted_files.set_aside("keys", "key_directory")
    data = restricted_files.read(path, directory, place=place, largest=_LARGEST)
    return data.decode("ascii", errors="replace")


def opened(text: str, passphrase: str | None) -> str:
    """Return the key without a passphrase, in OpenSSH's format.

    A passphrase for a key that has none is accepted, as OpenSSH does.

    :raises Refused: it is not a key, cannot be decrypted, or is not usable with SSH.
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
        raise Refused(
            "is of a kind that SSH servers do not take; RSA, Ed25519, and ECDSA on "
            "a NIST curve work"
        ) from None
    return pem.decode()


def _loaded(text: str, passphrase: str | None) -> object:
    data = text.strip().encode()
    load = (
        serialization.load_ssh_private_key
        if data.startswith(_OPENSSH)
        else serialization.load_pem_private_key
    )
    try:
        return load(data, None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        if not isinstance(error, TypeError) and str(error) != _LOCKED:
            raise Refused("is damaged or not an SSH private key") from None
    if passphrase is None:
        raise Refused("has a passphrase, which is missing")
    try:
        return load(data, passphrase.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise Refused("does not open with its passphrase") from None
