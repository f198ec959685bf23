# SPDX-License-Identifier: Apache-2.0
"""Answers of the Kubernetes API stand-in that real servers were seen to give.

``tests/real/test_differential.py`` compares many more with a real server's.
"""

import base64
import json

import pytest

from lab.kubeapi import discovery
from lab.kubeapi.access import Identity
from lab.kubeapi.cluster import Cluster
from lab.kubeapi.objects import check_selectors
from lab.kubeapi.resources import (
    LEASES,
    NAMESPACES,
    SECRETS,
    SERVICE_ACCOUNTS,
    ApiError,
)
from lab.kubeapi.settings import Settings
from lab.kubeapi.store import StateFile
from lab.kubeapi.verbs import Request, Target, serve
from tests.helpers import kubeapi as bed

ADMIN = Identity("admin", frozenset({"system:masters"}))


@pytest.fixture
def cluster():
    """One without a thread of its own."""
    return Cluster(Settings())


def _account_and_secret(cluster):
    cluster.store.create(
        SERVICE_ACCOUNTS, "kube-system", {"metadata": {"name": "tacker"}}
    )
    secret = bed.admin_manifests("tacker")[2]
    cluster.store.create(SECRETS, "kube-system", secret)
    cluster.step()
    kept = cluster.store.get(SECRETS, "kube-system", "tacker")
    return kept, bed.secret_value(kept, "token")


def _parts(token):
    return [
        json.loads(base64.urlsafe_b64decode(p + "===")) for p in token.split(".")[:2]
    ]


def test_a_secrets_token_has_no_end_but_ends_with_its_secret(cluster):
    secret, token = _account_and_secret(cluster)
    header, claims = _parts(token)
    assert header["alg"] == "RS256"
    assert claims["iss"] == "kubernetes/serviceaccount"
    assert "exp" not in claims
    user = "system:serviceaccount:kube-system:tacker"
    assert cluster.tokens.user_of(token) == user
    assert cluster.tokens.user_of(token[:-4] + "AAAA") is None
    cluster.store.delete(SECRETS, secret)
    assert cluster.tokens.user_of(token) is None


def test_a_secret_of_an_account_that_is_not_there_is_deleted(cluster):
    cluster.store.create(SECRETS, "kube-system", bed.admin_manifests("nobody")[2])
    cluster.step()
    assert cluster.store.find(SECRETS, "kube-system", "nobody") is None


def test_the_key_of_tokens_is_kept_though_no_object_changed(tmp_path):
    state = StateFile(tmp_path / "state.json")
    cluster = Cluster(Settings(), state)
    cluster.step()
    cluster.save()
    account = cluster.store.get(SERVICE_ACCOUNTS, "default", "default")
    token = cluster.tokens.issue(account, 60)
    cluster.save()
    user = Cluster(Settings(), state).tokens.user_of(token)
    assert user == "system:serviceaccount:default:default"


@pytest.mark.parametrize(
    ("etcd", "starting", "line"),
    [
        (False, False, "[-]etcd failed: reason withheld"),
        (True, True, "[-]poststarthook/rbac/bootstrap-roles failed: reason withheld"),
    ],
)
def test_a_server_that_is_not_ready_reports_which_check_failed(etcd, starting, line):
    status, report = discovery.health(["readyz"], False, etcd, starting)
    lines = report.decode().splitlines()
    assert status == 500
    assert line in lines
    assert "[+]ping ok" in lines
    assert lines[-1] == "readyz check failed"


def test_a_server_that_is_ready_reports_when_that_is_wanted():
    assert discovery.health(["readyz"], False) == (200, b"ok")
    status, report = discovery.health(["readyz"], True)
    assert status == 200
    assert report.endswith(b"readyz check passed\n")
    assert discovery.health(["readyz", "etcd"], False) == (200, b"ok")
    with pytest.raises(ApiError, match="404 page not found"):
        discovery.health(["readyz", "nothing"], False)


@pytest.mark.parametrize("selector", ["a in b", "a b", "a=b c in (d)", "=", "a in ("])
def test_a_label_selector_that_is_none_is_refused(selector):
    with pytest.raises(ApiError, match="unable to parse requirement") as caught:
        check_selectors({"labelSelector": selector}, "Node")
    assert caught.value.code == 400


@pytest.mark.parametrize("selector", ["", "!a", "a=", "a in (b, c),!d", "a!=b , c"])
def test_a_label_selector_is_taken(selector):
    check_selectors({"labelSelector": selector}, "Node")


def test_a_lease_is_replaced_only_by_what_names_its_version(cluster):
    made = cluster.store.create(
        LEASES, "kube-node-lease", {"metadata": {"name": "w1"}, "spec": {}}
    )
    target = Target(LEASES, "v1", "kube-node-lease", "w1")
    new = {"metadata": {"name": "w1"}, "spec": {"holderIdentity": "w1"}}
    with pytest.raises(ApiError, match="must be specified for an update") as caught:
        serve(cluster, Request(target, "PUT", {}, ADMIN, body=new))
    assert caught.value.code == 422
    new["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    assert serve(cluster, Request(target, "PUT", {}, ADMIN, body=new))[0] == 200


def test_a_namespace_goes_after_what_is_in_it(cluster):
    store = cluster.store
    blue = store.create(NAMESPACES, None, {"metadata": {"name": "blue"}})
    held = {"metadata": {"name": "held", "finalizers": ["example.org/x"]}}
    store.create(SECRETS, "blue", held)
    ending = store.delete(NAMESPACES, blue)
    assert ending["status"]["phase"] == "Terminating"
    cluster.step()
    assert store.find(NAMESPACES, None, "blue")
    with pytest.raises(ApiError, match="because it is being terminated") as caught:
        store.create(SECRETS, "blue", {"metadata": {"name": "late"}})
    assert caught.value.code == 403
    secret = store.get(SECRETS, "blue", "held")
    store.update(SECRETS, secret, {**secret, "metadata": {"name": "held"}})
    cluster.step()
    assert store.find(NAMESPACES, None, "blue") is None
