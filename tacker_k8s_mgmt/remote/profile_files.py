# SPDX-License-Identifier: Apache-2.0
"""Profiles that a hook may use: those of the VNF package, and the operator's own."""

import os
from collections.abc import Callable
from functools import partial

from tacker_k8s_mgmt.remote import restricted_files
from tacker_k8s_mgmt.remote.restricted_files import Place
from tacker_k8s_mgmt.request import profiles
from tacker_k8s_mgmt.request.profile_values import (
    IN_PACKAGE,
    IN_STATE_PATH,
    LARGEST,
    SUFFIX,
    Profile,
    Refused,
)


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

        :raises Refused: there is none, or several, or it is wrong.
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
        return restricted_files.read(path, directory, place=place, largest=largest)
    except restricted_files.Refused as error:
        raise Refused([str(error)]) from None
