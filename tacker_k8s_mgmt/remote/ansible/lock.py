# SPDX-License-Identifier: Apache-2.0
"""The lock of one cluster: one operation at a time, across all conductors.

Tacker's own lock is not enough: an operation can be cancelled and retried while its
driver still works, and conductors on several hosts share a lock only if Tacker's
coordination is configured. This lock is held on the Ansible server by a process that
lives as long as the conductor's SSH connection. So a lock is free as soon as its owner
is gone, and the owner of a held lock is alive.
"""

import json
import math
import os
import socket
import time
from collections.abc import Callable
from importlib import resources

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import json_text
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.ssh.channel import Channel
from tacker_k8s_mgmt.remote.ssh.session import Session

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
                    path=self._workdir,
                    host=self._session.host,
                    owner=_described(owner),
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
        return min(json_text.number(json_text.parse(line)["within"]), _LONGEST_PROMISE)
    except (ValueError, KeyError, TypeError):
        return 0.0


def _described(line: str) -> str:
    """Return the owner as text; the owner may have been cut off while writing it."""
    try:
        owner = json_text.parse(line)
        since = json_text.number(owner["since"])
        minutes = max(0, round((time.time() - since) / 60))
        return (
            f"{owner['operation']} of conductor {owner['conductor']} (process "
            f"{owner['pid']}), since {minutes} min"
        )[:_SHOWN]
    except (ValueError, KeyError, TypeError):
        return "an unknown operation"
