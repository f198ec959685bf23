# SPDX-License-Identifier: Apache-2.0
"""A package and a request made for Tacker's sample driver, with this one."""

import json
from collections.abc import Iterator

import pytest

from tests.helpers import sampledriver
from tests.integration.conftest import ANSIBLE_SERVER, PARAMETERS, Cluster, Lab

pytestmark = pytest.mark.lab

#: What any site has to set in the guide's request, with the lab's values.
SERVER = {
    "ip_address": ANSIBLE_SERVER,
    "username": "ansible",
    "password": "ansible",
    "kubespray_root_path": "/opt/kubespray",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    requests = tmp_path_factory.mktemp("requests")

    class SampleLab(Lab):
        """The lab, with that package and that request."""

    SampleLab.requests = requests
    tree = sampledriver.write(tmp_path_factory.mktemp("tree"))
    lab = SampleLab(tmp_path_factory.mktemp("lab"), source=tree)
    body = sampledriver.body()
    for link in body["extVirtualLinks"]:
        link["resourceId"] = "external"
    (vim,) = (one for one in lab.tacker.vims() if one["type"] == "openstack")
    body["vimConnectionInfo"][0]["vimId"] = vim["id"]
    body["additionalParams"][PARAMETERS]["ansible"] |= SERVER
    (requests / "instantiate-simple.json").write_text(json.dumps(body))
    venv = {"venv_path": "/opt/kubespray-venv"}
    with lab.instance("sample", ansible=venv) as made:
        yield made


def workers(cluster: Cluster) -> set[str]:
    """Names of the workers, every node being Ready."""
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    return {name for name in nodes if name.startswith("worker-")}


def test_the_addresses_are_those_behind_the_floating_ips(cluster: Cluster) -> None:
    cluster.instantiate()
    assert cluster.routes() == workers(cluster)
    assert len(cluster.ready_nodes()) == len(cluster.inventory())
    assert cluster.api("/readyz") == "ok"


def test_scaling_the_control_plane_is_refused_and_can_be_rolled_back(
    cluster: Cluster,
) -> None:
    before = cluster.servers()
    error = cluster.scale("OUT", aspect="master_instance", expect="FAILED_TEMP")
    assert "control plane" in error
    cluster.handle("rollback", "ROLLED_BACK")
    assert cluster.servers() == before


def test_a_worker_joins(cluster: Cluster) -> None:
    before = workers(cluster)
    cluster.scale("OUT")
    after = workers(cluster)
    assert before < after
    assert cluster.routes() == after


def test_terminate_leaves_nothing(cluster: Cluster) -> None:
    cluster.terminate()
    cluster.assert_nothing_left()
