# SPDX-License-Identifier: Apache-2.0
"""The objects of tenants by the real kubectl, and what their tokens may do."""

import json

import pytest

from tacker_k8s_mgmt.features.tenants import feature, tenant_objects
from tacker_k8s_mgmt.model import manifests
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.request.tenants import Tenant
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl

BLUE = Tenant.model_validate(
    {
        "name": "blue",
        "quota": {"requests.cpu": "0.5", "pods": 5},
        "storage": [{"name": "gold", "size": "10Gi", "volumes": 2}],
        "limits": {"default": {"memory": "512Mi"}, "max": {"cpu": "2000m"}},
        "allowed": [
            {"direction": "egress", "networks": ["192.0.2.0/24"]},
            {"direction": "ingress", "tenants": ["red"], "ports": [{"port": 80}]},
        ],
        "keystone_project": "0a1b",
    }
)
RED = Tenant(name="red", isolated=False)
YES, NO = True, False
# As doc/source/tenants.rst has it: verb, resource, in blue, in red, in the cluster.
RIGHTS = [
    *((verb, "pods", YES, NO, NO) for verb in ("create", "delete", "list")),
    *(("create", kind, YES, NO, NO) for kind in ("deployments.apps", "services")),
    *(("delete", kind, YES, NO, NO) for kind in ("jobs.batch", "secrets")),
    ("create", "persistentvolumeclaims", YES, NO, NO),
    *(("get", kind, YES, NO, NO) for kind in ("secrets", "configmaps")),
    *(("create", f"{kind}.{tenant_objects._RBAC}", YES, NO, NO) for kind in ("roles",)),
    *(("get", kind, YES, NO, NO) for kind in ("resourcequotas", "limitranges")),
    *(("delete", kind, NO, NO, NO) for kind in ("resourcequotas", "limitranges")),
    ("get", "networkpolicies.networking.k8s.io", YES, NO, NO),
    *(
        (verb, "networkpolicies.networking.k8s.io", NO, NO, NO)
        for verb in ("create", "delete")
    ),
    ("update", "endpoints", NO, NO, NO),
    ("list", "namespaces", YES, YES, YES),
    ("get", "namespaces/blue", YES, YES, YES),
    ("get", "namespaces/red", NO, NO, NO),
    *((verb, "namespaces", NO, NO, NO) for verb in ("create", "delete")),
    *(("get", kind, NO, NO, NO) for kind in ("nodes", "persistentvolumes")),
]


@pytest.fixture
def objects(site, session):
    made = Manifests(KubeClient(session))
    accounts = tenant_objects.accounts()
    made.apply((accounts,), owner=tenant_objects.OF_ALL, timeout=60)
    for tenant in (BLUE, RED):
        owner = tenant_objects.owner(tenant.name)
        made.apply(tenant_objects.of(tenant, guarded=True), owner=owner, timeout=60)
    return made


@pytest.fixture
def token(objects):
    found = bed.wait_for(lambda: feature.access(objects, "blue"))
    return found.token.get_secret_value()


def test_nothing_speaks_against_the_first_one(site, session):
    made = Manifests(KubeClient(session))
    assert feature.objections(made, BLUE) == ()
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
    site.kube.apply(bare)
    assert feature.objections(made, BLUE) == (
        "Namespace blue is in the cluster already and belongs to none of its "
        "applications and tenants",
    )


def test_they_are_as_wanted_and_found_again(objects):
    for tenant in (BLUE, RED):
        assert list(feature.differences(objects, tenant)) == []
    assert feature.known(objects) == {"blue", "red"}
    problems = objects.check(tenant_objects.of(BLUE, guarded=True), owner="tenant.blue")
    assert problems == ()
    assert (
        objects.check(tenant_objects.of(BLUE, guarded=True), owner="tenant.red") != ()
    )


def test_what_differs_is_named(objects, site):
    site.kube.kubectl("label", "ns", "blue", "--overwrite", _level("privileged"))
    site.kube.kubectl("delete", "netpol", "tacker-k8s-mgmt-tenant", "-n", "blue")
    assert sorted(feature.differences(objects, BLUE)) == [
        "Namespace blue is otherwise in "
        "metadata.labels.pod-security.kubernetes.io/enforce",
        "NetworkPolicy blue/tacker-k8s-mgmt-tenant is missing",
    ]
    bare = Tenant(name="blue", isolated=False, keystone_project="0a1b")
    assert [one for one in feature.differences(objects, bare) if "wanted" in one] == [
        f"{kind} blue/tacker-k8s-mgmt-tenant is not wanted any more"
        for kind in ("ResourceQuota", "LimitRange")
    ]


def _level(level):
    return f"pod-security.kubernetes.io/enforce={level}"


def test_rights_end_with_the_namespace(site, token):
    """As ``kubectl auth can-i`` asks for them, in 50 ms each."""
    wrong = {}
    for verb, kind, *expected in RIGHTS:
        wanted = dict(zip(("blue", "red", ""), expected, strict=True))
        found = {where: _may(site, token, verb, kind, where) for where in wanted}
        if found != wanted:
            wrong[verb, kind] = found
    assert wrong == {}


def _may(site, token, verb, kind, namespace):
    """Whether who has the token may do it; everywhere, where no namespace is named."""
    plural, _, name = kind.partition("/")
    resource, _, group = plural.partition(".")
    attributes = {"verb": verb, "resource": resource, "group": group, "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, "namespace": namespace}},
    }
    place = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    status, answer, _ = site.kube.request("POST", place, review, token=token)
    assert status == 201, answer
    return answer["status"]["allowed"]


def _service(name, namespace, **spec):
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"ports": [{"port": 80}], **spec},
        }
    )


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, ""),
        ({"type": "NodePort"}, ""),
        ({"externalIPs": ["192.0.2.1"]}, "CVE-2020-8554"),
        ({"type": "ExternalName", "externalName": "a.example.org"}, "ExternalName"),
    ],
)
def test_services_take_over_no_address_and_lead_nowhere(site, token, spec, why):
    words = ("apply", "-f", "-")
    service = _service("one", "blue", **spec)
    done = site.kube.kubectl(*words, stdin=service, token=token, check=False)
    assert (done.returncode == 0) is (not why)
    assert why in done.stderr
    # Others' namespaces are not bound.
    site.kube.kubectl(*words, stdin=_service("one", "default", **spec))


def test_before_kubernetes_1_30_there_is_no_policy(site, session, monkeypatch):
    monkeypatch.setattr(tenant_objects, "POLICY", ("admission.example.org/v1", "Any"))
    made = Manifests(KubeClient(session))
    assert not made.serves(*tenant_objects.POLICY)
    assert made.serves("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert not made.serves("rbac.authorization.k8s.io/v1", "Role")
    kinds = {one["kind"] for one in feature._wanted(made, BLUE)}
    assert "Namespace" in kinds
    assert not [kind for kind in kinds if "Policy" in kind and kind != "NetworkPolicy"]


def test_what_is_done_with_the_token_is_done_or_refused(site, token):
    metadata = {"name": "one"}
    one = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    for namespace, code in (("blue", 0), ("red", 1), ("default", 1)):
        words = ("apply", "-f", "-", "-n", namespace)
        done = site.kube.kubectl(*words, stdin=one, token=token, check=False)
        assert done.returncode == code, done.stderr
        assert code == 0 or "is forbidden" in done.stderr


def content(objects):
    """What is in the namespace of a tenant besides what the driver made for it."""
    own = objects.owned(tenant_objects.owner("blue")).objects
    return list(manifests.without(objects.content("blue").objects, own))


def test_the_content_of_a_namespace(objects, site, token):
    assert content(objects) == []
    made = bed.deployment("web", 1)
    made["metadata"]["namespace"] = "blue"
    site.kube.apply(made)
    found = {one["kind"] for one in content(objects)}
    assert "Deployment" in found


def test_all_that_is_owned_can_be_removed(objects, site, token):
    for name in ("blue", "red"):
        objects.delete(objects.owned(tenant_objects.owner(name)).objects, timeout=60)
    assert feature.known(objects) == frozenset()
    assert objects.owned("tenant.blue").objects == ()
    assert site.kube.request("GET", "/api/v1/namespaces", token=token)[0] == 401
