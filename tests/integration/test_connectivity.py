# SPDX-License-Identifier: Apache-2.0
"""Change of external connectivity through both of Tacker's APIs."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab import client
from lab.services import network
from tacker_k8s_mgmt.kubespray import inventory
from tests.integration import site
from tests.integration.conftest import PARAMETERS, REQUESTS, Cluster, Lab
from tests.integration.v2 import ClusterV2, LabV2, sample
from tests.integration.workloads import consistent

pytestmark = pytest.mark.lab

#: The control plane stays on its network, which `request init` names by its id.
BODY = json.loads(
    (REQUESTS / "change-ext-conn.json")
    .read_text()
    .replace('"external"', f'"{network.EXTERNAL_ID}"')
)
#: What the request asks for; the workers get some address of another network.
MASTER, BALANCER = "10.99.0.77", "10.99.0.78"


FAULT = {"task": "Initialise the control plane", "message": "no room"}


def faulty(body: dict[str, Any], **fault: Any) -> dict[str, Any]:
    """The request with a fault in the run of the playbook."""
    given = {PARAMETERS: {"kubespray_vars": {"lab_fault": {**FAULT, **fault}}}}
    return {**body, "additionalParams": body.get("additionalParams", {}) | given}


def body_v2(capitals: bool = False) -> dict[str, Any]:
    """The same request for the v2 API.

    :param capitals: write the network's id in capitals, as Neutron does not.
    """
    links = copy.deepcopy(BODY["extVirtualLinks"])
    for link in links:
        if capitals:
            link["resourceId"] = link["resourceId"].upper()
        for cp in link["extCps"]:
            cp["cpConfig"] = {cp["cpdId"]: cp["cpConfig"][0]}
    return {**sample("change-ext-conn.json"), "extVirtualLinks": links}


class Moving:
    """Requests for other addresses, and what there is to be seen afterwards."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self.lab = lab
        self.cluster = cluster
        self._operation = ""

    def change(self, body: dict[str, Any], expect: str = "COMPLETED") -> str:
        """Send the request; the error text of the operation."""
        tacker = self.lab.tacker
        self._operation = tacker.operate(self.cluster.id, "change_ext_conn", body)
        return self._ended(expect)

    def handle(self, verb: str, expect: str) -> str:
        """Retry the operation or give it up; its error text."""
        self.lab.tacker.handle(self._operation, verb)
        return self._ended(expect)

    def _ended(self, expect: str) -> str:
        found = self.lab.tacker.wait(self._operation, expect)
        return str((found.get("error") or {}).get("detail", ""))

    def outer(self) -> dict[str, str]:
        """The outer address of each server, as the hosts themselves have it."""
        own = self.cluster.servers()
        return {
            host.id: next(a for a in host.addresses if a.startswith("10.99."))
            for host in client.hosts()
            if host.id in own
        }

    def file(self, name: str) -> str:
        return self.lab.ansible(f"cat {self.cluster.directory}/{name}")

    def keys(self) -> dict[str, str]:
        """The recorded host key of each address."""
        lines = (line.split() for line in self.file("known_hosts").splitlines())
        return {address: key for address, _, key in lines}

    def listed(self) -> dict[str, str]:
        """The address of each node's server in the inventory."""
        nodes = inventory.parse(self.file("hosts.yaml"))
        return {node.server_id: node.ssh_address for node in nodes}

    def assert_followed(
        self, outer: dict[str, str], keys: dict[str, str]
    ) -> dict[str, str]:
        """Everything is where the servers are, which are the same as before.

        :param outer: where they were.
        :param keys: the host keys of that time.
        :return: where they are.
        """
        now = self.outer()
        assert now.keys() == outer.keys()
        balancer = self.cluster.server("externalLB")
        assert self.listed() == {one: now[one] for one in now if one != balancer}
        assert self.keys() == {now[one]: keys[outer[one]] for one in now}
        assert json.loads(self.file("machines.json")) == now
        # Through the load balancer at its address, certificate verified.
        assert self.cluster.api("/readyz") == "ok"
        assert all(self.cluster.ready_nodes().values())
        return now

    def vims(self) -> list[tuple[str, str]]:
        """Ids and addresses of the cluster's VIM; it is one."""
        return [
            (vim["id"], vim["auth_url"])
            for vim in self.lab.tacker.vims()
            if vim["name"] == self.cluster.vim_name
        ]


class TestConnectivity:
    @pytest.fixture(scope="class")
    def cluster(self, lab: Lab) -> Iterator[Cluster]:
        with lab.instance("connected") as made:
            # As `request init` writes it, unchanged.
            made.body = site.request_for(lab, made)
            made.instantiate()
            yield made

    @pytest.fixture
    def moving(self, lab: Lab, cluster: Cluster) -> Moving:
        return Moving(lab, cluster)

    def test_inner_address_is_refused_before_a_port_changes(self, moving):
        before = moving.outer()
        body = json.loads(json.dumps(BODY).replace("workerNode_CP2", "workerNode_CP1"))
        error = moving.change(body, "FAILED_TEMP")
        assert "workerNode_CP1 (worker_node.nic_cp_name)" in error
        moving.handle("fail", "FAILED")
        assert moving.outer() == before

    def test_cluster_follows_its_servers_and_retry_goes_on(self, moving, cluster):
        # Tacker would have Heat bring the group back to the size of the instantiation.
        cluster.scale("OUT")
        outer, keys = moving.outer(), moving.keys()
        error = moving.change(faulty(BODY, times=1), "FAILED_TEMP")
        assert "Initialise the control plane: no room" in error
        assert "`retry` continues from here" in error
        moving.handle("retry", "COMPLETED")
        now = moving.assert_followed(outer, keys)
        servers = map(cluster.server, ("masterNode", "externalLB"))
        assert [now[server] for server in servers] == [MASTER, BALANCER]
        ((_, url),) = moving.vims()
        assert url == f"https://{BALANCER}:6443"
        types = [one["vimType"] for one in cluster.show()["vimConnectionInfo"]]
        assert types == ["openstack", "kubernetes"]

    def test_the_same_again_changes_nothing(self, moving, cluster, guide):
        before = moving.vims(), cluster.runs(), moving.outer(), moving.listed()
        guide.writes("change-ext-conn.json", BODY)
        with cluster.by_command():
            guide.does("other network", VNF_INSTANCE_ID=cluster.id)
        now = moving.vims(), cluster.runs(), moving.outer(), moving.listed()
        assert now == before

    def test_scale_out_works_afterwards(self, cluster):
        cluster.scale("OUT")
        consistent(cluster, 4)


class TestV2:
    @pytest.fixture(scope="class")
    def lab(self, tmp_path_factory: pytest.TempPathFactory) -> LabV2:
        return LabV2(tmp_path_factory.mktemp("lab-v2"))

    @pytest.fixture(scope="class")
    def cluster(self, lab: LabV2) -> Iterator[ClusterV2]:
        with lab.instance("connected-v2") as made:
            assert isinstance(made, ClusterV2)
            # As `request init` writes it, unchanged.
            made.body = site.request_for(lab, made)
            made.instantiate()
            yield made

    @pytest.fixture
    def moving(self, lab: LabV2, cluster: ClusterV2) -> Moving:
        return Moving(lab, cluster)

    @staticmethod
    def endpoint(cluster: ClusterV2) -> str:
        vim = list(cluster.show()["vimConnectionInfo"].values())[-1]
        return str(vim["interfaceInfo"]["endpoint"])

    def test_rollback_takes_the_cluster_back_to_where_it_was(self, moving, cluster):
        outer, keys = moving.outer(), moving.keys()
        moving.change(faulty(body_v2(), times=1), "FAILED_TEMP")
        moving.handle("rollback", "ROLLED_BACK")
        now = moving.assert_followed(outer, keys)
        assert now[cluster.server("externalLB")] != BALANCER
        assert self.endpoint(cluster) == f"https://{cluster.balancer_address()}:6443"

    def test_cluster_follows_its_servers_and_retry_goes_on(
        self, moving, cluster, guide
    ):
        outer, keys = moving.outer(), moving.keys()
        # The hosts count: it was the first time in the operation before.
        body = body_v2(capitals=True)
        assert network.EXTERNAL_ID not in json.dumps(body)
        guide.writes("change-ext-conn.json", faulty(body, times=2))
        with cluster.by_command("FAILED_TEMP"):
            guide.does("other network", api="v2", VNF_INSTANCE_ID=cluster.id)
        assert "Initialise the control plane: no room" in cluster.error()
        cluster.handle("retry", "COMPLETED")
        now = moving.assert_followed(outer, keys)
        assert now[cluster.server("externalLB")] == BALANCER
        assert self.endpoint(cluster) == f"https://{BALANCER}:6443"
