# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API stand-in's pure parts: selectors, patches, access, formats."""

import base64

import pytest

from lab.kubeapi import discovery
from lab.kubeapi.access import Access, Identity, allowed
from lab.kubeapi.admission import SERVICE_NETWORK, fill_defaults, random_address
from lab.kubeapi.cluster import Cluster
from lab.kubeapi.objects import fields_match, labels_match, selector_matches, tolerates
from lab.kubeapi.patches import json_patch, merge, strategic
from lab.kubeapi.resources import (
    CLUSTER_ROLES,
    RESOURCES,
    ROLE_BINDINGS,
    ROLES,
    ApiError,
)
from lab.kubeapi.settings import Settings
from lab.kubeapi.store import Store

LABELS = {"app": "web", "tier": "front"}
POD = {"metadata": {"name": "a"}, "spec": {"nodeName": "w1"}, "status": {}}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=db", False),
        ("app!=db", True),
        ("tier", True),
        ("!tier", False),
        ("!zone", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("app in (web),tier notin (back)", True),
    ],
)
def test_label_selector(selector, expected):
    assert labels_match(selector, LABELS) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=w1", True),
        ("spec.nodeName=w2", False),
        ("spec.nodeName!=w2,metadata.name=a", True),
        ("status.phase=", True),
    ],
)
def test_field_selector(selector, expected):
    assert fields_match(selector, POD) is expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, False),
        ({}, False),
        ({"app": "web"}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        (
            {
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["x", "web"]},
                    {"key": "zone", "operator": "DoesNotExist"},
                ]
            },
            True,
        ),
        (
            {
                "matchExpressions": [
                    {"key": "app", "operator": "NotIn", "values": ["web"]}
                ]
            },
            False,
        ),
    ],
)
def test_selector_object(selector, expected):
    assert selector_matches(selector, LABELS) is expected


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        ({"a": 1}, {"a": None, "b": {"c": 2}}, {"b": {"c": 2}}),
        ({"l": [1, 2]}, {"l": [3]}, {"l": [3]}),
        ({"a": {"x": 1, "y": 2}}, {"a": {"y": None}}, {"a": {"x": 1}}),
    ],
    ids=["remove and add", "lists are replaced", "nested removal"],
)
def test_merge_patch(old, patch, expected):
    assert merge(old, patch) == expected


@pytest.mark.parametrize(
    ("old", "patch", "expected"),
    [
        (
            {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"containers": [{"name": "a", "image": "2"}]},
            {"containers": [{"name": "a", "image": "2"}, {"name": "b"}]},
        ),
        (
            {"containers": [{"name": "a"}, {"name": "b"}]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b"}]},
        ),
        (
            {"taints": [{"key": "a"}]},
            {"taints": [{"key": "b"}]},
            {"taints": [{"key": "b"}]},
        ),
        (
            {"args": ["x", "y"]},
            {"$deleteFromPrimitiveList/args": ["x"]},
            {"args": ["y"]},
        ),
        ({"a": 1, "b": 2}, {"$retainKeys": ["b"], "b": 3}, {"b": 3}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
        (
            {"spec": {"unschedulable": True}},
            {"spec": {"unschedulable": None}},
            {"spec": {}},
        ),
    ],
    ids=[
        "merge by key",
        "delete by key",
        "no merge key: replaced",
        "primitives removed",
        "retain keys",
        "replace",
        "uncordon",
    ],
)
def test_strategic_merge_patch(old, patch, expected):
    before = repr(old)
    assert strategic(old, patch) == expected
    assert repr(old) == before


def test_json_patch_and_its_refusal():
    operations = [
        {"op": "test", "path": "/a/0", "value": 1},
        {"op": "add", "path": "/a/-", "value": 2},
        {"op": "replace", "path": "/b~1c", "value": 3},
        {"op": "remove", "path": "/d"},
    ]
    document = {"a": [1], "b/c": 0, "d": 0}
    assert json_patch(document, operations) == {"a": [1, 2], "b/c": 3}
    with pytest.raises(ApiError) as caught:
        json_patch(document, [{"op": "test", "path": "/a/0", "value": 9}])
    assert caught.value.code == 422


TAINTED = {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}}


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
    ],
)
def test_toleration(toleration, expected):
    assert tolerates(TAINTED, [toleration]) is expected


def _role_store() -> Store:
    store = Store()
    store.objects["", "namespaces"][None, "team"] = {"metadata": {"name": "team"}}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    store.create(ROLES, "team", {"metadata": {"name": "reader"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"kind": "Role", "name": "reader"},
        "subjects": [{"kind": "User", "name": "ann"}],
    }
    store.create(ROLE_BINDINGS, "team", binding)
    return store


ANN = Identity("ann")
KUBELET = Identity("system:node:w1", frozenset({"system:nodes"}))


@pytest.mark.parametrize(
    ("identity", "access", "expected"),
    [
        (ANN, Access("list", "", "pods", "team"), True),
        (ANN, Access("list", "", "pods", "default"), False),
        (ANN, Access("list", "", "pods"), False),
        (ANN, Access("delete", "", "pods", "team"), False),
        (KUBELET, Access("patch", "", "nodes/status", name="w1"), True),
        (KUBELET, Access("patch", "", "nodes/status", name="w2"), False),
        (KUBELET, Access("delete", "", "nodes", name="w2"), False),
        (KUBELET, Access("list", "", "secrets", "default"), False),
        (
            KUBELET,
            Access("update", "coordination.k8s.io", "leases", "kube-node-lease", "w1"),
            True,
        ),
        (Identity("root", frozenset({"system:masters"})), Access("x", "", "y"), True),
    ],
)
def test_access(identity, access, expected):
    assert allowed(_role_store(), identity, access) is expected


SNAPSHOTS = "snapshot.storage.k8s.io"


@pytest.mark.parametrize(
    ("role", "verb", "group", "plural", "expected"),
    [
        ("view", "list", "", "pods", True),
        ("view", "get", "", "secrets", False),
        ("view", "delete", "", "pods", False),
        ("edit", "list", "", "pods", True),
        ("edit", "get", "", "secrets", True),
        ("edit", "create", "rbac.authorization.k8s.io", "roles", False),
        ("admin", "create", "rbac.authorization.k8s.io", "roles", True),
        ("admin", "delete", "batch", "jobs", True),
        ("admin", "list", "", "nodes", False),
        ("view", "list", SNAPSHOTS, "volumesnapshots", True),
    ],
)
def test_default_roles_and_what_is_added_to_them(role, verb, group, plural, expected):
    """Kubernetes' documentation, "Using RBAC Authorization", "User-facing roles"."""
    cluster = Cluster(Settings())
    rule = {"apiGroups": [SNAPSHOTS], "verbs": ["list"]}
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    added = {
        "metadata": {"name": "snapshots", "labels": label},
        "rules": [{**rule, "resources": ["volumesnapshots"]}],
    }
    binding = {
        "metadata": {"name": "ann"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "ann"}],
    }
    cluster.store.create(CLUSTER_ROLES, None, added)
    cluster.store.create(ROLE_BINDINGS, "default", binding)
    for _ in range(3):
        cluster.step()
    asked = Access(verb, group, plural, "default")
    assert allowed(cluster.store, ANN, asked) is expected


def test_openapi_types_are_objects_for_kubectl_1_20():
    """kubectl 1.20's apply dies of a nil pointer where a schema has no type."""
    document = discovery.openapi_2(RESOURCES, "v1.35.4")
    kinds = sum(len(resource.versions) for resource in RESOURCES.values())
    typed = discovery.field(22, discovery.field(1, "object"))
    assert document.count(typed) == kinds


def _protobuf(kind: str, body: bytes) -> bytes:
    type_meta = discovery.field(1, "v1") + discovery.field(2, kind)
    return b"k8s\0" + discovery.field(1, type_meta) + discovery.field(2, body)


def test_protobuf_of_typed_creates():
    labels = discovery.field(1, "team") + discovery.field(2, "blue")
    metadata = discovery.field(1, "blue") + discovery.field(11, labels)
    decoded = discovery.decode(_protobuf("Namespace", discovery.field(1, metadata)))
    assert decoded["kind"] == "Namespace"
    assert decoded["metadata"] == {"name": "blue", "labels": {"team": "blue"}}


def test_protobuf_of_the_secrets_of_helm():
    labels = discovery.field(1, "owner") + discovery.field(2, "helm")
    metadata = discovery.field(1, "release") + discovery.field(11, labels)
    entries = [("first", b"\0\xff"), ("second", b"2")]
    secret = (
        discovery.field(1, metadata)
        + b"".join(
            discovery.field(2, discovery.field(1, name) + discovery.field(2, content))
            for name, content in entries
        )
        + discovery.field(3, "helm.sh/release.v1")
    )
    assert discovery.decode(_protobuf("Secret", secret)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "release", "labels": {"owner": "helm"}},
        "data": {name: base64.b64encode(c).decode() for name, c in entries},
        "type": "helm.sh/release.v1",
    }


def test_protobuf_of_other_kinds_is_refused():
    with pytest.raises(ApiError) as caught:
        discovery.decode(_protobuf("ConfigMap", b""))
    assert caught.value.code == 415


def test_random_addresses_leave_the_first_ones_free():
    addresses = {random_address("10.233.0.0/28") for _ in range(200)}
    assert addresses == {f"10.233.0.{n}" for n in range(11, 15)}


@pytest.mark.parametrize("plural", ["deployments", "replicasets", "statefulsets"])
def test_what_has_replicas_has_a_status_before_its_controller_looks(plural):
    made = {"metadata": {"name": "web"}, "spec": {}}
    fill_defaults(plural, made, SERVICE_NETWORK)
    assert (made["spec"]["replicas"], made["status"]) == (1, {})
