"""SSH private keys: read from the operator's directory, decrypted, checked.

No reason given here quotes a key, a passphrase, or what a file holds.
"""

import base64
import hashlib
import struct

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tacker_k8s_mgmt.remote import confined

_LARGEST = 32 * 1024  # bytes
_OPENSSH = "-----BEGIN OPENSSH PRIVATE KEY-----"
_KINDS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)


class UnusableKey(Exception):
    """Why a key cannot be used, in words that follow its name."""


def read(path: str, directory: str) -> str:
    """The text of a file with a private key.

    :param directory: where files with keys may lie; "" where none may be read.
    :raises UnusableKey: it may not or cannot be read.
    """
    try:
        data = confined.read(
            path, directory, kept="keys", option="key_directory", largest=_LARGEST
        )
    except confined.Refused as error:
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
    return _always_alike(pem.decode())


def _loaded(text: str, passphrase: str | None) -> object:
    data = text.strip().encode()
    load = (
        serialization.load_ssh_private_key
        if text.lstrip().startswith(_OPENSSH)
        else serialization.load_pem_private_key
    )
    try:
        return load(data, None)
    except TypeError:
        pass  # it wants a passphrase
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("is damaged or not an SSH private key") from None
    if passphrase is None:
        raise UnusableKey("has a passphrase, which is missing")
    try:
        return load(data, passphrase.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise UnusableKey("does not open with its passphrase") from None


def _always_alike(pem: str) -> str:
    """Take the chance out of an unencrypted key in OpenSSH's format.

    The format has a random number twice at the head of its private part, to tell a
    wrong passphrase by (OpenSSH, PROTOCOL.key). Without a passphrase it serves nothing,
    and a file that differs each time would be written each time.
    """
    head, *body, foot = pem.strip().splitlines()
    blob = base64.b64decode("".join(body))
    place = len(b"openssh-key-v1\0")
    for skipped in ("cipher", "kdf", "kdf options", "number of keys", "public key"):
        if skipped == "number of keys":
            place += 4
        else:
            place += 4 + struct.unpack_from(">I", blob, place)[0]
    place += 4  # the length of the private part
    number = hashlib.sha256(blob[:place]).digest()[:4]
    blob = blob[:place] + number + number + blob[place + 8 :]
    text = base64.b64encode(blob).decode()
    lines = [text[start : start + 70] for start in range(0, len(text), 70)]
    return "\n".join([head, *lines, foot, ""])
