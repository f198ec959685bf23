# SPDX-License-Identifier: Apache-2.0
"""Connections through a bastion, over one SSH session that all threads share."""

import logging
import socket
import threading
import time
from collections.abc import Callable

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import bastion_errors
from tacker_k8s_mgmt.remote.ssh.session import Session

LOG = logging.getLogger(__name__)

#: Seconds for which a failed login is reported again without a new attempt: many
#: threads connect at once, and a bastion may lock a user out after failed passwords.
FAILURE_HOLDS = 5.0
_SIGN_OF_LIFE = 10.0  # seconds
_UNREACHED = "the bastion {} cannot reach it ({})"


class Jump:
    """Opens connections through a bastion; thread-safe.

    The session is opened on first use, and again after it has broken.

    :param connect: logs in to the bastion, with its own deadline.
    """

    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._session: Session | None = None
        self._failure: errors.RemoteError | None = None
        self._failed_at = 0.0
        self._lock = threading.Lock()

    def open(self, host: str, port: int, timeout: float) -> socket.socket:
        """Open a connection from the bastion to a host.

        :param timeout: seconds, without the login on the bastion.
        :raises OSError: the bastion cannot reach the host.
        :raises BastionError: the bastion itself cannot be used.
        """
        session = self.session()
        try:
            return self._tunnel(session, host, port, timeout)
        except errors.ConnectionLost as error:
            LOG.warning("The session with the bastion broke: %s", error)
        # It may have broken earlier, while it was idle: retry once.
        try:
            return self._tunnel(self.session(), host, port, timeout)
        except errors.ConnectionLost as error:
            raise bastion_errors.BastionLost(**error.fields) from error

    def session(self) -> Session:
        """Return the session with the bastion.

        :raises BastionError: the login failed.
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

    def _tunnel(
        self, session: Session, host: str, port: int, timeout: float
    ) -> socket.socket:
        try:
            return session.tunnel(host, port, timeout)
        except errors.ConnectionLost as error:
            # Either the host or the bastion is silent; a silent bastion breaks the
            # session.
            if not (session.alive and session.answers(_SIGN_OF_LIFE)):
                raise
            why = f"no answer within {timeout:g} s"
            raise OSError(_UNREACHED.format(session.host, why)) from error
        except OSError as error:
            raise OSError(_UNREACHED.format(session.host, error)) from error


def _named(error: errors.RemoteError) -> errors.RemoteError:
    """Return the error as one that names the bastion."""
    if isinstance(error, errors.ConnectError) and "user" in error.fields:
        return bastion_errors.BastionUnreachable(**error.fields)
    if isinstance(error, errors.AuthError):
        return bastion_errors.BastionRefused(**error.fields)
    if isinstance(error, errors.HostKeyError):
        return bastion_errors.BastionKeyError(reason=str(error), hint="")
    return error
