"""SSH sessions: commands, files, SCP. The only module that knows paramiko and scp.

Several threads may run commands over one session, each has a channel of its own; files
belong to one thread at a time. Commands are argv lists and are quoted here, once.
Everything has a limit: the command is ended on the remote host (``timeout``), our wait
ends shortly after, and a host that no longer answers at all makes the session break. No
agent, no key files of this host's user, no PTY.
"""

import io
import logging
import shlex
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import paramiko
import scp

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import files, waiting
from tacker_k8s_mgmt.remote import sudo as sudo_ways
from tacker_k8s_mgmt.remote.endpoint import Endpoint
from tacker_k8s_mgmt.remote.exchange import (
    STDOUT_CAP,
    Channel,
    Result,
    TooMuchOutput,
    exchange,
    last_lines,
)
from tacker_k8s_mgmt.remote.hostkeys import HostKeys
from tacker_k8s_mgmt.remote.waiting import Backoff, closing_after

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT = 15.0  # seconds for one try: TCP, banner, login
KEEPALIVE = 15  # seconds
UNANSWERED = 60  # seconds until the kernel gives up a silent peer
TRANSFER_TIMEOUT = 60.0  # seconds for one file

_KILL_AFTER = 5.0  # seconds between TERM and KILL at a remote command's limit
_GRACE = 5.0  # seconds that we wait longer than the remote side

# paramiko reports every failed try of a booting host as an error with a stack trace.
_WIRE_LOG = f"{__name__}.wire"
logging.getLogger(_WIRE_LOG).setLevel(logging.CRITICAL)

Redact = Callable[[str], str]


def connect(
    endpoint: Endpoint,
    *,
    host_keys: HostKeys,
    redact: Redact,
    deadline: float,
    connect_timeout: float = CONNECT_TIMEOUT,
    auth_grace: float = 0.0,
) -> "Session":
    """Log in, trying again while the host looks as if it is still booting.

    :param deadline: seconds for all tries together.
    :param connect_timeout: seconds for one try.
    :param auth_grace: seconds from the first refused login on in which it is tried
        again too: on a new VM sshd may answer before cloud-init has set the password.
    :raises ConnectError: no try succeeded within the deadline.
    :raises AuthError: the host answered and refused user, password or key.
    :raises HostKeyError: the host's key is not the recorded one.
    """
    user, host, port = endpoint.username, endpoint.host, endpoint.port
    tries, refused = Backoff(deadline), None
    while True:
        one_try = max(1.0, min(connect_timeout, deadline - tries.elapsed()))
        try:
            return Session(_log_in(endpoint, host_keys, one_try), endpoint, redact)
        except _Refused as error:
            refused = refused or Backoff(auth_grace)
            if refused.spent() or tries.spent():
                raise errors.AuthError(host=host, port=port, user=user) from error
        except _TRANSIENT as error:
            if tries.spent() or waiting.is_unknown_name(error):
                why = waiting.reason(error)
                raise errors.ConnectError(
                    user=user, host=host, port=port, seconds=deadline, reason=why
                ) from error
        tries.pause()


class Session:
    """An open SSH session. Use as a context manager, or :meth:`close` it."""

    def __init__(
        self, transport: paramiko.Transport, endpoint: Endpoint, redact: Redact
    ) -> None:
        self._transport, self._endpoint = transport, endpoint
        self._sftp: paramiko.SFTPClient | None = None
        self._root: sudo_ways.Elevation | None = None
        self.redact = redact

    @property
    def host(self) -> str:
        """The address that was given to :func:`connect`."""
        return self._endpoint.host

    @property
    def alive(self) -> bool:
        """Whether the connection is up, as far as is known without using it."""
        return self._transport.is_active()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; commands that were started detached go on."""
        self._transport.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | str | None = None,
        timeout: float,
        sudo: bool = False,
        check: bool = True,
    ) -> Result:
        """Run a command and wait for its end.

        :param stdin: its input; without, it reads an empty one.
        :param timeout: seconds after which it is ended on the remote host.
        :param sudo: run it as root, with the system directories in PATH.
        :param check: raise for an exit code other than 0.
        :raises CommandFailed: exit code other than 0, sudo refused, or more than
            :data:`~.exchange.STDOUT_CAP` bytes of output.
        :raises CommandTimeout: the limit passed.
        :raises ConnectionLost: the session broke.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        limited = ["timeout", "-k", f"{_KILL_AFTER:g}", f"{timeout:g}", *argv]
        if sudo:
            # Inside sudo: an unprivileged `timeout` may not signal root's processes.
            root = self._elevation()
            limited, data = [*root.prefix, *limited], root.stdin + data
        shown, started = self.redact(shlex.join(argv)), time.monotonic()
        result = self._execute(shlex.join(limited), shown, data, timeout)
        seconds = time.monotonic() - started
        LOG.debug("%s: `%s`: exit %s, %.1f s", self.host, shown, result.rc, seconds)
        if result.rc in (124, 137) and seconds >= timeout:
            raise errors.CommandTimeout(host=self.host, command=shown, seconds=timeout)
        if check and result.rc != 0:
            raise self._failed(shown, result)
        return result

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a command that reads its input until the channel is closed.

        :raises ConnectionLost: the session broke.
        """
        with self._guarded(self.redact(shlex.join(argv)), TRANSFER_TIMEOUT):
            channel = self._transport.open_session(timeout=TRANSFER_TIMEOUT)
            channel.exec_command(shlex.join(argv))
            return channel

    def put(self, path: str, data: bytes | str, mode: int = 0o600) -> bool:
        """Make a file have this content and mode, replacing it atomically.

        A symbolic link at ``path`` is replaced, not followed.

        :returns: whether anything was changed.
        :raises RemoteError: the file could not be written.
        """
        content = data.encode() if isinstance(data, str) else data
        with self._files("written", path) as sftp:
            return files.replace(sftp, path, content, mode)

    def get(self, path: str) -> bytes | None:
        """Return a file's content, or None if there is no such file.

        :raises RemoteError: the file is there and could not be read.
        """
        with self._files("read", path) as sftp:
            return files.read(sftp, path)

    def copy(self, data: bytes, path: str, mode: int = 0o600) -> None:
        """Copy a file with SCP, as the specification asks for scripts.

        ``path`` should be in a directory made by ``mktemp -d``: SCP follows links.

        :raises RemoteError: the file could not be written.
        """
        with self._guarded(f"scp {path}", TRANSFER_TIMEOUT):
            client = scp.SCPClient(self._transport, socket_timeout=TRANSFER_TIMEOUT)
            try:
                client.putfo(io.BytesIO(data), path, mode=f"{mode:04o}")
            except scp.SCPException as error:
                raise self._unusable("written", path, error) from error
            finally:
                client.close()

    @contextmanager
    def scratch(self) -> Iterator[str]:
        """Give a new directory that only the login user may enter, removed after."""
        path = self.run(["mktemp", "-d"], timeout=30).stdout.strip()
        try:
            yield path
        finally:
            # What went wrong inside is worth more than a directory that stays.
            with suppress(errors.RemoteError):
                self.run(["rm", "-rf", "--", path], timeout=30)

    def _execute(self, line: str, shown: str, data: bytes, timeout: float) -> Result:
        limit = timeout + _KILL_AFTER + _GRACE
        with self._guarded(shown, limit + _GRACE):
            channel = self._transport.open_session(timeout=limit)
            try:
                channel.exec_command(line)
                result = exchange(channel, data, limit)
            except TimeoutError as error:
                raise errors.CommandTimeout(
                    host=self.host, command=shown, seconds=timeout
                ) from error
            except TooMuchOutput as error:
                excuse = Result(-1, "", f"more than {STDOUT_CAP} bytes of output")
                raise self._failed(shown, excuse) from error
            finally:
                channel.close()
            if result.rc == -1 and not self._transport.is_active():
                raise EOFError
            return result

    def _elevation(self) -> sudo_ways.Elevation:
        """Return how to become root here; asked once per session."""

        def attempt(way: sudo_ways.Elevation) -> Result:
            line = shlex.join([*way.prefix, "true"])
            return self._execute(line, "sudo true", way.stdin, 30)

        if self._root is None:
            known = self._endpoint.username, self._endpoint.revealed_password()
            self._root = sudo_ways.find(self.host, *known, attempt)
        return self._root

    @contextmanager
    def _files(self, action: str, path: str) -> Iterator[paramiko.SFTPClient]:
        with self._guarded(f"sftp {path}", TRANSFER_TIMEOUT):
            try:
                if self._sftp is None:
                    channel = self._transport.open_session(timeout=TRANSFER_TIMEOUT)
                    channel.invoke_subsystem("sftp")
                    self._sftp = paramiko.SFTPClient(channel)
                yield self._sftp
            except OSError as error:
                if not self._transport.is_active():
                    raise
                raise self._unusable(action, path, error) from error

    @contextmanager
    def _guarded(self, shown: str, seconds: float) -> Iterator[None]:
        """Break the session when a call takes longer, and name what broke it.

        Some of paramiko's waits have no limit of their own (the answer to an exec
        request, SFTP's greeting); all end when the transport is closed.
        """
        with closing_after(seconds, self._transport.close) as expired:
            try:
                yield
            except (paramiko.SSHException, EOFError, OSError) as error:
                late = f"no answer within {seconds:g} s"
                raise errors.ConnectionLost(
                    host=self.host,
                    command=shown,
                    reason=late if expired.is_set() else waiting.reason(error),
                ) from error

    def _failed(self, shown: str, result: Result) -> errors.CommandFailed:
        # Redacted before it is cut: half a secret would not be recognised.
        tail = last_lines(self.redact(result.stderr or result.stdout)) or "no output"
        return errors.CommandFailed(
            host=self.host, command=shown, rc=result.rc, tail=tail
        )

    def _unusable(self, action: str, path: str, error: Exception) -> errors.RemoteError:
        return errors.RemoteError(
            detail=f"On {self.host}, {self.redact(path)} could not be "
            f"{action}: {waiting.reason(error)}."
        )


class _Refused(Exception):
    """The host answered and did not accept user, password or key."""


# TimeoutError, connection refused or reset and unknown names are all OSErrors.
_TRANSIENT = (OSError, EOFError, paramiko.SSHException)


def _log_in(
    endpoint: Endpoint, host_keys: HostKeys, timeout: float
) -> paramiko.Transport:
    sock = socket.create_connection((endpoint.host, endpoint.port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED * 1000)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    transport = paramiko.Transport(sock)
    try:
        transport.set_log_channel(_WIRE_LOG)
        transport.banner_timeout = transport.auth_timeout = timeout
        where = endpoint.host, endpoint.port
        options = transport.get_security_options()
        options.key_types = host_keys.preferred(*where, options.key_types)
        transport.start_client(timeout=timeout)
        key = transport.get_remote_server_key()
        if not host_keys.trust(*where, key.get_name(), key.get_base64()):
            raise errors.HostKeyError(host=endpoint.host, recorded=host_keys.label)
        _authenticate(transport, endpoint)
        transport.set_keepalive(KEEPALIVE)
    except BaseException:
        transport.close()
        raise
    return transport


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
            raise _Refused from error
        raise
    if not transport.is_authenticated():
        raise _Refused


def _key(text: str) -> paramiko.PKey:
    """The key as paramiko has it; which class reads it, only trying tells."""
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        with suppress(paramiko.SSHException):
            key: paramiko.PKey = kind.from_private_key(io.StringIO(text))
            return key
    raise _Refused
