# SPDX-License-Identifier: Apache-2.0
"""Access for persons by the real kubectl."""

import base64
import json
import ssl
from datetime import datetime, timedelta, timezone

import pytest
import yaml

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.tools.cli.base import NotDone
from tacker_k8s_mgmt.tools.cli.commands.cluster_access import kubeconfig_text, verify
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl

ACCOUNTS = "/api/v1/namespaces/tacker-k8s-mgmt-users/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def admin(site):
    return site.sshd.home / ".kube" / "config"


@pytest.fixture
def cluster(site, session):
    # Where the stand-in for kubectl has it, in place of admin.conf.
    authority = base64.b64encode(site.kube.certificate.read_bytes()).decode()
    entry = {"name": "", "cluster": {"certificate-authority-data": authority}}
    admin(site).parent.mkdir(exist_ok=True)
    admin(site).write_text(yaml.safe_dump({"clusters": [entry]}))
    return ClusterApi(session)


def bound(site):
    """The role of each account of a person."""
    return {
        one["subjects"][0]["name"]: one["roleRef"]["name"]
        for one in site.kube.get(BINDINGS)["items"]
        if one["metadata"]["name"].startswith("tacker-k8s-mgmt-users:")
    }


def claims(access):
    payload = access.token.get_secret_value().split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=="))


def test_a_token_is_for_an_account_with_one_role_and_expires(cluster, site):
    access = cluster.person_access("alice", "view", 3600)
    assert access.account == "system:serviceaccount:tacker-k8s-mgmt-users:alice.view"
    assert claims(access)["sub"] == access.account
    ends = datetime.fromisoformat(access.expires.replace("Z", "+00:00"))
    left = ends - datetime.now(timezone.utc)
    assert timedelta(minutes=50) < left <= timedelta(hours=1)
    assert bound(site) == {"alice.view": "view"}
    assert access.token.get_secret_value() not in repr(access)
    assert not [line for line in site.calls("create") if "eyJ" in line]


@pytest.mark.parametrize("seconds", [600, 7200, 86_400])
def test_a_token_expires_when_it_is_asked_to(cluster, seconds):
    access = cluster.person_access("alice", "view", seconds)
    token = claims(access)
    assert token["exp"] - token["iat"] == seconds
    ends = datetime.fromisoformat(access.expires.replace("Z", "+00:00"))
    assert abs(ends.timestamp() - token["exp"]) < 60


def test_other_roles_are_other_accounts_and_the_same_is_kept(cluster, site):
    first = cluster.person_access("alice", "view", 600)
    for role in ("view", "cluster-admin"):
        cluster.person_access("alice", role, 600)
    assert bound(site) == {"alice.view": "view", "alice.cluster-admin": "cluster-admin"}
    assert claims(first)["sub"].endswith(":alice.view")
    assert len(site.kube.get(ACCOUNTS)["items"]) >= 2


def test_no_certificate_authority_is_an_error(cluster, site):
    admin(site).write_text("{}")
    with pytest.raises(errors.ClusterError, match="has no certificate authority"):
        cluster.person_access("alice", "view", 600)


@pytest.mark.parametrize(
    ("role", "allowed"), [("view", False), ("cluster-admin", True)]
)
def test_kubectl_takes_the_file_and_may_do_what_the_role_does(
    cluster, site, tmp_path, role, allowed
):
    access = cluster.person_access("alice", role, 600)
    config = tmp_path / "config"
    config.write_text(kubeconfig_text("my-cluster", "alice", site.kube.url, access))
    options = ("--kubeconfig", str(config), "get", "nodes")
    done = site.kube.kubectl(*options, token="", check=False)
    assert (done.returncode == 0, "m1" in done.stdout) == (allowed, allowed)
    assert allowed or f'User "{access.account}" cannot list' in done.stderr


class TestVerification:
    def test_what_the_cluster_takes(self, cluster, site):
        access = cluster.person_access("alice", "view", 600)
        verify(site.kube.url, access)

    def test_a_token_that_it_does_not_take(self, cluster, site):
        access = cluster.person_access("alice", "view", 600)
        site.kube.kubectl(
            *("delete", "serviceaccount", "alice.view"), "-n", "tacker-k8s-mgmt-users"
        )
        with pytest.raises(NotDone, match="does not take the new token: status 401"):
            verify(site.kube.url, access)

    def test_another_name_than_that_of_the_certificate(
        self, cluster, site, monkeypatch
    ):
        access = cluster.person_access("alice", "view", 600)
        url = site.kube.url.replace("127.0.0.1", "127.0.0.2")
        with pytest.raises(NotDone, match="cannot be used: "):
            verify(url, access)

    def test_another_authority(self, cluster, site):
        access = cluster.person_access("alice", "view", 600)
        other = ssl.create_default_context().get_ca_certs(binary_form=True)[0]
        pem = ssl.DER_cert_to_PEM_cert(other)
        changed = type(access)(
            access.account, access.token, access.expires, ca_certificate=pem
        )
        with pytest.raises(NotDone, match="CERTIFICATE_VERIFY_FAILED"):
            verify(site.kube.url, changed)


@pytest.mark.parametrize(
    ("role", "said"),
    [("veiw", "Near are: view"), ("xyz", "`kubectl get clusterroles`")],
)
def test_a_role_that_does_not_exist_is_refused(cluster, site, role, said):
    with pytest.raises(errors.ClusterError, match=f"no cluster role {role}") as caught:
        cluster.person_access("alice", role, 3600)
    assert said in str(caught.value)
    assert bound(site) == {}
    assert site.kube.request("GET", ACCOUNTS)[1].get("items", []) == []
