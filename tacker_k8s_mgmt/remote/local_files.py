# SPDX-License-Identifier: Apache-2.0
"""Files on this host that a request may name: those in the operator's directory.

Profiles that a hook may use are those of the VNF package, and the operator's own.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tacker_k8s_mgmt.request import profiles
from tacker_k8s_mgmt.request.profile_document import (
    IN_PACKAGE,
    IN_STATE_PATH,
    LARGEST,
    SUFFIX,
    InvalidProfile,
    Profile,
)

LARGEST_SECRET = 32 * 1024  # bytes


class FileNotAllowed(Exception):
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
    :raises FileNotAllowed: the file may not or cannot be read.
    """
    real = os.path.realpath(os.path.join(directory, path))
    if not directory or not real.startswith(os.path.realpath(directory) + os.sep):
        raise FileNotAllowed(f"is not below {place.purpose} ({place.name})")
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileNotAllowed("is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(largest)
        finally:
            os.close(descriptor)
    except OSError:
        raise FileNotAllowed(
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
    :raises FileNotAllowed: the file may not or cannot be read, or holds no text.
    """
    place = set_aside("secrets", "secret_directory")
    data = read(path, directory, place=place, largest=LARGEST_SECRET + 1)
    if len(data) > LARGEST_SECRET:
        raise FileNotAllowed(f"is a file of more than {LARGEST_SECRET} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise FileNotAllowed("is no text in UTF-8") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise FileNotAllowed("is an empty file")
    return text


class ProfileFiles:
    """Finds profiles among the files on this host, and the driver's own.

    :param state_path: the driver's state directory.
    :param package: returns the directory of the VNF package; None without one.
    """

    def __init__(
        self, state_path: str, package: Callable[[], str] | None = None
    ) -> None:
        self._state_path = state_path
        self._package = package

    def __call__(self, name: str) -> Profile:
        """The profile of a name, which has the form of one.

        :raises InvalidProfile: there is none, or several, or it is wrong.
        """
        path = f"{IN_STATE_PATH}/{name}{SUFFIX}"
        shown = os.path.join(self._state_path, path)
        state = Place("the place of profiles", "the driver's state path")
        files = {shown: partial(_read, self._state_path, path, state)}
        if self._package:
            path = f"{IN_PACKAGE}/{name}{SUFFIX}"
            shown = f"{path} of the VNF package"
            package = Place("the place of profiles", "the VNF package")
            files = {shown: partial(_read, self._package(), path, package), **files}
        return profiles.chosen(name, files)


def _read(directory: str, path: str, place: Place) -> bytes | None:
    """The file at a path, whose links do not lead out of the directory."""
    if not os.path.lexists(os.path.join(directory, path)):
        return None
    try:
        largest = LARGEST + 1
        return read(path, directory, place=place, largest=largest)
    except FileNotAllowed as error:
        raise InvalidProfile([str(error)]) from None
