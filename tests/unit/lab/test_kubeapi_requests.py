# SPDX-License-Identifier: Apache-2.0
"""What clients other than kubectl see: Tacker's calls, tokens, watches, restarts."""

import json
from dataclasses import replace

import pytest

from lab.kubeapi.server import start, stop
from tests.helpers import kubeapi as bed

POD = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return bed.make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def kube(certificate):
    with bed.serving(certificate, "m1", "w1", "w2") as served:
        yield served


def _service_account_token(kube) -> str:
    for manifest in bed.admin_manifests("tacker"):
        group = "api" if manifest["apiVersion"] == "v1" else "apis"
        namespace = manifest["metadata"].get("namespace")
        scope = f"namespaces/{namespace}/" if namespace else ""
        plural = manifest["kind"].lower() + "s"
        path = f"/{group}/{manifest['apiVersion']}/{scope}{plural}"
        status, answer, _ = kube.request("POST", path, manifest)
        assert status == 201, answer
    path = "/api/v1/namespaces/kube-system/secrets/tacker"
    secret = bed.wait_for(lambda: (s := kube.get(path)).get("data") and s)
    assert bed.secret_value(secret, "ca.crt") == kube.certificate.read_text()
    return bed.secret_value(secret, "token")


def test_token_secret_lets_tacker_make_its_two_calls(kube):
    """Tacker's register_vim: GET /api/ (with the slash), then list namespaces."""
    token = _service_account_token(kube)
    versions = kube.get("/api/", token)
    assert versions["versions"] == ["v1"]
    assert versions["serverAddressByClientCIDRs"][0]["serverAddress"]
    names = {
        n["metadata"]["name"] for n in kube.get("/api/v1/namespaces", token)["items"]
    }
    assert {"default", "kube-system"} <= names


def test_health_is_open_and_the_rest_is_not(kube):
    assert kube.request("GET", "/readyz", token="")[0] == 200
    assert kube.request("GET", "/version", token="")[0] == 200
    assert kube.request("GET", "/api", token="")[0] == 403
    assert kube.request("GET", "/api/v1/nodes", token="")[0] == 403
    assert kube.request("GET", "/api/", token="wrong")[0] == 401


def test_tokens_of_another_cluster_are_refused(kube, certificate):
    token = _service_account_token(kube)
    with bed.serving(certificate) as other:
        assert other.request("GET", "/api/", token=token)[0] == 401


def test_update_of_an_older_version_is_a_conflict(kube):
    path = "/api/v1/namespaces/default/configmaps"
    made = kube.request("POST", path, {"metadata": {"name": "c"}})[1]
    first = {**made, "data": {"a": "1"}}
    assert kube.request("PUT", f"{path}/c", first)[0] == 200
    status, answer, _ = kube.request("PUT", f"{path}/c", first)
    assert (status, answer["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("status", "health", "text"),
    [(429, 200, "Too many requests"), (500, 500, "etcdserver: request timed out")],
)
def test_refusal_lasts_while_its_file_is_there(
    certificate, tmp_path, status, health, text
):
    refusal = tmp_path / "refusal"
    listener = replace(bed.listener(*certificate), refusal=str(refusal))
    server = start(listener, bed.QUICK)
    kube = bed.Kube(server, certificate[0])
    try:
        refusal.write_text(str(status))
        code, answer, headers = kube.request("GET", "/api/v1/nodes")
        assert code == status
        assert text in str(answer)
        assert headers.get("Retry-After") == ("1" if status == 429 else None)
        assert kube.request("GET", "/readyz")[0] == health
        refusal.unlink()
        assert kube.request("GET", "/api/v1/nodes")[0] == 200
    finally:
        stop(server)


def test_blocked_eviction_has_no_retry_after_header(kube):
    """With that header client-go sleeps inside the request and drain hangs."""
    kube.request(
        "POST", "/apis/apps/v1/namespaces/default/deployments", bed.deployment("web", 1)
    )
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    kube.request("POST", budgets, bed.budget("web", minAvailable=1))
    pod = next(iter(bed.wait_for(kube.running_pods)))
    eviction = {"kind": "Eviction", "metadata": {"name": pod}}
    status, answer, headers = kube.request("POST", f"{POD}/{pod}/eviction", eviction)
    assert status == 429
    assert "Retry-After" not in headers
    assert answer["reason"] == "TooManyRequests"
    cause = answer["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert cause["message"] == (
        "The disruption budget web needs 1 healthy pods and has 1 currently"
    )


def test_watch_shows_changes_and_says_when_it_is_too_old(kube):
    version = kube.get("/api/v1/namespaces")["metadata"]["resourceVersion"]
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": "late"}})
    query = f"watch=true&resourceVersion={version}&timeoutSeconds=0.3"
    lines = kube.request("GET", f"/api/v1/namespaces?{query}")[1]
    assert lines["type"] == "ADDED"
    assert lines["object"]["metadata"]["name"] == "late"
    kube.server.cluster.store.events.clear()
    old = kube.request("GET", "/api/v1/namespaces?watch=true&resourceVersion=1")[1]
    assert (old["type"], old["object"]["code"]) == ("ERROR", 410)


def test_a_restarted_server_still_has_its_cluster(certificate, tmp_path):
    state = tmp_path / "not yet there" / "state.json"
    listener = bed.listener(*certificate)
    server = start(listener, bed.QUICK, state)
    kube = bed.Kube(server, certificate[0])
    token = _service_account_token(kube)
    stop(server)
    assert state.stat().st_mode & 0o777 == 0o600
    kept = json.loads(state.read_text())["version"]

    server = start(listener, bed.QUICK, state)
    try:
        again = bed.Kube(server, certificate[0])
        found = again.get("/api/v1/namespaces", token)
        assert int(found["metadata"]["resourceVersion"]) >= kept
    finally:
        stop(server)


def test_an_unknown_path_is_404_and_a_broken_body_400(kube):
    assert kube.request("GET", "/apis/nothing.io/v1/things")[0] == 404
    assert kube.request("GET", "/api/v1/nodes/none")[0] == 404
    assert kube.request("POST", POD, b"{")[0] == 400
    assert kube.request("POST", "/api/v1/nodes/w1", {})[0] == 405


class TestUnknownFields:
    """In an apply in the words of kube-apiserver (kubernetes/kubernetes 122480)."""

    BODY = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": "default"},
        "typo": "Opaque",
    }
    PATH = "/api/v1/namespaces/default/secrets"

    def test_apply_refuses_one(self, kube):
        kube.kubectl("create", "secret", "generic", "a")
        for name in ("a", "b"):
            body = {**self.BODY, "metadata": {"name": name, "namespace": "default"}}
            status, answer, _ = kube.request(
                "PATCH",
                f"{self.PATH}/{name}?fieldManager=x&force=true",
                body,
                content_type="application/apply-patch+yaml",
            )
            assert (status, answer["message"]) == (
                500,
                f"failed to create typed patch object (default/{name}; /v1, "
                "Kind=Secret): .typo: field not declared in schema",
            )

    def test_a_strict_creation_refuses_one(self, kube):
        status, answer, _ = kube.request(
            "POST", f"{self.PATH}?fieldValidation=Strict", self.BODY
        )
        assert (status, answer["message"]) == (
            400,
            'Secret in version "v1" cannot be handled as a Secret: strict decoding '
            'error: unknown field "typo"',
        )
        assert kube.request("POST", self.PATH, self.BODY)[0] == 201
