# SPDX-License-Identifier: Apache-2.0
"""Nodes that answer SSH and cannot be used, and control planes that cannot lead."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import MachineIdentity, Role, name_nodes, of_role
from tacker_k8s_mgmt.operations import readiness
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.cluster import FakeCluster
from tests.helpers.fakes.nodes import FakeNode, machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    SEVEN,
    SIX,
    grown,
    heal_end,
    heal_start,
    instantiated,
    rebuild,
    scale_in,
    scale_out,
    silenced,
    state,
)

PLACE = {"user": "ubuntu", "host": "192.0.2.105", "port": 22}
FULL_DISK = errors.UnusableError(host="192.0.2.105", reason="No space left on device")
WHYS = [
    errors.AuthError(reason="the password is not accepted", **PLACE),
    errors.HostKeyError(host="192.0.2.105", recorded="known_hosts"),
    FULL_DISK,
    errors.CommandFailed(host="h", command="sudo", rc=1, tail="no", output=""),
]
TAINT = {
    "key": "node.cloudprovider.kubernetes.io/uninitialized",
    "effect": "NoSchedule",
}
UNINITIALIZED = f"the cloud controller has not initialized it (taint {TAINT['key']})"
BACK = pytest.mark.parametrize("ready", [True, False], ids=["Ready", "NotReady"])
why = pytest.mark.parametrize("why", WHYS, ids=lambda error: type(error).__name__)


@pytest.fixture
def site():
    made = grown(6)
    scale_out(made, "server-6")
    made.pods = {FIVE: ["web"]}
    made.calls.clear()
    made.runs.clear()
    return made


def unfit(site, error, ready):
    site.unfit["server-5"] = error
    if not ready:
        silenced(site, FIVE)


class TestWorker:
    """One worker that Ansible cannot use, though its SSH server answers."""

    @why
    @BACK
    def test_it_is_healed(self, site, why, ready):
        unfit(site, why, ready)
        heal_start(site, "server-5")
        assert FIVE not in site.listed + site.members
        (removal,) = site.runs
        assert removal.extra_vars["reset_nodes"] is False
        assert ("cluster.drain" in site.calls) is ready
        assert ("cluster.force_evict" in site.calls) is not ready
        (new,) = rebuild(site, "server-5")[:1]
        site.unfit.clear()
        heal_end(site, new)
        assert FIVE in site.members
        assert (FIVE, "10.10.0.5") in site.routes

    @why
    @BACK
    def test_it_is_scaled_in(self, site, why, ready):
        unfit(site, why, ready)
        scale_in(site, "server-5")
        assert FIVE not in site.listed + site.members

    def test_a_budget_keeps_the_pods_of_a_ready_one(self, site):
        unfit(site, FULL_DISK, ready=True)
        site.budget = "PDB web keeps default/web-1"
        before = state(site)
        with pytest.raises(errors.StepFailed, match="PDB web"):
            scale_in(site, "server-5")
        assert state(site) == before

    @why
    @BACK
    def test_others_are_scaled_out_beside_it(self, site, why, ready, caplog):
        unfit(site, why, ready)
        site.workers.append(machine(Role.WORKER, 7))
        scale_out(site, "server-7")
        assert {FIVE, "worker-10-10-0-7"} <= set(site.listed)
        assert f"!{FIVE}" in site.runs[0].limit
        assert f"leave these nodes out: {FIVE} ({why}" in caplog.text

    @why
    @BACK
    def test_others_are_scaled_in_and_healed_beside_it(self, site, why, ready):
        unfit(site, why, ready)
        scale_in(site, "server-6")
        site.workers = [vm for vm in site.workers if vm.server_id != "server-6"]
        heal_start(site, "server-55")
        (new, *_) = rebuild(site, "server-55")
        heal_end(site, new)
        assert sorted([FIVE, FIFTY_FIVE]) == [n for n in site.members if "worker" in n]

    def test_a_second_heal_start_finds_nothing_to_do(self, site):
        unfit(site, FULL_DISK, ready=True)
        heal_start(site, "server-5")
        before, runs = state(site), len(site.runs)
        heal_start(site, "server-5")
        assert (state(site), len(site.runs)) == (before, runs)


class TestLogin:
    """A login that nobody accepts says nothing about one node."""

    @pytest.mark.parametrize("why", WHYS[:2] + WHYS[3:])
    @pytest.mark.parametrize("verb", [scale_in, heal_start])
    @BACK
    def test_it_is_refused_before_anything_is_touched(self, site, why, verb, ready):
        unfit(site, why, ready)
        site.unfit |= {"server-6": why, "server-55": why}
        before = state(site)
        with pytest.raises(errors.StepFailed, match="Correct the login") as caught:
            verb(site, "server-5")
        assert FIVE in str(caught.value)
        assert state(site) == before
        assert site.runs == []

    def test_another_role_proves_nothing(self, site):
        """Workers have a login of their own."""
        site.unfit = {f"server-{n}": WHYS[0] for n in (5, 6, 55)}
        assert "server-4" not in site.unfit
        with pytest.raises(errors.StepFailed, match="Correct the login"):
            scale_in(site, "server-5")

    def test_one_that_only_lets_in_is_proof_enough(self, site):
        unfit(site, WHYS[0], ready=False)
        site.unfit |= {"server-6": FULL_DISK, "server-55": WHYS[0]}
        scale_in(site, "server-5")
        assert FIVE not in site.members

    def test_silent_ones_leave_as_ever(self, site):
        for server in ("server-5", "server-6", "server-55"):
            site.kill(server)
        scale_in(site, "server-5")
        assert FIVE not in site.members


PLANES = [f"control-plane-10-10-0-{n}" for n in (1, 2, 3)]


def leaders(site):
    """The first control plane in the inventory of each run."""
    texts = site.inventories[-len(site.runs) :]
    return [of_role(inventory.parse(t), Role.CONTROL_PLANE)[0].name for t in texts]


@pytest.mark.parametrize("balanced", [True, False], ids=["balanced", "direct"])
class TestFirstControlPlane:
    """kubespray delegates to the first one, whatever a run is limited to."""

    @pytest.fixture(params=["dead", "API down", *WHYS[:3]], ids=str)
    def site(self, request, balanced):
        site = AvailableSite(load_balancer=balanced)
        if request.param == "dead":
            site.kill("server-1")
        elif request.param == "API down":
            site.api_is_down.add("10.10.0.1")
        else:
            site.unfit["server-1"] = request.param
        return site

    def test_a_worker_joins(self, site):
        site.workers.append(machine(Role.WORKER, 6))
        scale_out(site, "server-6")
        assert SIX in site.members
        assert set(leaders(site)) == {PLANES[1]}

    def test_a_worker_leaves(self, site):
        scale_in(site, "server-5")
        assert FIVE not in site.members
        assert set(leaders(site)) == {PLANES[1]}

    def test_a_dead_worker_leaves(self, site):
        site.kill("server-5")
        scale_in(site, "server-5")
        assert FIVE not in site.members
        assert set(leaders(site)) == {PLANES[1]}

    def test_a_worker_is_healed(self, site):
        heal_start(site, "server-5")
        (new,) = site.rebuild("server-5")
        heal_end(site, new)
        assert FIVE in site.members
        assert set(leaders(site)) == {PLANES[1]}

    def test_the_order_is_kept_when_it_is_well_again(self, site):
        scale_in(site, "server-5")
        site.dead, site.api_is_down, site.unfit = set(), set(), {}
        heal_start(site, "server-55")
        order = [n for n in site_order(site) if n.startswith("control")]
        assert order == [PLANES[1], PLANES[0], PLANES[2]]


@pytest.mark.parametrize("plugin", ["calico", "flannel", "cilium"])
def test_workers_get_certificates_of_etcd_from_another_first_one(plugin):
    """kubespray puts the script for them on the first one of a run's own hosts."""
    site = AvailableSite(cluster={"network": {"plugin": plugin}})
    site.kill("server-1")
    for number in (6, 7):
        site.workers.append(machine(Role.WORKER, number))
        scale_out(site, f"server-{number}", wanted=site.wanted)
    assert {SIX, SEVEN} <= set(site.members)
    joined = [run for run in site.runs if run.name == "scale"]
    with_leader = plugin != "calico"
    assert [PLANES[1] in run.limit.split(",") for run in joined] == [with_leader] * 2


@pytest.mark.parametrize("planes", [1, 3])
def test_the_only_control_plane_is_left_out_of_the_run(planes):
    site = AvailableSite(planes, cluster={"network": {"plugin": "flannel"}})
    site.workers.append(machine(Role.WORKER, 6))
    scale_out(site, "server-6", wanted=site.wanted)
    (limit,) = [run.limit for run in site.runs if run.name == "scale"]
    assert limit.split(",") == [SIX, *([PLANES[0]] if planes > 1 else [])]


def site_order(site):
    return [node.name for node in inventory.parse(site.files["hosts.yaml"])]


def test_a_well_one_stays_the_first():
    site = AvailableSite()
    scale_in(site, "server-5")
    assert site_order(site)[:3] == PLANES
    assert "workdir.write hosts.yaml" in site.calls


def test_every_api_server_but_the_last_may_be_down():
    site = AvailableSite()
    site.api_is_down |= {"10.10.0.1", "10.10.0.2"}
    scale_in(site, "server-5")
    assert leaders(site) == [PLANES[2]]


class TestUninitialized:
    """Ready, and nothing can run there."""

    @pytest.fixture
    def joining(self, monkeypatch):
        real, site = FakeCluster.nodes, grown(6)

        def nodes(cluster):
            return [
                replace(node, taints=(TAINT,)) if node.name == SIX else node
                for node in real(cluster)
            ]

        monkeypatch.setattr(FakeCluster, "nodes", nodes)
        return site

    def test_it_does_not_count_as_joined(self, joining):
        with pytest.raises(errors.StepFailed) as caught:
            scale_out(joining, "server-6")
        text = str(caught.value)
        assert f"are not Ready: {SIX}: Ready, but {UNINITIALIZED}" in text
        assert "the log of the controller that takes the taint away" in text
        assert SIX not in [name for name, _ in joining.routes]
        assert "server-6" not in joining.files["joined.json"]

    def test_one_that_was_so_before_is_not_waited_for(self, joining):
        joining.cluster_nodes.append(FakeNode(SIX, machine_id="server-6"))
        heal_start(joining, "server-9")
        assert SIX in joining.files["healing.json"]


class TestClocks:
    @pytest.mark.parametrize("seconds", [-61.0, 3600.0])
    @pytest.mark.parametrize("server", ["server-4", "server-55", "server-6"])
    def test_far_off_no_playbook_is_run(self, seconds, server):
        site = grown(6)
        site.ahead[server] = seconds
        before = site.files["hosts.yaml"]
        with pytest.raises(errors.StepFailed, match="chrony") as caught:
            scale_out(site, "server-6")
        how = f"{abs(seconds):.1f} s {'ahead' if seconds > 0 else 'behind'}"
        assert f"{server.rpartition('-')[2]} ({how})" in str(caught.value)
        assert site.runs == []
        assert site.files["hosts.yaml"] == before

    @pytest.mark.parametrize("verb", [scale_in, heal_start])
    def test_before_a_drain_too_but_not_for_the_one_that_leaves(self, verb):
        site = instantiated()
        site.ahead["server-5"] = 100.0
        verb(site, "server-5")
        other = instantiated()
        other.ahead["server-55"] = 100.0
        with pytest.raises(errors.StepFailed, match=r"100\.0 s ahead"):
            verb(other, "server-5")
        assert "cluster.cordon" not in other.calls

    def test_a_small_difference_is_logged(self, caplog):
        site = grown(6)
        site.ahead |= {"server-55": -5.5, "server-5": 4.9}
        scale_out(site, "server-6")
        assert f"{FIFTY_FIVE} (5.5 s behind)" in caplog.text
        assert f"{FIVE} (" not in caplog.text

    def test_before_an_installation(self):
        with pytest.raises(errors.StepFailed, match=r"90\.0 s ahead"):
            instantiated(kind=Late)


class Late(FakeSite):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.ahead = {"server-5": 90.0}


class Vms:
    def __init__(self, *boots):
        self.boots = list(boots)

    def identity(self, node, *, again=False):
        if again:
            self.boots.pop(0)
        return MachineIdentity("machine-1", self.boots[0])


@pytest.mark.parametrize("boots", [["boot-1", "boot-2"], ["boot-2", "boot-3"]])
def test_a_vm_that_has_booted_again_is_itself(boots):
    (node,) = name_nodes([machine(Role.WORKER, 1)])
    seen = {node.name: FakeNode(node.name, machine_id="machine-1", boot_id="boot-2")}
    readiness.verify_identity(Vms(*boots), seen, [node])
    seen = {node.name: FakeNode(node.name, machine_id="machine-2", boot_id="boot-2")}
    with pytest.raises(errors.ClusterError, match="another machine"):
        readiness.verify_identity(Vms(*boots), seen, [node])
