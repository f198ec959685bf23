"""The login on a host: connection, host key, user. Knows paramiko, as :mod:`.session`.

Nothing secret is sent before the host's key was found to be the right one.
"""

import io
import logging
import socket
from contextlib import suppress
from typing import cast

import paramiko

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh.endpoint import Endpoint
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.request.host_keys import fingerprint

KEEPALIVE = 15  # seconds
UNANSWERED = 60  # seconds until the kernel gives up a silent peer

# paramiko reports every failed try of a booting host as an error with a stack trace.
_WIRE_LOG = f"{__name__}.wire"
logging.getLogger(_WIRE_LOG).setLevel(logging.CRITICAL)


class Refused(Exception):
    """The host answered and did not accept user, password or key."""


def log_in(
    endpoint: Endpoint, host_keys: HostKeys, timeout: float
) -> paramiko.Transport:
    """Connect and log in, once.

    :param timeout: seconds for each of: connection, banner, key exchange, login.
    :raises Refused: the host does not take the credentials.
    :raises HostKeyError: the host's key is neither recorded nor given.
    """
    transport = paramiko.Transport(_connected(endpoint, timeout))
    try:
        transport.set_log_channel(_WIRE_LOG)
        transport.banner_timeout = transport.auth_timeout = timeout
        where = endpoint.known_as or endpoint.host, endpoint.port
        options = transport.get_security_options()
        options.key_types = host_keys.preferred(
            *where, options.key_types, endpoint.host_keys
        )
        transport.start_client(timeout=timeout)
        key = transport.get_remote_server_key()
        shown = key.get_name(), key.get_base64()
        if not host_keys.trust(*where, *shown, endpoint.host_keys):
            raise _distrust(endpoint, host_keys, *shown)
        _authenticate(transport, endpoint)
        transport.set_keepalive(KEEPALIVE)
    except BaseException:
        transport.close()
        raise
    return transport


def _connected(endpoint: Endpoint, timeout: float) -> socket.socket:
    if endpoint.via is not None:
        wire = endpoint.via.open(endpoint.host, endpoint.port, timeout)
        return cast(socket.socket, wire)  # which it stands in for
    sock = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED * 1000)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _distrust(
    endpoint: Endpoint, host_keys: HostKeys, kind: str, key: str
) -> errors.HostKeyError:
    host = endpoint.host
    if host_keys.knows(endpoint.known_as or host, endpoint.port):
        return errors.HostKeyError(host=host, recorded=host_keys.label)
    shown = fingerprint(key)
    return errors.GivenKeyError(host=host, kind=kind, fingerprint=shown)


def _authenticate(transport: paramiko.Transport, endpoint: Endpoint) -> None:
    user, password = endpoint.username, endpoint.revealed_password()
    key = endpoint.revealed_key()
    try:
        further = transport.auth_publickey(user, _key(key)) if key else ["password"]
        if "password" in further and password is not None:
            transport.auth_password(user, password)
    except paramiko.AuthenticationException as error:
        # paramiko raises the same class when the peer hangs up or does not answer in
        # time, as a booting host does (pam_nologin); a refusal leaves the line open.
        if transport.is_active() and "timeout" not in str(error):
            raise Refused from error
        raise
    if not transport.is_authenticated():
        raise Refused


def _key(text: str) -> paramiko.PKey:
    """The key as paramiko has it; which class reads it, only trying tells."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with suppress(paramiko.SSHException):
            key: paramiko.PKey = kind.from_private_key(io.StringIO(text))
            return key
    raise Refused
