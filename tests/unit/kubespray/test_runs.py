# SPDX-License-Identifier: Apache-2.0
import pytest

from tacker_k8s_mgmt.kubespray import runs
from tacker_k8s_mgmt.model.nodes import Node, Role, RoleSpec
from tacker_k8s_mgmt.request import cross_checks
from tacker_k8s_mgmt.request.drain_policy import DrainPolicy

DRAIN = DrainPolicy(timeout=60, grace_period=20)
INPUTS = ("inventory", "variables")


def plane(name, server_id, ssh_address, address, member):
    return Node(
        Role.CONTROL_PLANE,
        server_id,
        ssh_address,
        address,
        name=name,
        etcd_member_name=member,
    )


class TestRemoval:
    def test_both_generations_of_confirmation_are_given(self):
        request = runs.remove(["w1", "w2"], DRAIN)
        assert request.extra_vars == {
            "node": "w1,w2",
            "skip_confirmation": True,
            "delete_nodes_confirmation": "yes",
            "drain_timeout": "60s",
        }

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"dead": True}, {"reset_nodes": False, "allow_ungraceful_removal": True}),
            ({"undrained": True}, {"allow_ungraceful_removal": True}),
        ],
    )
    def test_an_ungraceful_removal_is_requested_with_booleans(self, asked, expected):
        built = runs.remove(["w1"], DRAIN, **asked).extra_vars
        assert expected.items() <= built.items()
        assert all(built[name] is value for name, value in expected.items())

    @pytest.mark.parametrize("asked", [{"dead": True}, {"undrained": True}])
    def test_kubesprays_own_drain_of_an_ungraceful_one_has_the_policys_limits(
        self, asked
    ):
        built = runs.remove(["w1"], DRAIN, **asked).extra_vars
        assert (built["drain_timeout"], built["drain_grace_period"]) == ("60s", 20)

    def test_only_the_drains_variables_are_open_to_the_user(self):
        built = runs.remove(["w1"], DRAIN, dead=True, undrained=True).extra_vars
        free = {name for name in built if not cross_checks.reserved(name)}
        assert free == {"drain_timeout", "drain_grace_period"}

    def test_silent_nodes_are_left_out_unless_they_are_what_is_removed(self):
        assert runs.remove(["w1"], DRAIN).limit == ""
        assert runs.remove(["w1"], DRAIN, without=["w2"]).limit == "all:localhost:!w2"
        assert runs.remove(["w2"], DRAIN, dead=True, without=["w2"]).limit == ""


class TestControlPlanes:
    def test_a_run_is_limited_to_them_without_those_that_are_silent(self):
        assert runs.renew_certificates(INPUTS).limit == "etcd,kube_control_plane"
        request = runs.join_control_planes([], INPUTS, without=["a", "b"])
        assert request.limit == "etcd,kube_control_plane,!a,!b"

    @pytest.mark.parametrize(
        ("address", "url"),
        [
            ("10.10.0.4", "https://10.10.0.4:2380"),
            ("fd00::4", "https://[fd00::4]:2380"),
        ],
    )
    def test_etcd_members_are_pinned_by_their_own_names(self, address, url):
        node = plane("n", "s", "192.0.2.1", address, "etcd3")
        other = plane("m", "t", "192.0.2.2", "10.10.0.9", "etcd1")
        request = runs.join_control_planes([node, other], INPUTS)
        peers = f"etcd1=https://10.10.0.9:2380,etcd3={url}"
        assert request.extra_vars == {"etcd_retries": 10, "etcd_peer_addresses": peers}


class TestUpgrade:
    """Of the drain policy, for the nodes that kubespray drains itself, and others."""

    def test_the_policys_are_among_the_variables(self):
        request = runs.upgrade(DRAIN, INPUTS)
        assert request.limit == "etcd,kube_control_plane"
        assert request.extra_vars["drain_timeout"] == "60s"
        assert request.extra_vars["upgrade_node_fail_if_drain_fails"] is True
        assert "serial" not in request.extra_vars

    def test_a_batch_is_upgraded_at_once(self):
        request = runs.upgrade(DRAIN, INPUTS, ["w1", "w2", "w3"])
        assert request.limit == "w1,w2,w3"
        assert request.extra_vars["serial"] == 3

    def test_kubespray_asks_for_no_confirmation(self):
        built = runs.upgrade(DRAIN, INPUTS).extra_vars
        assert built["upgrade_node_confirm"] is False
        assert built["upgrade_node_post_upgrade_confirm"] is False


class TestJoin:
    NODES = tuple(
        Node(Role.WORKER, f"s{n}", f"10.99.0.{n}", f"10.10.0.{n}", name=f"w-{n}")
        for n in (4, 5)
    )

    def test_the_plays_of_scale_are_for_workers(self):
        request = runs.join(self.NODES, INPUTS, "cp-1")
        assert (request.playbook, request.limit) == (runs.JOIN, "w-4,w-5,cp-1")

    def test_nodes_of_another_role_join_by_the_installation(self, monkeypatch):
        reflector = RoleSpec("calico_rr_node", "reflector", ("calico_rr",))
        monkeypatch.setattr(runs, "ROLES", {Role.WORKER: reflector})
        request = runs.join(self.NODES, INPUTS)
        assert (request.playbook, request.limit) == (runs.INSTALL, "w-4,w-5")


class TestConfigured:
    """The nodes whose container engine a run configures."""

    PLANES = tuple(
        plane(f"cp-{n}", f"s{n}", f"10.99.0.{n}", f"10.10.0.{n}", f"etcd{n}")
        for n in (1, 2, 3)
    )
    WORKERS = tuple(
        Node(Role.WORKER, f"s{n}", f"10.99.0.{n}", f"10.10.0.{n}", name=f"w-{n}")
        for n in (4, 5)
    )
    NODES = (*PLANES, *WORKERS)

    def names(self, request):
        return [node.name for node in runs.configured(request, self.NODES)]

    def test_of_each_run(self):
        planes = ["cp-1", "cp-2", "cp-3"]
        assert self.names(runs.install(INPUTS)) == [*planes, "w-4", "w-5"]
        assert self.names(runs.join(self.WORKERS[1:], INPUTS)) == ["w-5"]
        assert self.names(runs.renew_certificates(INPUTS)) == planes
        assert self.names(runs.upgrade(DRAIN, INPUTS)) == planes
        assert self.names(runs.upgrade(DRAIN, INPUTS, ["w-4"])) == ["w-4"]
        joining = runs.join_control_planes(self.PLANES, INPUTS, without=["cp-2"])
        assert self.names(joining) == ["cp-1", "cp-3"]

    def test_a_removal_and_facts_configure_none(self):
        assert self.names(runs.remove(["w-4"], DRAIN)) == []
        assert self.names(runs.facts(())) == []
        assert self.names(runs.facts(["w-4"])) == []
