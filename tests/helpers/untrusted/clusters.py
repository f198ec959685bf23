# SPDX-License-Identifier: Apache-2.0
"""Readers of what a cluster answers."""

import base64
import gzip
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import rollout
from tacker_k8s_mgmt.features.applications.content import (
    ApplicationRecords,
    Content,
    InstalledApplication,
)
from tacker_k8s_mgmt.features.applications.host import Charts
from tacker_k8s_mgmt.features.applications.workloads import Workloads
from tacker_k8s_mgmt.features.node_settings import marks
from tacker_k8s_mgmt.features.node_settings.marks import MetadataClient, NodeMetadata
from tacker_k8s_mgmt.features.node_settings.settings import NodeSettings
from tacker_k8s_mgmt.features.pod_network.measurement import PodNetwork
from tacker_k8s_mgmt.model.manifests import title
from tacker_k8s_mgmt.model.nodes import Node, NodeObject, Role
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.model.vim import ClusterIdentity
from tacker_k8s_mgmt.remote.kubernetes import (
    api,
    api_login,
    draining,
    owned_objects,
)
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy
from tests.helpers.fakes.answers import Host
from tests.helpers.untrusted.fed import (
    Fed,
    all_of,
    b64,
    host,
    kube,
    parsed,
    refused,
)
from tests.helpers.untrusted.objects import (
    BUDGET,
    CLAIM,
    DAEMON_SET,
    DEFINITION,
    EVENT,
    JOB,
    KINDS,
    MARKS,
    NODE,
    POD,
    SERVICE,
)

WANTED = NodeSettings(labels={"b": "c"}, taints={}, annotations={})


def _marks(client: KubeClient) -> None:
    for node in MetadataClient(client).metadata():
        node.shown()
        marks.change(node, WANTED)


def _workloads(client: KubeClient) -> None:
    objects = MetadataClient(client)
    nodes = objects.metadata()
    for workload in objects.workloads():
        for one in nodes:
            workload.can_start(one)
            str(workload)


def _drained(client: KubeClient) -> None:
    node = NodeObject("w", True, "", "", "", False)
    draining.outlook(client, [node], DrainPolicy(), [node])
    for pod in draining.pods_on(client, "w"):
        for budget in draining._budgets(client):
            budget.selects(pod)
            budget.forbids(pod)
            str(budget)
        pod.placement.fits(node)


def _exposed(session: Any) -> None:
    cluster = ClusterApi(session)
    for one in cluster.services("n"):
        str((one.is_balanced, one.has_foreign_address, one.ports))
    cluster.publish(Service("n", "a", "ClusterIP", ()), "1.2.3.4")


def _cluster_nodes(session: Any) -> None:
    control = ClusterApi(session)
    for node in control.nodes():
        str(node)
        sorted(node.labels.items())
    control.cordon(["w"])


def _measured(session: Any) -> None:
    node = Node(Role.WORKER, "1", "1.1.1.1", "2.2.2.2", name="w")
    image = "registry.k8s.io/pause"
    network = PodNetwork(KubeClient(session), lambda _: session, 0, image)
    refused(lambda: network._not_started("n", ["w"]))
    # Its threads are not followed.
    network._probe(session, {"own": ["10.1.0.1"]}, "w")
    for one in network.measure([node], node):
        str(one)


def _applications(client: KubeClient) -> Any:
    charts = Charts(cast(Any, client._session), "https://x")
    return SimpleNamespace(charts=charts, objects=Manifests(client))


def _release(content: str) -> str:
    data = gzip.compress(content.encode(errors="replace"), mtime=0)
    return b64(b64(data))


def _kept(content: str) -> None:
    secret = {"metadata": {"name": "s"}, "data": {"release": _release(content)}}
    revision = {"metadata": {"name": "s", "labels": {"version": "1"}}}
    session = Host({"get secrets jsonpath": [revision], "get secret": secret})
    charts = Charts(cast(Any, session), "https://x")
    charts._volumes.keep_at_end(json.dumps(CLAIM), "a", "n")


def _identified(content: str) -> None:
    body = content.encode(errors="replace")
    known = ClusterIdentity("https://x", "ca")
    former = api_login._ask
    try:
        api_login._ask = lambda *_: (200, body)
        api_login._uid(known, "token")
        api_login._ask = lambda *_: (201, body)
        api_login._may_create_services(known, "token", "n")
    finally:
        api_login._ask = former


def _unpacked(content: str) -> None:
    data = gzip.compress(content.encode(errors="replace"), mtime=0)
    secret = {
        **{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
        "data": {"record": b64(b64(data))},
    }
    session = Host({"get secrets": {"items": [secret]}})
    for record in ApplicationRecords(KubeClient(cast(Any, session))).read().values():
        str(record)


MEMBER = {
    **{"ID": 7, "name": "etcd1", "isLearner": False},
    **{"peerURLs": ["https://1.1.1.1:2380"], "clientURLs": ["https://1.1.1.1:2379"]},
}

ETCD = {
    "member list": {"members": [MEMBER]},
    "endpoint status": [
        {
            "Endpoint": "https://1.1.1.1:2379",
            "Status": {"header": {"member_id": 7}, "leader": 7},
        }
    ],
    "endpoint health": [
        {"endpoint": "https://1.1.1.1:2379", "health": False, "error": "x"}
    ],
}

RECORD = InstalledApplication(
    *("a", "n", "applied"),
    good=Content("d", ((SERVICE,), (JOB,)), "1.0", 1),
    leaving=(CLAIM,),
)

TABLE = ("kubectl.KubeClient.table", "kubectl._rows")

READ = "kubectl.KubeClient._read"

_MEASURED = ("_services", "_images", "_addresses", "_not_started", "_probe")

CLUSTER: Mapping[str, Fed] = {
    "nodes": host(
        {"get nodes": [NODE]},
        _cluster_nodes,
        "kubernetes.api.ClusterApi.nodes",
        *(f"kubernetes.{name}" for name in TABLE),
    ),
    "marks of nodes": kube(
        {"get nodes": [NODE]},
        _marks,
        "features.node_settings.marks.MetadataClient.metadata",
    ),
    "workloads bound to labels": kube(
        {"get nodes": [NODE], "get daemonsets": [DAEMON_SET]},
        _workloads,
        "features.node_settings.marks.MetadataClient.workloads",
        "model.pods._compares",
    ),
    "version": host(
        {"/version": {"gitVersion": "v1.31.9"}},
        lambda session: ClusterApi(session).version(),
        "kubernetes.api.ClusterApi.version",
        "kubernetes.kubectl.KubeClient.raw",
    ),
    "cluster-info": host(
        {
            "get cluster-info": {
                "data": {
                    "kubeconfig": json.dumps(
                        {"clusters": [{"cluster": {"server": "https://1.1.1.1:6443"}}]}
                    )
                }
            }
        },
        lambda session: ClusterApi(session).move_cluster_info("1.1.1.1", "https://x"),
        "kubernetes.api.ClusterApi.move_cluster_info",
        f"kubernetes.{READ}",
    ),
    "marks by the driver": parsed(
        MARKS,
        lambda content: marks.change(
            NodeMetadata("w", annotations={marks.APPLIED: content}),
            WANTED,
        ),
        "features.node_settings.marks._Applied.read",
    ),
    "a person's account": kube(
        {
            "get clusterroles": [{"metadata": {"name": "view"}}],
            "config view -o": [b64("ca")],
            "create --raw": {"status": {"token": "t", "expirationTimestamp": "x"}},
        },
        lambda client: str(api.person_access(client, "eve", "view", 600)),
        "api.person_access",
    ),
    "the driver's account": kube(
        {
            "get secret": {
                "items": [
                    {"kind": "Secret", "data": {"token": b64("t"), "ca.crt": b64("c")}},
                    {"kind": "Namespace", "metadata": {"uid": "u"}},
                ]
            },
        },
        lambda client: str(api.admin_access(client, 0)),
        "api.admin_access",
    ),
    "services": host(
        {"get services": {"items": [SERVICE]}, "patch service": SERVICE},
        _exposed,
        "kubernetes.api.ClusterApi.services",
        "kubernetes.api._patch_status",
    ),
    "objects of an owner": kube(
        {**KINDS, "get pods": [POD]},
        lambda client: all_of(
            lambda: Manifests(client).owned("app.a"),
            lambda: Manifests(client).content("n"),
            lambda: Manifests(client).cluster_wide(),
        ),
        "owned_objects.Manifests._list",
    ),
    "objects": kube(
        {"get -f": {"kind": "List", "items": [SERVICE]}},
        lambda client: all_of(
            lambda: [title(o) for o in Manifests(client).present([JOB])],
            lambda: Manifests(client).check([SERVICE], owner="app.a"),
            lambda: Charts(cast(Any, client._session), "https://x")._volumes.keep(
                json.dumps(CLAIM), "n"
            ),
        ),
        "owned_objects.Manifests.present",
        "features.applications.host._objects",
        "features.applications.host.ChartVolumes.keep",
    ),
    "objects of a kind": kube(
        {"get services": {"items": [SERVICE]}},
        lambda client: [title(one) for one in Manifests(client).get("services")],
        "owned_objects.Manifests.get",
    ),
    "definitions": kube(
        {**KINDS, "get customresourcedefinitions": [DEFINITION]},
        lambda client: Manifests(client).api_versions(),
        "owned_objects.Manifests.api_versions",
    ),
    "objects that stay": kube(
        {"get -f": {"kind": "List", "items": [SERVICE]}},
        lambda client: refused(lambda: Manifests(client).delete([SERVICE], 0)),
    ),
    "a definition": kube(
        {"get -f": DEFINITION},
        lambda client: Manifests(client).apply([DEFINITION], owner="a", timeout=0),
    ),
    "kinds of the groups that answer": kube(
        {
            "api-resources": lambda: errors.CommandFailed(
                host="h",
                command="c",
                rc=1,
                tail="x",
                output=f"{owned_objects._INCOMPLETE}: x",
            ),
            "raw /apis/g/v1": {
                "resources": [
                    {"name": "ks", "kind": "K", "namespaced": True, "verbs": ["list"]}
                ]
            },
            "raw /apis": {"groups": [{"preferredVersion": {"groupVersion": "g/v1"}}]},
            "raw /api/v1": {
                "resources": [
                    {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": []}
                ]
            },
        },
        lambda client: Manifests(client).owned("app.a"),
        "owned_objects.Manifests._resources_of_answering_groups",
    ),
    "workloads": kube(
        {
            "get -f": DAEMON_SET,
            "rollout": "Waiting for it",
            "get nodes": [NODE],
            "get pods": [POD],
            "get events": [EVENT],
        },
        lambda client: all_of(
            lambda: Workloads(client).progress([DAEMON_SET]),
            lambda: Workloads(client).diagnosis(DAEMON_SET),
        ),
        "features.applications.workloads.Workloads._lacks_silent_only",
        "features.applications.workloads.Workloads._pods",
        "features.applications.workloads.Workloads._events",
    ),
    "jobs": kube(
        {"get -f": JOB},
        lambda client: Workloads(client).progress([JOB]),
    ),
    "jobs that are gone": kube(
        {"get -f": {"kind": "List", "items": []}, "get events": [EVENT]},
        lambda client: all_of(
            lambda: Workloads(client).progress([JOB]),
            lambda: Workloads(client).ended_jobs("n"),
        ),
        "features.applications.workloads.Workloads._job_events",
    ),
    "pods and budgets": kube(
        {"get pods": [POD], "get poddisruptionbudgets": [BUDGET]},
        _drained,
        "draining.pods_on",
        "draining._budgets",
    ),
    "nodes that go": kube(
        {
            "get pods": [POD],
            "get nodes,volumeattachments": [
                {
                    "kind": "VolumeAttachment",
                    "metadata": {"name": "v"},
                    "spec": {"nodeName": "w"},
                }
            ],
        },
        lambda client: all_of(
            lambda: draining.force_evict(client, ["w"]),
            lambda: draining.remove_nodes(client, ["w"], 0),
        ),
        "draining._remaining",
    ),
    "pod network": host(
        {
            "get service": SERVICE,
            "get nodes": [NODE],
            "get pods": [POD],
            "get events": [EVENT],
            "python3": {
                "paths": {"10.1.0.2": {"tried": 1, "arrived": 1, "error": ""}},
                "services": {"10.96.0.1": ""},
            },
        },
        _measured,
        *(f"features.pod_network.measurement.PodNetwork.{name}" for name in _MEASURED),
    ),
    "records of applications": parsed(
        json.loads(gzip.decompress(base64.b64decode(RECORD.pack()))),
        _unpacked,
        "features.applications.content.read",
    ),
    "a release's objects": kube(
        {**KINDS, "get manifest": json.dumps(DAEMON_SET), "get hooks": json.dumps(JOB)},
        lambda client: rollout.released_objects(_applications(client), "a", "n"),
        "features.applications.rollout.released_objects",
    ),
    "releases": kube(
        {
            "status": {"version": 3, "info": {"status": "deployed"}},
            "history": [{"revision": 3, "status": "deployed"}],
            "get hooks": json.dumps(CLAIM),
            "get manifest": json.dumps(CLAIM),
        },
        lambda client: all_of(
            lambda: Charts(cast(Any, client._session), "https://x").revision("a", "n"),
            lambda: Charts(cast(Any, client._session), "https://x").recover(
                "a", "n", keep_volumes=False
            ),
            lambda: Charts(cast(Any, client._session), "https://x")._hooks("a", "x"),
        ),
        "features.applications.host.Charts.revision",
        "features.applications.host.Charts.recover",
        "features.applications.host.Charts._hooks",
        "features.applications.host.Charts._status",
    ),
    "a release's record": parsed(
        {"manifest": json.dumps(CLAIM), "version": 1},
        _kept,
        *(
            f"features.applications.host.{name}"
            for name in ("ChartVolumes.keep_at_end", "_revision", "_unpacked")
        ),
    ),
    "etcd": host(
        ETCD,
        lambda session: list(map(str, EtcdClient(session).members())),
        "kubernetes.etcd.EtcdClient._ask",
    ),
    "a cluster's UID": parsed(
        {
            "items": [{"metadata": {"name": "kube-system", "uid": "u"}}],
            "status": {"allowed": True},
        },
        _identified,
        "remote.kubernetes.api_login._uid",
        "remote.kubernetes.api_login._may_create_services",
    ),
}
