"""The way through a bastion: one session with it, shared by all who go that way."""

import logging
import threading
import time
from collections.abc import Callable

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import bastion_errors
from tacker_k8s_mgmt.remote.ssh.endpoint import Wire
from tacker_k8s_mgmt.remote.ssh.session import Session

LOG = logging.getLogger(__name__)

#: Seconds for which a failed try answers those who ask after it, too. Many threads ask,
#: and a bastion that locks users out counts each refused password.
FAILURE_HOLDS = 5.0
_SIGN_OF_LIFE = 10.0  # seconds


class Jump:
    """Opens connections through a bastion; threads may share it.

    The session is opened when it is first needed, and again when it has broken.

    :param connect: logs in to the bastion, with its own deadline.
    """

    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._session: Session | None = None
        self._failure: errors.RemoteError | None = None
        self._failed_at = 0.0
        self._lock = threading.Lock()

    def open(self, host: str, port: int, timeout: float) -> Wire:
        """Open a connection from the bastion to a host.

        :param timeout: seconds; a login on the bastion has its own limit.
        :raises OSError: the bastion cannot reach the host.
        :raises BastionError: the bastion itself is the obstacle.
        """
        session = self.session()
        try:
            return self._tunnel(session, host, port, timeout)
        except errors.ConnectionLost as error:
            LOG.warning("The session with the bastion broke: %s", error)
        # It broke while nobody used it, and that is only seen now.
        try:
            return self._tunnel(self.session(), host, port, timeout)
        except errors.ConnectionLost as error:
            raise bastion_errors.BastionLost(**error.fields) from error

    def session(self) -> Session:
        """The session with the bastion.

        :raises BastionError: there is none to be had.
        """
        with self._lock:
            if self._session is not None and self._session.alive:
                return self._session
            if (
                self._failure is not None
                and time.monotonic() - self._failed_at < FAILURE_HOLDS
            ):
                raise self._failure
            try:
                self._session, self._failure = self._connect(), None
            except errors.RemoteError as error:
                self._failure = _named(error)
                self._failed_at = time.monotonic()
                raise self._failure from error
            return self._session

    def close(self) -> None:
        """End the session, and with it every connection through it."""
        with self._lock:
            if self._session is not None:
                self._session.close()

    def _tunnel(self, session: Session, host: str, port: int, timeout: float) -> Wire:
        try:
            return session.tunnel(host, port, timeout)
        except errors.ConnectionLost as error:
            # Silence may be the host's or the bastion's; only then the session breaks.
            if session.alive and session.answers(_SIGN_OF_LIFE):
                late = f"no answer within {timeout:g} s"
                raise _beyond(session, late) from error
            raise
        except OSError as error:
            raise _beyond(session, str(error)) from error


def _beyond(session: Session, why: str) -> OSError:
    return OSError(f"the bastion {session.host} cannot reach it ({why})")


def _named(error: errors.RemoteError) -> errors.RemoteError:
    """The same error as one that tells that the bastion is meant."""
    if isinstance(error, errors.ConnectError) and "user" in error.fields:
        return bastion_errors.BastionUnreachable(**error.fields)
    if isinstance(error, errors.AuthError):
        return bastion_errors.BastionRefused(**error.fields)
    if isinstance(error, errors.HostKeyError):
        return bastion_errors.BastionKeyError(reason=str(error), hint="")
    return error
