"""What a cluster's API says of it."""

from dataclasses import dataclass

from pydantic import SecretStr


@dataclass(frozen=True)
class NodeObject:
    """A Node object.

    A node's name is used again when its VM is rebuilt; ``machine_id`` and ``boot_id``
    are what the kubelet that reports for it has found on its machine
    (``/etc/machine-id``, ``/proc/sys/kernel/random/boot_id``).

    :param reason: why it is not Ready, in the kubelet's words; "" if it is.
    :param unschedulable: it is cordoned.
    :param tainted: a taint (NoSchedule, NoExecute) other than the cordon's keeps
        ordinary pods away.
    :param provider_id: the cloud provider's id of its machine; "" without a provider.
    :param uid: of the Node object; another one when it was deleted and made again.
    :param created: when the Node object was made (RFC 3339).
    """

    name: str
    ready: bool
    reason: str
    internal_ip: str
    kubelet_version: str
    unschedulable: bool = False
    tainted: bool = False
    machine_id: str = ""
    boot_id: str = ""
    provider_id: str = ""
    uid: str = ""
    created: str = ""
    cordoned_by_us: bool = False


@dataclass(frozen=True)
class ClusterAccess:
    """An administrator's access to the API.

    :param ca_certificate: PEM; what the API server's certificate is verified with.
    """

    token: SecretStr
    ca_certificate: str
