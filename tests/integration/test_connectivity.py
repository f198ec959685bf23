"""Change of external connectivity through Tacker's REST API."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab import inside
from tacker_k8s_mgmt.cluster import inventory
from tests.integration.conftest import PARAMETERS, REQUESTS, Cluster, Lab
from tests.integration.test_scaling import consistent

BODY = json.loads((REQUESTS / "change-ext-conn.json").read_text())
NEW_MASTER_ADDRESS = "10.99.0.77"


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    with lab.instance("connected") as made:
        made.instantiate()
        yield made


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
            host["id"]: next(a for a in host["addresses"] if a.startswith("10.99."))
            for host in inside.hosts()
            if host["id"] in own
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

    def vims(self) -> list[tuple[str, str]]:
        """Ids and addresses of the cluster's VIM; it is one."""
        return [
            (vim["id"], vim["auth_url"])
            for vim in self.lab.tacker.vims()
            if vim["name"] == self.cluster.vim_name
        ]


@pytest.fixture
def moving(lab: Lab, cluster: Cluster) -> Moving:
    return Moving(lab, cluster)


class TestConnectivity:
    def test_inner_address_is_refused_before_a_port_changes(self, moving):
        before = moving.outer()
        body = json.loads(json.dumps(BODY).replace("workerNode_CP2", "workerNode_CP1"))
        error = moving.change(body, "FAILED_TEMP")
        assert "workerNode_CP1 (worker_node.nic_cp_name)" in error
        moving.handle("fail", "FAILED")
        assert moving.outer() == before

    def test_cluster_follows_its_servers_and_retry_goes_on(self, moving, cluster):
        outer, keys, servers = moving.outer(), moving.keys(), cluster.servers()
        fault = {"task": "Initialise the control plane", "message": "so", "times": 1}
        given = {PARAMETERS: {"kubespray_vars": {"lab_fault": fault}}}
        error = moving.change({**BODY, "additionalParams": given}, "FAILED_TEMP")
        assert "Initialise the control plane: so" in error
        assert "Retry goes on from here" in error
        moving.handle("retry", "COMPLETED")

        assert cluster.servers() == servers
        now = moving.outer()
        assert {one for one in now if now[one] == outer[one]} == set()
        assert now[cluster.server("masterNode")] == NEW_MASTER_ADDRESS
        balancer = cluster.server("externalLB")
        assert moving.listed() == {one: now[one] for one in now if one != balancer}
        assert moving.keys() == {now[one]: keys[outer[one]] for one in now}
        assert json.loads(moving.file("machines.json")) == now
        ((_, url),) = moving.vims()
        assert url == f"https://{now[balancer]}:6443"
        # Through the load balancer at its new address, certificate verified.
        assert cluster.api("/readyz") == "ok"
        assert all(cluster.ready_nodes().values())
        types = [one["vimType"] for one in cluster.show()["vimConnectionInfo"]]
        assert types == ["openstack", "kubernetes"]

    def test_the_same_again_changes_nothing(self, moving, cluster):
        before = moving.vims(), cluster.runs(), moving.outer(), moving.listed()
        moving.change(BODY)
        now = moving.vims(), cluster.runs(), moving.outer(), moving.listed()
        assert now == before

    def test_scale_out_works_afterwards(self, cluster):
        cluster.scale("OUT")
        consistent(cluster, 3)
