"""SSH host keys that a request gives: a public key, or its fingerprint.

A public key is a line of a ``.pub`` file, a fingerprint what ``ssh-keygen -l`` prints.
Both are kept as the shortest text that says the same.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from tacker_k8s_mgmt.request import field_types

_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)
# `ssh-keygen -l` prints: bits, fingerprint, comment, (kind)
_FINGERPRINT = re.compile(r"(?:\d+ )?(SHA256:[A-Za-z0-9+/]{43})=?(?: .*)?")


def checked(text: str) -> str:
    """The host key in its shortest form: ``kind key`` or ``SHA256:...``.

    :raises ValueError: it is none of both.
    """
    found = _FINGERPRINT.fullmatch(text.strip())
    if found:
        return found[1]
    kind, key, *_ = [*text.split(), "", ""]
    if "\n" not in text.strip() and kind in _KINDS and _holds(key, kind):
        return f"{kind} {key}"
    raise ValueError(
        "must be one public host key as in /etc/ssh/ssh_host_ed25519_key.pub, or its "
        "fingerprint, SHA256:..."
    )


def kinds(given: Iterable[str]) -> frozenset[str]:
    """The kinds of those that are given whole."""
    return frozenset(one.split()[0] for one in given if " " in one)


def fingerprint(key: str) -> str:
    """What OpenSSH prints for a public key.

    :param key: in base64.
    """
    digest = hashlib.sha256(base64.b64decode(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def is_among(kind: str, key: str, given: Iterable[str]) -> bool:
    """Whether a host's key is one of those that a request gives.

    :param key: in base64.
    """
    return not {f"{kind} {key}", fingerprint(key)}.isdisjoint(given)


def _holds(key: str, kind: str) -> bool:
    """Whether it is base64 of a key of this kind: its name stands first (RFC 4253)."""
    try:
        blob = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return False
    name = kind.encode()
    return blob.startswith(len(name).to_bytes(4, "big") + name) and len(blob) > 40


def _as_list(value: Any) -> Any:
    """One key need not be put into a list; nothing is none."""
    value = field_types.blank_is_absent(value)
    return () if value is None else (value,) if isinstance(value, str) else value


HostKey = Annotated[str, AfterValidator(checked)]
OptionalHostKey = Annotated[
    HostKey | None, BeforeValidator(field_types.blank_is_absent)
]
HostKeys = Annotated[tuple[HostKey, ...], BeforeValidator(_as_list)]

ABOUT = (
    "its public key as in its ssh_host_*_key.pub, or the SHA256 fingerprint of the key "
    "that it shows first. Another key is refused before anything secret is sent. "
    "Without it, the first key that the host shows is recorded and holds from then on."
)
