# SPDX-License-Identifier: Apache-2.0
"""RSA signatures of tokens (PKCS #1 v1.5 with SHA-256), with the standard library."""

import hashlib
import math
import secrets
from dataclasses import dataclass

_BITS = 2048
_EXPONENT = 65537
_ROUNDS = 8  # of Miller and Rabin's test; enough for random numbers of this size
_SMALL = math.prod(n for n in range(3, 2000) if all(n % d for d in range(2, n)))
# DER of DigestInfo for SHA-256, RFC 8017, 9.2, note 1.
_DIGEST_INFO = bytes.fromhex("3031300d060960864801650304020105000420")


@dataclass(frozen=True)
class Key:
    """A private key: modulus and private exponent; the public one is 65537."""

    modulus: int
    private: int

    def sign(self, data: bytes) -> bytes:
        """The signature of the data."""
        number = pow(_padded(data), self.private, self.modulus)
        return number.to_bytes(_BITS // 8, "big")

    def has_signed(self, data: bytes, signature: bytes) -> bool:
        """Whether the signature is of this data."""
        number = int.from_bytes(signature, "big")
        return pow(number, _EXPONENT, self.modulus) == _padded(data)


def generate() -> Key:
    """A new key; takes some tenths of a second."""
    while True:
        one, other = _prime(), _prime()
        order = (one - 1) * (other - 1)
        if one != other and math.gcd(order, _EXPONENT) == 1:
            return Key(one * other, pow(_EXPONENT, -1, order))


def _padded(data: bytes) -> int:
    tail = b"\0" + _DIGEST_INFO + hashlib.sha256(data).digest()
    filled = b"\0\1" + b"\xff" * (_BITS // 8 - 2 - len(tail)) + tail
    return int.from_bytes(filled, "big")


def _prime() -> int:
    half = _BITS // 2
    while True:
        # The two highest bits have the product be as long as it ought to be.
        number = secrets.randbits(half) | 3 << (half - 2) | 1
        if math.gcd(number, _SMALL) == 1 and _is_probably_prime(number):
            return number


def _is_probably_prime(number: int) -> bool:
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(_ROUNDS):
        power = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = pow(power, 2, number)
            if power == number - 1:
                break
        else:
            return False
    return True
