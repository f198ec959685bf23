# SPDX-License-Identifier: Apache-2.0
"""Whether a cluster accepts a login, and which cluster it is."""

import copy
import http.client
import socket
import types

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.vim import ClusterIdentity
from tacker_k8s_mgmt.remote.kubernetes import api_login
from tests.helpers.kubeapi import (
    ADMIN_TOKEN,
    admin_manifests,
    make_certificate,
    secret_value,
    wait_for,
)
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl

VNF = "9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"


@pytest.fixture
def uid(site):
    found = site.kube.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
    assert found
    return found


@pytest.fixture
def known(site, uid):
    return ClusterIdentity(site.kube.url, site.kube.certificate.read_text(), uid)


def account(site, name, role):
    """The token of an account; without a role it has no rights at all."""
    secret = admin_manifests(name)
    if role:
        secret[1]["roleRef"]["name"] = role
    site.kube.apply(*(one for one in secret if role or one is not secret[1]))
    path = f"/api/v1/namespaces/kube-system/secrets/{name}"
    made = wait_for(lambda: (s := site.kube.get(path)) and "data" in s and s)
    return secret_value(made, "token")


def everywhere(site, role):
    """The token of an account; without a role it has no rights at all."""
    return account(site, f"cnf-{role or 'none'}", role)


def test_a_token_that_may_create_services_is_accepted(site, known):
    token = everywhere(site, "cluster-admin")
    api_login.check(VNF, known, token, ["default", "blue"])
    without = ClusterIdentity(known.endpoint, known.ca_certificate)
    api_login.check(VNF, without, token, ["default"])


def test_a_tenants_is_accepted_for_its_namespace_only(site, known):
    token = everywhere(site, "")
    metadata = {"name": "cnf", "namespace": "default"}
    group = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["services"], "verbs": ["create"]}
    subject = {"name": "cnf-none", "namespace": "kube-system"}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata}
    site.kube.apply(
        {**role, "rules": [rule]},
        {
            **role,
            "kind": "RoleBinding",
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "cnf"},
            "subjects": [{"kind": "ServiceAccount", **subject}],
        },
    )
    api_login.check(VNF, known, token, ["default"])
    for namespaces in (["kube-system"], ["default", "kube-system"], [""], ["x\n" * 99]):
        with pytest.raises(api_login.LoginNotAccepted, match="in namespace '") as found:
            api_login.check(VNF, known, token, namespaces)
        assert "\n" not in str(found.value).partition("VIM for")[2].splitlines()[0]


@pytest.mark.parametrize("role", ["view", ""])
def test_a_token_that_is_only_known_there_is_not(site, known, role):
    """As that of any user of Keystone where a cluster asks a webhook about tokens."""
    with pytest.raises(api_login.LoginNotAccepted, match="for Services in namespace"):
        api_login.check(VNF, known, everywhere(site, role), ["default"])


@pytest.mark.parametrize(
    "token", ["", " ", "\t", " x", "not one", "a\r\nX: y", "\u00e9", "eyJ.eyJ.x"]
)
def test_another_token_is_not(known, token):
    with pytest.raises(api_login.LoginNotAccepted) as caught:
        api_login.check(VNF, known, token, ["default"])
    assert not token.strip() or token not in str(caught.value)


def test_another_cluster_at_the_address_is_not_the_recorded_one(known, tmp_path):
    other = ClusterIdentity(known.endpoint, known.ca_certificate, "another")
    with pytest.raises(api_login.OtherCluster):
        api_login.check(VNF, other, ADMIN_TOKEN, ["default"])
    (tmp_path / "ca").mkdir()
    certificate, _ = make_certificate(tmp_path / "ca")
    other = ClusterIdentity(known.endpoint, certificate.read_text(), known.uid)
    with pytest.raises(api_login.OtherCluster):
        api_login.check(VNF, other, ADMIN_TOKEN, ["default"])


def test_a_silent_cluster_is_an_error_that_says_so(known, monkeypatch):
    monkeypatch.setattr(api_login, "_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(errors.RemoteError, match="could not be asked"):
            api_login.check(VNF, ClusterIdentity(url, known.ca_certificate), "x", [])
    with pytest.raises(errors.RemoteError, match="could not be asked"):
        api_login.check(VNF, ClusterIdentity(url, known.ca_certificate), "x", [])
    with pytest.raises(errors.RemoteError, match="could not be asked"):
        api_login.check(VNF, ClusterIdentity(known.endpoint, "no CA"), ADMIN_TOKEN, [])


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_is_busy_says_nothing_about_a_login(known, monkeypatch, status):
    answer = types.SimpleNamespace(status=status, read=lambda most: b"{}")
    connection = http.client.HTTPSConnection
    monkeypatch.setattr(connection, "request", lambda *_: None)
    monkeypatch.setattr(connection, "getresponse", lambda self: answer)
    with pytest.raises(errors.RemoteError, match=f"HTTP status {status}"):
        api_login.check(VNF, known, "x", [])


def entry(known, token):
    return {
        "vimId": "computed",
        "vimType": "ETSINFV.KUBERNETES.V_1",
        "interfaceInfo": {
            "endpoint": known.endpoint,
            "ssl_ca_cert": known.ca_certificate,
        },
        "accessInfo": {"bearer_token": token},
    }


def test_an_entry_of_the_drivers_leads_to_its_cluster(site, known):
    token = account(site, "tacker-k8s-mgmt-admin", "cluster-admin")
    assert api_login.identify(entry(known, token)) == known


def test_an_entry_that_a_user_wrote_leads_nowhere(site, known, tmp_path):
    tenant = account(site, "tenant", "view")
    good = entry(known, ADMIN_TOKEN)
    assert api_login.identify(good) == known
    forged = [{}, {"vimId": "x"}, entry(known, tenant), entry(known, "not one")]
    for structure in ("interfaceInfo", "accessInfo"):
        for name in (None, *good[structure]):
            for value in (None, "", [], 7, {}):
                wrong = copy.deepcopy(good)
                if name is None:
                    wrong[structure] = value
                else:
                    wrong[structure][name] = value
                forged.append(wrong)
    certificate, _ = make_certificate(tmp_path)
    other = ClusterIdentity(known.endpoint, certificate.read_text())
    forged.append(entry(other, ADMIN_TOKEN))
    # Of no CA; and behind a path, where the API server's proxy leads to a pod.
    places = [(known.endpoint, "x"), (f"{known.endpoint}/api/v1/proxy", "")]
    places.append((known.endpoint.replace("https", "http"), ""))
    for url, ca in places:
        other = ClusterIdentity(url, ca or known.ca_certificate)
        forged.append(entry(other, ADMIN_TOKEN))
    assert [api_login.identify(one) for one in forged] == [None] * len(forged)


def test_nothing_is_asked_behind_a_path(known, monkeypatch):
    """There, a pod could answer, by the API server's proxy."""
    asked = []
    monkeypatch.setattr(api_login, "_ask", lambda *given: asked.append(given))
    for path in ("/api/v1/namespaces/x/services/https:x:443/proxy", "/x/"):
        other = ClusterIdentity(f"{known.endpoint}{path}", known.ca_certificate)
        assert api_login.identify(entry(other, ADMIN_TOKEN)) is None
    assert asked == []
