# SPDX-License-Identifier: Apache-2.0
"""SSH sessions: commands, sudo, files, SCP, tunnels, disk space.

Several threads may run commands over one session, each on its own channel; only one at
a time may transfer files. Commands are argv lists, quoted here once. Everything has a
time limit: the command is ended on the remote host (``timeout``), our wait ends shortly
after, and the session is closed if the host stops answering. No agent, no key files of
this host's user, no PTY. Commands run in the C locale, because their output is parsed.

Commands run as root either because the login is root, or with sudo. Whole files are
replaced atomically over SFTP. Free disk space is that where a file is or would be
written.
"""

import io
import logging
import posixpath
import secrets
import shlex
import socket
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol, cast

import paramiko
import scp
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.errors import BastionForbids
from tacker_k8s_mgmt.remote import timing
from tacker_k8s_mgmt.remote.ssh.channel import (
    STDOUT_CAP,
    Channel,
    Result,
    TooMuchOutput,
    exchange,
    last_lines,
)
from tacker_k8s_mgmt.remote.timing import closing_after
from tacker_k8s_mgmt.request.accounts import Account

# sudo's own PATH may be shorter: kubespray installs kubectl in /usr/local/bin, on
# Flatcar in /opt/bin.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"

_HINT = (
    "Let user {user} run every command with sudo on {host}, with the login password or "
    "without one, and without requiretty."
)
_HINT_FOR_KEYS = (
    "For the former, give the password beside the private key in the parameters."
)

#: Counts the lines that sudo left on standard input.
PROBE = ("wc", "-l")
_ENVIRONMENT = ("env", f"PATH={PATH}", "LC_ALL=C")


@dataclass(frozen=True)
class Elevation:
    """An argv prefix, and what has to come first on standard input."""

    prefix: tuple[str, ...]
    stdin: bytes = field(default=b"", repr=False)


def find(
    host: str,
    username: str,
    password: str | None,
    attempt: Callable[[Elevation], Result],
) -> Elevation:
    """Return the elevation that works on a host, with or without the password.

    With a password there is one attempt: sudo reads it only if it needs one, and a
    refused ``sudo -n`` would be logged as an error.

    :param password: None if the parameters give a private key alone.
    :param attempt: runs :data:`PROBE` with an elevation. The prefix is the one used
        later, because sudo rules may name programs.
    :raises CommandFailed: none works.
    """
    if username == "root":
        return Elevation(_ENVIRONMENT)
    silent = Elevation(("sudo", "-n", "--", *_ENVIRONMENT))
    hint = _HINT.format(user=username, host=host)
    if password is None:
        result = attempt(silent)
        if result.rc != 0:
            raise _refused(host, result, f"{hint} {_HINT_FOR_KEYS}")
        return silent
    # -k: with cached credentials sudo would leave the password to the command's input.
    asking = Elevation(
        ("sudo", "-k", "-S", "-p", "", "--", *_ENVIRONMENT), f"{password}\n".encode()
    )
    result = attempt(asking)
    if result.rc != 0:
        raise _refused(host, result, hint)
    return asking if result.stdout.strip() == "0" else silent


def _refused(host: str, result: Result, hint: str) -> errors.CommandFailed:
    return errors.CommandFailed(
        host=host,
        command="sudo true",
        rc=result.rc,
        tail=last_lines(result.stderr) or "no output",
        hint=hint,
    )


#: Bytes of a file that is read: many times what the inventory of a cluster has.
LARGEST = 32 * 1024 * 1024


def read(sftp: paramiko.SFTPClient, path: str, largest: int = LARGEST) -> bytes | None:
    """Return the content, or None if there is no such file.

    :param largest: bytes that it may have; the other host may send any number.
    """
    try:
        with sftp.open(path, "r") as file:
            content: bytes = file.read(largest + 1)
    except FileNotFoundError:
        return None
    if len(content) > largest:
        raise OSError(f"it has more than {largest} bytes")
    return content


def replace(sftp: paramiko.SFTPClient, path: str, content: bytes, mode: int) -> bool:
    """Write content and mode of a file; return whether that changed anything.

    A symbolic link at ``path`` is replaced, not followed.
    """
    if _same(sftp, path, content):
        if stat.S_IMODE(sftp.lstat(path).st_mode or 0) == mode:
            return False
        sftp.chmod(path, mode)
        return True
    folder, name = posixpath.split(path)
    temp = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}")
    try:
        with sftp.open(temp, "wx") as file:
            # Before the content is written, so that it is never readable for others.
            sftp.chmod(temp, mode)
            file.write(content)
        sftp.posix_rename(temp, path)
    except OSError:
        with suppress(OSError):
            sftp.remove(temp)
        raise
    return True


def _same(sftp: paramiko.SFTPClient, path: str, content: bytes) -> bool:
    try:
        status = sftp.lstat(path)
    except FileNotFoundError:
        return False
    same_size = stat.S_ISREG(status.st_mode or 0) and status.st_size == len(content)
    return same_size and read(sftp, path) == content


_SECONDS = 30.0
# Of the directory, or else of its nearest existing parent.
_SCRIPT = """
place=$1
until [ -d "$place" ]; do place=$(dirname -- "$place"); done
df -B1048576 --output=avail,itotal,iavail,target -- "$place" | tail -n 1
"""


@dataclass(frozen=True)
class Space:
    """Free space on a file system.

    :param mebibytes: available to this user.
    :param files: free inodes; None if the file system has no fixed number.
    :param place: mount point.
    """

    mebibytes: int
    files: int | None
    place: str

    def __str__(self) -> str:
        files = "" if self.files is None else f" and {self.files} inodes"
        return f"{self.mebibytes} MiB{files} free on {self.place}"

    def suffices(self, mebibytes: int, files: int) -> bool:
        """Return whether so much, in so many files, can be written."""
        return self.mebibytes >= mebibytes and (
            self.files is None or self.files >= files
        )


def free(host: "Session", path: str) -> Space | None:
    """Return the free space at an absolute path, which need not exist.

    :returns: None if ``df`` failed.
    :raises RemoteError: the session broke.
    """
    result = host.run(["sh", "-c", _SCRIPT, "sh", path], timeout=_SECONDS, check=False)
    fields = result.stdout.split(None, 3)
    available, total_inodes, free_inodes, place = (*fields, *[""] * 4)[:4]
    if result.rc or not place or not _is_number(available):
        return None
    # Btrfs and others allocate inodes dynamically and report no number.
    fixed = _is_number(total_inodes) and _is_number(free_inodes) and int(total_inodes)
    return Space(
        int(available), int(free_inodes) if fixed else None, place.rstrip("\n")
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


class Transport(Protocol):
    """Opens connections to hosts that cannot be reached directly."""

    def open(self, host: str, port: int, timeout: float) -> socket.socket: ...


@dataclass(frozen=True)
class LoginTarget:
    """One login on one host.

    :param account: its host keys count if none is recorded.
    :param private_key: the account's, in OpenSSH's format, without a passphrase. With a
        key, the password is only tried if the host requires both.
    :param known_as: the name under which the host key is recorded; "" for ``host``.
    :param via: None for a direct connection.
    """

    host: str
    account: Account
    private_key: SecretStr | None = None
    known_as: str = ""
    via: Transport | None = None

    def revealed_password(self) -> str | None:
        """Return the password as plain text."""
        password = self.account.password
        return password.get_secret_value() if password else None

    def revealed_key(self) -> str | None:
        """Return the private key as plain text."""
        return self.private_key.get_secret_value() if self.private_key else None


LOG = logging.getLogger(__name__)

TRANSFER_TIMEOUT = 60.0  # seconds for one file

_KILL_AFTER = 5.0  # seconds between TERM and KILL at a remote command's limit
_GRACE = 5.0  # seconds that we wait longer than the remote host
_LOCALE = "env LC_ALL=C"  # understood by every login shell
_PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254)

# A process that was killed leaves its directory; no operation takes a day.
_SCRATCH = """
set -e
mktemp -d "${TMPDIR:-/tmp}/tacker-k8s-mgmt.XXXXXXXXXX"
find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'tacker-k8s-mgmt.*' -type d \
  -user "$(id -u)" -mmin +1440 -exec rm -rf {} + >/dev/null 2>&1 || :
"""

Redact = Callable[[str], str]


class Session:
    """An open SSH session. Use as a context manager, or :meth:`close` it.

    Each method that uses the connection raises ``ConnectionLost`` if it breaks.
    """

    def __init__(
        self, transport: paramiko.Transport, endpoint: LoginTarget, redact: Redact
    ) -> None:
        self._transport, self._endpoint = transport, endpoint
        self._sftp: paramiko.SFTPClient | None = None
        self._root: Elevation | None = None
        self.redact = redact

    @property
    def host(self) -> str:
        """The address of the login."""
        return self._endpoint.host

    @property
    def alive(self) -> bool:
        """Whether the connection is up, as far as known without using it."""
        return self._transport.is_active()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session; detached commands continue."""
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

        :param stdin: its input; empty if None.
        :param timeout: seconds after which it is ended on the remote host.
        :param sudo: run it as root, with the system directories in PATH.
        :param check: raise for an exit code other than 0.
        :raises CommandFailed: exit code other than 0, sudo refused, or more than
            :data:`~.channel.STDOUT_CAP` bytes of output.
        :raises CommandTimeout: the time limit was exceeded.
        """
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        limited = ["timeout", "-k", f"{_KILL_AFTER:g}", f"{timeout:g}", *argv]
        if sudo:
            # `timeout` runs as root, too: else it may not signal root's processes.
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
        """Start a command whose input ends when the returned channel is closed."""
        with self._guarded(self.redact(shlex.join(argv)), TRANSFER_TIMEOUT):
            channel = self._transport.open_session(timeout=TRANSFER_TIMEOUT)
            channel.exec_command(f"{_LOCALE} {shlex.join(argv)}")
            return channel

    def tunnel(self, host: str, port: int, timeout: float) -> socket.socket:
        """Open a connection from the session's host to another one (``direct-tcpip``).

        :raises OSError: the other host cannot be reached.
        :raises BastionForbids: the session's host forbids TCP forwarding.
        :raises ConnectionLost: no answer from either host; see :meth:`answers`.
        """
        try:
            channel = self._transport.open_channel(
                "direct-tcpip", (host, port), ("127.0.0.1", 0), timeout=timeout
            )
            return cast(socket.socket, channel)  # it has a socket's methods
        except paramiko.ChannelException as error:
            if error.code == _PROHIBITED:
                raise BastionForbids(host=self.host, target=host) from error
            raise OSError(error.text) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise errors.ConnectionLost(
                host=self.host,
                command=f"tunnel to {host}:{port}",
                reason=timing.reason(error),
            ) from error

    def answers(self, timeout: float) -> bool:
        """Return whether the host answers a keepalive; if not, close the session."""
        with closing_after(timeout, self._transport.close):
            self._transport.global_request("keepalive@openssh.com", wait=True)
        return self.alive

    def put(self, path: str, data: bytes | str, mode: int = 0o600) -> bool:
        """Write a file atomically, with this mode; return whether that changed it.

        A symbolic link at ``path`` is replaced, not followed.

        :raises FileError: the file could not be written.
        """
        content = data.encode() if isinstance(data, str) else data
        try:
            with self._files("written", path) as sftp:
                return replace(sftp, path, content, mode)
        except errors.FileError as error:
            # SFTP reports a full disk as "Failure".
            space = free(self, path)
            if space is None:
                raise
            reason = f"{error.fields['reason'].rstrip('.')}; {space}"
            hint = None if space.suffices(1, 1) else "Make room there."
            fields = {**error.fields, "reason": reason}
            raise errors.FileError(hint=hint, **fields) from error

    def get(self, path: str) -> bytes | None:
        """Return a file's content, or None if there is no such file.

        :raises FileError: the file exists and could not be read, or is larger than
            :data:`~.files.LARGEST`.
        """
        with self._files("read", path) as sftp:
            return read(sftp, path)

    def copy(self, data: bytes, path: str, mode: int = 0o600) -> None:
        """Copy a file with SCP, which the specification requires for scripts.

        SCP follows links, so ``path`` should be in a :meth:`scratch` directory.

        :raises FileError: the file could not be written.
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
        """Yield a new directory of the login user, mode 0700; remove it afterwards.

        Those that are a day old, of processes that were killed, are removed as well.
        """
        path = self.run(["sh", "-c", _SCRATCH], timeout=30).stdout.strip()
        try:
            yield path
        finally:
            # An error of the body matters more than a directory that stays.
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
                ended = Result(-1, "", f"more than {STDOUT_CAP} bytes of output")
                raise self._failed(shown, ended) from error
            finally:
                channel.close()
            if result.rc == -1 and not self._transport.is_active():
                raise EOFError
            return result

    def _elevation(self) -> Elevation:
        """Return how to become root on this host; determined once per session."""

        def attempt(way: Elevation) -> Result:
            line = shlex.join([*way.prefix, *PROBE])
            result = self._execute(line, "sudo true", way.stdin, 30)
            return Result(result.rc, result.stdout, self.redact(result.stderr))

        if self._root is None:
            known = self._endpoint.account.username, self._endpoint.revealed_password()
            self._root = find(self.host, *known, attempt)
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
        """Close the session if a call takes longer, and raise ``ConnectionLost``.

        Some waits of paramiko have no time limit (the answer to an exec request, SFTP's
        greeting), but all end when the transport is closed.
        """
        with closing_after(seconds, self._transport.close) as expired:
            try:
                yield
            except (paramiko.SSHException, EOFError, OSError) as error:
                late = f"no answer within {seconds:g} s"
                raise errors.ConnectionLost(
                    host=self.host,
                    command=shown,
                    reason=late if expired.is_set() else timing.reason(error),
                ) from error

    def _failed(self, shown: str, result: Result) -> errors.CommandFailed:
        # Redact before cutting: half of a secret would not be recognised.
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
            reason=timing.reason(error),
        )
