"""The Ansible server of an operation's site: its session, the lock, the runs."""

import abc
import logging
import os
from collections.abc import Sequence
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.remote.ansible import preflight, server
from tacker_k8s_mgmt.remote.ansible.lock import ClusterLock
from tacker_k8s_mgmt.remote.ansible.playbooks import Playbooks
from tacker_k8s_mgmt.remote.ansible.runner import PlaybookRunner
from tacker_k8s_mgmt.remote.ansible.work_directory import WorkDir
from tacker_k8s_mgmt.remote.ssh import session
from tacker_k8s_mgmt.remote.ssh.connector import Ways
from tacker_k8s_mgmt.remote.ssh.logins import Logins
from tacker_k8s_mgmt.request.params import InstallParams

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

_RELOCK_PATIENCE = 2.0  # seconds


class ServerSite(abc.ABC):
    """What an operation on one VNF instance may touch on the Ansible server.

    :param project_id: whose directory of keys may be used.
    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param operation: what the site is used for, for those who find it locked.
    """

    #: Where the host keys are recorded that outlive the cluster.
    key_file: type[server.KeyFile] = server.KeyFile

    def __init__(
        self,
        vnf_id: str,
        project_id: str,
        params: InstallParams,
        options: Any,
        state_path: str,
        operation: str,
    ) -> None:
        self._vnf_id = vnf_id
        self._params = params
        self._options = options
        self._logins = Logins(params, config.key_directory(options, project_id))
        self._ways = Ways(
            params,
            self._logins,
            self.key_file(os.path.join(state_path, server.KNOWN_HOSTS)),
            options.connect_timeout,
        )
        self._server: session.Session | None = None
        self._operation = operation
        self._lock: ClusterLock | None = None

    def server_findings(self) -> Sequence[str]:
        """What is wrong on the Ansible server, or why it cannot be reached."""
        bastion = self._ways.finding()
        found = preflight.look(
            self._params, self._logins, self._server_session, self._vnf_id
        )
        return (*([bastion] if bastion else []), *found.findings)

    @property
    def workdir(self) -> WorkDir:
        """The cluster's directory on the Ansible server."""
        return WorkDir(
            self._server_session(), self._params.ansible.directory, self._vnf_id
        )

    @property
    def playbooks(self) -> Playbooks:
        """Playbook runs in the cluster's directory."""
        ansible = self._params.ansible
        runner = PlaybookRunner(
            self._run_session,
            workdir=ansible.directory,
            kubespray_root=ansible.kubespray_root,
            venv=ansible.venv,
            forks=self._params.forks,
        )
        return Playbooks(runner, self._options, self._write_credentials)

    @abc.abstractmethod
    def _write_credentials(self) -> None:
        """Put keys and passwords where the inventory says they are."""

    def lock(self, patience: float | None = None) -> None:
        """Lock the cluster until the site is closed.

        :param patience: seconds for an operation that has it to end; None: hardly any.
        :raises LockedError: another operation is at work on it.
        :raises RemoteError: the lock could not be asked for.
        """
        self._acquire(self._open_server_session(), patience)

    def _acquire(self, session: session.Session, patience: float | None = None) -> None:
        if self._lock is None or not self._lock.held:
            directory = self._params.ansible.directory
            lock = ClusterLock(session, directory, self._operation)
            lock.acquire(patience)
            self._lock = lock

    def _server_session(self) -> session.Session:
        session = self._open_server_session()
        if self._lock is not None:
            # It goes with a session that breaks.
            self._acquire(session)
        return session

    def _run_session(self) -> session.Session:
        """The session for whoever follows a run, which goes on without the lock.

        The server may not have missed the connection that broke, and our lock with it.
        """
        former, session = self._server, self._open_server_session()
        if self._lock is not None and session is not former:
            try:
                self._acquire(session, _RELOCK_PATIENCE)
            except errors.LockedError as error:
                LOG.warning("The lock is taken again after the run: %s", error)
        return session

    def _open_server_session(self) -> session.Session:
        if self._server is None or not self._server.alive:
            self._server = self._connect_server()
        return self._server

    def _connect_server(self) -> session.Session:
        return self._ways.server()

    def _close_server(self) -> None:
        if self._server is not None:
            self._server.close()
        self._ways.close()
