# SPDX-License-Identifier: Apache-2.0
"""Whether a cluster accepts a login, and which cluster it is."""

import copy
import socket

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.cluster import ClusterIdentity
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


@pytest.mark.parametrize("role", ["cluster-admin", "view", ""])
def test_a_token_of_the_cluster_is_accepted_whatever_its_rights(site, known, role):
    token = account(site, f"cnf-{role or 'none'}", role)
    api_login.check(VNF, known, token)
    without = ClusterIdentity(known.endpoint, known.ca_certificate)
    api_login.check(VNF, without, token)
    assert api_login.uid_of(without, token) == (known.uid if role else "")


@pytest.mark.parametrize(
    "token", ["", " ", "\t", " x", "not one", "a\r\nX: y", "\u00e9", "eyJ.eyJ.x"]
)
def test_another_token_is_not(known, token):
    with pytest.raises(api_login.LoginNotAccepted) as caught:
        api_login.check(VNF, known, token)
    assert not token.strip() or token not in str(caught.value)


def test_another_cluster_at_the_address_is_not_the_recorded_one(known, tmp_path):
    other = ClusterIdentity(known.endpoint, known.ca_certificate, "another")
    with pytest.raises(api_login.OtherCluster):
        api_login.check(VNF, other, ADMIN_TOKEN)
    (tmp_path / "ca").mkdir()
    certificate, _ = make_certificate(tmp_path / "ca")
    other = ClusterIdentity(known.endpoint, certificate.read_text(), known.uid)
    with pytest.raises(api_login.OtherCluster):
        api_login.check(VNF, other, ADMIN_TOKEN)


def test_a_silent_cluster_is_an_error_that_says_so(known, monkeypatch):
    monkeypatch.setattr(api_login, "_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(errors.RemoteError, match="could not be asked"):
            api_login.check(VNF, ClusterIdentity(url, known.ca_certificate), "x")
    with pytest.raises(errors.RemoteError, match="could not be asked"):
        api_login.check(VNF, ClusterIdentity(url, known.ca_certificate), "x")
    with pytest.raises(errors.RemoteError, match="could not be asked"):
        api_login.check(VNF, ClusterIdentity(known.endpoint, "no CA"), ADMIN_TOKEN)


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
    assert [api_login.identify(one) for one in forged] == [None] * len(forged)
