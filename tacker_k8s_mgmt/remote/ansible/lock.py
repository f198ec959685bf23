"""The lock of one cluster: one operation at a time, whichever conductor runs it.

Tacker's own lock does not reach everywhere: an operation can be cancelled and retried
while its driver still works, and conductors on several hosts share a lock only if
Tacker's coordination was configured so. Ours is held on the Ansible server by a process
that lives as long as the SSH connection of the conductor does. So a lock whose owner is
gone is free at once, and one that is held has an owner that is alive.
"""

import json
import os
import socket
import time
from importlib import resources

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.ssh.channel import Channel
from tacker_k8s_mgmt.remote.ssh.session import Session

_ANSWER_LIMIT = 60.0  # seconds
_PATIENCE = 10.0  # seconds; a former owner's connection may be just closing
_LINE = 4096

_HOLD = resources.files(__package__).joinpath("run_files/hold.sh").read_text()


class ClusterLock:
    """The lock as one session with the Ansible server holds it.

    :param workdir: the cluster's directory.
    :param operation: what the lock is held for, for the message to others.
    """

    def __init__(self, session: Session, workdir: str, operation: str) -> None:
        self._session = session
        self._workdir = workdir
        self._operation = operation
        self._channel: Channel | None = None

    @property
    def held(self) -> bool:
        """Whether it is ours, as far as is known without asking."""
        channel = self._channel
        return channel is not None and self._session.alive and not channel.closed

    def acquire(self, patience: float | None = None) -> None:
        """Take the lock; it goes with the session.

        :param patience: seconds for whoever has it to end; None for what a connection
            takes that is just closing.
        :raises LockedError: another operation has it, with who and for how long.
        :raises RemoteError: the Ansible server could not be asked.
        """
        waiting = Backoff(_PATIENCE if patience is None else patience)
        while not self.held:
            answer = self._ask()
            if self.held:
                return
            if waiting.spent():
                raise errors.LockedError(
                    path=self._workdir,
                    host=self._session.host,
                    owner=_described(answer),
                )
            waiting.pause()

    def _ask(self) -> str:
        owner = {
            "operation": self._operation,
            "conductor": socket.gethostname(),
            "pid": os.getpid(),
            "since": round(time.time()),
        }
        argv = ["bash", "-c", _HOLD, "hold", self._workdir, json.dumps(owner)]
        channel = self._session.start(argv)
        line = _first_line(channel)
        if line == "held":
            self._channel = channel
            return line
        channel.close()
        if not line.startswith("busy"):
            raise errors.RemoteError(
                detail=f"On {self._session.host}, {self._workdir}/operation.lock could "
                "not be taken.",
                hint="`flock` must be installed there and the directory be writable.",
            )
        return line.removeprefix("busy").strip()


def _first_line(channel: Channel) -> str:
    waiting = Backoff(_ANSWER_LIMIT, first=0.01, longest=0.5)
    line = b""
    while b"\n" not in line and not waiting.spent():
        if channel.recv_ready():
            line += channel.recv(_LINE)
        elif channel.closed or channel.eof_received:
            break
        else:
            waiting.pause()
    return line.decode(errors="replace").partition("\n")[0].strip()


def _described(line: str) -> str:
    """The owner in words; what it wrote of itself may be half there."""
    try:
        owner = json.loads(line)
        minutes = max(0, round((time.time() - owner["since"]) / 60))
        return (
            f"{owner['operation']} of conductor {owner['conductor']} (process "
            f"{owner['pid']}), since {minutes} min"
        )
    except (ValueError, KeyError, TypeError):
        return "an operation that did not say what it is"
