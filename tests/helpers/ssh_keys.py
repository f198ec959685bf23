# SPDX-License-Identifier: Apache-2.0
"""SSH key pairs for the tests, in the formats that people have."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization.ssh import SSHPrivateKeyTypes

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
KINDS: dict[str, Callable[[], Key]] = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "ecdsa-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ecdsa-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
FORMATS = {
    "openssh": serialization.PrivateFormat.OpenSSH,
    "traditional": serialization.PrivateFormat.TraditionalOpenSSL,
    "pkcs8": serialization.PrivateFormat.PKCS8,
}


@dataclass(frozen=True)
class Pair:
    private: str
    public: str  # as a line of authorized_keys


@functools.cache
def _key(kind: str) -> Key:
    return KINDS[kind]()


def make(kind: str, style: str = "openssh", passphrase: str | None = None) -> Pair:
    """The key of a kind, the same at each call."""
    key = _key(kind)
    lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        lock = serialization.BestAvailableEncryption(passphrase.encode())
    pem = key.private_bytes(serialization.Encoding.PEM, FORMATS[style], lock)
    return Pair(pem.decode(), _line(key))


def public(text: str) -> str:
    """The public key of an unencrypted private key in OpenSSH's format."""
    return _line(serialization.load_ssh_private_key(text.encode(), None))


def _line(key: SSHPrivateKeyTypes) -> str:
    return (
        key.public_key()
        .public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        .decode()
    )
