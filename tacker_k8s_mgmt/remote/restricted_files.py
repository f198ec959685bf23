# SPDX-License-Identifier: Apache-2.0
"""Local files that a request may name: only those in the operator's directory."""

import os
import stat
from dataclasses import dataclass

LARGEST_SECRET = 32 * 1024  # bytes


class Refused(Exception):
    """Why a file or a key is refused; the text follows its name in a message."""


@dataclass(frozen=True)
class Place:
    """A directory, as messages describe it.

    :param purpose: what it is.
    :param name: which one it is.
    """

    purpose: str
    name: str


def read(path: str, directory: str, *, place: Place, largest: int) -> bytes:
    """Return the content of a file, up to *largest* bytes.

    Requests come from tenants, so links must not lead out of the directory, and the
    error for a file outside is the same whether it exists or not.

    :param path: absolute, or relative to *directory*.
    :param directory: "" if no file may be read.
    :param place: the directory, for the message.
    :raises Refused: the file may not or cannot be read.
    """
    real = os.path.realpath(os.path.join(directory, path))
    if not directory or not real.startswith(os.path.realpath(directory) + os.sep):
        raise Refused(f"is not below {place.purpose} ({place.name})")
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Refused("is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(largest)
        finally:
            os.close(descriptor)
    except OSError:
        raise Refused(
            "is a file that is not there or that Tacker's conductor may not read "
            f"({path}, below {place.name})"
        ) from None


def set_aside(kept: str, option: str) -> Place:
    """The directory that an option names.

    :param kept: what it is for.
    """
    purpose = f"the directory that Tacker's operator has set aside for {kept}"
    return Place(purpose, f"[k8s_mgmt] {option}")


def secret(path: str, directory: str) -> str:
    """Return the secret in a file, without its final newline.

    :param directory: the operator's directory for secrets; "" if there is none.
    :raises Refused: the file may not or cannot be read, or holds no text.
    """
    place = set_aside("secrets", "secret_directory")
    data = read(path, directory, place=place, largest=LARGEST_SECRET + 1)
    if len(data) > LARGEST_SECRET:
        raise Refused(f"is a file of more than {LARGEST_SECRET} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Refused("is no text in UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise Refused("is an empty file")
    return text
