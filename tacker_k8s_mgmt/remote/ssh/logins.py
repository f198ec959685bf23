# SPDX-License-Identifier: Apache-2.0
"""Credentials of the request's accounts, ready for use."""

import threading
from collections.abc import Mapping

from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import redaction
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.redaction import Redactor
from tacker_k8s_mgmt.remote.restricted_files import Refused
from tacker_k8s_mgmt.remote.ssh import private_keys
from tacker_k8s_mgmt.remote.ssh.endpoint import Endpoint, Way
from tacker_k8s_mgmt.request.accounts import Account, PrivateKey
from tacker_k8s_mgmt.request.bastion import PASSWORD_FILE
from tacker_k8s_mgmt.request.params import InstallParams


class Logins:
    """The credentials of one operation; thread-safe.

    :param key_directory: the operator's directory for private key files.
    """

    def __init__(self, params: InstallParams, key_directory: str) -> None:
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
        port: int = 22,
        *,
        known_as: str = "",
        via: Way | None = None,
    ) -> Endpoint:
        """Return the login of an account on a host; see :class:`Endpoint`.

        :raises PrivateKeyError: the account's key cannot be used.
        """
        return Endpoint(
            host,
            account.username,
            account.password,
            port,
            self._private_key(account),
            account.host_keys,
            known_as,
            via,
        )

    def secret_files(self) -> Mapping[str, str]:
        """Return the credential files that the inventory refers to, by file name.

        Private keys without passphrases, and the password of the bastion.

        :raises PrivateKeyError: a key cannot be used.
        """
        files = {}
        roles = (Role.CONTROL_PLANE, Role.WORKER)
        accounts = [self._params.account(role) for role in roles]
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
            for line in redaction.in_private_key(opened.get_secret_value())
        ]
        hidden = [secret.get_secret_value() for secret in self._hidden]
        self._redactor = Redactor([*self._params.secrets(), *lines, *hidden])

    def _open(self, key: PrivateKey) -> str:
        passphrase = key.passphrase.get_secret_value() if key.passphrase else None
        try:
            text = key.given.get_secret_value()
            if key.path:
                text = private_keys.read(key.path, self._directory)
            return private_keys.opened(text, passphrase)
        except Refused as error:
            reason = str(error)
        # Not chained: the library's errors may quote the key.
        raise errors.PrivateKeyError(attribute=key.attribute, reason=reason)
