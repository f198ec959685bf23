# SPDX-License-Identifier: Apache-2.0
"""Host keys of SSH in a request.

One is a public key (a line of a ``.pub`` file) or its fingerprint (what
``ssh-keygen -l`` prints). Both are reduced to their shortest form.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from tacker_k8s_mgmt.request import fields

_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)
# `ssh-keygen -l` prints: bits, fingerprint, comment, (kind)
_FINGERPRINT = re.compile(r"(?:[0-9]{1,6} )?(SHA256:[A-Za-z0-9+/]{43})=?(?: .*)?")


def checked(text: str) -> str:
    """The host key in its shortest form: ``kind key`` or ``SHA256:...``.

    :raises ValueError: the text is neither.
    """
    fingerprinted = _FINGERPRINT.fullmatch(text.strip())
    if fingerprinted:
        return fingerprinted[1]
    kind, key, *_ = [*text.split(), "", ""]
    if "\n" not in text.strip() and kind in _KINDS and _holds(key, kind):
        return f"{kind} {key}"
    raise ValueError(
        "must be one public host key as in /etc/ssh/ssh_host_ed25519_key.pub, or its "
        "fingerprint, SHA256:..."
    )


def kinds(accepted: Iterable[str]) -> frozenset[str]:
    """The kinds of those that are public keys."""
    return frozenset(key.split()[0] for key in accepted if " " in key)


def fingerprint(key: str) -> str:
    """The fingerprint that OpenSSH prints for a public key in base64."""
    digest = hashlib.sha256(base64.b64decode(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def is_among(kind: str, key: str, accepted: Iterable[str]) -> bool:
    """Whether a host's public key, in base64, is one of those of a request."""
    return not {f"{kind} {key}", fingerprint(key)}.isdisjoint(accepted)


def _holds(key: str, kind: str) -> bool:
    """Whether it is base64 of a key that starts with this kind (RFC 4253, 6.6)."""
    try:
        blob = base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return False
    name = kind.encode()
    return blob.startswith(len(name).to_bytes(4, "big") + name) and len(blob) > 40


def _as_list(value: Any) -> Any:
    """The keys as a list; a single key may be given without one."""
    value = fields.blank_is_absent(value)
    return () if value is None else (value,) if isinstance(value, str) else value


HostKey = Annotated[str, AfterValidator(checked)]
OptionalHostKey = fields.Optional[HostKey]
HostKeys = Annotated[tuple[HostKey, ...], BeforeValidator(_as_list)]

ABOUT_HOST_KEY = (
    "its public key as in its ssh_host_*_key.pub, or the SHA256 fingerprint of the key "
    "that it shows first. Another key is refused before anything secret is sent. "
    "Without it, the first key that the host shows is recorded and holds from then on."
)
