"""The cluster as the operations see it: its nodes and what is done to them."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from tacker_k8s_mgmt.model.cluster import ClusterAccess, NodeObject
from tacker_k8s_mgmt.model.drain import DrainPolicy
from tacker_k8s_mgmt.remote.kubernetes import (
    apiserver,
    drain,
    node_cleanup,
    service_account,
)
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.ssh.session import Session

_TOKEN_LIMIT = 120.0  # seconds until the cluster has filled in the token
_GONE_LIMIT = 60.0  # seconds until deleted objects have to have vanished

# Says that a cordon is ours, so that an operation that was cut off and is done again
# still knows which nodes it has to give back.
_CORDONED = "tacker-k8s-mgmt/cordoned"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class KubeControl:
    """The cluster behind one control-plane node.

    Every method with names takes them whole, and skips a node that is not in the
    cluster; that is known from the list of its nodes, never from a failure.

    :param session: a session with that node; its user may use sudo.
    :param server: URL of the node's own API server.
    :param patience: seconds for an API server that restarts.
    """

    def __init__(
        self, session: Session, server: str | None = None, patience: float = 0
    ) -> None:
        self._client = KubeClient(session, server, patience)

    def nodes(self) -> tuple[NodeObject, ...]:
        """Return the cluster's nodes, by name.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        found = self._client.table("nodes", _NODE_FIELDS, read=_node)
        return tuple(sorted(found, key=lambda node: node.name))

    def uncertified(self, addresses: Sequence[str]) -> tuple[str, ...]:
        """Return those of these addresses that the API server has no certificate for.

        Asked is what it shows to clients, not the file: it looks for a new one once a
        minute.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        """
        return tuple(one for one in addresses if not self._client.is_certified(one))

    def version(self) -> str:
        """The Kubernetes version of the node's own API server, without v.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        told = self._client.raw("/version", read=lambda one: str(one["gitVersion"]))
        return told.removeprefix("v")

    def admin_access(self, limit: float = _TOKEN_LIMIT) -> ClusterAccess:
        """Make our service account, if it is not there, and return its access.

        It is bound to cluster-admin, since CNFs of any kind are deployed through it.
        The token comes from a Secret: since Kubernetes 1.24 an account alone has none.

        :param limit: seconds until the cluster has to have issued the token.
        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: no token within the limit.
        """
        return service_account.admin_access(self._client, limit)

    def cordon(self, names: Sequence[str]) -> tuple[str, ...]:
        """Let no new pods onto these nodes.

        :returns: those that somebody has to uncordon if they stay: all that were not
            cordoned before, or were by an operation of ours that was cut off.
        :raises RemoteError: kubectl failed or the node cannot be reached.
        """
        found = self._present(names)
        ours = tuple(
            node.name for node in found if node.cordoned_by_us or not node.unschedulable
        )
        self._patch(
            [node.name for node in found if not node.unschedulable],
            {
                "metadata": {"annotations": {_CORDONED: "true"}},
                "spec": {"unschedulable": True},
            },
        )
        return ours

    def uncordon(self, names: Sequence[str]) -> None:
        """Let pods onto these nodes again.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        """
        self._patch(
            [node.name for node in self._present(names)],
            {
                "metadata": {"annotations": {_CORDONED: None}},
                "spec": {"unschedulable": None},
            },
        )

    def drain(self, names: Sequence[str], policy: DrainPolicy) -> None:
        """Empty these nodes, which are cordoned, side by side.

        Specification, "Scale-in Worker nodes": on a control-plane node, before
        ``remove-node.yml``. A node takes up to the policy's time limit, and as much
        again if it has to be forced. All drains have ended when this returns or raises.

        :raises DrainError: pods are left; says which, and which budgets keep them.
        :raises RemoteError: kubectl failed or the node cannot be reached.
        """
        drain.drain(self._client, self._present(names), policy)

    def evict_dead(self, names: Sequence[str]) -> None:
        """Free the pods and volumes of nodes whose machines are gone for good.

        Nothing here waits for a kubelet. It must not be done to a machine that may
        still run: its pods would run twice. The nodes keep the taint
        ``node.kubernetes.io/out-of-service`` until :meth:`remove_nodes`.

        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        present = [node.name for node in self._present(names)]
        node_cleanup.evict_dead(self._client, present)

    def remove_nodes(self, names: Sequence[str], limit: float = _GONE_LIMIT) -> None:
        """Delete these Node objects and what volumes are still attached to them.

        :param limit: seconds until the Node objects have to be gone.
        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: a Node object is still there at the limit.
        """
        node_cleanup.remove_nodes(self._client, names, limit)

    def api_problem(self) -> str:
        """Why the node's own API server is not ready, in kubectl's words; "" if it is.

        :raises RemoteError: the node cannot be reached.
        """
        return apiserver.problem(self._client)

    def move_cluster_info(self, address: str, server: str) -> bool:
        """Have kubeadm's newcomers look for the API elsewhere than at an address.

        :returns: whether they would have looked there.
        :raises RemoteError: kubectl failed or the node cannot be reached.
        :raises ClusterError: its answer could not be understood.
        """
        return apiserver.move_cluster_info(self._client, address, server)

    def _present(self, names: Collection[str]) -> tuple[NodeObject, ...]:
        return tuple(node for node in self.nodes() if node.name in names)

    def _patch(self, names: Sequence[str], change: Mapping[str, Any]) -> None:
        if names:
            patch = ("--type=merge", "-p", json.dumps(change))
            self._client.run("patch", "node", *names, *patch)


_NODE_FIELDS = (
    ".metadata.name",
    ".metadata.uid",
    ".metadata.creationTimestamp",
    f".metadata.annotations['{_CORDONED}']",
    ".spec.unschedulable",
    ".spec.providerID",
    ".spec.taints",
    ".status.addresses",
    ".status.conditions",
    ".status.nodeInfo",
)


def _node(
    name: str,
    uid: str,
    created: str,
    cordoned: str,
    unschedulable: str,
    provider_id: str,
    taints: str,
    addresses: str,
    conditions: str,
    info: str,
) -> NodeObject:
    """Make a node of its :data:`_NODE_FIELDS`."""
    reason = _reason(json.loads(conditions or "[]"))
    facts = json.loads(info or "{}")
    internal = (
        one["address"]
        for one in json.loads(addresses or "[]")
        if one["type"] == "InternalIP"
    )
    return NodeObject(
        name=name,
        ready=not reason,
        reason=reason,
        internal_ip=next(internal, ""),
        kubelet_version=facts.get("kubeletVersion", ""),
        unschedulable=unschedulable == "true",
        tainted=any(
            taint["effect"] in ("NoSchedule", "NoExecute")
            for taint in json.loads(taints or "[]")
            if taint["key"] != _UNSCHEDULABLE
        ),
        machine_id=facts.get("machineID", ""),
        boot_id=facts.get("bootID", ""),
        provider_id=provider_id,
        uid=uid,
        created=created,
        cordoned_by_us=cordoned == "true",
    )


def _reason(conditions: Iterable[Mapping[str, str]]) -> str:
    """Why a node is not Ready; "" if it is."""
    ready = next((one for one in conditions if one["type"] == "Ready"), None)
    if ready is None:
        return "its kubelet has not reported yet"
    if ready["status"] == "True":
        return ""
    words = (ready.get("reason"), ready.get("message"))
    return ": ".join(filter(None, words)) or f"Ready is {ready['status']}"
