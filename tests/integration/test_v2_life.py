# SPDX-License-Identifier: Apache-2.0
"""A cluster's whole life through Tacker's v2 API; its secrets are in Barbican."""

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator

import pytest
import yaml

from lab import client, settings
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE
from tacker_k8s_mgmt.tools.csar import build, parts
from tests.documents import blocks
from tests.helpers import alerts
from tests.helpers.alertmanager import Alertmanager, alert, alertmanager
from tests.integration import exposed, verbs
from tests.integration.cluster_checks import (
    NODES,
    assert_exposed,
    check,
    commands,
    differences,
    exposures,
    kill,
    oldest_worker,
    roles,
)
from tests.integration.conftest import PARAMETERS, ROOT, Guide, eventually
from tests.integration.connection import NODE_PORT, PORT
from tests.integration.guide import id_in
from tests.integration.v2 import KUBERNETES, OPENSTACK, ClusterV2, LabV2, token
from tests.integration.workloads import (
    WORKLOADS,
    budget,
    consistent,
    machine_ids,
    pods,
    running,
)

pytestmark = pytest.mark.lab

MONITORING = ROOT / "samples" / "v2" / "monitoring"
#: Where alerts are posted, without a login.
TACKER = f"{settings.ADDRESS}:{settings.PORTS['tacker']}"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> LabV2:
    return LabV2(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def cluster(lab: LabV2, guide: Guide) -> Iterator[ClusterV2]:
    with lab.instance("v2", secret=True) as made:
        assert isinstance(made, ClusterV2)
        lab.keep_secrets_in_barbican(made.parameters)
        guide.writes("instantiate.json", made.body)
        with made.by_command():
            guide.does("instantiation", api="v2", VNF_INSTANCE_ID=made.id)
        yield made


@pytest.fixture(scope="module")
def web(lab: LabV2, cluster: ClusterV2) -> Iterator[exposed.WebV2]:
    """A CNF that the load balancer exposes, until a test has ended it."""
    with lab.exposed_on(cluster.vim_for_a_cnf()) as made:
        exposed.expose_beside_workloads(cluster, made)
        yield made


@contextlib.contextmanager
def vim_of_v1(cluster: ClusterV2) -> Iterator[str]:
    """Id of a VIM that an operator has registered of a cluster of the v2 API."""
    login = {"bearer_token": token(cluster), "ssl_ca_cert": cluster.ca().read_text()}
    body = {
        "name": f"by-hand-{uuid.uuid4().hex[:6]}",
        "type": "kubernetes",
        "auth_url": f"https://{cluster.balancer_address()}:6443",
        "auth_cred": login,
        "vim_project": {"name": "default"},
        "is_default": False,
    }
    tacker = client.tacker()
    made = tacker.call("POST", "/v1.0/vims.json", json={"vim": body}).json()["vim"]
    try:
        yield str(made["id"])
    finally:
        tacker.call("DELETE", f"/v1.0/vims/{made['id']}.json")


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), TACKER) as made:
        yield made


def has_ended(lab: LabV2, vnf_id: str) -> bool:
    """Whether Tacker has ended each operation of a VNF instance."""
    every = lab.tacker.call("GET", f"{lab.tacker.LCM}/vnf_lcm_op_occs").json()
    states = {o["operationState"] for o in every if o["vnfInstanceId"] == vnf_id}
    return states == {"COMPLETED"}


def assert_vim_is_the_cluster(cluster: ClusterV2) -> None:
    """It is the last entry, behind the OpenStack of the VMs."""
    assert cluster.vim_types() == [OPENSTACK, KUBERNETES]
    name, vim = list(cluster.show()["vimConnectionInfo"].items())[-1]
    assert name == f"k8s_{cluster.vim_name}"
    address = f"https://{cluster.balancer_address()}:6443"
    assert vim["interfaceInfo"]["endpoint"] == address
    assert vim["interfaceInfo"]["ssl_ca_cert"] == cluster.ca().read_text()
    # Tacker shows no credentials.
    assert vim["accessInfo"] == {}


def agreed(cluster: ClusterV2) -> str:
    """What is printed of a cluster in which nothing differs, else nothing."""
    done = check(cluster)
    return "" if done.returncode else done.stdout


def shown_without_a_healthy_worker(cluster: ClusterV2) -> bool:
    """Whether the ports of a CNF are, once HAProxy has found out."""
    done = check(cluster, "--json")
    rows, found = exposures(done), differences(done)
    assert {row["inventory"] for row in rows.values()} == {"recorded"}
    assert len(rows) == 3
    return {row["name"] for port, row in rows.items() if "tcp" in port} <= set(found)


def assert_only_this_is_new(
    cluster: ClusterV2, before: dict[str, str], address: str
) -> None:
    """The worker with this address is another machine now, and no other node is."""
    after, name = machine_ids(cluster), f"worker-{address.replace('.', '-')}"
    assert after[name] != before[name]
    assert after == {**before, name: after[name]}


@contextlib.contextmanager
def without_default_vim(lab: LabV2) -> Iterator[None]:
    """While nothing uses the lab's VIM, have another one be the default."""
    (known,) = lab.tacker.vims()

    def default(yes: bool) -> None:
        body = {"vim": {"is_default": yes}}
        lab.tacker.call("PUT", f"/v1.0/vims/{known['id']}.json", json=body)

    default(False)
    try:
        yield
    finally:
        for vim in lab.tacker.vims():
            if vim["id"] != known["id"]:
                lab.tacker.call("DELETE", f"/v1.0/vims/{vim['id']}.json")
        default(True)


class TestVim:
    def test_openstack_is_registered_as_the_default(self, lab, guide):
        (printed,) = (block for block in blocks.code("yaml") if "auth_url" in block)
        site = {
            "auth_url": settings.IDENTITY_URL,
            "username": settings.USER,
            "password": settings.PASSWORD,
            "project_name": settings.PROJECT,
        }
        guide.writes("vim.yaml", {**yaml.safe_load(printed), **site})
        with without_default_vim(lab):
            listed = guide.does("default VIM")
            made = next(vim for vim in lab.tacker.vims() if vim["name"] == "my-cloud")
            assert (made["is_default"], made["status"]) == (True, "ACTIVE")
            assert made["id"] in listed


class TestLife:
    def test_instantiate(self, cluster):
        nodes = cluster.ready_nodes()
        assert roles(nodes) == NODES
        consistent(cluster, 2)
        assert cluster.api("/readyz") == "ok"
        assert_vim_is_the_cluster(cluster)

    def test_parameters_are_kept_without_their_secrets(self, cluster):
        kept = cluster.metadata["k8s_mgmt"]["parameters"]
        given = cluster.body["additionalParams"][PARAMETERS]
        assert kept["ansible"] == given["ansible"]
        assert set(kept["ansible"]["password"]) == {"secret_ref"}

    def test_modified_information_touches_nothing_of_ours(self, lab, cluster):
        runs, kept = cluster.runs(), cluster.metadata["k8s_mgmt"]
        path = f"{lab.tacker.LCM}/vnf_instances/{cluster.id}"
        cluster.theirs = {"rack": "7"}
        body = {"vnfInstanceDescription": "of the tests", "metadata": cluster.theirs}
        lab.tacker.call("PATCH", path, json=body)
        eventually(lambda: cluster.metadata.get("rack") == "7")
        assert cluster.metadata["k8s_mgmt"] == kept
        assert cluster.runs() == runs
        consistent(cluster, 2)

    def test_automatic_operations_are_enabled(self, cluster, guide):
        shutil.copy(MONITORING / "enable.json", guide.place)
        with cluster.by_command():
            guide.does(
                "automatic operations enabled",
                api="v2",
                VNF_INSTANCE_ID=cluster.id,
            )
        assert cluster.show()["vnfConfigurableProperties"] == {
            "isAutohealEnabled": True,
            "isAutoscaleEnabled": True,
        }

    def test_cnf_on_the_cluster(self, lab, cluster):
        with lab.cnf_on(cluster.vim_for_a_cnf()) as cnf:
            cnf.instantiate()
            (pod,) = pods(cluster, "app=web")
            assert pod["phase"] == "Running"
            cnf.terminate()
        assert pods(cluster, "app=web") == []

    def test_cnf_is_exposed_on_the_load_balancer_of_its_cluster(self, lab, cluster):
        vim = cluster.vim_for_a_cnf()
        workers = list(cluster.workers().values())
        with lab.exposed_on(vim) as web, lab.exposed_on(vim) as other:
            exposed.follow(cluster, web, other, workers)

    def test_cnf_from_a_chart_is_exposed(self, lab, cluster):
        vim = cluster.vim_for_a_cnf()
        with lab.exposed_on(vim) as web, lab.exposed_on(vim) as other:
            first = exposed.race(web, other, port=9000)
            assert list(exposed.ports(cluster)) == [9000]
            exposed.follow_chart(cluster, first, list(cluster.workers().values()))

    def test_cnf_of_the_v1_api_is_exposed_on_it(self, lab, cluster):
        with vim_of_v1(cluster) as vim:
            made = exposed.Web(client.tacker(), lab.scratch, vim)
            with exposed.removed(made) as web:
                web.expose()
                with exposed.served(cluster):
                    web.scale("OUT")
                assert len(exposed.pods(cluster, "web")) == 2
                web.terminate()
        assert exposed.ports(cluster) == {}

    def test_maintenance_follows_a_vnfc_that_is_healed(self, cluster, guide):
        before = consistent(cluster, 2)
        address = min(cluster.workers())
        name = f"worker-{address.replace('.', '-')}"
        entry = "k8s_nodes:vnfc:{}:maintenance".format
        settings = {"k8s_nodes:worker:label:media": "video"}
        guide.writes("labels.json", {"metadata": settings})
        with cluster.by_command():
            guide.does("settings", api="v2", VNF_INSTANCE_ID=cluster.id)
        verbs.does(guide, "verb label", cluster, address)
        verbs.does(guide, "verb taint", cluster, address)
        verbs.does(guide, "verb maintenance", cluster, address)
        assert cluster.routes() == before - {name}
        told = verbs.does(guide, "verb heal", cluster, address)
        assert "COMPLETED after" in told
        assert cluster.routes() == before - {name}
        now = dict(cluster.workers())[address]
        assert cluster.metadata[entry(cluster.vnfc(now))] == "true"
        nodes = {n["metadata"]["name"]: n for n in cluster.nodes()}
        labels = nodes[name]["metadata"]["labels"]
        assert (labels["media"], labels["disk"]) == ("video", "ssd")
        assert "dedicated" in {one["key"] for one in nodes[name]["spec"]["taints"]}
        done = check(cluster)
        assert (done.returncode, "Ready, maintenance" in done.stdout) == (0, True)
        wrong = {"k8s_nodes:vnfc:none:label:a": "b"}
        assert "has no node" in cluster.modify(wrong, expect="FAILED_TEMP")
        verbs.handles(guide, "verb rollback", cluster, "ROLLED_BACK")
        verbs.does(guide, "verb end of the maintenance", cluster, address)
        assert cluster.routes() == before
        settings = dict.fromkeys(
            n for n in cluster.metadata if n.startswith("k8s_nodes")
        )
        cluster.modify(settings)
        assert consistent(cluster, 2) == before
        assert check(cluster).returncode == 0

    def test_scale_in_blocked_by_a_budget_goes_on_by_retry(self, cluster, guide):
        cluster.kubectl("apply", "-f", "-", stdin=WORKLOADS)
        old = consistent(cluster, 2)
        # The reference to it: Tacker keeps and shows what a request says.
        password = cluster.parameters["worker_node"]["password"]
        login = {"worker_node": {"password": password}}
        guide.writes("again.json", {"additionalParams": {PARAMETERS: login}})
        with cluster.by_command():
            guide.does(
                "v2 scale-out with parameters",
                api="v2",
                VNF_INSTANCE_ID=cluster.id,
            )
        before = consistent(cluster, 3)
        # The newest goes first: have the pods on it.
        cluster.kubectl("cordon", *old)
        cluster.kubectl("delete", "pods", "-l", "app=web")
        running(cluster)
        cluster.kubectl("uncordon", *old)
        budget(cluster, at_least=4)
        error = cluster.scale("IN", expect="FAILED_TEMP", drain={"timeout": 3})
        assert "web-budget" in error
        assert "No node was removed" in error
        assert consistent(cluster, 3) == before
        cluster.kubectl("delete", "pdb", "web-budget")
        verbs.handles(guide, "verb retry", cluster, "COMPLETED")
        assert consistent(cluster, 2) == old
        running(cluster)

    def test_scale_out_by_two_and_by_an_alert(self, lab, cluster, guide, web):
        before = consistent(cluster, 2)
        with exposed.held_open_at(cluster, next(iter(cluster.workers().values()))):
            verbs.does(guide, "verb scale-out", cluster, values={"+1": "+2"})
        more = consistent(cluster, 4)
        assert before < more
        guide.writes("scale-alert.json", alerts.scale(cluster.id))
        with cluster.by_command():
            guide.does("scale-out by an alert", TACKER=TACKER)
            eventually(cluster.in_progress)
            # The same again meanwhile is not a second operation.
            guide.does("scale-out by an alert", TACKER=TACKER)
        assert more < consistent(cluster, 5)
        assert "OtherOperationInProgress" in lab.logs("tacker-conductor")

    def test_scale_in_by_two_and_by_an_alert_of_alertmanager(
        self, cluster, manager, web, guide
    ):
        before = consistent(cluster, 5)
        with exposed.held_open_at(cluster, oldest_worker(cluster)):
            verbs.does(guide, "verb scale-in", cluster, values={"-1": "-2"})
        smaller = consistent(cluster, 3)
        assert smaller < before
        idle = alert("WorkersIdle", cluster.id)
        with cluster.by_command():
            manager.fire(idle)
        assert cluster.occurrence()["isAutomaticInvocation"]
        manager.resolve(idle)
        assert consistent(cluster, 2) < smaller
        running(cluster)

    def test_heal_of_one_worker(self, cluster, guide, web):
        before = consistent(cluster, 2)
        identities = machine_ids(cluster)
        (address, server), (_, other) = sorted(cluster.workers().items())
        with exposed.held_open_at(cluster, other), cluster.by_command():
            guide.does(
                "heal by the VNFC's server",
                api="v2",
                VNF_INSTANCE_ID=cluster.id,
                SERVER_ID=server,
            )
        assert consistent(cluster, 2) == before
        assert server not in cluster.workers().values()
        assert_only_this_is_new(cluster, identities, address)
        running(cluster)
        assert_vim_is_the_cluster(cluster)

    def test_dead_worker_is_healed_by_an_overridden_policy(self, cluster):
        before = consistent(cluster, 2)
        address, server = sorted(cluster.workers().items())[1]
        kill(cluster, server)
        name = f"worker-{address.replace('.', '-')}"
        (printed,) = commands(check(cluster, "--json"), name)
        vnfc = f"--vnfc-instance {cluster.vnfc(server)}"
        wanted = f"openstack vnflcm heal {cluster.id} {vnfc} --os-tacker-api-version 2"
        assert printed == wanted
        cluster.heal(server, drain={"timeout": 60})
        assert consistent(cluster, 2) == before
        assert server not in cluster.workers().values()
        running(cluster)
        kept = cluster.metadata["k8s_mgmt"]["parameters"]
        assert kept.get("drain") == cluster.body["additionalParams"][PARAMETERS].get(
            "drain"
        )

    def test_alertmanager_has_a_worker_and_the_load_balancer_healed_together(
        self, cluster, guide, manager, web
    ):
        by_hand = ("--port", str(PORT), "--node-port", str(NODE_PORT))
        cluster.balancer("expose", "by-hand", *by_hand)
        before, known = consistent(cluster, 2), exposed.ports(cluster)
        assert set(known) > {PORT}
        identities = machine_ids(cluster)
        address, worker = sorted(cluster.workers().items())[0]
        sick = [cluster.vnfc(one) for one in (cluster.server("externalLB"), worker)]
        found = alert("WorkerNotReady", cluster.id, node="a", system_uuid=worker)
        assert found["vnfc_info_id"] == sick[1]
        guide.writes("heal-alert.json", alerts.heal(cluster.id, sick[1]))
        # Two alerts at once are one heal, and the same again meanwhile is none.
        with cluster.by_command():
            manager.fire(found, {**found, "node": "b", "vnfc_info_id": sick[0]})
            eventually(cluster.in_progress)
            guide.does("heal by an alert", TACKER=TACKER)
        healed = cluster.occurrence()
        assert healed["isAutomaticInvocation"]
        assert set(healed["operationParams"]["vnfcInstanceId"]) == set(sick)
        assert consistent(cluster, 2) == before
        assert worker not in cluster.workers().values()
        assert_only_this_is_new(cluster, identities, address)
        running(cluster)
        assert exposed.ports(cluster) == known
        cluster.balancer("unexpose", "by-hand")
        assert cluster.api("/readyz") == "ok"
        assert_vim_is_the_cluster(cluster)

    def test_control_plane_is_refused_and_nothing_is_touched(self, cluster, guide):
        before, servers = consistent(cluster, 2), cluster.servers()
        worker = next(iter(cluster.workers().values()))
        error = cluster.heal(worker, cluster.server("masterNode"), expect="FAILED_TEMP")
        assert "control plane" in error
        assert "without vnfcInstanceId" in error
        verbs.handles(guide, "verb fail", cluster, "FAILED")
        assert cluster.servers() == servers
        assert consistent(cluster, 2) == before

    def test_cluster_check_agrees_and_names_what_was_spoiled(self, cluster, web):
        first, second = (n for n in cluster.inventory() if n.startswith("worker-"))
        spoiled = {
            first: ["the load balancer has no route to it"],
            second: ["cordoned, gets no new pods"],
        }
        # A worker that answers HAProxy late is unhealthy for some seconds.
        with exposed.served(cluster):
            text = eventually(lambda: agreed(cluster))
            for name in (*cluster.inventory(), f"k8s_{cluster.vim_name}"):
                assert name in text
            cluster.balancer("remove-worker", first)
            cluster.kubectl("cordon", second)
            eventually(lambda: differences(check(cluster, "--json")) == spoiled)
            assert check(cluster).returncode == 1

    def test_termination_is_refused_while_a_cnf_is_exposed(self, cluster, web):
        # The test before has left a route out.
        before = cluster.servers(), cluster.routes(), exposed.ports(cluster)
        body = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 1}
        error = cluster.terminate("FAILED_TEMP", **body)
        assert "The load balancer exposes CNFs" in error
        assert web.id in error
        cluster.handle("fail", "FAILED")
        after = cluster.servers(), cluster.routes(), exposed.ports(cluster)
        assert after == before

    def test_heal_of_no_vnfc_is_refused_and_nothing_is_touched(self, cluster):
        before = cluster.servers(), cluster.routes(), cluster.inventory()
        cluster.begin_heal(vnfcs=[])
        assert "vnfcInstanceId is an empty list" in cluster.wait("FAILED_TEMP")
        cluster.handle("fail", "FAILED")
        assert before == (cluster.servers(), cluster.routes(), cluster.inventory())

    def test_heal_of_the_whole_vnf_in_its_stack(self, cluster, guide, web):
        servers, stack = cluster.servers(), cluster.stack_id
        known = exposed.ports(cluster)
        with cluster.by_command():
            guide.does("heal of the VNF", api="v2", VNF_INSTANCE_ID=cluster.id)
        consistent(cluster, 2)
        assert not set(servers) & set(cluster.servers())
        assert cluster.stack_id == stack
        assert_vim_is_the_cluster(cluster)
        # The CNF itself went with the former cluster.
        assert exposed.ports(cluster) == known
        eventually(lambda: shown_without_a_healthy_worker(cluster))

    def test_cnf_answers_again_when_it_is_instantiated_anew(self, cluster, web):
        # Without it Tacker could not ask the new cluster what is left of the CNF.
        web.move(cluster.vim_for_a_cnf())
        assert exposed.ports(cluster) == {}
        web.terminate()
        exposed.expose_beside_workloads(cluster, web)
        assert_exposed(cluster, web.id)
        web.terminate()
        web.delete()
        assert exposed.ports(cluster) == {}

    def test_heal_of_the_whole_vnf_with_another_stack(self, cluster):
        stack = cluster.stack_id
        cluster.heal_with_another_stack()
        consistent(cluster, 2)
        assert cluster.stack_id != stack
        assert_vim_is_the_cluster(cluster)

    def test_no_secret_where_others_see_it(self, lab, cluster):
        logs = lab.logs()
        assert f"{cluster.id}" in logs
        cluster.assert_no_secret_in(logs)
        cluster.assert_no_secret_in(json.dumps(cluster.show()))
        cluster.assert_no_secret_in(json.dumps(cluster.occurrences()))

    def test_what_else_the_guide_prints_works(self, lab, cluster, guide):
        with lab.package(guide, "v2 package filled", "simple-v2.zip") as vnfd_id:
            made = guide.does("instance made", api="v2", VNFD_ID=vnfd_id)
            lab.tacker.delete(id_in(made))
        (guide.place / "password.txt").write_text("secret")
        url = guide.does("v2 secret").strip()
        client.command(["openstack", "secret", "delete", url])
        guide.does("ids of servers", kubeconfig=str(cluster.kubeconfig))
        token = guide.does("v2 token", kubeconfig=str(cluster.kubeconfig))
        assert token == cluster.vim_for_a_cnf()["accessInfo"]["bearer_token"]
        guide.does("v2 stack updated", VNF_INSTANCE_ID=cluster.id)
        consistent(cluster, 2)

    def test_cnf_step_by_step(self, lab, cluster, guide):
        vnfd_id, name = str(uuid.uuid4()), {"my-cluster": cluster.name}
        address = cluster.balancer_address()
        shutil.copytree(parts.samples() / "cnf", guide.place / "samples" / "cnf")
        build.pack(guide.place / "web.zip", api="v2", vnfd_id=vnfd_id)
        package = id_in(guide.does("package made"))
        guide.does("CNF's package filled", PACKAGE_ID=package)
        eventually(
            lambda: "ONBOARDED" in guide.does("CNF's package shown", PACKAGE_ID=package)
        )
        guide.does("CNF's request", **name)
        cnf = id_in(guide.does("CNF made", api="v2", VNFD_ID=vnfd_id))
        guide.does("CNF instantiated", api="v2", CNF_ID=cnf, **name)
        eventually(lambda: "web-" in guide.does("CNF asked", LOAD_BALANCER=address))
        only = {"services": [{"name": "web-balanced"}]}
        guide.writes("exposure.json", {"metadata": {ATTRIBUTE: only}})
        guide.does("CNF exposed otherwise", api="v2", CNF_ID=cnf)
        eventually(lambda: set(exposed.ports(cluster)) == {exposed.BALANCED})
        eventually(lambda: has_ended(lab, cnf))
        guide.does("end of a CNF", api="v2", VNF_B=cnf)
        eventually(lambda: exposed.ports(cluster) == {})
        eventually(lambda: has_ended(lab, cnf))
        guide.does("CNF deleted", api="v2", VNF_B=cnf)
        lab.tacker.delete_package(package)

    def test_terminate_leaves_nothing(self, cluster, guide):
        with cluster.by_command():
            guide.does("end of the cluster", api="v2", VNF_A=cluster.id)
        cluster.assert_nothing_left()
