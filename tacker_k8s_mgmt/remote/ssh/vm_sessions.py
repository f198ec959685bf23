# SPDX-License-Identifier: Apache-2.0
"""SSH sessions with the VMs of a cluster."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from tacker_k8s_mgmt.model.nodes import Machine, Node
from tacker_k8s_mgmt.remote.ssh import login
from tacker_k8s_mgmt.remote.ssh.connector import Ways
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.logins import Logins
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.request.accounts import Account
from tacker_k8s_mgmt.request.params import InstallParams


class VmSessions:
    """One session per VM, opened on first use and again after it dropped.

    :param keys: returns the VMs' host keys, which threads may share.
    :param timeout: seconds for a login.
    """

    def __init__(
        self,
        params: InstallParams,
        logins: Logins,
        ways: Ways,
        keys: Callable[[], HostKeys],
        timeout: float,
    ) -> None:
        self._params = params
        self._logins = logins
        self._ways = ways
        self._keys = keys
        self._timeout = timeout
        self._sessions: dict[str, Session] = {}
        self._expected: dict[str, Future[Session]] = {}

    def open(
        self,
        machine: Machine | Node,
        limit: float | None = None,
        auth_grace: float = 0,
        on_refused: Callable[[str], None] = lambda _: None,
    ) -> Session:
        """Open a further session, which the caller closes or passes to :meth:`keep`.

        :param limit: seconds; None for the usual timeout.
        :raises RemoteError: see :func:`.login.connect`, which has the other parameters.
        """
        account = self._params.account(machine.role)
        return self.log_in(machine, account, limit, auth_grace, on_refused)

    def log_in(
        self,
        machine: Machine | Node,
        account: Account,
        limit: float | None = None,
        auth_grace: float = 0,
        on_refused: Callable[[str], None] = lambda _: None,
    ) -> Session:
        """As :meth:`open`, with another account than the request's."""
        return login.connect(
            self._ways.machine(account, machine.ssh_address),
            host_keys=self._keys(),
            redact=self._logins.redact,
            deadline=self._timeout if limit is None else limit,
            auth_grace=auth_grace,
            on_refused=on_refused,
        )

    def keep(self, machine: Machine | Node, session: Session) -> None:
        """Make this the VM's session."""
        self._sessions[machine.ssh_address] = session

    def expect(self, machine: Machine) -> None:
        """Log in to a VM in the background, for a later :meth:`get`."""
        address = machine.ssh_address
        if address in self._sessions or address in self._expected:
            return
        self._keys()  # load them before the thread uses them
        pool = ThreadPoolExecutor(1)
        self._expected[address] = pool.submit(self.open, machine)
        pool.shutdown(wait=False)

    def get(self, machine: Machine | Node) -> Session:
        """Return the VM's session.

        :raises RemoteError: the login failed.
        """
        expected = self._expected.pop(machine.ssh_address, None)
        if expected is not None:
            self.keep(machine, expected.result())
        session = self._sessions.get(machine.ssh_address)
        if session is None or not session.alive:
            session = self.open(machine)
            self.keep(machine, session)
        return session

    def close(self) -> None:
        """Close all sessions."""
        for expected in self._expected.values():
            if expected.exception() is None:
                expected.result().close()
        for session in self._sessions.values():
            session.close()
