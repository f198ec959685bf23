# SPDX-License-Identifier: Apache-2.0
"""The VMs of a cluster over SSH: sessions, host keys, identity and kubelets.

Each VM that ``machines.json`` records has a key in ``known_hosts`` at any time: an
entry is written after its key, and removed before it. So a key that is not there was
lost, and the next key that the VM shows must not be trusted instead. Both files are in
the cluster's directory on the Ansible server.

A VM also reports whether Ansible can work on it. The kubelet is reached through
systemd.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from pydantic import TypeAdapter

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.nodes import ROLES, Machine, MachineIdentity, Node
from tacker_k8s_mgmt.remote.ansible.cluster_directory import ClusterDirectory
from tacker_k8s_mgmt.remote.ssh import known_hosts, login
from tacker_k8s_mgmt.remote.ssh.channel import last_lines
from tacker_k8s_mgmt.remote.ssh.known_hosts import KNOWN_HOSTS, HostKeys
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.routes import HostConnector
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.accounts import SSH_PORT, Account
from tacker_k8s_mgmt.request.reader import ClusterRequest

_LOST = (
    "Restore it. Or delete it: then the key that each VM shows next is trusted, so "
    "compare them with what the VMs' consoles show."
)


def load(directory: ClusterDirectory, host: str) -> HostKeys:
    """Return the recorded keys; none where there is no file.

    :param host: the Ansible server.
    :raises DamagedFile: the file is not valid, or lacks the key of a VM; the keys exist
        nowhere else.
    """
    path = f"{directory.path}/{KNOWN_HOSTS}"
    before = _machines(directory)
    try:
        text = directory.read(KNOWN_HOSTS)
    except errors.DamagedFile as error:
        raise errors.DamagedFile(hint=_LOST, **error.fields) from error
    keys = HostKeys(text or "", f"{path} on {host}")
    # Where it was emptied, not deleted, nobody has decided to trust new keys.
    if text is not None:
        reason = known_hosts.damage(text) or _lacks(keys, directory, before)
        if reason:
            raise errors.DamagedFile(hint=_LOST, path=path, host=host, reason=reason)
    return keys


def save(directory: ClusterDirectory, keys: HostKeys) -> None:
    """Write the keys, where Ansible reads them."""
    recorded = _machines(directory)
    if gone := _without_key(keys, recorded):
        kept = {server: recorded[server] for server in recorded if server not in gone}
        directory.write(MACHINES_FILE, json.dumps(kept, indent=2) + "\n")
    directory.write(KNOWN_HOSTS, keys.text())


def _lacks(
    keys: HostKeys, directory: ClusterDirectory, before: Mapping[str, str]
) -> str:
    """Return what the file lacks; "" for nothing."""
    if not (missing := _without_key(keys, before)):
        return ""
    # An operation may have removed them between the two reads.
    there = _machines(directory)
    lost = [f"{missing[server]} ({server})" for server in missing if server in there]
    if not lost:
        return ""
    return f"it has no host key of these VMs, which it had: {', '.join(lost)}"


def _without_key(keys: HostKeys, machines: Mapping[str, str]) -> dict[str, str]:
    return {
        server: address
        for server, address in machines.items()
        if not keys.knows(address, SSH_PORT)
    }


def _machines(directory: ClusterDirectory) -> Mapping[str, str]:
    """Return the addresses of the recorded VMs by server id.

    A damaged record proves nothing: it is rebuilt from the keys.
    """
    try:
        text = directory.read(MACHINES_FILE)
        return TypeAdapter(dict[str, str]).validate_json(text or "{}")
    except (errors.DamagedFile, ValueError):
        return {}


_SECONDS = 60.0

# A kubelet reports the first two in its Node object. Some images do not end the line in
# /etc/machine-id.
_IDENTITY = """
printf '%s\\n' "$(cat /etc/machine-id)" "$(cat /proc/sys/kernel/random/boot_id)"
date +%s.%N
ip -j addr show to "$1" || :
"""
# As Ansible does for each module: one file below the home of the login, and others in
# the directory for temporary files, together less than 1 MiB. What a kubelet and
# journald free on a full disk lets small files be made there for moments.
_TEMPORARY = """
for place in "${HOME:-/tmp}" "${TMPDIR:-/tmp}"; do
  made=$(mktemp -d -- "$place/.tacker-k8s-mgmt.XXXXXXXXXX") || exit
  head -c 8388608 /dev/zero >"$made/file"
  ended=$?
  rm -rf -- "$made"
  [ "$ended" = 0 ] || exit "$ended"
done
"""


def probe(session: Session) -> None:
    """Check that the login of a VM can write files, as Ansible has to.

    :raises UnusableError: it cannot.
    :raises RemoteError: it could not be asked.
    """
    result = session.run(["sh", "-c", _TEMPORARY], timeout=_SECONDS, check=False)
    if result.rc:
        reason = last_lines(session.redact(result.stderr)) or "it gives no reason"
        raise errors.UnusableError(host=session.host, reason=reason.rstrip("."))


def read(session: Session, machine: Machine | Node) -> MachineIdentity:
    """What a VM, whose user may use sudo, reports.

    :raises RemoteError: it could not be asked.
    """
    argv = ["sh", "-c", _IDENTITY, "sh", machine.address]
    before = time.time()
    output = session.run(argv, timeout=_SECONDS, sudo=True).stdout
    after = time.time()
    machine_id, boot_id, now, links = (*output.split("\n", 3), *[""] * 4)[:4]
    ahead = _ahead(now, before, after)
    return MachineIdentity(machine_id, boot_id, nic_mtu(links), ahead)


def _ahead(now: str, before: float, after: float) -> float:
    """By how much a clock is ahead, at least; it was read between two moments here."""
    try:
        there = float(now)
    except ValueError:
        return 0.0
    if not math.isfinite(there):
        return 0.0
    return max(0.0, there - after) + min(0.0, there - before)


def nic_mtu(links: str) -> int:
    """The MTU in the output of ``ip -j addr show to ADDRESS``; 0 without any."""
    try:
        nics = untrusted.parse_json(links)
        return next(
            (int(untrusted.number(nic["mtu"])) for nic in nics if "mtu" in nic), 0
        )
    except (ValueError, TypeError):
        return 0


# A VM on which kubespray has not begun has none.
_RESTART = "! systemctl is-active kubelet >/dev/null || systemctl restart kubelet"
_LIMIT = 120.0  # seconds; systemd gives a service 90 to stop


def restart(session: Session) -> None:
    """Restart it if it runs, so that it makes its Node object if there is none.

    :raises RemoteError: systemd could not be asked, or did not restart it.
    """
    session.run(["sh", "-c", _RESTART], timeout=_LIMIT, sudo=True)


#: Sessions with VMs that are kept: each has a thread here and a process there.
_MOST_KEPT = 32


class VmSessions:
    """One session per VM, opened on first use and again after it dropped.

    :param keys: returns the VMs' host keys, which threads may share.
    :param timeout: seconds for a login.
    """

    def __init__(
        self,
        params: ClusterRequest,
        logins: Credentials,
        ways: HostConnector,
        keys: Callable[[], HostKeys],
        timeout: float,
    ) -> None:
        self._params = params
        self._logins = logins
        self._ways = ways
        self._keys = keys
        self._timeout = timeout
        self._sessions: dict[tuple[str, Account], Session] = {}
        self._expected: dict[tuple[str, Account], Future[Session]] = {}

    def log_in(
        self,
        machine: Machine | Node,
        account: Account,
        limit: float | None = None,
        auth_grace: float = 0,
        on_refused: Callable[[str], None] = lambda _: None,
    ) -> Session:
        """Open a further session, which the caller closes or passes to :meth:`keep`.

        :param limit: seconds; None for the usual timeout.
        :raises RemoteError: see :func:`.login.open_ssh`, which has the others.
        """
        return login.open_ssh(
            self._ways.machine(account, machine.ssh_address),
            host_keys=self._keys(),
            redact=self._logins.redact,
            deadline=self._timeout if limit is None else limit,
            auth_grace=auth_grace,
            on_refused=on_refused,
        )

    def keep(self, machine: Machine, account: Account, session: Session) -> None:
        """Make this the VM's session with an account, or close it without room."""
        self._sessions[self._key(machine, account)] = session
        self._make_room(machine)

    def expect(self, machine: Machine) -> None:
        """Log in to a VM in the background, for a later :meth:`get`."""
        key = self._key(machine)
        if key in self._sessions or key in self._expected:
            return
        self._keys()  # load them before the thread uses them
        pool = ThreadPoolExecutor(1)
        self._expected[key] = pool.submit(self.log_in, machine, key[1])
        pool.shutdown(wait=False)

    def get(self, machine: Machine | Node, account: Account | None = None) -> Session:
        """Return the VM's session with an account, which is logged in to once.

        :param account: None for the request's.
        :raises RemoteError: the login failed.
        """
        key = self._key(machine, account)
        expected = self._expected.pop(key, None)
        if expected is not None:
            self._sessions[key] = expected.result()
        session = self._sessions.get(key)
        if session is None or not session.alive:
            session = self.log_in(machine, key[1])
            self._sessions[key] = session
        return session

    @contextmanager
    def lend(
        self, machine: Machine | Node, account: Account | None = None
    ) -> Iterator[Session]:
        """Yield the session that :meth:`get` returns, and keep it if there is room."""
        try:
            yield self.get(machine, account)
        finally:
            self._make_room(machine)

    def drop(self, address: str) -> None:
        """Close the sessions with a VM that is no longer at this address."""
        # A copy, because threads for other VMs add theirs meanwhile.
        for key in list(self._sessions):
            if key[0] == address and (session := self._sessions.pop(key, None)):
                session.close()

    def close(self) -> None:
        for expected in self._expected.values():
            if expected.exception() is None:
                expected.result().close()
        for session in self._sessions.values():
            session.close()

    def _key(
        self, machine: Machine | Node, account: Account | None = None
    ) -> tuple[str, Account]:
        return machine.ssh_address, account or self._params.account(machine.role)

    def _make_room(self, machine: Machine | Node) -> None:
        # Of other roles there are few VMs, and all are used again.
        if ROLES[machine.role].scales and len(self._sessions) > _MOST_KEPT:
            self.drop(machine.ssh_address)


#: Server id and SSH address of every VM whose host key is recorded.
MACHINES_FILE = "machines.json"
