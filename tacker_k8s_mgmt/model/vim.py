# SPDX-License-Identifier: Apache-2.0
"""A cluster as a VIM of Tacker: its API, its nodes, and the logins to use it.

Tacker's v1 API also needs a login with which it runs Helm on the control planes.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import SecretStr


@dataclass(frozen=True)
class ClusterAccess:
    """The access of a service account to the API.

    :param ca_certificate: PEM, to verify the API server's certificate.
    :param uid: of the namespace ``kube-system``, which no other cluster has.
    """

    token: SecretStr
    ca_certificate: str
    uid: str = field(default="", compare=False)

    @classmethod
    def read(cls, secret: Mapping[str, Any]) -> "ClusterAccess | None":
        """The content of an account's Secret; None while that is incomplete."""
        data = secret.get("data") or {}
        try:
            token = base64.b64decode(data["token"], validate=True).decode()
            certificate = base64.b64decode(data["ca.crt"], validate=True).decode()
        except (KeyError, TypeError, binascii.Error, UnicodeDecodeError):
            return None
        if not token or not certificate:
            return None
        return cls(SecretStr(token), certificate)


@dataclass(frozen=True)
class ClusterIdentity:
    """A cluster, by what no other one has.

    :param endpoint: URL of its API.
    :param ca_certificate: PEM, of the CA that its API servers are verified by.
    :param uid: of its namespace ``kube-system``; "" if it is not known.
    """

    endpoint: str
    ca_certificate: str
    uid: str = ""


@dataclass(frozen=True)
class PersonAccess:
    """A person's access to the API, for a while.

    :param account: the user as the API server calls it, for audit logs.
    :param expires: when the token does (RFC 3339), by the API server.
    :param ca_certificate: PEM, to verify the API server's certificate.
    """

    account: str
    token: SecretStr
    expires: str
    ca_certificate: str


def kubeconfig(
    url: str, access: ClusterAccess | PersonAccess, name: str, user: str, context: str
) -> dict[str, Any]:
    """The file with which kubectl and Helm reach a cluster.

    :param name: what the cluster is called there, as the user and the context.
    """
    authority = base64.b64encode(access.ca_certificate.encode()).decode()
    server = {"server": url, "certificate-authority-data": authority}
    place = {"cluster": name, "user": user}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": server}],
        "users": [{"name": user, "user": {"token": access.token.get_secret_value()}}],
        "contexts": [{"name": context, "context": place}],
        "current-context": context,
    }


USER = "tacker-helm"
#: Its home, and the directory that Tacker puts charts into (``kubernetes_driver.py``).
CHARTS = "/var/tacker/helm"


#: In ``extra`` of a VIM, and in it (``kubernetes_driver.py``).
HELM_INFO = "helm_info"
HELM_ADDRESSES = "masternode_ip"
HELM_PASSWORD = "masternode_password"  # noqa: S105
HELM_USERNAME = "masternode_username"


@dataclass(frozen=True)
class HelmLogin:
    """The login, and the addresses at which Tacker uses it."""

    hosts: tuple[str, ...]
    password: SecretStr

    @property
    def info(self) -> dict[str, Any]:
        """As Tacker reads it."""
        return {
            HELM_ADDRESSES: list(self.hosts),
            HELM_USERNAME: USER,
            HELM_PASSWORD: self.password.get_secret_value(),
        }


@dataclass(frozen=True)
class Vim:
    """The cluster in Tacker's VIM registry.

    :param named: the VNF instance names it in its ``vimConnectionInfo``.
    """

    vim_id: str
    name: str
    auth_url: str
    named: bool


@dataclass(frozen=True)
class VimSpec:
    """The cluster as it is registered in Tacker.

    :param helm: None: Tacker needs no login to run Helm, or cannot.
    :param tenant: whose VIM it is; "" for the cluster's own.
    :param uid: of the cluster's namespace ``kube-system``; "" if it is not known.
    """

    name: str
    auth_url: str
    token: SecretStr
    ca_certificate: str
    helm: HelmLogin | None = None
    tenant: str = ""
    uid: str = ""

    @property
    def extra(self) -> dict[str, Any]:
        """``extra`` of the VIM, in either API: what it has beside address and login."""
        return {HELM_INFO: self.helm.info} if self.helm else {}


class VimFinder(Protocol):
    """Tacker's VIM registry, read-only."""

    def registered(self) -> tuple[Vim, ...]: ...

    def of_tenants(self) -> Mapping[str, Vim] | None:
        """The VIMs of tenants by their names; None if Tacker can keep none."""

    def has_login(self, tenant: str, access: ClusterAccess) -> bool: ...


class Vims(VimFinder, Protocol):
    """Tacker's VIM registry, for one VNF instance."""

    def name_taken(self, name: str, tenant: str = "") -> bool: ...

    def helm_password(self) -> SecretStr | None: ...

    def register(self, spec: VimSpec) -> str: ...

    def update_helm_hosts(self, hosts: Sequence[str]) -> bool: ...

    def users(self, tenant: str | None = None) -> tuple[str, ...]:
        """The VNFs that run on a tenant's VIM, by name; None: on any of the cluster."""

    def remove(self) -> bool: ...

    def remove_tenant(self, tenant: str) -> None: ...
