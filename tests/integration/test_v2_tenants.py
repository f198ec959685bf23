# SPDX-License-Identifier: Apache-2.0
"""Tenants of a cluster of Tacker's v2 API, whose CNFs' requests have the login."""

import json
from collections.abc import Iterator

import pytest

from tests.integration.cluster_checks import check
from tests.integration.conftest import Guide
from tests.integration.v2 import ClusterV2, LabV2

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
