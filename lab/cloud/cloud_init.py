# SPDX-License-Identifier: Apache-2.0
"""A stand-in for cloud-init: what an image does with what it gets at its first start.

It installs the key of the server's key pair for the image's own user. Of user data it
knows ``ssh_pwauth``, and of ``user`` what sets the password of the image's own user.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.cloud import base

# Names that Ubuntu's cloud images have, and cloud-init; sshd takes the first value.
_OF_IMAGE = base.SSHD_SETTINGS / "60-cloudimg-settings.conf"
_OF_FIRST_START = base.SSHD_SETTINGS / "50-cloud-init.conf"
_SHADOW = Path("etc/shadow")


def make_layer(
    layer: Path, below: Sequence[Path], public_key: str, config: Mapping[str, Any]
) -> None:
    """What the first start changes, as a file layer above those of the image.

    :param below: the layers of the image, topmost first.
    :param public_key: of the key pair; "" without one.
    :param config: the document of ``#cloud-config``; empty without user data.
    """
    layer.mkdir(parents=True)
    if public_key:
        home = layer / "home" / base.STOCK_ACCOUNT.name
        base.authorize(home, base.FIRST_PERSON, public_key)
        base.own(home, base.FIRST_PERSON)
    if "ssh_pwauth" in config:
        _passwords(layer / _OF_FIRST_START, allowed=bool(config["ssh_pwauth"]))
    user = config.get("user") or {}
    if user.get("hashed_passwd") and not user.get("lock_passwd", True):
        _set_password(layer, below, str(user["hashed_passwd"]))


def refuse_passwords(image: Path) -> None:
    """Have sshd accept no passwords, as that of a stock image.

    :param image: the layer of the image.
    """
    _passwords(image / _OF_IMAGE, allowed=False)


def _passwords(file: Path, *, allowed: bool) -> None:
    base.write(file, f"PasswordAuthentication {'yes' if allowed else 'no'}\n")


def _set_password(layer: Path, below: Sequence[Path], hashed: str) -> None:
    lines = [line.split(":") for line in _read(below, _SHADOW).splitlines()]
    changed = [
        ":".join([name, hashed if name == base.STOCK_ACCOUNT.name else old, *rest])
        for name, old, *rest in lines
    ]
    base.write(layer / _SHADOW, "\n".join([*changed, ""]), 0o600)


def _read(layers: Sequence[Path], name: Path) -> str:
    return next(
        path for path in (one / name for one in layers) if path.exists()
    ).read_text()
