import pytest

from tacker_k8s_mgmt.model import kubespray_releases, reserved_variables
from tacker_k8s_mgmt.model.nodes import Node, Role


def plane(name, server_id, ssh_address, address, member):
    return Node(
        Role.CONTROL_PLANE,
        server_id,
        ssh_address,
        address,
        name=name,
        etcd_member_name=member,
    )


def test_the_table_has_no_gap_between_its_releases():
    minors = sorted(kubespray_releases.RELEASES)
    assert minors == [(2, minor) for minor in range(24, 24 + len(minors))]


class TestRemovalVariables:
    def test_both_generations_of_confirmation_are_given(self):
        assert kubespray_releases.removal_variables() == {
            "skip_confirmation": True,
            "delete_nodes_confirmation": "yes",
        }

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"dead": True}, {"reset_nodes": False, "allow_ungraceful_removal": True}),
            ({"undrained": True}, {"allow_ungraceful_removal": True}),
        ],
    )
    def test_an_ungraceful_removal_is_requested_with_booleans(self, asked, expected):
        built = kubespray_releases.removal_variables(**asked)
        assert expected.items() <= built.items()
        assert all(built[name] is value for name, value in expected.items())

    def test_none_of_them_is_open_to_the_user(self):
        built = kubespray_releases.removal_variables(dead=True, undrained=True)
        assert [name for name in built if not reserved_variables.reserved(name)] == []


class TestControlPlanes:
    def test_a_run_is_limited_to_them_without_those_that_are_silent(self):
        limit = kubespray_releases.limit_to_control_planes
        assert limit() == "etcd,kube_control_plane"
        assert limit(["a", "b"]) == "etcd,kube_control_plane,!a,!b"

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
        told = kubespray_releases.member_variables([node, other])
        peers = f"etcd1=https://10.10.0.9:2380,etcd3={url}"
        assert told == {"etcd_retries": 10, "etcd_peer_addresses": peers}


class TestUpgradeVariables:
    """Of the drain policy, for the nodes that kubespray drains itself, and others."""

    def test_the_policys_are_among_them(self):
        built = kubespray_releases.upgrade_variables({"drain_timeout": "90s"})
        assert built["drain_timeout"] == "90s"
        assert built["upgrade_node_fail_if_drain_fails"] is True
        assert "serial" not in built

    def test_a_batch_is_upgraded_at_once(self):
        built = kubespray_releases.upgrade_variables({}, ["w1", "w2", "w3"])
        assert built["serial"] == 3

    def test_kubespray_asks_for_no_confirmation(self):
        built = kubespray_releases.upgrade_variables({})
        assert built["upgrade_node_confirm"] is False
        assert built["upgrade_node_post_upgrade_confirm"] is False
