# SPDX-License-Identifier: Apache-2.0
"""SSH logins: credentials of the request, connection, host key, authentication.

No credentials are sent before the host's key has been verified. Only this module and
:mod:`.session` import paramiko.

Private keys are read from the operator's directory, decrypted and checked. No error
text here quotes a key, a passphrase, or the content of a file.
"""

import io
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import local_files, timing
from tacker_k8s_mgmt.remote.local_files import FileNotAllowed
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.session import LoginTarget, Redact, Session, Transport
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request.accounts import PASSWORD_FILE, Account, PrivateKey
from tacker_k8s_mgmt.request.host_keys import fingerprint
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.text import Redactor, in_private_key

CONNECT_TIMEOUT = 15.0  # seconds for one attempt: TCP, banner, login
KEEPALIVE = 15  # seconds
UNANSWERED = 60  # seconds until the kernel gives up a silent peer

# TimeoutError, connection refused or reset and unknown names are all OSErrors.
_TRANSIENT = (OSError, EOFError, paramiko.SSHException)

# paramiko logs every failed attempt on a booting host as an error with a stack trace.
_WIRE_LOG = f"{__name__}.wire"
logging.getLogger(_WIRE_LOG).setLevel(logging.CRITICAL)


class LoginRefused(Exception):
    """The host answered and did not accept user, password or key; the text says why."""

    error: type[errors.AuthError] = errors.AuthError


class _PasswordsRefused(LoginRefused):
    """It accepts no passwords."""

    error = errors.PasswordsRefused


def open_ssh(
    endpoint: LoginTarget,
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
    host = endpoint.host
    user, port = endpoint.account.username, endpoint.account.port
    attempts, refused = Backoff(deadline), None
    while True:
        limit = max(1.0, min(connect_timeout, deadline - attempts.elapsed()))
        try:
            return Session(_log_in(endpoint, host_keys, limit), endpoint, redact)
        except LoginRefused as error:
            is_first, refused = refused is None, refused or Backoff(auth_grace)
            why = str(error)
            if refused.spent() or attempts.spent():
                raise error.error(
                    host=host, port=port, user=user, reason=why
                ) from error
            if is_first:
                on_refused(why)
        except _TRANSIENT as error:
            if attempts.spent() or timing.is_unknown_name(error):
                reason = timing.reason(error)
                raise errors.ConnectError(
                    user=user, host=host, port=port, seconds=deadline, reason=reason
                ) from error
        attempts.pause()


def _log_in(
    endpoint: LoginTarget, host_keys: HostKeys, timeout: float
) -> paramiko.Transport:
    """Connect and log in, once.

    :param timeout: seconds for each of: connection, banner, key exchange, login.
    :raises LoginRefused: the host does not accept the credentials.
    :raises HostKeyError: the host's key is neither recorded nor given.
    """
    account = endpoint.account
    transport = paramiko.Transport(_connected(endpoint, timeout))
    try:
        transport.set_log_channel(_WIRE_LOG)
        transport.banner_timeout = transport.auth_timeout = timeout
        place = endpoint.known_as or endpoint.host, account.port
        options = transport.get_security_options()
        options.key_types = host_keys.preferred(
            *place, options.key_types, account.host_keys
        )
        transport.start_client(timeout=timeout)
        key = transport.get_remote_server_key()
        shown = key.get_name(), key.get_base64()
        if not host_keys.trust(*place, *shown, account.host_keys):
            raise _distrust(endpoint, host_keys, *shown)
        _authenticate(transport, endpoint)
        transport.set_keepalive(KEEPALIVE)
    except BaseException:
        transport.close()
        raise
    return transport


def _connected(endpoint: LoginTarget, timeout: float) -> socket.socket:
    place = endpoint.host, endpoint.account.port
    if endpoint.via is not None:
        return endpoint.via.open(*place, timeout)
    sock = socket.create_connection(place, timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED * 1000)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _distrust(
    endpoint: LoginTarget, host_keys: HostKeys, kind: str, key: str
) -> errors.HostKeyError:
    host, port = endpoint.host, endpoint.account.port
    if place := host_keys.recorded_in(endpoint.known_as or host, port):
        return errors.HostKeyError(host=host, recorded=place)
    return errors.GivenKeyError(host=host, kind=kind, fingerprint=fingerprint(key))


def _authenticate(transport: paramiko.Transport, endpoint: LoginTarget) -> None:
    user, password = endpoint.account.username, endpoint.revealed_password()
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
            raise LoginRefused(f"it takes no private keys, only {taken}") from error
        raise _PasswordsRefused(f"it takes no passwords, only {taken}") from error
    except paramiko.AuthenticationException as error:
        # paramiko raises the same class if the peer hangs up or times out, as a booting
        # host does (pam_nologin). After a refusal the connection stays open.
        if transport.is_active() and "timeout" not in str(error):
            tried = "private key" if key else "password"
            raise LoginRefused(f"the {tried} is not accepted") from error
        raise
    if not transport.is_authenticated():
        raise LoginRefused(f"beside the private key it requires: {', '.join(further)}")


def _key(text: str) -> paramiko.PKey:
    """Return paramiko's key object, of the first class that reads the text."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with suppress(paramiko.SSHException):
            key: paramiko.PKey = kind.from_private_key(io.StringIO(text))
            return key
    raise LoginRefused("the private key is of no kind that paramiko knows")


_LARGEST = 32 * 1024  # bytes
_OPENSSH = b"-----BEGIN OPENSSH PRIVATE KEY-----"
# cryptography raised it as a ValueError before release 45, as a TypeError since then.
_LOCKED = "Key is password-protected."
_KINDS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)


def read_key_file(path: str, directory: str) -> str:
    """Return the text of a private key file.

    :param directory: the operator's directory for keys; "" if there is none.
    :raises FileNotAllowed: the file may not or cannot be read.
    """
    place = local_files.set_aside("keys", "key_directory")
    data = local_files.read(path, directory, place=place, largest=_LARGEST)
    return data.decode("ascii", errors="replace")


def without_passphrase(text: str, passphrase: str | None) -> str:
    """Return the key without a passphrase, in OpenSSH's format.

    A passphrase for a key that has none is accepted, as OpenSSH does.

    :raises FileNotAllowed: it is not a key, cannot be decrypted, or is not usable with
        SSH.
    """
    key = _loaded(text, passphrase)
    try:
        if not isinstance(key, _KINDS):
            raise ValueError
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
    except ValueError:
        raise FileNotAllowed(
            "is of a kind that SSH servers do not take; RSA, Ed25519, and ECDSA on "
            "a NIST curve work"
        ) from None
    return pem.decode()


def _loaded(text: str, passphrase: str | None) -> object:
    data = text.strip().encode()
    load = (
        serialization.load_ssh_private_key
        if data.startswith(_OPENSSH)
        else serialization.load_pem_private_key
    )
    try:
        return load(data, None)
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        if not isinstance(error, TypeError) and str(error) != _LOCKED:
            raise FileNotAllowed("is damaged or not an SSH private key") from None
    if passphrase is None:
        raise FileNotAllowed("has a passphrase, which is missing")
    try:
        return load(data, passphrase.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise FileNotAllowed("does not open with its passphrase") from None


class Credentials:
    """The credentials of one operation; thread-safe.

    :param key_directory: the operator's directory for private key files.
    """

    def __init__(self, params: ClusterRequest, key_directory: str) -> None:
        self._params = params
        self._directory = key_directory
        self._opened: dict[PrivateKey, SecretStr] = {}
        self._hidden: list[SecretStr] = []
        self._redactor = Redactor(params.secrets())
        self._lock = threading.Lock()

    def redact(self, text: str) -> str:
        """Replace the parameters' secrets and the decrypted keys in a text."""
        return self._redactor(text)

    def hide(self, secret: SecretStr | None) -> None:
        """Replace a secret, too, which the parameters no longer have."""
        with self._lock:
            if secret and secret not in self._hidden:
                self._hidden.append(secret)
                self._make_redactor()

    def findings(self) -> tuple[str, ...]:
        """Return why private keys cannot be used, each with its attribute."""
        findings = []
        for account in self._params.accounts():
            try:
                self._private_key(account)
            except errors.PrivateKeyError as error:
                findings.append(str(error).rstrip("."))
        return tuple(findings)

    def endpoint(
        self,
        account: Account,
        host: str,
        *,
        known_as: str = "",
        via: Transport | None = None,
    ) -> LoginTarget:
        """Return the login of an account on a host; see :class:`LoginTarget`.

        :raises PrivateKeyError: the account's key cannot be used.
        """
        key = self._private_key(account)
        return LoginTarget(host, account, key, known_as, via)

    def secret_files(self) -> Mapping[str, str]:
        """Return the credential files that the inventory refers to, by file name.

        Private keys without passphrases, and the password of the bastion.

        :raises PrivateKeyError: a key cannot be used.
        """
        files = {}
        accounts = [*self._params.node_accounts()]
        bastion, on_bastion = self._params.bastion, self._params.bastion_account
        if bastion and on_bastion and bastion.carries_playbooks:
            accounts.append(on_bastion)
            if on_bastion.password:
                text = on_bastion.password.get_secret_value()
                files[PASSWORD_FILE] = f"{text}\n"
        for account in accounts:
            key = self._private_key(account)
            if key and account.private_key:
                files[account.private_key.file_name] = key.get_secret_value()
        return files

    def _private_key(self, account: Account) -> SecretStr | None:
        key = account.private_key
        if key is None:
            return None
        with self._lock:
            if key not in self._opened:
                self._opened[key] = SecretStr(self._open(key))
                self._make_redactor()
            return self._opened[key]

    def _make_redactor(self) -> None:
        lines = [
            line
            for opened in self._opened.values()
            for line in in_private_key(opened.get_secret_value())
        ]
        hidden = [secret.get_secret_value() for secret in self._hidden]
        self._redactor = Redactor([*self._params.secrets(), *lines, *hidden])

    def _open(self, key: PrivateKey) -> str:
        passphrase = key.passphrase.get_secret_value() if key.passphrase else None
        try:
            text = key.given.get_secret_value()
            if key.path:
                text = read_key_file(key.path, self._directory)
            return without_passphrase(text, passphrase)
        except FileNotAllowed as error:
            reason = str(error)
        # Not chained: the library's errors may quote the key.
        raise errors.PrivateKeyError(attribute=key.attribute, reason=reason)
