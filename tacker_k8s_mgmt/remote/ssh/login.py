# SPDX-License-Identifier: Apache-2.0
"""SSH logins: connection, host key, authentication.

No credentials are sent before the host's key has been verified. Only this module and
:mod:`.session` import paramiko.
"""

import io
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

import paramiko

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import backoff
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.ssh import login_errors
from tacker_k8s_mgmt.remote.ssh.endpoint import Endpoint
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.session import Redact, Session
from tacker_k8s_mgmt.request.host_keys import fingerprint

CONNECT_TIMEOUT = 15.0  # seconds for one attempt: TCP, banner, login
KEEPALIVE = 15  # seconds
UNANSWERED = 60  # seconds until the kernel gives up a silent peer

# TimeoutError, connection refused or reset and unknown names are all OSErrors.
_TRANSIENT = (OSError, EOFError, paramiko.SSHException)

# paramiko logs every failed attempt on a booting host as an error with a stack trace.
_WIRE_LOG = f"{__name__}.wire"
logging.getLogger(_WIRE_LOG).setLevel(logging.CRITICAL)


class Refused(Exception):
    """The host answered and did not accept user, password or key; the text says why."""

    error: type[errors.AuthError] = errors.AuthError


class _PasswordsRefused(Refused):
    """It accepts no passwords."""

    error = login_errors.PasswordsRefused


def connect(
    endpoint: Endpoint,
    *,
    host_keys: HostKeys,
    redact: Redact,
    deadline: float,
    connect_timeout: float = CONNECT_TIMEOUT,
    auth_grace: float = 0.0,
    on_refused: Callable[[str], None] = lambda _: None,
) -> Session:
    """Log in, retrying while the host may still be booting.

    :param deadline: seconds for all attempts together.
    :param connect_timeout: seconds for one attempt.
    :param auth_grace: seconds from the first refused login during which it is retried:
        on a new VM sshd may answer before cloud-init has installed the login.
    :param on_refused: is called with the reason before the first of these retries.
    :raises ConnectError: no attempt succeeded within the deadline.
    :raises AuthError: the host answered and refused user, password or key.
    :raises HostKeyError: the host's key is neither recorded nor given.
    :raises BastionError: the host is behind a bastion, which cannot be used.
    """
    user, host, port = endpoint.username, endpoint.host, endpoint.port
    attempts, refused = Backoff(deadline), None
    while True:
        limit = max(1.0, min(connect_timeout, deadline - attempts.elapsed()))
        try:
            return Session(_log_in(endpoint, host_keys, limit), endpoint, redact)
        except Refused as error:
            is_first, refused = refused is None, refused or Backoff(auth_grace)
            why = str(error)
            if refused.spent() or attempts.spent():
                raise error.error(
                    host=host, port=port, user=user, reason=why
                ) from error
            if is_first:
                on_refused(why)
        except _TRANSIENT as error:
            if attempts.spent() or backoff.is_unknown_name(error):
                reason = backoff.reason(error)
                raise errors.ConnectError(
                    user=user, host=host, port=port, seconds=deadline, reason=reason
                ) from error
        attempts.pause()


def _log_in(
    endpoint: Endpoint, host_keys: HostKeys, timeout: float
) -> paramiko.Transport:
    """Connect and log in, once.

    :param timeout: seconds for each of: connection, banner, key exchange, login.
    :raises Refused: the host does not accept the credentials.
    :raises HostKeyError: the host's key is neither recorded nor given.
    """
    transport = paramiko.Transport(_connected(endpoint, timeout))
    try:
        transport.set_log_channel(_WIRE_LOG)
        transport.banner_timeout = transport.auth_timeout = timeout
        place = endpoint.known_as or endpoint.host, endpoint.port
        options = transport.get_security_options()
        options.key_types = host_keys.preferred(
            *place, options.key_types, endpoint.host_keys
        )
        transport.start_client(timeout=timeout)
        key = transport.get_remote_server_key()
        shown = key.get_name(), key.get_base64()
        if not host_keys.trust(*place, *shown, endpoint.host_keys):
            raise _distrust(endpoint, host_keys, *shown)
        _authenticate(transport, endpoint)
        transport.set_keepalive(KEEPALIVE)
    except BaseException:
        transport.close()
        raise
    return transport


def _connected(endpoint: Endpoint, timeout: float) -> socket.socket:
    if endpoint.via is not None:
        return endpoint.via.open(endpoint.host, endpoint.port, timeout)
    sock = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED * 1000)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _distrust(
    endpoint: Endpoint, host_keys: HostKeys, kind: str, key: str
) -> errors.HostKeyError:
    host = endpoint.host
    if place := host_keys.recorded_in(endpoint.known_as or host, endpoint.port):
        return errors.HostKeyError(host=host, recorded=place)
    return login_errors.GivenKeyError(
        host=host, kind=kind, fingerprint=fingerprint(key)
    )


def _authenticate(transport: paramiko.Transport, endpoint: Endpoint) -> None:
    user, password = endpoint.username, endpoint.revealed_password()
    key = endpoint.revealed_key()
    further = ["password"]
    try:
        if key:
            further = transport.auth_publickey(user, _key(key))
        if "password" in further and password is not None:
            transport.auth_password(user, password)
    except paramiko.BadAuthenticationType as error:
        taken = ", ".join(error.allowed_types)
        if key:
            raise Refused(f"it takes no private keys, only {taken}") from error
        raise _PasswordsRefused(f"it takes no passwords, only {taken}") from error
    except paramiko.AuthenticationException as error:
        # paramiko raises the same class if the peer hangs up or times out, as a booting
        # host does (pam_nologin). After a refusal the connection stays open.
        if transport.is_active() and "timeout" not in str(error):
            tried = "private key" if key else "password"
            raise Refused(f"the {tried} is not accepted") from error
        raise
    if not transport.is_authenticated():
        raise Refused(f"beside the private key it requires: {', '.join(further)}")


def _key(text: str) -> paramiko.PKey:
    """Return paramiko's key object, of the first class that reads the text."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with suppress(paramiko.SSHException):
            key: paramiko.PKey = kind.from_private_key(io.StringIO(text))
            return key
    raise Refused("the private key is of no kind that paramiko knows")
