# SPDX-License-Identifier: Apache-2.0
"""An SSH server in this process that really runs commands and serves files.

It needs no root and no port of its own choosing: commands run as the caller with bash,
their home is a temporary directory, SFTP works on the local file system. Faults are
methods: refuse connections, drop sessions, never answer. A warning of kubectl, Helm or
another program fails the test, if it is not among those that the test expects.
"""

import contextlib
import errno
import logging
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol

import paramiko
from paramiko import common, sftp
from pydantic import SecretStr

from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.session import LoginTarget
from tacker_k8s_mgmt.request.accounts import Account
from tests.helpers.tool_warnings import warnings_in

#: The server stands for another machine: nothing that it logs, such as a client that
#: is gone, belongs on the standard error of the program under test.
LOG = logging.getLogger("tests.sshd")
LOG.propagate = False
LOG.addHandler(logging.NullHandler())

USER = "ansible"
PASSWORD = "s3cret-p4ss w0rd"
CHUNK = 32 * 1024


class End(Protocol):
    """One end of a tunnel: a channel or a socket."""

    def recv(self, nbytes: int, /) -> bytes: ...
    def sendall(self, data: bytes, /) -> Any: ...
    def close(self) -> None: ...


class Sshd:
    """The server; listens from the start, until :meth:`close`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.bin = home / "bin"
        self.bin.mkdir(parents=True, exist_ok=True)
        self.key = paramiko.ECDSAKey.generate(bits=256)
        self.password = PASSWORD
        self.logins = 0
        self.commands: list[str] = []
        self.opened = 0  # how often a file was, over SFTP
        self.refuse_connections = 0  # that many are closed at once
        self.refuse_logins = 0  # that many good logins are refused
        self.variables: dict[str, str] = {}  # variables of each login
        self.full = False  # no space is left for what SFTP writes
        self.deaf = False  # exec requests are never answered
        self.banner = ""  # sent before the login
        self.greeting = b""  # printed before the output of each command
        self.authorized: set[str] = set()  # public keys, as in authorized_keys
        self.wants_both = False  # a password after the key
        self.passwords = True  # accepts them, which stock cloud images do not
        self.tried: list[str] = []  # the ways of each try to log in
        self.forwards = True  # passes connections on
        self.forwarded: list[tuple[str, int]] = []
        self.hosts: dict[str, int] = {}  # names only it knows, by their ports here
        self.holds_tunnels = 0.0  # seconds for which it answers nothing
        self.expected_warnings: list[str] = []  # parts of the lines
        self._hidden: set[str] = set()  # programs
        self._stderr: list[bytearray] = []  # of each command
        self._transports: list[paramiko.Transport] = []
        self._targets: list[socket.socket] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._open = True
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def endpoint(
        self, password: str = PASSWORD, user: str = USER, **account: Any
    ) -> LoginTarget:
        account = {"port": self.port, **account}
        login = Account("vms", user, SecretStr(password), None, **account)
        return LoginTarget("127.0.0.1", login)

    def key_endpoint(
        self, private_key: str, password: str | None = None
    ) -> LoginTarget:
        secret = SecretStr(password) if password else None
        account = Account("vms", USER, secret, None, port=self.port)
        return LoginTarget("127.0.0.1", account, SecretStr(private_key))

    def host_keys(self) -> HostKeys:
        return HostKeys(label="the test's host keys")

    def program(self, name: str, script: str) -> Path:
        """Put a bash script into the PATH of the commands."""
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}")
        path.chmod(0o755)
        return path

    def hide(self, name: str) -> None:
        """No command finds the program, though this machine may have it."""
        self._hidden.add(name)

    def drop(self) -> None:
        """Cut every session; commands continue, as with a real sshd."""
        for transport in self._transports:
            transport.close()
        for target in self._targets:
            target.close()
        self._transports.clear()
        self._targets.clear()

    def stop_listening(self) -> None:
        """Take no new connections; those that are there stay."""
        self._open = False
        # Closed alone, it would still take the one that a thread waits for.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def close(self) -> None:
        """Stop, and see what the commands have warned of."""
        self.stop_listening()
        self.drop()
        for process in self._processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said = b"".join(self._stderr).decode(errors="replace")
        unexpected = warnings_in(said, *self.expected_warnings)
        assert not unexpected, unexpected

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": self._path(),
            "FAKE_BIN": str(self.bin),
            **self.variables,
        }

    def _path(self) -> str:
        path = f"{self.bin}:{os.environ['PATH']}"
        if not self._hidden:
            return path
        programs = self.home / f"without-{'-'.join(sorted(self._hidden))}"
        if not programs.is_dir():
            programs.mkdir()
            for directory in map(Path, path.split(":")):
                for program in directory.glob("*"):
                    link = programs / program.name
                    if program.name not in self._hidden and not link.is_symlink():
                        link.symlink_to(program)
        return str(programs)

    def _accept(self) -> None:
        while self._open:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if self.refuse_connections:
                self.refuse_connections -= 1
                connection.close()
                continue
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(connection)
        transport.set_log_channel(LOG.name)
        self._transports.append(transport)
        transport.add_server_key(self.key)
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, LocalFiles, self)
        login = Login(self)
        with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
            transport.start_server(server=login)
        channels = []  # paramiko itself drops those without a reference
        while transport.is_active():
            channel = transport.accept(0.2)
            channels.append(channel)
            target = login.targets.pop(channel.get_id(), None) if channel else None
            if target:
                self._targets.append(target)
                for ends in ((channel, target), (target, channel)):
                    threading.Thread(target=relay, args=ends, daemon=True).start()

    def execute(self, channel: paramiko.Channel, command: str) -> None:
        self.commands.append(command)
        process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=self.home,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._processes.append(process)
        said = bytearray()
        self._stderr.append(said)

        def warn(chunk: bytes) -> None:
            said.extend(chunk)
            channel.sendall_stderr(chunk)

        channel.sendall(self.greeting)
        streams = (
            threading.Thread(target=pump, args=(process.stdout, channel.sendall)),
            threading.Thread(target=pump, args=(process.stderr, warn)),
        )
        feeder = threading.Thread(target=feed, args=(channel, process.stdin))
        for thread in (*streams, feeder):
            thread.daemon = True
            thread.start()
        rc = process.wait()
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            # As OpenSSH: the exit code goes out at once, the end of the streams later.
            channel.send_exit_status(rc if rc >= 0 else 128 - rc)
            for thread in streams:
                thread.join()
            channel.shutdown_write()
            channel.close()


class Login(paramiko.ServerInterface):
    def __init__(self, sshd: Sshd) -> None:
        self.sshd = sshd
        self.targets: dict[int, socket.socket] = {}

    def get_banner(self) -> tuple[str, str]:
        return self.sshd.banner, "en-US"

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,password" if self.sshd.passwords else "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self.sshd.tried.append("publickey")
        public = f"{key.get_name()} {key.get_base64()}"
        if public not in self.sshd.authorized or username != USER:
            return common.AUTH_FAILED
        if self.sshd.wants_both:
            return common.AUTH_PARTIALLY_SUCCESSFUL
        self.sshd.logins += 1
        return common.AUTH_SUCCESSFUL

    def check_auth_password(self, username: str, password: str) -> int:
        self.sshd.tried.append("password")
        good = password == self.sshd.password and username in (USER, "root")
        good = good and self.sshd.passwords
        if good and self.sshd.refuse_logins:
            self.sshd.refuse_logins -= 1
            good = False
        self.sshd.logins += good
        return common.AUTH_SUCCESSFUL if good else common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return common.OPEN_SUCCEEDED

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        self.sshd.forwarded.append(destination)
        if self.sshd.holds_tunnels:
            threading.Event().wait(self.sshd.holds_tunnels)
        if not self.sshd.forwards:
            return common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        host, port = destination
        here = ("127.0.0.1", self.sshd.hosts[host]) if host in self.sshd.hosts else None
        try:
            target = socket.create_connection(here or (host, port), timeout=5)
        except OSError:
            return common.OPEN_FAILED_CONNECT_FAILED
        target.settimeout(None)
        self.targets[chanid] = target
        return common.OPEN_SUCCEEDED

    def check_channel_exec_request(
        self, channel: paramiko.Channel, command: bytes
    ) -> bool:
        if self.sshd.deaf:
            threading.Event().wait(5)
            return False
        # paramiko confirms when this returns. A short command may have ended by then,
        # and its channel be closed before the client has that.
        yes = paramiko.Message()
        yes.add_byte(common.cMSG_CHANNEL_SUCCESS)
        yes.add_int(channel.remote_chanid)
        assert channel.transport is not None
        channel.transport._send_user_message(yes)  # type: ignore[attr-defined]
        threading.Thread(
            target=self.sshd.execute, args=(channel, command.decode()), daemon=True
        ).start()
        return True


class Handle(paramiko.SFTPHandle):
    """An open file; paramiko reads and writes these two attributes."""

    def __init__(self, file: IO[bytes], flags: int) -> None:
        super().__init__(flags)
        self.readfile = self.writefile = file


class LocalFiles(paramiko.SFTPServerInterface):
    """SFTP on the local file system, paths taken as they are."""

    def __init__(self, server: paramiko.ServerInterface, sshd: Sshd) -> None:
        super().__init__(server)
        self.sshd = sshd

    def _do(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or errno.EIO)

    def list_folder(self, path: str) -> Any:
        def listing() -> list[paramiko.SFTPAttributes]:
            return [
                paramiko.SFTPAttributes.from_stat(entry.stat(), entry.name)
                for entry in os.scandir(path)
            ]

        return self._do(listing)

    def stat(self, path: str) -> Any:
        return self._do(lambda: paramiko.SFTPAttributes.from_stat(os.stat(path)))

    def lstat(self, path: str) -> Any:
        return self._do(lambda: paramiko.SFTPAttributes.from_stat(os.lstat(path)))

    def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> Any:
        self.sshd.opened += 1

        def opened() -> paramiko.SFTPHandle:
            descriptor = os.open(path, flags, 0o666)
            writing = flags & (os.O_WRONLY | os.O_RDWR)
            if writing and self.sshd.full:
                os.close(descriptor)
                descriptor = os.open("/dev/full", os.O_RDWR)
            mode = "r+b" if writing else "rb"
            return Handle(os.fdopen(descriptor, mode, buffering=0), flags)

        return self._do(opened)

    def remove(self, path: str) -> Any:
        return self._do(os.remove, path) or sftp.SFTP_OK

    def posix_rename(self, oldpath: str, newpath: str) -> Any:
        return self._do(os.rename, oldpath, newpath) or sftp.SFTP_OK

    def mkdir(self, path: str, attr: paramiko.SFTPAttributes) -> Any:
        return self._do(os.mkdir, path) or sftp.SFTP_OK

    def chattr(self, path: str, attr: paramiko.SFTPAttributes) -> Any:
        return self._do(os.chmod, path, attr.st_mode) or sftp.SFTP_OK


def pump(stream: IO[bytes], send: Callable[[bytes], Any]) -> None:
    """Pass output on; as with OpenSSH, it has no reader after the session's end."""
    with stream, contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        while chunk := os.read(stream.fileno(), CHUNK):
            send(chunk)


def relay(source: End, sink: End) -> None:
    with contextlib.suppress(OSError, EOFError):
        while chunk := source.recv(CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError, EOFError):
        sink.close()


def feed(channel: paramiko.Channel, stdin: IO[bytes]) -> None:
    with contextlib.suppress(OSError, EOFError, ValueError):
        while chunk := channel.recv(CHUNK):
            stdin.write(chunk)
            stdin.flush()
    with contextlib.suppress(OSError):
        stdin.close()


def is_alive(pid: int | str) -> bool:
    """A killed process may stay as a zombie where nobody reaps orphans."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"
