# SPDX-License-Identifier: Apache-2.0
"""A cluster's life through the v2 API: the conductor's own code runs our script.

With the script's imports done before; test_v2_references.py has a whole life without.
"""

import json

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker.sol_refactored.common import exceptions as sol_ex

from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.records import WHOLE_FILE
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tests.contract import v2_world
from tests.contract.v2_operations import (
    EIGHT,
    FIFTY_FIVE,
    FIVE,
    MASTER,
    REPEATED,
    heal,
    instantiate,
    no_secrets,
    scale,
    terminate,
)
from tests.helpers.fakes.nodes import machine
from tests.helpers.requests import VNF

CNF = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

pytestmark = pytest.mark.usefixtures("quick_hooks")


class TestInstantiate:
    def test_cluster_is_made_and_named_behind_the_openstack(self, tacker):
        instantiate(tacker)
        assert tacker.site.members == [MASTER, FIVE, FIFTY_FIVE]
        first, second = tacker.instance["vimConnectionInfo"].items()
        assert first == ("vim1", v2_world.VIM)
        assert second[0].startswith("k8s_")
        assert second[1]["vimType"] == "ETSINFV.KUBERNETES.V_1"
        assert second[1]["interfaceInfo"]["endpoint"].startswith("https://")
        assert second[1]["accessInfo"] == {"bearer_token": "t0ken"}
        kept = tacker.instance["metadata"]["k8s_mgmt"]
        assert kept["parameters"]["ansible"]["ip_address"] == "192.0.2.5"
        no_secrets(tacker)

    def test_journal_and_log_are_ours_alone(self, tacker):
        instantiate(tacker)
        path = tacker.state / "journal" / f"{VNF}.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        assert {record["api"] for record in records} == {"v2"}
        assert {one["hook"] for one in records} == {
            "instantiate_start",
            "instantiate_end",
        }
        log = tacker.state / "k8s-mgmt.log"
        assert log.stat().st_mode & 0o777 == 0o600
        assert "instantiate_end completed" in log.read_text()

    def test_failure_is_reported_and_a_retry_goes_on(self, tacker):
        with tacker.world() as site:
            site.faults.add("run cluster")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            instantiate(tacker)
        detail = caught.value.detail
        assert detail.startswith("instantiate_end failed: b'instantiate_end: step ")
        assert "fault in run cluster" in detail
        assert "\\n" not in detail
        assert "vimConnectionInfo" not in tacker.instance
        tacker.retry()
        assert tacker.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert len(tacker.instance["vimConnectionInfo"]) == 2
        no_secrets(tacker)

    def test_rollback_leaves_nothing(self, tacker):
        with tacker.world() as site:
            site.faults.add("run cluster")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            instantiate(tacker)
        assert tacker.site.owner == VNF
        tacker.rollback()
        assert (tacker.site.owner, tacker.site.files) == (None, {})
        assert tacker.deleted
        assert "metadata" not in tacker.instance

    def test_wrong_parameters_are_one_text_and_can_be_rolled_back(self, tacker):
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            instantiate(tacker, wrong=1, vim_name="")
        assert "Send `rollback`" in caught.value.detail
        tacker.rollback()
        assert tacker.deleted


@pytest.fixture
def cluster(tacker):
    instantiate(tacker)
    return tacker


class TestScale:
    def test_out_and_in(self, cluster):
        scale(cluster, "SCALE_OUT")
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]
        scale(cluster, "SCALE_IN")
        # Tacker's v2 API takes the newest one.
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert cluster.site.listed == [MASTER, FIVE, FIFTY_FIVE]
        assert len(cluster.instance["vimConnectionInfo"]) == 2
        no_secrets(cluster)

    def test_secrets_that_are_not_kept_are_asked_for_before_a_vm_exists(self, cluster):
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_OUT", params={})
        for name in ("ansible.password", "worker_node.password", "secret_ref"):
            assert name in caught.value.detail
        assert "Send `fail`" in caught.value.detail
        assert len(cluster.site.workers) == 2
        # Nothing was made with them, so nothing needs them to be taken back.
        cluster.rollback()
        scale(cluster, "SCALE_OUT")
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]

    def test_what_was_refused_is_rolled_back_though_the_reason_lasts(self, cluster):
        with cluster.world() as site:
            site.server = ("ansible: it is not there",)
            site.dead = {
                control_plane.server_id for control_plane in site.control_planes
            }
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_OUT")
        assert "it is not there" in caught.value.detail
        assert "To give the operation up send `fail`" in caught.value.detail
        cluster.rollback()
        assert len(cluster.site.workers) == 2

    def test_vm_that_tacker_does_not_count_costs_no_other_worker_its_life(
        self, cluster
    ):
        with cluster.world() as site:
            site.faults.add("run scale")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_OUT")
        assert "after `fail` the next heal joins them" in caught.value.detail
        before = cluster.site
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_IN")
        assert "Heat has 1 VM(s)" in caught.value.detail
        assert "heal one worker" in caught.value.detail
        assert cluster.site.calls == [*before.calls, "resources"]
        heal(cluster, "workerNode-server-5")
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]
        scale(cluster, "SCALE_IN")
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert len(cluster.site.workers) == 2

    def test_vm_that_heat_has_failed_at_blocks_no_operation(self, cluster):
        with cluster.world() as site:
            site.workers.append(machine(Role.WORKER, 8))
            site.unfinished.add(site.workers[-1].server_id)
        scale(cluster, "SCALE_IN")
        # Heat deletes it first, so only the one that was drained goes beside it.
        assert cluster.site.members == [MASTER, FIFTY_FIVE]
        assert [worker.server_id for worker in cluster.site.workers] == ["server-55"]

    def test_older_member_that_heat_would_delete_instead_is_named(self, cluster):
        """Tacker takes the newest one, and Heat those first that have failed."""
        with cluster.world() as site:
            site.unfinished.add("server-55")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_IN")
        assert "server-55 (CHECK_FAILED) and rebuild server-5 (" in caught.value.detail
        assert f"Heal the VNFC of {FIFTY_FIVE} first" in caught.value.detail
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert cluster.site.cordoned == frozenset()

    def test_scale_out_rebuilds_no_other_worker(self, cluster):
        """Any update of the stack has Heat replace what is marked unhealthy."""
        with cluster.world() as site:
            site.unfinished.add("server-55")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_OUT")
        assert f"build the VM of {FIFTY_FIVE} again" in caught.value.detail
        assert "send `fail`" in caught.value.detail
        assert len(cluster.site.workers) == 2
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]

    def test_scale_out_beside_one_that_loses_nothing(self, cluster):
        with cluster.world() as site:
            site.unfinished.add("server-55")
            site.kill("server-55")
        scale(cluster, "SCALE_OUT")
        assert EIGHT in cluster.site.members

    def test_worker_whose_heal_failed_is_drained_before_removal(self, cluster):
        with cluster.world() as site:
            site.faults.add("balancer.add-worker")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            heal(cluster, "workerNode-server-5")
        assert FIVE in cluster.site.members
        scale(cluster, "SCALE_IN")
        assert cluster.site.members == [MASTER, FIFTY_FIVE]
        assert cluster.site.listed == [MASTER, FIFTY_FIVE]
        assert [one.server_id for one in cluster.site.workers] == ["server-55"]

    def test_failed_rollback_is_sent_again(self, cluster):
        with cluster.world() as site:
            site.faults.add("run scale")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            scale(cluster, "SCALE_OUT")
        with cluster.world() as site:
            site.faults.add("lock")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            cluster.rollback()
        assert "fault in lock" in caught.value.detail
        assert "Send `rollback` again, or `fail`" in caught.value.detail
        assert "retry" not in caught.value.detail
        cluster.rollback()
        assert len(cluster.site.workers) == 2

    def test_failed_scale_out_is_retried_where_it_was(self, cluster):
        with cluster.world() as site:
            site.faults.add("cluster.nodes")
            site.faults.add("run scale")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            scale(cluster, "SCALE_OUT")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            cluster.retry()
        assert "`retry` continues from here" in caught.value.detail
        assert EIGHT in cluster.site.listed
        assert cluster.data["k8s_mgmt"]["servers"] == [
            "server-9",
            "server-5",
            "server-55",
            "server-4",
        ]
        no_secrets(cluster)

    @pytest.mark.parametrize("killed", [False, True])
    def test_failed_scale_out_is_rolled_back_to_what_was(self, cluster, killed):
        before = cluster.site
        with cluster.world() as site:
            site.faults.add("balancer.add-worker")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            scale(cluster, "SCALE_OUT")
        assert EIGHT in cluster.site.members
        if killed:
            # What the hooks pass on is lost with the conductor.
            cluster.data = {}
        cluster.rollback()
        after = cluster.site
        assert after.members == before.members
        assert after.routes == before.routes
        assert [one.server_id for one in after.workers] == ["server-55", "server-5"]
        for name in ("hosts.yaml", "vars.json", "joined.json", "machines.json"):
            assert after.files[name] == before.files[name]
        no_secrets(cluster)


class TestControlPlane:
    def test_it_is_not_scaled_and_that_is_reported_before_a_vm_exists(self, cluster):
        cluster.grants("masterNode")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            scale(cluster, "SCALE_OUT")
        assert "scale_start failed" in caught.value.detail
        assert "is that of the control plane" in caught.value.detail
        assert len(cluster.site.workers) == 2


class TestHeal:
    def test_one_worker(self, cluster):
        heal(cluster, "workerNode-server-5")
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        joined = json.loads(cluster.site.files["joined.json"])
        assert "server-5-new" in joined
        assert "server-5" not in joined
        no_secrets(cluster)

    def test_retry_builds_the_same_place_anew_again(self, cluster):
        with cluster.world() as site:
            site.faults.add("balancer.add-worker")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            heal(cluster, "workerNode-server-5")
        cluster.retry()
        joined = json.loads(cluster.site.files["joined.json"])
        assert "server-5-new-new" in joined
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert (FIVE, "10.10.0.5") in cluster.site.routes

    def test_control_plane_is_refused_by_the_id_that_the_user_knows(self, cluster):
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            heal(cluster, "masterNode-server-4")
        assert "masterNode-server-4" in caught.value.detail
        assert cluster.site.control_planes[0].server_id == "server-4"

    @pytest.mark.parametrize("more", [{}, {"all": True}])
    def test_whole_vnf(self, cluster, more):
        heal(cluster, **more)
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert next(iter(cluster.instance["vimConnectionInfo"])) == "vim1"
        assert len(cluster.instance["vimConnectionInfo"]) == 2
        assert "k8s_mgmt" in cluster.instance["metadata"]

    def test_whole_vnf_that_heat_has_stopped_leaves_the_cluster(self, cluster):
        before, instance = cluster.site, cluster.instance
        cluster.stopped = True
        with pytest.raises(RuntimeError, match="Heat"):
            heal(cluster)
        after = cluster.site
        del after.files[WHOLE_FILE]
        assert after.files == before.files
        assert (after.owner, cluster.instance) == (before.owner, instance)
        cluster.stopped = False
        scale(cluster, "SCALE_OUT")
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]

    def test_whole_vnf_is_retried_after_its_own_installation(self, cluster):
        """A retry has Heat replace the VMs once more."""
        with cluster.world() as site:
            site.faults.add("cluster.admin_access")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            heal(cluster)
        assert "server-4-new" in cluster.site.files["machines.json"]
        cluster.retry()
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        assert {node.machine_id for node in cluster.site.cluster_nodes} == {
            f"server-{number}-new-new" for number in (4, 5, 55)
        }

    @pytest.mark.parametrize("more", [{}, {"all": True}])
    def test_whole_vnf_with_a_node_that_tacker_does_not_list(self, cluster, more):
        """After a scale-out that was abandoned, Heat would replace the others only."""
        with cluster.world() as site:
            site.faults.add("workdir.write joined.json")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            scale(cluster, "SCALE_OUT")
        before = cluster.site
        assert EIGHT in before.files["hosts.yaml"]
        if more:
            heal(cluster, **more)
            assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE, EIGHT]
            return
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            heal(cluster)
        assert f"{EIGHT} (server server-8)" in caught.value.detail
        assert "all" in caught.value.detail
        assert cluster.site.files == before.files

    def test_whole_vnf_exposes_the_cnfs_again(self, cluster):
        expose_cnf(cluster)
        heal(cluster)
        assert [one.node_port for one in cluster.site.exposed] == [30053]


class TestOrderOfVims:
    """Tacker takes the first entry, and MySQL puts the shortest key first."""

    LONG = "openstack-of-the-site-in-the-north/project-of-the-clusters/region-one"

    @pytest.fixture
    def cluster(self, tacker):
        instantiate(tacker, vim=self.LONG)
        return tacker

    def as_formerly(self, cluster):
        """The key that earlier releases gave the cluster's entry."""
        infos = dict(cluster.instance["vimConnectionInfo"])
        (ours,) = set(infos) - {self.LONG}
        infos["k8s_a_cluster"] = infos.pop(ours)
        instance = {**cluster.instance, "vimConnectionInfo": infos}
        cluster.instance = v2_world.stored(instance)
        assert next(iter(cluster.instance["vimConnectionInfo"])) == "k8s_a_cluster"

    def behind(self, cluster):
        infos = cluster.instance["vimConnectionInfo"]
        assert next(iter(infos)) == self.LONG
        types = [info["vimType"] for info in infos.values()]
        assert types == ["ETSINFV.OPENSTACK_KEYSTONE.V_3", "ETSINFV.KUBERNETES.V_1"]

    def test_the_cluster_stays_behind_a_longer_key(self, cluster):
        self.behind(cluster)
        scale(cluster, "SCALE_OUT")
        assert EIGHT in cluster.site.members
        self.behind(cluster)
        heal(cluster)
        self.behind(cluster)
        terminate(cluster)
        assert cluster.deleted

    @pytest.mark.parametrize(
        "operate",
        [
            pytest.param(lambda one: scale(one, "SCALE_OUT"), id="scale-out"),
            pytest.param(lambda one: scale(one, "SCALE_IN"), id="scale-in"),
            pytest.param(lambda one: heal(one, "workerNode-server-5"), id="heal"),
        ],
    )
    def test_the_former_key_is_replaced_before_tacker_chooses(self, cluster, operate):
        self.as_formerly(cluster)
        operate(cluster)
        self.behind(cluster)
        assert len(cluster.instance["vimConnectionInfo"]) == 2

    def test_a_failed_scale_out_is_rolled_back_with_the_former_key(self, cluster):
        self.as_formerly(cluster)
        with cluster.world() as site:
            site.faults.add("run scale")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            scale(cluster, "SCALE_OUT")
        cluster.rollback()
        assert len(cluster.site.workers) == 2


def expose_cnf(cluster):
    exposure = Exposure(CNF, "shop", "dns", "udp", 53, 30053)
    with cluster.world() as site:
        site.files["exposures.json"] = json.dumps([vars(exposure)])


class TestTerminate:
    def test_a_cluster_that_exposes_cnfs_stays(self, cluster):
        expose_cnf(cluster)
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            terminate(cluster)
        assert f"{CNF} (port 53/udp of Service shop/dns)" in caught.value.detail
        assert len(cluster.instance["vimConnectionInfo"]) == 2
        assert cluster.site.owner == VNF
        terminate(cluster, kind="FORCEFUL")
        assert cluster.instance["vimConnectionInfo"] == {}
        assert (cluster.site.owner, cluster.site.files) == (None, {})

    def test_nothing_is_left(self, cluster):
        terminate(cluster)
        assert (cluster.site.owner, cluster.site.files) == (None, {})
        assert cluster.instance["metadata"] == {}
        assert cluster.instance["vimConnectionInfo"] == {}
        instantiate(cluster)
        assert cluster.site.owner == VNF

    def test_only_the_servers_login_is_needed(self, cluster):
        password = {"ansible": {"password": "serv3r-secret"}}
        terminate(cluster, params={"k8s_cluster_installation_param": password})
        assert cluster.site.owner is None

    def test_without_it_a_forceful_one_leaves_the_directory(self, cluster):
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            terminate(cluster, params={})
        assert "ansible.password" in caught.value.detail
        assert "FORCEFUL" in caught.value.detail
        terminate(cluster, kind="FORCEFUL", params={})
        assert cluster.site.owner == VNF
        assert (
            "stays on the Ansible server"
            in (cluster.state / "k8s-mgmt.log").read_text()
        )


class TestConnectivity:
    REQUEST = {
        "extVirtualLinks": [
            {
                "id": "net0",
                "resourceId": "another",
                "extCps": [{"cpdId": "w_ssh", "cpConfig": {"w_ssh": {}}}],
            }
        ],
        "additionalParams": REPEATED,
    }

    def test_cluster_follows(self, cluster):
        cluster.operate("CHANGE_EXT_CONN", self.REQUEST)
        assert "ansible_host: 192.0.2.200" in cluster.site.files["hosts.yaml"]
        assert cluster.site.members == [MASTER, FIVE, FIFTY_FIVE]
        no_secrets(cluster)

    def test_cluster_follows_back_with_a_rollback_if_the_package_says_so(self, cluster):
        cluster.declare("change_external_connectivity_rollback_end")
        with cluster.world() as site:
            site.faults.add("lock")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed):
            cluster.operate("CHANGE_EXT_CONN", self.REQUEST)
        cluster.rollback()
        assert "ansible_host: 192.0.2.155" in cluster.site.files["hosts.yaml"]

    def test_what_was_refused_needs_nothing_to_be_rolled_back(self, cluster):
        cluster.declare("change_external_connectivity_rollback_end")
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            cluster.operate("CHANGE_EXT_CONN", {**self.REQUEST, "additionalParams": {}})
        assert "ansible.password" in caught.value.detail
        with cluster.world() as site:
            site.calls.clear()
        cluster.rollback()
        assert cluster.site.calls == []

    def test_what_the_cluster_cannot_follow_is_refused_before_a_port_changes(
        self, cluster
    ):
        with cluster.world() as site:
            site.present = [Attachment("w_nic", "inner")]
        asked = json.loads(json.dumps(self.REQUEST).replace("w_ssh", "w_nic"))
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            cluster.operate("CHANGE_EXT_CONN", asked)
        assert "external_connectivity_start failed" in caught.value.detail
        assert cluster.site.workers[0].ssh_address == "192.0.2.155"


class TestPackage:
    def change(self, cluster, **more):
        given = {
            "upgrade_type": "RollingUpdate",
            "vdu_params": [],
            "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
            "lcm-operation-user-data-class": "KubernetesClusterUserData",
        }
        cluster.operate(
            "CHANGE_VNFPKG", {"vnfdId": "newer", "additionalParams": {**given, **more}}
        )

    def test_without_a_version_only_the_package_changes(self, cluster):
        before = cluster.site.files
        self.change(cluster)
        assert cluster.instance["vnfdId"] == "newer"
        assert "k8s_mgmt" in cluster.instance["metadata"]
        assert cluster.site.files == before

    def test_vms_are_not_replaced(self, cluster):
        with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
            self.change(cluster, vdu_params=[{"vdu_id": "workerNode"}])
        assert "vdu_params" in caught.value.detail


def test_failure_never_shows_a_secret(tacker):
    with tacker.world() as site:
        site.error = RuntimeError("refused n0de-secret and serv3r-secret")
        site.faults.add("run cluster")
    with pytest.raises(sol_ex.MgmtDriverExecutionFailed) as caught:
        instantiate(tacker)
    assert "refused *** and ***" in caught.value.detail
    no_secrets(tacker)
