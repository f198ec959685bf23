"""The cluster's directory on the Ansible server, and whose it is.

Whoever operates the server may point two VNFs at the same directory, or one at a
directory with something else in it. So a directory is taken once, by a marker file
with the VNF instance's id, and only what bears our id is ever removed.
"""

import json
import logging
import posixpath
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh.session import Session

LOG = logging.getLogger(__name__)

MARKER = ".tacker-k8s-mgmt.json"
FACTS = "facts"  # Ansible's fact cache, see run_files/run.sh
_SHORT = 30.0  # seconds
_REMOVE_LIMIT = 120.0  # seconds


class WorkDir:
    """One cluster's directory.

    :param session: a session with the Ansible server.
    :param path: absolute; ``transferring_inventory_path``.
    :param owner_id: the VNF instance's id.
    """

    def __init__(self, session: Session, path: str, owner_id: str) -> None:
        self._session = session
        self.path = posixpath.normpath(path)
        self._owner_id = owner_id

    def owner(self) -> str | None:
        """Return the id in the marker, or None if there is no directory or marker.

        :raises OwnershipError: the marker is there and cannot be understood.
        :raises RemoteError: the server could not be asked.
        """
        return str(self._marker().get("owner", "")) or None

    def claim(self) -> None:
        """Make the directory ours: made, or found empty, or ours already.

        :raises OwnershipError: it belongs to another VNF or to nobody we know.
        :raises RemoteError: it could not be made.
        """
        self._refuse_foreign()
        parent = posixpath.dirname(self.path)
        self._session.run(["mkdir", "-p", "--", parent], timeout=_SHORT)
        if self.owner() is None:
            make = ["mkdir", "-m", "0700", "--", self.path]
            made = self._session.run(make, timeout=_SHORT, check=False).rc == 0
            try:
                self._mark()
            except errors.RemoteError:
                if made:
                    self._unmake()
                raise
        # Somebody else may have been quicker, at any point since the first look.
        self._refuse_foreign()

    def obstacle(self) -> str | None:
        """Return why :meth:`claim` would be refused, or None. Changes nothing.

        :raises RemoteError: the server could not be asked.
        """
        try:
            self._refuse_foreign()
        except errors.OwnershipError as error:
            return str(error)
        return None

    def write(self, name: str, content: str) -> bool:
        """Make a file of the directory have this content, mode 0600.

        :returns: whether anything was changed.
        :raises RemoteError: it could not be written.
        """
        return self._session.put(self._file(name), content)

    def read(self, name: str) -> str | None:
        """Return a file's text, or None if there is no such file.

        :raises SpoiledFile: it is there and is no text.
        :raises RemoteError: it is there and could not be read.
        """
        path = self._file(name)
        data = self._session.get(path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            # Not chained: it has the content, which may be a secret.
            raise errors.SpoiledFile(
                path=path, host=self._session.host, reason="it is no text"
            ) from None

    def drop_facts(self, hosts: Iterable[str]) -> None:
        """Forget what Ansible gathered of these hosts: they were made anew.

        :raises RemoteError: a file could not be removed.
        """
        paths = [f"{self.path}/{FACTS}/{_plain(host)}" for host in hosts]
        if paths:
            self._session.run(["rm", "-f", "--", *paths], timeout=_SHORT)

    def remove(self) -> bool:
        """Remove the directory if it is ours; return whether it was.

        What is gone already, or belongs to somebody else, is left alone and no error.

        :raises OwnershipError: it is marked as ours and is not where it was claimed.
        :raises RemoteError: it could not be removed.
        """
        marker = self._marker()
        if marker.get("owner") != self._owner_id:
            return False
        self._refuse_link()
        if self._real_path() != marker.get("path"):
            raise self._refusal("is not where it was when it was claimed")
        # The marker goes last: what a broken removal leaves is still known as ours.
        others = ["-mindepth", "1", "-maxdepth", "1", "!", "-name", MARKER]
        self._session.run(
            ["find", self.path, *others, "-exec", "rm", "-rf", "--", "{}", "+"],
            timeout=_REMOVE_LIMIT,
        )
        self._session.run(["rm", "-rf", "--", self.path], timeout=_SHORT)
        LOG.info("%s: %s was removed", self._session.host, self.path)
        return True

    def _marker(self) -> dict[str, Any]:
        data = self._session.get(f"{self.path}/{MARKER}")
        if data is None:
            return {}
        try:
            marker = json.loads(data)
        except ValueError:
            marker = None
        if not isinstance(marker, dict):
            raise self._refusal(f"has a {MARKER} that cannot be understood")
        return marker

    def _refuse_foreign(self) -> None:
        """Raise unless the directory is absent, empty or ours."""
        self._refuse_link()
        owner = self.owner()
        if owner is not None:
            if owner != self._owner_id:
                raise self._refusal(f"belongs to the VNF instance {owner}")
            return
        listing = self._session.run(
            ["ls", "-A", "--", f"{self.path}/"], timeout=_SHORT, check=False
        )
        if listing.rc != 0:
            if self._test("-e"):
                raise self._refusal("is no directory that can be listed")
        elif any(not _is_marker(name) for name in listing.stdout.splitlines()):
            raise self._refusal("is not empty and has no marker of this driver")

    def _mark(self) -> None:
        """Put the marker in place unless there is one: a link is made or it is not."""
        marker = {"owner": self._owner_id, "path": self._real_path(), "format": 1}
        temp = f"{self.path}/{MARKER}.{secrets.token_hex(4)}"
        self._session.put(temp, json.dumps(marker))
        marker_path = f"{self.path}/{MARKER}"
        linked = self._session.run(
            ["ln", "-T", "--", temp, marker_path], timeout=_SHORT, check=False
        )
        self._session.run(["rm", "-f", "--", temp], timeout=_SHORT)
        self._session.run(["chmod", "0700", "--", self.path], timeout=_SHORT)
        if self.owner() is None:
            raise errors.RemoteError(
                detail=f"On {self._session.host}, {marker_path} could not be made: "
                f"{linked.stderr.strip()}."
            )

    def _unmake(self) -> None:
        """Take an empty directory away, which nobody could tell the owner of."""
        # What went wrong before is worth more than a directory that stays.
        with suppress(errors.RemoteError):
            self._session.run(["rmdir", "--", self.path], timeout=_SHORT, check=False)

    def _refuse_link(self) -> None:
        if self._test("-L"):
            raise self._refusal("is a symbolic link")

    def _test(self, operator: str) -> bool:
        asked = ["test", operator, self.path]
        return self._session.run(asked, timeout=_SHORT, check=False).rc == 0

    def _real_path(self) -> str:
        found = self._session.run(["realpath", "-e", "--", self.path], timeout=_SHORT)
        return found.stdout.rstrip("\n")

    def _file(self, name: str) -> str:
        return f"{self.path}/{_plain(name)}"

    def _refusal(self, reason: str) -> errors.OwnershipError:
        return errors.OwnershipError(
            path=self.path, host=self._session.host, reason=reason
        )


def _is_marker(name: str) -> bool:
    """Whether it is the marker, or what a broken claim left of one (see `files`)."""
    return name.startswith((MARKER, f".{MARKER}."))


def _plain(name: str) -> str:
    if "/" in name or name in ("", ".", "..", MARKER):
        raise ValueError(f"not a plain file name: {name!r}")
    return name
