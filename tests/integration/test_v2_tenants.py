# SPDX-License-Identifier: Apache-2.0
"""Tenants of a cluster of Tacker's v2 API, whose CNFs' requests have the login."""

import json
from collections.abc import Iterator

import pytest

from tacker_k8s_mgmt.hooks.v2.call import cluster_vim_id
from tests.integration import exposed, projects
from tests.integration.cluster import begun
from tests.integration.cluster_checks import check
from tests.integration.conftest import Guide
from tests.integration.v2 import KUBERNETES, ClusterV2, LabV2

pytestmark = pytest.mark.lab

TENANTS = [{"name": "blue", "quota": {"pods": 4}}, {"name": "red"}]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabV2:
    return LabV2(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def cluster(lab: LabV2) -> Iterator[ClusterV2]:
    with lab.instance("v2-shared", secret=True) as made:
        assert isinstance(made, ClusterV2)
        lab.keep_secrets_in_barbican(made.parameters)
        made.instantiate()
        yield made


def test_tenants_are_made_used_and_removed(lab, cluster, guide: Guide):
    before = cluster.show()["vimConnectionInfo"]
    cluster.modify({"k8s_tenants": TENANTS})
    assert cluster.metadata["k8s_tenants"] == TENANTS
    assert check(cluster).returncode == 0
    assert cluster.show()["vimConnectionInfo"] == before
    guide.does("login of a tenant", VNF_INSTANCE_ID=cluster.id)
    text = (guide.place / "blue.json").read_text()
    (vim,) = json.loads(text)["vimConnectionInfo"].values()
    with lab.cnf_on(vim) as cnf:
        cnf.namespace = "red"
        assert "is forbidden" in cnf.refused()
    with lab.cnf_on(vim) as cnf:
        cnf.namespace = "blue"
        cnf.instantiate()
        error = cluster.modify({"k8s_tenants": []}, expect="FAILED_TEMP")
        assert "tenant blue cannot leave: its namespace has Deployment" in error
        cluster.handle("rollback", "ROLLED_BACK")
        assert check(cluster).returncode == 0
        cnf.terminate()
    cluster.modify({"k8s_tenants": []})
    owned = "app.kubernetes.io/managed-by=tacker-k8s-mgmt"
    assert cluster.kubectl("get", "namespaces", "-l", owned, "-o", "name") == ""
    assert check(cluster).returncode == 0


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabV2]:
    """As another project sees it."""
    with projects.second_project(LabV2, tmp_path_factory.mktemp("second")) as made:
        assert isinstance(made, LabV2)
        yield made


def test_no_other_project_has_a_say_in_which_keys_it_trusts(cluster, second):
    before = projects.host_keys()
    assert f"vnf-{cluster.id}" in before
    for wrong, server in projects.servers_of_attackers(second).items():
        with projects.refused(second, ansible=server) as error:
            assert wrong in error
    assert projects.host_keys() == before
    assert check(cluster).returncode == 0


def test_no_login_that_may_not_create_services_exposes_any(cluster, second):
    """Tacker's v2 API tells no project; the cluster decides."""
    cluster.kubectl("create", "serviceaccount", "stranger")
    stranger = cluster.kubectl("create", "token", "stranger").strip()
    before = projects.seen(cluster)
    vim = cluster.vim_for_a_cnf()
    made = exposed.WebV2(second.tacker, second.scratch, vim)
    with exposed.removed(made) as web:
        for token, what in (("not-one", ""), (stranger, " for Services in namespace")):
            web._vim = {**vim, "accessInfo": {"bearer_token": token}}
            error = web.expose(projects.BALANCED, "FAILED_TEMP")
            assert f"does not accept the login of the CNF's VIM{what}" in error
            web.give_up()
    assert projects.seen(cluster) == before


def test_no_entry_of_another_project_breaks_a_hook_or_makes_it_ambiguous(
    lab, cluster, second
):
    """Tacker takes any entry into an instantiated VNF instance, by a PATCH."""
    vim = cluster.vim_for_a_cnf()
    cluster.kubectl("create", "namespace", "theirs")
    with second.cnf_on(vim) as theirs:
        theirs.namespace = "theirs"
        theirs.instantiate()
        own = cluster_vim_id(theirs.id)
        access = {"bearer_token": "not-one"}
        forged = {
            "without-interface": {
                "vimType": KUBERNETES,
                "vimId": own,
                "accessInfo": access,
            },
            "like-that-of-a-cluster": {**vim, "vimId": own, "accessInfo": access},
        }
        path = f"{second.tacker.LCM}/vnf_instances/{theirs.id}"
        with begun(second.tacker, theirs.id) as started:
            second.tacker.call("PATCH", path, json={"vimConnectionInfo": forged})
        second.tacker.wait(*started, "COMPLETED")
        kept = second.tacker.show(theirs.id)["vimConnectionInfo"]
        assert "interfaceInfo" not in kept["without-interface"]
        assert kept["like-that-of-a-cluster"]["vimId"] == own
        before = projects.seen(cluster)
        with lab.exposed_on(vim) as web:
            web.expose(projects.BALANCED)
            assert exposed.BALANCED in exposed.ports(cluster)
            web.modify({"services": []})
            assert exposed.BALANCED not in exposed.ports(cluster)
        assert projects.seen(cluster) == before
