# SPDX-License-Identifier: Apache-2.0
"""Routes and logins to the hosts of a cluster, directly or through the bastion.

All threads share one SSH session with the bastion.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Protocol

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import known_hosts, login
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.session import LoginTarget, Session
from tacker_k8s_mgmt.request.accounts import Account
from tacker_k8s_mgmt.request.reader import ClusterRequest

LOG = logging.getLogger(__name__)

#: Seconds for which a failed login is reported again without a new attempt: many
#: threads connect at once, and a bastion may lock a user out after failed passwords.
FAILURE_HOLDS = 5.0
_SIGN_OF_LIFE = 10.0  # seconds
_UNREACHED = "the bastion {} cannot reach it ({})"


class BastionTunnel:
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
            raise errors.BastionLost(**error.fields) from error

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
        return errors.BastionUnreachable(**error.fields)
    if isinstance(error, errors.AuthError):
        return errors.BastionRefused(**error.fields)
    if isinstance(error, errors.HostKeyError):
        return errors.BastionKeyError(reason=str(error), hint="")
    return error


class KeyStore(Protocol):
    """Persistent host keys of hosts that outlive clusters."""

    def load(self) -> HostKeys: ...
    def add(self, keys: HostKeys) -> None: ...


class HostConnector:
    """Routes and logins to the hosts of a cluster; thread-safe.

    :param store: the recorded host keys of Ansible servers and bastions. Other clusters
        of the project share it: a request's keys replace the recorded ones for this
        cluster only.
    :param timeout: seconds for a login on the Ansible server or the bastion.
    """

    def __init__(
        self,
        params: ClusterRequest,
        logins: Credentials,
        store: KeyStore,
        timeout: float,
    ) -> None:
        self._params = params
        self._logins = logins
        self._store = store
        self._timeout = timeout
        self._bastion_keys = HostKeys()
        self._jump = BastionTunnel(self._log_in_to_bastion) if params.bastion else None

    def close(self) -> None:
        """End the session with the bastion."""
        if self._jump is not None:
            self._jump.close()

    def server(self) -> Session:
        """Log in to the Ansible server.

        :raises RemoteError: as :func:`.login.open_ssh`.
        """
        ansible, account = self._params.ansible, self._params.server_account
        via = self._via("ansible")
        bastion = self._params.bastion
        alias = ""
        if via and bastion:
            alias = known_hosts.behind(ansible.host, bastion.host, bastion.port)
        endpoint = self._logins.endpoint(account, ansible.host, known_as=alias, via=via)
        return self._log_in(endpoint)[0]

    def machine(self, account: Account, address: str) -> LoginTarget:
        """Return the login of an account on a VM.

        :raises PrivateKeyError: the account's key cannot be used.
        """
        return self._logins.endpoint(account, address, via=self._via("vms"))

    def finding(self) -> str:
        """Return why the bastion cannot be used, or "".

        A bastion on the way to the Ansible server is checked with that server.
        """
        try:
            if self._jump is not None and self._via("ansible") is None:
                self._jump.session()
        except errors.PrivateKeyError:
            return ""  # reported with the private keys
        except errors.RemoteError as error:
            return f"bastion: {error}"
        return ""

    def note_bastion(self, keys: HostKeys) -> None:
        """Add the bastion's host key to those that Ansible uses.

        :raises BastionError: the bastion is needed and cannot be used.
        """
        bastion = self._params.bastion
        if self._jump is not None and bastion is not None and bastion.carries_playbooks:
            self._jump.session()
            key = bastion.host, bastion.port
            keys.record(*key, self._bastion_keys.of(*key))

    def _via(self, connection: str) -> BastionTunnel | None:
        bastion = self._params.bastion
        return self._jump if bastion and connection in bastion.used_for else None

    def _log_in_to_bastion(self) -> Session:
        bastion, account = self._params.bastion, self._params.bastion_account
        if bastion is None or account is None:
            raise LookupError("there is no bastion")
        endpoint = self._logins.endpoint(account, bastion.host)
        session, self._bastion_keys = self._log_in(endpoint)
        return session

    def _log_in(self, endpoint: LoginTarget) -> tuple[Session, HostKeys]:
        given = bool(endpoint.account.host_keys)
        keys = self._store.load()
        if given:
            keys = keys.only_revoked()
        session = login.open_ssh(
            endpoint, host_keys=keys, redact=self._logins.redact, deadline=self._timeout
        )
        if not given:
            self._store.add(keys)
        return session, keys
