# SPDX-License-Identifier: Apache-2.0
"""The cluster's nodes, API server and accounts, as the operations use them.

The driver's service account is an administrator of the cluster. Access for a person is
a service account with one cluster role, and tokens of it.

The account of a person and a role is another one than that of the same person and
another role, so a token never gets rights that were granted later. It is deleted to
withdraw all of its tokens at once.
"""

import base64
import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml
from oslo_log import log as logging
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import kubernetes_yaml, untrusted
from tacker_k8s_mgmt.model.nodes import (
    CORDONED,
    MAINTENANCE_TAINT,
    NodeObject,
    one_spelling,
)
from tacker_k8s_mgmt.model.plan import PodMove
from tacker_k8s_mgmt.model.services import PROXY_MODE, PUBLISHED_ANNOTATION, Service
from tacker_k8s_mgmt.model.vim import ClusterAccess, PersonAccess
from tacker_k8s_mgmt.remote.kubernetes import draining
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tacker_k8s_mgmt.text import short

LOG = logging.getLogger(__name__)

ACCOUNT = "tacker-k8s-mgmt-admin"
ACCOUNT_NAMESPACE = "kube-system"


def admin_access(client: KubeClient, limit: float) -> ClusterAccess:
    """Create the account, if need be, and return its access; see ``ClusterApi``."""
    # Apply repeatedly: the token controller deletes a Secret whose account it does not
    # know yet.
    waiting = Backoff(limit)
    while True:
        client.run("apply", "-f", "-", stdin=json.dumps(_MANIFEST))
        access = client.get(*_ACCESS, read=_access)
        if access is not None:
            return access
        if waiting.spent():
            raise errors.ClusterError(
                detail=f"Secret {ACCOUNT_NAMESPACE}/{ACCOUNT} holds no token after "
                f"{limit:g} s.",
                hint="Look whether kube-controller-manager runs.",
            )
        waiting.pause()


_ACCESS = (
    *(f"secret/{ACCOUNT}", f"namespace/{ACCOUNT_NAMESPACE}"),
    *("-n", ACCOUNT_NAMESPACE, "--ignore-not-found"),
)


def _access(listed: Mapping[str, Any]) -> ClusterAccess | None:
    """The access in the list of :data:`_ACCESS`; None if there is no token yet."""
    found = {one["kind"]: one for one in listed["items"]}
    access = ClusterAccess.read(found.get("Secret", {}))
    if access is None:
        return None
    return replace(access, uid=str(found["Namespace"]["metadata"]["uid"]))


_METADATA = {"name": ACCOUNT, "namespace": ACCOUNT_NAMESPACE}
_MANIFEST: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _METADATA},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", **_METADATA}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {
                **_METADATA,
                "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
            },
        },
    ],
}


#: Of the accounts of persons; nothing else is in it.
USERS_NAMESPACE = "tacker-k8s-mgmt-users"
# Of admin.conf; the administrator's key in it stays there.
_AUTHORITY = "jsonpath-as-json={.clusters[0].cluster.certificate-authority-data}"


def person_access(
    client: KubeClient, person: str, role: str, seconds: int
) -> PersonAccess:
    """Create the account, if need be, and have a token issued; see ``ClusterApi``."""
    # kubectl binds to a role that does not exist without a word.
    known = client.table("clusterroles", (".metadata.name",), read=str)
    if role not in known:
        near = difflib.get_close_matches(role, known)
        raise errors.ClusterError(
            detail=f"The cluster has no cluster role {role}.",
            hint=f"Near are: {', '.join(near)}."
            if near
            else "`kubectl get clusterroles` lists them.",
        )
    # A person's name has no dot, so no two accounts have the same name.
    account = f"{person}.{role}"
    client.run("apply", "-f", "-", stdin=json.dumps(_manifest(account, role)))
    text = client.run("config", "view", "--raw", "-o", _AUTHORITY)
    with client.understanding("config view"):
        (authority,) = untrusted.parse_json(text) or ("",)
    if not authority:
        raise errors.ClusterError(
            detail=f"admin.conf on {client.host} has no certificate authority."
        )
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": seconds},
    }
    path = f"/api/v1/namespaces/{USERS_NAMESPACE}/serviceaccounts/{account}/token"
    create = ("create", f"--raw={path}", "-f", "-")
    text = client.run(*create, stdin=json.dumps(request))
    with client.understanding(f"create --raw={path}"):
        status = untrusted.parse_json(text)["status"]
        return PersonAccess(
            f"system:serviceaccount:{USERS_NAMESPACE}:{account}",
            SecretStr(status["token"]),
            status["expirationTimestamp"],
            base64.b64decode(authority).decode(),
        )


def _manifest(account: str, role: str) -> Mapping[str, Any]:
    metadata = {"name": account, "namespace": USERS_NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": USERS_NAMESPACE},
            },
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": f"{USERS_NAMESPACE}:{account}"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": role,
                },
                "subjects": [{"kind": "ServiceAccount", **metadata}],
            },
        ],
    }


# Characters of a kubelet's text, which are shown and are in errors.
_LONGEST = 600
_TOKEN_LIMIT = 120.0  # seconds until the cluster has filled in the token
_GONE_LIMIT = 60.0  # seconds until deleted objects are gone

_CLUSTER_INFO = ("configmap", "cluster-info", "--namespace=kube-public")
# kubectl quotes the report of all checks, 2 kB of it on one line with literal "\n".
_FAILED_CHECK = re.compile(r"\[-\][^\s\\\[]+ failed")


class ClusterApi:
    """The cluster behind one control-plane node.

    Methods with node names skip names that are not in the list of the cluster's nodes.
    Each method raises ``RemoteError`` if kubectl fails or the node cannot be reached,
    and ``ClusterError`` if kubectl's answer cannot be parsed.

    :param session: with that node; its user may use sudo.
    :param server: URL of the node's own API server.
    :param patience: seconds for the restart of an API server.
    """

    def __init__(
        self, session: Session, server: str | None = None, patience: float = 0
    ) -> None:
        self._client = KubeClient(session, server, patience)

    def nodes(self) -> tuple[NodeObject, ...]:
        """Return the cluster's nodes, sorted by name."""

        def read(*values: Any) -> NodeObject:
            return _node(**dict(zip(_NODE_FIELDS, values, strict=True)))

        nodes = self._client.table("nodes", _NODE_FIELDS.values(), read)
        return tuple(sorted(nodes, key=lambda node: node.name))

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]:
        """Return those addresses that the API server's certificate does not cover.

        Asks the server, not its file, which it reloads once a minute only.
        """
        return tuple(
            address for address in addresses if not self._client.is_certified(address)
        )

    def version(self) -> str:
        """Return the Kubernetes version of the node's own API server, without v."""
        version = self._client.raw(
            "/version", read=lambda info: str(info["gitVersion"])
        )
        return version.removeprefix("v")

    def admin_access(self, limit: float = _TOKEN_LIMIT) -> ClusterAccess:
        """Create the driver's service account, if need be, and return its access.

        It is bound to cluster-admin, because any kind of CNF is deployed with it. The
        token is in a Secret: since Kubernetes 1.24 an account alone has none.

        :param limit: seconds until the cluster has issued the token.
        :raises ClusterError: also if there is no token within the limit.
        """
        return admin_access(self._client, limit)

    def person_access(self, person: str, role: str, seconds: int) -> PersonAccess:
        """Create a person's service account, if need be, and have a token issued.

        :param person: a DNS label.
        :param role: the one cluster role of the account, a DNS subdomain.
        :param seconds: until the token expires; the API server may choose fewer.
        :raises ClusterError: also if there is no such role.
        """
        return person_access(self._client, person, role, seconds)

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        """Cordon these nodes.

        :returns: the nodes to uncordon if they stay: those that were not cordoned
            before, or by an interrupted operation of this driver.
        """
        nodes = self._present(names)
        self._patch(
            [node.name for node in nodes if not node.unschedulable],
            {
                "metadata": {"annotations": {CORDONED: "true"}},
                "spec": {"unschedulable": True},
            },
        )
        return tuple(
            node.name for node in nodes if node.cordoned_by_us or not node.unschedulable
        )

    def uncordon(self, names: Sequence[str]) -> None:
        """Uncordon these nodes."""
        self._patch(
            [node.name for node in self._present(names)],
            {
                "metadata": {"annotations": {CORDONED: None}},
                "spec": {"unschedulable": None},
            },
        )

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        """Drain these cordoned nodes in parallel.

        Specification, "Scale-in Worker nodes": on a control-plane node, before
        ``remove-node.yml``. A node takes up to the policy's time limit, and as long
        twice again if the drain is forced. No drain is running when this returns or
        raises.

        :raises DrainError: pods are left; names them and the budgets that keep them.
        """
        draining.drain(self._client, self._present(names), policy, self.nodes)

    def drain_outlook(
        self, names: Sequence[str], policy: DrainPolicy
    ) -> tuple[PodMove, ...]:
        """Return the pods that a drain of these nodes would move; changes nothing."""
        every = self.nodes()
        nodes = [node for node in every if node.name in names]
        return draining.outlook(self._client, nodes, policy, every)

    def force_evict(self, names: Sequence[str]) -> None:
        """Free the pods and volumes of nodes whose machines no longer exist.

        It does not wait for a kubelet. Never use it for a machine that may still run,
        because its pods would run twice. The nodes keep the taint
        ``node.kubernetes.io/out-of-service`` until :meth:`remove_nodes`.
        """
        present = [node.name for node in self._present(names)]
        draining.force_evict(self._client, present)

    def remove_nodes(self, names: Sequence[str], limit: float = _GONE_LIMIT) -> None:
        """Delete these Node objects, and their VolumeAttachments.

        :param limit: seconds until the Node objects are gone.
        :raises ClusterError: also if a Node object still exists at the limit.
        """
        draining.remove_nodes(self._client, names, limit)

    def services(self, namespace: str) -> tuple[Service, ...]:
        """The Services of a namespace; none if there is no such namespace."""
        return self._client.get(
            "services",
            f"--namespace={namespace}",
            read=lambda found: tuple(map(Service.read, found["items"])),
        )

    def publish(self, service: Service, address: str) -> None:
        """Write the address of its load balancer into a Service's status.

        With ``ipMode: Proxy``: nodes may reach the Kubernetes API at this address,
        which kube-proxy would else give to every node where it uses IPVS (kubernetes
        issue 66966). An API server that does not keep the mode, as those before
        Kubernetes 1.30, gets no address.

        :param address: "" to remove it.
        """
        if address:
            kept = _patch_status(self._client, service, address, dry_run=True)
            if not kept.shows(address):
                LOG.warning(
                    "Service %s/%s gets no address into its status: the API server "
                    "does not keep ipMode, which Kubernetes 1.30 and later do, and "
                    "nodes would take packets to %s for themselves",
                    service.namespace,
                    service.name,
                    address,
                )
                address = ""
        if not service.shows(address):
            _patch_status(self._client, service, address)

    def api_readiness(self) -> str:
        """Return why the node's own API server is not ready, or "".

        Names the failed checks or, without their report, quotes kubectl.
        """
        try:
            self._client.run("get", "--raw", "/readyz", patience=0)
        except errors.CommandFailed as error:
            failed = _FAILED_CHECK.findall(error.fields.get("output", ""))
            return f"not ready: {', '.join(failed)}" if failed else error.fields["tail"]
        except errors.CommandTimeout as error:
            return str(error)
        return ""

    def move_cluster_info(self, address: str, server: str) -> bool:
        """Replace an API server in kubeadm's ``cluster-info``, which joining nodes use.

        kubespray's docs/operations/nodes.md, "Edit cluster-info configmap".

        :param address: of the control plane that leaves.
        :param server: URL of another API server.
        :returns: whether ``cluster-info`` named the one that leaves.
        """
        get = (*_CLUSTER_INFO, "--ignore-not-found")
        data = self._client.get(*get, read=lambda configmap: configmap.get("data", {}))
        try:
            text = str(data.get("kubeconfig", ""))
            config = kubernetes_yaml.document(text) if text else {"clusters": ()}
            clusters = [entry["cluster"] for entry in config["clusters"]]
            leaving = [
                cluster
                for cluster in clusters
                if one_spelling(untrusted.url_host(cluster["server"]))
                == one_spelling(address)
            ]
        except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError):
            raise errors.ClusterError(
                detail="The ConfigMap kube-public/cluster-info has no kubeconfig."
            ) from None
        for cluster in leaving:
            cluster["server"] = server
        if leaving:
            change = {"data": {"kubeconfig": yaml.safe_dump(config, sort_keys=False)}}
            patch = ("--type=merge", "-p", json.dumps(change))
            self._client.run("patch", *_CLUSTER_INFO, *patch)
        return bool(leaving)

    def _present(self, names: Collection[str]) -> tuple[NodeObject, ...]:
        return tuple(node for node in self.nodes() if node.name in names)

    def _patch(self, names: Sequence[str], change: Mapping[str, Any]) -> None:
        if names:
            patch = ("--type=merge", "-p", json.dumps(change))
            self._client.run("patch", "node", *names, *patch)


def _patch_status(
    client: KubeClient, service: Service, address: str, dry_run: bool = False
) -> Service:
    """The Service as it is then, or would be."""
    ingress = [{"ip": address, "ipMode": PROXY_MODE}] if address else None
    # A status may be changed together with the annotations.
    change = {
        "metadata": {"annotations": {PUBLISHED_ANNOTATION: address or None}},
        "status": {"loadBalancer": {"ingress": ingress}},
    }
    return client.patch(
        "service",
        service.name,
        f"--namespace={service.namespace}",
        "--subresource=status",
        *(("--dry-run=server",) if dry_run else ()),
        change=change,
        read=Service.read,
    )


# By parameters of _node. Texts, not the objects that they are in: a kubelet may report
# 100,000 addresses and conditions, whose indented JSON of one node would exceed a
# session's limit.
_NODE_FIELDS = {
    "name": ".metadata.name",
    "uid": ".metadata.uid",
    "created": ".metadata.creationTimestamp",
    "cordoned": f".metadata.annotations['{CORDONED}']",
    "unschedulable": ".spec.unschedulable",
    "provider_id": ".spec.providerID",
    "labels": ".metadata.labels",
    "taints": ".spec.taints",
    "addresses": '.status.addresses[?(@.type=="InternalIP")].address',
    "ready": '.status.conditions[?(@.type=="Ready")].status',
    "reasons": '.status.conditions[?(@.type=="Ready")].reason',
    "messages": '.status.conditions[?(@.type=="Ready")].message',
    "version": ".status.nodeInfo.kubeletVersion",
    "machine_id": ".status.nodeInfo.machineID",
    "boot_id": ".status.nodeInfo.bootID",
}


def _node(
    *,
    name: str,
    uid: str | None,
    created: str | None,
    cordoned: str | None,
    unschedulable: bool | None,
    provider_id: str | None,
    labels: Mapping[str, str] | None,
    taints: Sequence[Mapping[str, str]] | None,
    addresses: Sequence[str],
    ready: Sequence[str],
    reasons: Sequence[str],
    messages: Sequence[str],
    version: str | None,
    machine_id: str | None,
    boot_id: str | None,
) -> NodeObject:
    """Return a node, given its :data:`_NODE_FIELDS`."""
    reason = _reason(ready, reasons, messages)
    return NodeObject(
        name=name,
        ready=not reason,
        reason=reason,
        internal_ip=next(iter(addresses), ""),
        kubelet_version=short(version or "", _LONGEST),
        unschedulable=unschedulable is True,
        labels=labels or {},
        taints=tuple(taints or ()),
        machine_id=machine_id or "",
        boot_id=boot_id or "",
        provider_id=provider_id or "",
        uid=uid or "",
        created=created or "",
        cordoned_by_us=cordoned == "true",
        in_maintenance=MAINTENANCE_TAINT
        in ((t["key"], t["effect"]) for t in taints or ()),
    )


def _reason(
    ready: Sequence[str], reasons: Sequence[str], messages: Sequence[str]
) -> str:
    """Return why a node is not Ready, or "", of its condition of that type."""
    if not ready:
        return "its kubelet has not reported yet"
    if ready[0] == "True":
        return ""
    texts = (*reasons[:1], *messages[:1])
    reason = ": ".join(filter(None, texts)) or f"Ready is {ready[0]}"
    return short(reason, _LONGEST)
