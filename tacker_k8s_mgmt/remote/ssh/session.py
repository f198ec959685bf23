"""SSH sessions: commands, files, SCP, tunnels. With :mod:`.login` knows paramiko.

Several threads may run commands over one session, each has a channel of its own; files
belong to one thread at a time. Commands are argv lists and are quoted here, once.
Everything has a limit: the command is ended on the remote host (``timeout``), our wait
ends shortly after, and a host that no longer answers at all makes the session break. No
agent, no key files of this host's user, no PTY. Commands run in the C locale, whatever
the login has: their output is parsed.
"""

import io
import logging
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import paramiko
import scp

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import backoff
from tacker_k8s_mgmt.remote.ansible import disk_space
from tacker_k8s_mgmt.remote.backoff import Backoff, closing_after
from tacker_k8s_mgmt.remote.ssh import files
from tacker_k8s_mgmt.remote.ssh import sudo as sudo_ways
from tacker_k8s_mgmt.remote.ssh.bastion_errors import BastionForbids
from tacker_k8s_mgmt.remote.ssh.channel import (
    STDOUT_CAP,
    Channel,
    Result,
    TooMuchOutput,
    exchange,
    last_lines,
)
from tacker_k8s_mgmt.remote.ssh.endpoint import Endpoint, Wire
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.login import Refused, log_in

LOG = logging.getLogger(__name__)

CONNECT_TIMEOUT = 15.0  # seconds for one try: TCP, banner, login
TRANSFER_TIMEOUT = 60.0  # seconds for one file

_KILL_AFTER = 5.0  # seconds between TERM and KILL at a remote command's limit
_GRACE = 5.0  # seconds that we wait longer than the remote side
_LOCALE = "env LC_ALL=C"  # understood by every login shell
_PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254)

_MAKE_ROOM = "Make room there."

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
    :raises HostKeyError: the host's key is neither recorded nor given.
    :raises BastionError: the way there leads through a bastion that does not serve.
    """
    user, host, port = endpoint.username, endpoint.host, endpoint.port
    tries, refused = Backoff(deadline), None
    while True:
        one_try = max(1.0, min(connect_timeout, deadline - tries.elapsed()))
        try:
            return Session(log_in(endpoint, host_keys, one_try), endpoint, redact)
        except Refused as error:
            refused = refused or Backoff(auth_grace)
            if refused.spent() or tries.spent():
                raise errors.AuthError(host=host, port=port, user=user) from error
        except _TRANSIENT as error:
            if tries.spent() or backoff.is_unknown_name(error):
                why = backoff.reason(error)
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
            :data:`~.channel.STDOUT_CAP` bytes of output.
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
            channel.exec_command(f"{_LOCALE} {shlex.join(argv)}")
            return channel

    def tunnel(self, host: str, port: int, timeout: float) -> Wire:
        """Open a connection that the host makes to another one (``direct-tcpip``).

        :raises OSError: that other host cannot be reached from this one.
        :raises BastionForbids: this one passes no such connections on.
        :raises ConnectionLost: no answer; :meth:`answers` tells whose fault it is.
        """
        what = f"tunnel to {host}:{port}"
        try:
            return self._transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout
            )
        except paramiko.ChannelException as error:
            if error.code == _PROHIBITED:
                raise BastionForbids(host=self.host, target=host) from error
            raise OSError(error.text) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            why = backoff.reason(error)
            raise errors.ConnectionLost(
                host=self.host, command=what, reason=why
            ) from error

    def answers(self, timeout: float) -> bool:
        """Whether the host gives a sign of life; the session breaks if not."""
        with closing_after(timeout, self._transport.close):
            self._transport.global_request("keepalive@openssh.com", wait=True)
        return self.alive

    def put(self, path: str, data: bytes | str, mode: int = 0o600) -> bool:
        """Make a file have this content and mode, replacing it atomically.

        A symbolic link at ``path`` is replaced, not followed.

        :returns: whether anything was changed.
        :raises RemoteError: the file could not be written.
        """
        content = data.encode() if isinstance(data, str) else data
        try:
            with self._files("written", path) as sftp:
                return files.replace(sftp, path, content, mode)
        except errors.FileError as error:
            raise self._for_want_of_space(error, path) from error

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
                channel.exec_command(f"{_LOCALE} {line}")
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
            line = shlex.join([*way.prefix, *sudo_ways.PROBE])
            result = self._execute(line, "sudo true", way.stdin, 30)
            return Result(result.rc, result.stdout, self.redact(result.stderr))

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
                    reason=late if expired.is_set() else backoff.reason(error),
                ) from error

    def _failed(self, shown: str, result: Result) -> errors.CommandFailed:
        # Redacted before it is cut: half a secret would not be recognised.
        output = self.redact(result.stderr or result.stdout)
        return errors.CommandFailed(
            host=self.host,
            command=shown,
            rc=result.rc,
            tail=last_lines(output) or "no output",
            output=output,
        )

    def _unusable(self, action: str, path: str, error: Exception) -> errors.FileError:
        return errors.FileError(
            host=self.host,
            path=self.redact(path),
            action=action,
            reason=backoff.reason(error),
        )

    def _for_want_of_space(
        self, error: errors.FileError, path: str
    ) -> errors.FileError:
        """The error with what is free: of a full disk SFTP just says "Failure"."""
        space = disk_space.free(self, path)
        if space is None:
            return error
        reason = f"{error.fields['reason'].rstrip('.')}; {space}"
        hint = None if space.suffices(1, 1) else _MAKE_ROOM
        return errors.FileError(hint=hint, **{**error.fields, "reason": reason})


# TimeoutError, connection refused or reset and unknown names are all OSErrors.
_TRANSIENT = (OSError, EOFError, paramiko.SSHException)
