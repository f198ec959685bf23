# SPDX-License-Identifier: Apache-2.0
"""A cluster as a VIM of Tacker: its API, its nodes, and the logins to use it.

Tacker's v1 API also needs a login with which it runs Helm on the control planes.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

# Taints that keep all ordinary pods away until something has been done for the node
# (Kubernetes' "Well-Known Labels, Annotations and Taints"). Those of pressure come and
# go with the load, and all others are asked for.
_UNFINISHED = {
    "node.cloudprovider.kubernetes.io/uninitialized": (
        "the cloud controller has not initialized it"
    ),
    "node.kubernetes.io/network-unavailable": "its network is not set up",
    "node.kubernetes.io/not-ready": "it is still marked as not Ready",
    "node.kubernetes.io/unreachable": "it is still marked as unreachable",
}


def unfinished(taints: Iterable[Mapping[str, Any]]) -> str:
    """Why a node cannot take any pod yet, by its taints; "" if it can.

    Its kubelet may be Ready.
    """
    why = {t["key"]: _UNFINISHED[t["key"]] for t in taints if t["key"] in _UNFINISHED}
    return "; ".join(f"{reason} (taint {key})" for key, reason in why.items())


@dataclass(frozen=True)
class NodeObject:
    """A Node object.

    A rebuilt VM's node has the former name. ``machine_id`` and ``boot_id`` identify the
    VM whose kubelet reports for it (``/etc/machine-id``,
    ``/proc/sys/kernel/random/boot_id``).

    :param reason: the kubelet's reason for not being Ready; "" if it is.
    :param unschedulable: whether it is cordoned.
    :param taints: as in its ``spec``.
    :param in_maintenance: whether it has the taint of a node in maintenance.
    :param provider_id: the cloud provider's id of its VM; "" without a provider.
    :param uid: of the Node object; a recreated object has another one.
    :param created: creation time of the Node object (RFC 3339).
    """

    name: str
    ready: bool
    reason: str
    internal_ip: str
    kubelet_version: str
    unschedulable: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    machine_id: str = ""
    boot_id: str = ""
    provider_id: str = ""
    uid: str = ""
    created: str = ""
    cordoned_by_us: bool = False
    in_maintenance: bool = False


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


USER = "tacker-helm"
#: Its home, and the directory that Tacker puts charts into (``kubernetes_driver.py``).
CHARTS = "/var/tacker/helm"


@dataclass(frozen=True)
class HelmLogin:
    """The login, and the addresses at which Tacker uses it."""

    hosts: tuple[str, ...]
    password: SecretStr
