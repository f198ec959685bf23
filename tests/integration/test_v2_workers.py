"""Scale-in and heal through Tacker's v2 API when something is in the way or dead."""

from collections.abc import Iterator

import pytest

from tests.integration.conftest import PARAMETERS
from tests.integration.test_cluster_life import check, differences
from tests.integration.test_healing import PORT, kill
from tests.integration.test_scaling import WORKLOADS, budget, consistent, running
from tests.integration.v2 import ClusterV2, LabV2

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabV2:
    return LabV2(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def cluster(lab: LabV2) -> Iterator[ClusterV2]:
    with lab.instance("workers") as made:
        assert isinstance(made, ClusterV2)
        lab.keep_secrets_in_barbican(made.parameters)
        made.instantiate()
        made.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        running(made)
        yield made


class TestWorkers:
    def test_scale_in_blocked_by_a_budget_goes_on_by_retry(self, cluster):
        old = consistent(cluster, 2)
        cluster.scale("OUT")
        before = consistent(cluster, 3)
        # The newest goes first: have the pods on it.
        cluster.kubectl("cordon", *old)
        cluster.kubectl("delete", "pods", "-l", "app=web")
        running(cluster)
        cluster.kubectl("uncordon", *old)
        budget(cluster, at_least=4)
        error = cluster.scale("IN", expect="FAILED_TEMP", drain={"timeout": 3})
        assert "web-budget" in error
        assert "Nothing was deleted" in error
        assert consistent(cluster, 3) == before
        cluster.kubectl("delete", "pdb", "web-budget")
        cluster.handle("retry", "COMPLETED")
        assert consistent(cluster, 2) == old
        running(cluster)

    def test_dead_worker_is_healed_by_an_overridden_policy(self, cluster):
        before = consistent(cluster, 2)
        server = sorted(cluster.workers().values())[1]
        kill(cluster, server)
        cluster.heal(server, drain={"timeout": 60})
        assert consistent(cluster, 2) == before
        assert server not in cluster.workers().values()
        running(cluster)
        kept = cluster.metadata["k8s_mgmt"]["parameters"]
        assert kept.get("drain") == cluster.body["additionalParams"][PARAMETERS].get(
            "drain"
        )

    def test_load_balancer_gets_routes_and_services_again_healed_with_a_worker(
        self, cluster
    ):
        cluster.balancer("expose", "web", "--port", str(PORT), "--node-port", "30080")
        before = consistent(cluster, 2)
        worker = next(iter(cluster.workers().values()))
        cluster.heal(cluster.server("externalLB"), worker)
        assert consistent(cluster, 2) == before
        assert worker not in cluster.workers().values()
        (service,) = cluster.balancer("status")["services"]
        assert (service["name"], service["port"]) == ("web", PORT)
        assert cluster.api("/readyz") == "ok"

    def test_control_plane_is_refused_and_nothing_is_touched(self, cluster):
        before, servers = consistent(cluster, 2), cluster.servers()
        worker = next(iter(cluster.workers().values()))
        error = cluster.heal(worker, cluster.server("masterNode"), expect="FAILED_TEMP")
        assert "control plane" in error
        assert "without vnfcInstanceId" in error
        cluster.handle("fail", "FAILED")
        assert cluster.servers() == servers
        assert consistent(cluster, 2) == before

    def test_cluster_check_agrees_and_names_what_was_spoiled(self, cluster):
        done = check(cluster)
        assert done.returncode == 0, done.stdout
        for name in (*cluster.inventory(), f"k8s_{cluster.vim_name}"):
            assert name in done.stdout
        first, second = (n for n in cluster.inventory() if n.startswith("worker-"))
        cluster.balancer("remove-worker", first)
        cluster.kubectl("cordon", second)
        done = check(cluster, "--json")
        assert done.returncode == 1, done.stdout
        assert differences(done) == {
            first: ["the load balancer has no route to it"],
            second: ["cordoned, gets no new pods"],
        }

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
