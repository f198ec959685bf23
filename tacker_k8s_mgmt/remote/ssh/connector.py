"""The ways to the hosts of a cluster: directly, or through the bastion."""

from typing import Protocol

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ssh import session as ssh_session
from tacker_k8s_mgmt.remote.ssh.bastion import Jump
from tacker_k8s_mgmt.remote.ssh.endpoint import Endpoint
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.logins import Logins
from tacker_k8s_mgmt.request.accounts import Account
from tacker_k8s_mgmt.request.params import InstallParams


class KeyStore(Protocol):
    """Where host keys of hosts survive that outlive clusters."""

    def load(self) -> HostKeys: ...
    def add(self, keys: HostKeys) -> None: ...


class Ways:
    """Where and how to log in; threads may share it.

    :param store: the recorded host keys of Ansible servers and bastions. It is shared
        with other clusters, so keys that a request gives are used in place of those
        recorded, and never recorded there.
    :param timeout: seconds for a login on the Ansible server or the bastion.
    """

    def __init__(
        self, params: InstallParams, logins: Logins, store: KeyStore, timeout: float
    ) -> None:
        self._params = params
        self._logins = logins
        self._store = store
        self._timeout = timeout
        self._bastion_keys = HostKeys()
        self._jump = Jump(self._log_in_to_bastion) if params.bastion else None

    def close(self) -> None:
        """End the session with the bastion."""
        if self._jump is not None:
            self._jump.close()

    def server(self) -> ssh_session.Session:
        """Log in to the Ansible server.

        :raises RemoteError: as :func:`.session.connect`.
        """
        ansible, account = self._params.ansible, self._params.server_account
        via = self._via("ansible")
        bastion = self._params.bastion
        # Behind two bastions there may be two hosts of one private address.
        alias = f"{ansible.host}%{bastion.host}" if via and bastion else ""
        endpoint = self._logins.endpoint(
            account, ansible.host, ansible.port, known_as=alias, via=via
        )
        return self._log_in(endpoint)[0]

    def machine(self, account: Account, address: str, port: int = 22) -> Endpoint:
        """Where and as whom to log in to a VM.

        :raises PrivateKeyError: the account's key cannot be used.
        """
        via = self._via("vms")
        return self._logins.endpoint(account, address, port, via=via)

    def see_bastion(self) -> None:
        """Log in to the bastion, if there is one.

        :raises BastionError: it does not serve.
        """
        if self._jump is not None:
            self._jump.session()

    def finding(self) -> str:
        """Why the bastion does not serve, or "".

        Where the Ansible server is reached through it, that is told when the server is.
        """
        try:
            if self._via("ansible") is None:
                self.see_bastion()
        except errors.PrivateKeyError:
            return ""  # which is told among the keys
        except errors.RemoteError as error:
            return f"bastion: {error}"
        return ""

    def note_bastion(self, keys: HostKeys) -> None:
        """Put the bastion's host key among those that Ansible uses.

        :raises BastionError: there is no session with it, so its key is not known.
        """
        bastion = self._params.bastion
        if bastion is not None and bastion.carries_playbooks:
            self.see_bastion()
            keys.adopt(bastion.host, bastion.port, self._bastion_keys)

    def _via(self, way: str) -> Jump | None:
        bastion = self._params.bastion
        return self._jump if bastion and way in bastion.used_for else None

    def _log_in_to_bastion(self) -> ssh_session.Session:
        bastion, account = self._params.bastion, self._params.bastion_account
        if bastion is None or account is None:
            raise LookupError("there is no bastion")
        endpoint = self._logins.endpoint(account, bastion.host, bastion.port)
        session, self._bastion_keys = self._log_in(endpoint)
        return session

    def _log_in(self, endpoint: Endpoint) -> tuple[ssh_session.Session, HostKeys]:
        given = bool(endpoint.host_keys)
        keys = HostKeys() if given else self._store.load()
        session = ssh_session.connect(
            endpoint,
            host_keys=keys,
            redact=self._logins.redact,
            deadline=self._timeout,
        )
        if not given:
            self._store.add(keys)
        return session, keys
