# SPDX-License-Identifier: Apache-2.0
"""Tenants of a cluster: made, kept apart, used by CNFs through Tacker, and removed."""

import json
from collections.abc import Iterator

import pytest

from tacker_k8s_mgmt.hooks.v1.instance import VIM_KEY
from tests.integration import cnf, exposed, projects
from tests.integration.cluster_checks import check, differences
from tests.integration.conftest import Cluster, Guide, Lab, eventually
from tests.integration.tenants import can, namespaces, owned, vims

pytestmark = pytest.mark.lab

BLUE = {
    "name": "blue",
    "quota": {"pods": 4, "requests.cpu": "2"},
    "limits": {"default": {"cpu": "500m", "memory": "128Mi"}},
}
RED = {"name": "red", "pod_security": "restricted"}


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("shared") as made:
        made.parameters["tenants"] = [BLUE]
        made.instantiate()
        yield made


@pytest.fixture(scope="module")
def token(cluster: Cluster, guide: Guide) -> str:
    """Of tenant blue."""
    guide.does("login of a tenant", VNF_INSTANCE_ID=cluster.id)
    path = guide.place / "blue.json"
    assert path.stat().st_mode & 0o777 == 0o600
    (info,) = json.loads(path.read_text())["vimConnectionInfo"].values()
    address = f"https://{cluster.balancer_address()}:6443"
    assert info["interfaceInfo"]["endpoint"] == address
    return str(info["accessInfo"]["bearer_token"])


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """As another project sees it, which has got the token of tenant blue."""
    with projects.second_project(Lab, tmp_path_factory.mktemp("second")) as made:
        yield made


def pods(cluster: Cluster, namespace: str) -> list[str]:
    return cluster.kubectl("get", "pods", "-n", namespace, "-o", "name").split()


class TestTenants:
    def test_made_with_the_cluster(self, lab, cluster):
        assert vims(lab, cluster) == {"blue"}
        assert {"blue", "tacker-k8s-mgmt-tenants"} <= namespaces(cluster)
        done = check(cluster)
        assert (done.returncode, "tenant blue" in done.stdout) == (0, True)

    def test_another_by_a_modification(self, lab, cluster, guide):
        wrong = json.dumps([BLUE, {"name": "kube-red"}])
        error = cluster.modify({"k8s_tenants": wrong}, expect="FAILED_TEMP")
        assert "k8s_tenants.1.name: is the name of a namespace of Kubernetes" in error
        cluster.handle("fail", "FAILED")
        both = json.dumps([BLUE, RED])
        guide.writes("tenants.json", {"metadata": {"k8s_tenants": both}})
        with cluster.by_command():
            guide.does("tenants", VNF_INSTANCE_ID=cluster.id)
        assert vims(lab, cluster) == {"blue", "red"}
        told = guide.does("tenants listed", VNF_INSTANCE_ID=cluster.id)
        assert "restricted" in told
        assert told.endswith("No differences.\n")

    def test_the_token_of_one_is_refused_where_the_other_is(self, cluster, token):
        for verb, kind in (("create", "pods"), ("delete", "deployments.apps")):
            assert can(cluster, token, verb, kind, "blue")
            assert not can(cluster, token, verb, kind, "red")
            assert not can(cluster, token, verb, kind, "default")
        assert not can(cluster, token, "delete", "networkpolicies", "blue")
        assert not can(cluster, token, "delete", "namespaces", "blue")
        assert not can(cluster, token, "get", "nodes", "blue")

    def test_a_cnf_runs_in_its_tenants_namespace_only(self, lab, cluster):
        with lab.cnf(f"{cluster.vim_name}_blue") as cnf:
            cnf.namespace = "red"
            assert "Failed to create resource" in cnf.refused()
        # Tacker's error does not say why.
        user = "system:serviceaccount:tacker-k8s-mgmt-tenants:blue"
        text = f'deployments.apps is forbidden: User \\"{user}\\" cannot create'
        assert text in lab.logs("tacker-conductor")
        with lab.cnf(f"{cluster.vim_name}_blue") as cnf:
            cnf.namespace = "blue"
            cnf.instantiate()
            assert len(pods(cluster, "blue")) == 1
            only = json.dumps([RED])
            error = cluster.modify({"k8s_tenants": only}, expect="FAILED_TEMP")
            assert "tenant blue cannot leave: VNFs use its VIM" in error
            assert "tenant blue cannot leave: its namespace has Deployment" in error
            cluster.handle("fail", "FAILED")
            error = cluster.terminate(expect="FAILED_TEMP", terminationType="GRACEFUL")
            assert "still used as a VIM" in error
            cluster.handle("fail", "FAILED")
            cnf.terminate()
        eventually(lambda: not pods(cluster, "blue"))

    def test_no_other_project_has_a_say_in_which_keys_it_trusts(self, cluster, second):
        before = projects.host_keys()
        assert before
        for wrong, server in projects.servers_of_attackers(second).items():
            with projects.refused(second, ansible=server) as error:
                assert wrong in error
        assert projects.host_keys() == before
        # It is used on.
        assert check(cluster).returncode == 0

    def test_no_other_project_exposes_anything_on_it(self, lab, cluster, second):
        (own,) = (v for v in lab.tacker.vims() if v["name"] == cluster.vim_name)
        before = projects.seen(cluster)
        made = exposed.Web(second.tacker, second.scratch, own["id"])
        unknown = "VimConnection id is not found"
        with exposed.removed(made) as web, pytest.raises(RuntimeError, match=unknown):
            web.expose(projects.BALANCED)
        assert projects.seen(cluster) == before

    def test_no_other_project_makes_it_ambiguous(self, lab, cluster, second, token):
        """With a VIM that has the driver's mark and a tenant's login."""
        plain = cnf.Cnf(second.tacker, second.scratch, "")
        forged = {
            "name": "forged",
            "type": "kubernetes",
            "description": f"Kubernetes cluster of VNF instance {plain.id}",
            "auth_url": f"https://{cluster.balancer_address()}:6443",
            "is_default": False,
            "vim_project": {"name": "default"},
            "auth_cred": {
                "bearer_token": token,
                "ssl_ca_cert": cluster.ca().read_text(),
            },
        }
        path = f"{second.tacker.LCM}/vnf_instances/{plain.id}"
        with projects.registered(second.tacker, forged) as vim_id:
            metadata = {VIM_KEY: vim_id}
            second.tacker.call("PATCH", path, json={"metadata": metadata})
            eventually(lambda: vim_id in str(second.tacker.show(plain.id)))
            before = projects.seen(cluster)
            made = exposed.Web(second.tacker, second.scratch, vim_id)
            with exposed.removed(made) as web:
                error = web.expose(projects.BALANCED, "FAILED_TEMP")
                assert f"The VNF instance {plain.id} is not instantiated" in error
                web.give_up()
            assert projects.seen(cluster) == before
            with lab.exposed(cluster.vim_name) as web:
                web.expose(projects.BALANCED)
                assert projects.seen(cluster) != before
        plain.remove()

    def test_what_was_spoiled_is_named_and_mended(self, cluster):
        name = "tacker-k8s-mgmt-tenant"
        cluster.kubectl("delete", "networkpolicy", name, "-n", "blue")
        done = check(cluster, "--json")
        missing = f"NetworkPolicy blue/{name} is missing"
        assert differences(done) == {"tenant blue": [missing]}
        cluster.modify({"k8s_tenants": json.dumps([BLUE, RED])})
        assert check(cluster).returncode == 0

    def test_one_leaves_and_nothing_of_it_stays(self, lab, cluster, token):
        cluster.modify({"k8s_tenants": json.dumps([RED])})
        assert vims(lab, cluster) == {"red"}
        assert "blue" not in namespaces(cluster)
        assert owned(cluster, "blue") == ""
        assert check(cluster).returncode == 0

    def test_all_go_with_the_cluster(self, lab, cluster):
        cluster.terminate()
        assert vims(lab, cluster) == set()
        cluster.assert_nothing_left()
