# SPDX-License-Identifier: Apache-2.0
"""The cluster's directory on the Ansible server: its owner, its files and its lock.

Two requests may name the same directory, one inside another, or one with other content.
So a VNF instance claims its directory with a marker file that holds its id, and removes
only a directory with that id. No directory is claimed inside another one with a marker;
where earlier releases have done so, what is inside stays when the outer one is removed.

One operation works on a cluster at a time, across all conductors. Tacker's own lock is
not enough: an operation can be cancelled and retried while its driver still works, and
conductors on several hosts share a lock only if Tacker's coordination is configured.
This lock is held on the Ansible server by a process that lives as long as the
conductor's SSH connection. So a lock is free as soon as its owner is gone, and the
owner of a held lock is alive.
"""

import json
import logging
import math
import os
import posixpath
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import resources
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.remote.ssh.channel import Channel, Result
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff

LOG = logging.getLogger(__name__)

_ANSWER_LIMIT = 60.0  # seconds
_PATIENCE = 10.0  # seconds; a former owner's connection may be just closing
_RELOCK_PATIENCE = 2.0  # seconds
_LINE = 4096
_SHOWN = 500  # characters of an owner in an error
_LONGEST = 16 * _LINE  # bytes of the answer
#: Seconds for which a promise is trusted that the lock will be released: the file
#: belongs to the Ansible server's account, which other clusters may use, too.
_LONGEST_PROMISE = 3600.0

#: In the cluster's directory; see ``run_files/hold.sh``.
LOCK_FILE = "operation.lock"
_HOLD = resources.files(__package__).joinpath("run_files/hold.sh").read_text()


class ClusterLock:
    """The lock, held through one session with the Ansible server.

    :param workdir: the cluster's directory.
    :param operation: what the lock is held for, for other operations' errors.
    """

    def __init__(self, session: Session, workdir: str, operation: str) -> None:
        self._session = session
        self._workdir = workdir
        self._operation = operation
        self._channel: Channel | None = None

    @property
    def held(self) -> bool:
        """Whether it is held, as far as known without a request."""
        channel = self._channel
        return channel is not None and self._session.alive and not channel.closed

    def acquire(self, patience: float | None = None, within: float = 0.0) -> None:
        """Take the lock; it is released with the session.

        :param patience: seconds to wait for its owner, at least; None for just long
            enough that a closing connection releases it. An owner that has promised to
            release it is waited for.
        :param within: seconds in which it will be released again, which is such a
            promise; 0 for none.
        :raises LockedError: another operation holds it; names that and its duration.
        :raises RemoteError: the Ansible server could not be asked.
        """
        patience = _PATIENCE if patience is None else patience
        waiting = Backoff(math.inf)
        while not self.held:
            owner = self._request(within)
            if self.held:
                return
            if waiting.elapsed() > max(patience, _promised(owner)):
                raise errors.LockedError(
                    path=self._workdir, host=self._session.host, owner=_described(owner)
                )
            waiting.pause()

    def _request(self, within: float) -> str:
        """Try once to take the lock; returns its owner's JSON line if that failed."""
        owner = {
            "operation": self._operation,
            "conductor": socket.gethostname(),
            "pid": os.getpid(),
            "since": round(time.time()),
            "within": within,
        }
        argv = ["bash", "-c", _HOLD, "hold", self._workdir, json.dumps(owner)]
        channel = self._session.start(argv)
        line = _first_line(channel)
        if line == "held":
            self._channel = channel
            return ""
        channel.close()
        if not line.startswith("busy"):
            raise errors.RemoteError(
                detail=f"On {self._session.host}, {self._workdir}/{LOCK_FILE} could "
                "not be taken.",
                hint="`flock` must be installed there and the directory be writable.",
            )
        return line.removeprefix("busy").strip()


class LockedSession:
    """Opens the session on first use and again after it dropped, then locks again.

    :param connect: logs in to the Ansible server.
    :param directory: the cluster's.
    :param operation: what the lock is held for, for other operations' errors.
    """

    def __init__(
        self, connect: Callable[[], Session], directory: str, operation: str
    ) -> None:
        self._connect = connect
        self._directory = directory
        self._operation = operation
        self._session: Session | None = None
        self._lock: ClusterLock | None = None
        self._within = 0.0

    def lock(self, patience: float | None = None, within: float = 0.0) -> None:
        """Lock the cluster until the session is closed.

        :raises LockedError, RemoteError: see :meth:`.lock.ClusterLock.acquire`.
        """
        self._within = within
        self._acquire(self._opened(), patience)

    def get(self) -> Session:
        """Return the session; with the lock, if it was taken.

        :raises LockedError: another operation took the lock after the session dropped.
        :raises RemoteError: the login failed.
        """
        session = self._opened()
        if self._lock is not None:
            self._acquire(session)
        return session

    def for_run(self) -> Session:
        """Return the session for following a playbook run, if need be without the lock.

        The server may still hold the lock for the connection that dropped.
        """
        former, session = self._session, self._opened()
        if self._lock is not None and session is not former:
            try:
                self._acquire(session, _RELOCK_PATIENCE)
            except errors.LockedError as error:
                LOG.warning("The lock is taken again after the run: %s", error)
        return session

    def close(self) -> None:
        """End the session and release the lock."""
        if self._session is not None:
            self._session.close()

    def _acquire(self, session: Session, patience: float | None = None) -> None:
        if self._lock is None or not self._lock.held:
            lock = ClusterLock(session, self._directory, self._operation)
            lock.acquire(patience, self._within)
            self._lock = lock

    def _opened(self) -> Session:
        if self._session is None or not self._session.alive:
            self._session = self._connect()
        return self._session


def _first_line(channel: Channel) -> str:
    waiting = Backoff(_ANSWER_LIMIT, first=0.01, longest=0.5)
    line = b""
    while b"\n" not in line and len(line) < _LONGEST and not waiting.spent():
        if channel.recv_ready():
            line += channel.recv(_LINE)
        elif channel.closed or channel.eof_received:
            break
        else:
            waiting.pause()
    return line.decode(errors="replace").partition("\n")[0].strip()


def _promised(line: str) -> float:
    """Return the seconds within which the owner releases the lock; 0: not known."""
    try:
        return min(
            untrusted.number(untrusted.parse_json(line)["within"]), _LONGEST_PROMISE
        )
    except (ValueError, KeyError, TypeError):
        return 0.0


def _described(line: str) -> str:
    """Return the owner as text; the owner may have been cut off while writing it."""
    try:
        owner = untrusted.parse_json(line)
        since = untrusted.number(owner["since"])
        minutes = max(0, round((time.time() - since) / 60))
        return (
            f"{owner['operation']} of conductor {owner['conductor']} (process "
            f"{owner['pid']}), since {minutes} min"
        )[:_SHOWN]
    except (ValueError, KeyError, TypeError):
        return "an unknown operation"


MARKER = ".tacker-k8s-mgmt.json"
FACTS = "facts"  # Ansible's fact cache, see run_files/run.sh
# What the name of an inventory's file ends with.
_FILE_SUFFIXES = (".ini", ".yaml", ".yml", ".json")
_SHORT = 30.0  # seconds
_REMOVE_LIMIT = 120.0  # seconds
# Prints the directory, or the nearest one above it that is there, if the user may not
# create anything in it. Argument: the directory.
_UNWRITABLE = """
place=$1
until [ -e "$place" ]; do
  place=${place%/*}
  place=${place:-/}
done
[ -d "$place" ] && [ -w "$place" ] && [ -x "$place" ] || printf '%s\n' "$place"
"""
# Prints the first directory above a path, or on its way over links, in which users of
# other accounts could put another one in its place. Argument: the path.
_SHARED = """
for place in "$1" "$(realpath -m -- "$1")"; do
  until [ "$place" = / ]; do
    above=${place%/*}
    above=${above:-/}
    if [ -n "$(find -H "$above" -prune -perm -0002 2>/dev/null)" ]; then
      find -H "$above" -prune ! -perm -1000
      find "$place" -prune ! -user 0 ! -user "$(id -u)" 2>/dev/null
    fi
    place=$above
  done
done | head -n 1
"""


# Prints the nearest directory above a path, or on its way over links, that has a
# marker. Arguments: the path, the marker's name.
_MARKED_ABOVE = """
for place in "$1" "$(realpath -m -- "$1")"; do
  until [ "$place" = / ]; do
    place=${place%/*}
    place=${place:-/}
    if [ -e "$place/$2" ]; then
      printf '%s\n' "$place"
      exit 0
    fi
  done
done
"""


def cluster_above(session: Session, path: str) -> str:
    """The nearest cluster's directory that a path is inside; "" for none."""
    argv = ["sh", "-c", _MARKED_ABOVE, "sh", posixpath.normpath(path), MARKER]
    return session.run(argv, timeout=_SHORT).stdout.rstrip("\n")


class ClusterDirectory:
    """One cluster's directory.

    Each method raises ``RemoteError`` if a request to the server fails.

    :param session: with the Ansible server.
    :param path: absolute; ``transferring_inventory_path``.
    :param owner_id: the VNF instance's id.
    """

    def __init__(self, session: Session, path: str, owner_id: str) -> None:
        self._session = session
        self.path = posixpath.normpath(path)
        self._owner_id = owner_id

    def owner(self) -> str | None:
        """Return the id in the marker, or None without a directory or marker.

        :raises OwnershipError: the marker cannot be parsed.
        """
        return str(self._marker().get("owner", "")) or None

    def claim(self) -> None:
        """Create the directory, or take an empty one; idempotent.

        :raises OwnershipError: it belongs to another VNF, or has unknown content.
        """
        self._refuse_foreign()
        parent = posixpath.dirname(self.path)
        self._run("mkdir", "-p", "--", parent)
        made = marked = False
        try:
            if self.owner() is None:
                made = self._succeeds("mkdir", "-m", "0700", "--", self.path)
                marked = self._mark()
            # Another VNF may have claimed it since the first check.
            self._refuse_foreign()
            if marked:
                # Or one around it, or inside.
                self._refuse_place()
                if nested := self._nested():
                    raise self._refusal(_others(nested))
        except (errors.RemoteError, errors.OwnershipError):
            # The first error matters more than a directory that stays.
            with suppress(errors.RemoteError):
                if marked:
                    self._run("rm", "-f", "--", f"{self.path}/{MARKER}")
                if made:
                    self._succeeds("rmdir", "--", self.path)
            raise

    def obstacle(self) -> str | None:
        """Return why :meth:`claim` would be refused, or None; changes nothing."""
        try:
            self._refuse_foreign()
            self._refuse_unwritable()
        except errors.OwnershipError as error:
            return str(error)
        return None

    def write(self, name: str, content: str) -> bool:
        """Write a file, mode 0600; return whether that changed anything."""
        return self._session.put(self._file(name), content)

    def read(self, name: str) -> str | None:
        """Return a file's text, or None if there is no such file.

        :raises DamagedFile: it is not text.
        """
        path = self._file(name)
        data = self._session.get(path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError:
            # Not chained: the cause has the content, which may be a secret.
            raise errors.DamagedFile(
                path=path, host=self._session.host, reason="it is not a text"
            ) from None

    def drop_facts(self, hosts: Iterable[str]) -> None:
        """Delete Ansible's cached facts of rebuilt hosts."""
        paths = [f"{self.path}/{FACTS}/{_plain(host)}" for host in hosts]
        if paths:
            self._run("rm", "-f", "--", *paths)

    def clear(self, keep: Sequence[str] = ()) -> bool:
        """Empty the directory if this VNF owns it; return whether it did.

        It stays this VNF's, and locked.

        :param keep: names of files that stay, if they exist.
        :raises OwnershipError: it was moved, or is a link, since it was claimed.
        """
        if not self._is_removable():
            return False
        self._empty((LOCK_FILE, *keep))
        LOG.info("%s: %s was emptied", self._session.host, self.path)
        return True

    def remove(self) -> bool:
        """Remove the directory if this VNF owns it; return whether it did.

        It is not an error if it does not exist or belongs to another VNF.

        :raises OwnershipError: it was moved, or is a link, since it was claimed; or
            there are directories of other clusters in it, and only the rest is deleted.
        """
        if not self._is_removable():
            return False
        # The marker last, so that an interrupted removal can be repeated.
        if nested := self._empty(()):
            raise self._refusal(
                _others(nested),
                "The rest of it was deleted; delete it when those clusters are gone.",
            )
        self._run("rm", "-rf", "--", self.path)
        LOG.info("%s: %s was removed", self._session.host, self.path)
        return True

    def _is_removable(self) -> bool:
        marker = self._marker()
        if marker.get("owner") != self._owner_id:
            return False
        self._refuse_link()
        if self._real_path() != marker.get("path"):
            raise self._refusal("is not where it was when it was claimed")
        return True

    def _empty(self, keep: Sequence[str]) -> Sequence[str]:
        """Delete what is in it, but the marker, these files and what others own.

        :returns: the directories of other clusters, which stay.
        """
        nested = self._nested()
        entries = {path[len(self.path) + 1 :].partition("/")[0] for path in nested}
        kept = [word for name in (MARKER, *keep) for word in ("!", "-name", name)]
        for entry in sorted(entries):
            # Its name may have characters that -name takes for a pattern.
            kept += ["!", "-samefile", f"{self.path}/{entry}"]
        others = ["-mindepth", "1", "-maxdepth", "1", *kept]
        delete = ("-exec", "rm", "-rf", "--", "{}", "+")
        self._run("find", self.path, *others, *delete, timeout=_REMOVE_LIMIT)
        return nested

    def _nested(self) -> Sequence[str]:
        """The directories inside that have a marker."""
        marked = ["-mindepth", "2", "-name", MARKER, "-print0"]
        found = self._run("find", self.path, *marked, timeout=_REMOVE_LIMIT)
        paths = found.stdout.rstrip("\0").split("\0")
        return sorted(posixpath.dirname(path) for path in filter(None, paths))

    def _marker(self) -> dict[str, Any]:
        data = self._session.get(f"{self.path}/{MARKER}")
        if data is None:
            return {}
        try:
            marker = untrusted.parse_json(data)
        except ValueError:
            marker = None
        if not isinstance(marker, dict):
            raise self._refusal(f"has a {MARKER} that cannot be understood")
        return marker

    def _refuse_foreign(self) -> None:
        """Raise unless the directory is absent, empty or owned by this VNF."""
        self._refuse_link()
        self._refuse_shared()
        owner = self.owner()
        if owner is not None:
            if owner != self._owner_id:
                raise self._refusal(f"belongs to the VNF instance {owner}")
            return
        self._refuse_place()
        listing = self._run("ls", "-A", "--", f"{self.path}/", check=False)
        if listing.rc != 0:
            if self._succeeds("test", "-e", self.path):
                raise self._refusal("is no directory that can be listed")
        # An interrupted claim may leave the marker's temporary files (see `ssh.files`).
        elif not all(
            name.startswith((MARKER, f".{MARKER}."))
            for name in listing.stdout.splitlines()
        ):
            raise self._refusal("is not empty and has no marker of this driver")

    def _refuse_place(self) -> None:
        """Raise if a new directory cannot be where this one is to be."""
        name = posixpath.basename(self.path)
        if name.lower().endswith(_FILE_SUFFIXES):
            raise self._refusal(
                "has the name of a file: transferring_inventory_path is the directory "
                f"of the cluster's files, such as {posixpath.dirname(self.path)}"
            )
        if above := cluster_above(self._session, self.path):
            outer = ClusterDirectory(self._session, above, self._owner_id)
            raise self._refusal(
                f"is inside {above}, which belongs to the VNF instance {outer.owner()}"
            )

    def _refuse_shared(self) -> None:
        """Raise if users of other accounts could replace it."""
        place = self._run("sh", "-c", _SHARED, "sh", self.path).stdout.rstrip("\n")
        if place:
            raise self._refusal(
                f"is not safe: users of other accounts can replace what is in {place}"
            )

    def _refuse_unwritable(self) -> None:
        """Raise if the user may not create it, or what is below it."""
        argv = ["sh", "-euc", _UNWRITABLE, "sh", self.path]
        place = self._run(*argv).stdout.rstrip("\n")
        if place:
            raise self._refusal(
                f"cannot be used: {place} is no directory that the user may write to"
            )

    def _mark(self) -> bool:
        """Create the marker atomically, as a link, unless there is one.

        :returns: whether it is ours.
        """
        marker = {"owner": self._owner_id, "path": self._real_path(), "format": 1}
        marker_path = f"{self.path}/{MARKER}"
        temp = f"{marker_path}.{secrets.token_hex(4)}"
        self._session.put(temp, json.dumps(marker))
        linked = self._run("ln", "-T", "--", temp, marker_path, check=False)
        self._run("rm", "-f", "--", temp)
        self._run("chmod", "0700", "--", self.path)
        owner = self.owner()
        if owner is None:
            raise errors.RemoteError(
                detail=f"On {self._session.host}, {marker_path} could not be created: "
                f"{linked.stderr.strip()}."
            )
        return owner == self._owner_id

    def _refuse_link(self) -> None:
        if self._succeeds("test", "-L", self.path):
            raise self._refusal("is a symbolic link")

    def _run(self, *argv: str, timeout: float = _SHORT, check: bool = True) -> Result:
        return self._session.run(argv, timeout=timeout, check=check)

    def _succeeds(self, *argv: str) -> bool:
        return self._run(*argv, check=False).rc == 0

    def _real_path(self) -> str:
        return self._run("realpath", "-e", "--", self.path).stdout.rstrip("\n")

    def _file(self, name: str) -> str:
        return f"{self.path}/{_plain(name)}"

    def _refusal(self, reason: str, hint: str | None = None) -> errors.OwnershipError:
        return errors.OwnershipError(
            hint=hint, path=self.path, host=self._session.host, reason=reason
        )


def _others(nested: Sequence[str]) -> str:
    return f"has the directories of other clusters in it: {', '.join(nested)}"


def _plain(name: str) -> str:
    if "/" in name or name in ("", ".", "..", MARKER):
        raise ValueError(f"not a plain file name: {name!r}")
    return name
