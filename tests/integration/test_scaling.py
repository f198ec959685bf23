"""Scale-out and scale-in through Tacker's REST API, with workloads on the cluster."""

import json
import shutil
from collections.abc import Iterable, Iterator

import pytest

from tests.integration.conftest import ROOT, Cluster, Lab, eventually
from tests.integration.connection import held_open

WORKLOADS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web}]
      volumes: [{name: scratch, emptyDir: {}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bare, labels: {app: bare}}
spec: {containers: [{name: bare, image: bare}]}
"""
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: web-budget}}
spec:
  minAvailable: {at_least}
  selector: {{matchLabels: {{app: web}}}}
"""
#: For the four VMs of an instantiation; then each worker's name begins with that of an
#: earlier one, and what is free again comes first.
POOLS = [("10.10.0.2", "10.10.0.5"), *[(f"10.10.0.{n}0",) * 2 for n in range(2, 10)]]
NEWEST = POOLS[4][0]
#: How Tacker pauses between two looks at a step: well longer than a member takes. Heat
#: drops a signal that comes while it still ends the step before.
PATIENT = {"section": "openstack_vim", "stack_retry_wait": 12}


@pytest.fixture(scope="module")
def crowded(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """With a package whose workers have neighbours such as ...-2 and ...-20."""
    source = tmp_path_factory.mktemp("crowded")
    shutil.copytree(ROOT / "samples", source, dirs_exist_ok=True)
    hot = source / "hot" / "simple" / "base_hot_top.yaml"
    pools = [{"start": first, "end": last} for first, last in POOLS]
    given = "      cidr: { get_param: internal_cidr }\n"
    text = hot.read_text()
    assert text.count(given) == 1
    more = f"      allocation_pools: {json.dumps(pools)}\n"
    hot.write_text(text.replace(given, given + more))
    return Lab(source, source=source)


@pytest.fixture(scope="module")
def cluster(crowded: Lab) -> Iterator[Cluster]:
    with crowded.instance("scaled") as made:
        made.instantiate()
        made.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        running(made)
        yield made


def pods(cluster: Cluster, label: str) -> list[dict[str, str]]:
    """Name, node and phase of the pods with this label."""
    return [
        {
            "name": pod["metadata"]["name"],
            "node": pod["spec"].get("nodeName", ""),
            "phase": pod["status"].get("phase", ""),
        }
        for pod in cluster.pods(label)
        if "deletionTimestamp" not in pod["metadata"]
    ]


def running(cluster: Cluster, replicas: int = 4) -> None:
    """Wait until every replica of the deployment runs."""

    def phases() -> list[str]:
        return [one["phase"] for one in pods(cluster, "app=web")]

    eventually(lambda: phases() == ["Running"] * replicas)


def agents_run(cluster: Cluster) -> None:
    """Wait until a pod of the daemon set runs on each worker, and on no lost node."""
    workers, nodes = names(cluster), set(cluster.ready_nodes())

    def placed() -> bool:
        found = pods(cluster, "app=agent")
        settled = {one["phase"] for one in found} == {"Running"}
        return settled and workers <= {one["node"] for one in found} <= nodes

    eventually(placed)


def names(cluster: Cluster) -> set[str]:
    """Names of the worker nodes, all of which are Ready."""
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    return {name for name in nodes if name.startswith("worker-")}


def consistent(cluster: Cluster, workers: int) -> set[str]:
    """Heat, the cluster, the inventory and the load balancer name the same workers."""
    found = names(cluster)
    addresses = {name.removeprefix("worker-").replace("-", ".") for name in found}
    assert len(found) == workers
    assert set(cluster.workers()) == addresses
    listed = {name for name in cluster.inventory() if name.startswith("worker-")}
    assert listed == found
    assert cluster.routes() == found
    return found


def machine_ids(cluster: Cluster) -> dict[str, str]:
    """What each node's kubelet says its machine is."""
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["machineID"]
        for node in cluster.nodes()
    }


def budget(cluster: Cluster, at_least: int) -> None:
    """A PodDisruptionBudget for the four replicas of the deployment."""
    text = BUDGET.format(at_least=at_least)
    cluster.kubectl("apply", "-f", "-", stdin=text)


def begun_by(name: str, others: Iterable[str]) -> list[str]:
    """The names that begin with this one."""
    return [one for one in others if one != name and one.startswith(name)]


class TestScaling:
    def test_out_by_one_after_a_crash_that_spoiled_files(self, lab, cluster):
        before = consistent(cluster, 2)
        lab.ansible(
            f"cd {cluster.directory} && : >hosts.yaml && truncate -s 20 machines.json "
            "&& printf '\\377' >joined.json"
        )
        cluster.scale("OUT")
        assert before < consistent(cluster, 3)
        joined = lab.ansible(f"cat {cluster.directory}/joined.json")
        assert set(cluster.workers().values()) < set(json.loads(joined))
        kinds = [one.split("-")[1] for one in cluster.runs()]
        assert kinds == ["cluster", "facts", "scale"]


class TestBySeveral:
    @pytest.fixture(scope="class", autouse=True)
    def patience(self, lab: Lab) -> Iterator[None]:
        with lab.options(**PATIENT):
            yield

    def test_out_by_several_in_one_run(self, cluster):
        runs = len(cluster.runs())
        with held_open(cluster, next(iter(cluster.workers().values()))):
            cluster.scale("OUT", steps=3)
        consistent(cluster, 6)
        assert len(cluster.runs()) == runs + 2

    def test_in_blocked_by_a_budget_changes_nothing_and_goes_on_later(self, cluster):
        before = consistent(cluster, 6)
        budget(cluster, at_least=4)
        error = cluster.scale("IN", steps=2, expect="FAILED_TEMP", drain={"timeout": 3})
        assert "web-budget" in error
        assert "No node was removed" in error
        assert "SCALE_IN CAN NOT ROLLBACK" in cluster.refused("rollback")
        assert consistent(cluster, 6) == before
        assert not [n for n in cluster.nodes() if n["spec"].get("unschedulable")]
        cluster.kubectl("delete", "pdb", "web-budget")
        with held_open(cluster, cluster.workers()[NEWEST]):
            cluster.handle("retry", "COMPLETED")
        after = consistent(cluster, 4)
        gone = before - after
        assert len(gone) == 2
        # Their names begin with one that went.
        assert [name for one in gone for name in begun_by(one, after)]
        running(cluster)
        on = {one["node"] for one in pods(cluster, "app=web")}
        assert on <= names(cluster)


class TestAfterwards:
    def test_in_by_one_after_fail_with_a_budget_that_leaves_room(self, cluster, guide):
        before = consistent(cluster, 4)
        budget(cluster, at_least=4)
        cluster.scale("IN", expect="FAILED_TEMP", drain={"timeout": 3})
        cluster.handle("fail", "FAILED")
        budget(cluster, at_least=3)
        with cluster.by_command():
            guide.does("scale-in", VNF_INSTANCE_ID=cluster.id)
        assert consistent(cluster, 3) < before
        running(cluster)
        cluster.kubectl("delete", "pdb", "web-budget")
        agents_run(cluster)

    def test_failed_scale_out_is_taken_back_and_rolled_back(self, cluster):
        # Not the size of the instantiation, to which Heat would return by itself.
        before = consistent(cluster, 3)
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        error = cluster.scale(
            "OUT", expect="FAILED_TEMP", kubespray_vars={"lab_fault": fault}
        )
        assert "run scale.yml" in error
        assert "no room" in error
        assert "Taken back" in error
        assert names(cluster) == before
        assert cluster.routes() == before
        cluster.handle("rollback", "ROLLED_BACK")
        assert consistent(cluster, 3) == before
        cluster.scale("OUT")
        assert before < consistent(cluster, 4)

    def test_workers_that_retry_or_fail_left_out_join_with_the_next_scale_out(
        self, cluster
    ):
        before = consistent(cluster, 4)
        fault = {"task": "Join the cluster", "host": "worker-*", "message": "no room"}
        faulty = {"lab_fault": fault}
        cluster.scale("OUT", expect="FAILED_TEMP", kubespray_vars=faulty)
        # Tacker ends a retried scale-out without calling its driver.
        cluster.handle("retry", "COMPLETED")
        assert names(cluster) == before
        assert len(cluster.workers()) == 5
        cluster.scale("OUT", expect="FAILED_TEMP", kubespray_vars=faulty)
        cluster.handle("fail", "FAILED")
        assert names(cluster) == before
        cluster.scale("OUT")
        assert before < consistent(cluster, 7)

    def test_heal_leaves_the_neighbours_alone_whose_names_begin_alike(self, cluster):
        before = machine_ids(cluster)
        name = next(one for one in names(cluster) if begun_by(one, before))
        address = name.removeprefix("worker-").replace("-", ".")
        cluster.heal(cluster.workers()[address])
        # Tacker's level was too high since the rollback, and its heal goes by it.
        after = machine_ids(cluster)
        assert cluster.routes() == names(cluster)
        assert after.pop(name) != before.pop(name)
        assert before == after

    def test_terminate_leaves_nothing(self, cluster):
        cluster.terminate()
        cluster.assert_nothing_left()
