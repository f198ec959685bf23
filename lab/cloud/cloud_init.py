# SPDX-License-Identifier: Apache-2.0
"""A stand-in for cloud-init: what an image does with what it gets at its first start.

It installs the key of the server's key pair for the image's own user. Of user data it
knows ``ssh_pwauth``, and of ``chpasswd`` the passwords of ``users``.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.cloud import CloudError, base

_SSHD_CONFIG = Path("etc/ssh/sshd_config")
_SHADOW = Path("etc/shadow")
_PASSWORDS = "PasswordAuthentication"


def make_layer(
    layer: Path, below: Sequence[Path], public_key: str, config: Mapping[str, Any]
) -> None:
    """What the first start changes, as a file layer above those of the image.

    :param below: the layers of the image, topmost first.
    :param public_key: of the key pair; "" without one.
    :param config: the document of ``#cloud-config``; empty without user data.
    :raises CloudError: a user in it does not exist.
    """
    layer.mkdir(parents=True)
    if public_key:
        home = layer / "home" / base.STOCK_ACCOUNT.name
        base.authorize(home, base.FIRST_PERSON, public_key)
        base.own(home, base.FIRST_PERSON)
    if "ssh_pwauth" in config:
        allow_passwords(layer, below, allowed=bool(config["ssh_pwauth"]))
    passwords = {
        str(user["name"]): _hash(user)
        for user in (config.get("chpasswd") or {}).get("users") or ()
    }
    if passwords:
        _set_passwords(layer, below, passwords)


def allow_passwords(layer: Path, below: Sequence[Path], *, allowed: bool) -> None:
    """Have sshd accept passwords, or not.

    :param below: layers of which one has the settings of sshd.
    """
    lines = _read(below, _SSHD_CONFIG).splitlines()
    rest = [line for line in lines if not line.startswith(_PASSWORDS)]
    own = f"{_PASSWORDS} {'yes' if allowed else 'no'}"
    base.write(layer / _SSHD_CONFIG, "\n".join([own, *rest, ""]))


def _set_passwords(
    layer: Path, below: Sequence[Path], passwords: Mapping[str, str]
) -> None:
    lines = [line.split(":") for line in _read(below, _SHADOW).splitlines()]
    unknown = passwords.keys() - {name for name, *_ in lines}
    if unknown:
        raise CloudError(f"chpasswd: there is no user {' or '.join(sorted(unknown))}")
    changed = [
        ":".join([name, passwords.get(name, old), *rest]) for name, old, *rest in lines
    ]
    base.write(layer / _SHADOW, "\n".join([*changed, ""]), 0o600)


def _hash(user: Mapping[str, Any]) -> str:
    password = str(user["password"])
    is_text = user.get("type", "hash") == "text"
    return base.hashed_password(password) if is_text else password


def _read(layers: Sequence[Path], name: Path) -> str:
    return next(
        path for path in (one / name for one in layers) if path.exists()
    ).read_text()
