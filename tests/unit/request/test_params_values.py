# SPDX-License-Identifier: Apache-2.0
"""The values of attributes: what is refused, how it is told, and what is taken."""

import pytest

from tests.helpers.param_samples import SHARED, WRONG
from tests.helpers.samples import REMOVED, changed, parsed, problems, read, request


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [pytest.param(*case, id=f"{case[0]}={case[1]!r}"[:60]) for case in WRONG],
)
def test_a_wrong_value_is_one_readable_problem(name, value, expected):
    found = problems(changed({name: value}))
    if expected is None:
        expected = f"is deleted with the cluster, so {name} must not be in it"
        name = "ansible.transferring_inventory_path"
    assert found == (f"{name}: {expected}",)


@pytest.mark.parametrize("path", ["/", "//", "/opt/.", "/./"])
def test_the_root_of_everything_is_never_owned(path):
    found = problems(changed({"ansible.transferring_inventory_path": path}))
    assert found[0] == f"ansible.transferring_inventory_path: {SHARED}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ansible.ip_address", "ansible.example.org"),
        ("ansible.ip_address", "ansible.example.org."),
        ("ansible.ip_address", "2001:db8::5"),
        ("ansible.ip_address", "127.0.0.1"),
        ("ansible.transferring_inventory_path", "/opt/kubespray/inventory/mycluster"),
        ("ansible.transferring_inventory_path", "/root/clusters"),
        ("ansible.password", "blanks and {{ braces }} ' \" ü"),
        ("vim_name", "x" * 255),
        ("proxy.http_proxy", "http://user:pa%20ss@[2001:db8::1]:3128/"),
        ("proxy.k8s_node_cidr", "2001:db8::/64"),
        ("external_lb_param.script_path", "Scripts/sub/../lb.sh"),
    ],
)
def test_unusual_but_right_values_are_taken(name, value):
    assert parsed({name: value})


class TestAddressFamily:
    IPV6 = {
        "address_family": "ipv6",
        "master_node.pod_cidr": "fd00:10::7/112",
        "master_node.cluster_cidr": "fd00:20::/116",
    }

    def test_networks_may_be_of_the_other_one_when_it_is_asked_for(self):
        made = parsed(self.IPV6)
        assert (str(made.pod_cidr), str(made.service_cidr)) == (
            "fd00:10::/112",
            "fd00:20::/116",
        )
        assert "master_node.pod_cidr: is taken as fd00:10::/112" in made.warnings

    def test_networks_of_both_are_refused_each(self):
        mixed = {**self.IPV6, "master_node.cluster_cidr": "10.233.0.0/18"}
        assert problems(changed(mixed)) == (
            "master_node.cluster_cidr: must be of the family that address_family "
            "names, ipv6",
        )

    def test_defaults_of_the_right_family_are_compared(self):
        near = {**self.IPV6, "master_node.cluster_cidr": REMOVED}
        near["master_node.pod_cidr"] = "fd85:ee78:d8a6:8607::/64"
        (problem,) = problems(changed(near))
        assert "kubespray's default fd85:ee78:d8a6:8607::1000/116" in problem

    @pytest.mark.parametrize(
        ("name", "family", "expected"),
        [
            ("ipv4_stack", "ipv4", "use address_family"),
            ("ipv6_stack", "ipv4", None),
            ("kube_pods_subnet_ipv6", "ipv4", None),
            ("ipv4_stack", "ipv6", "use address_family"),
            ("ipv6_stack", "ipv6", "use address_family"),
            ("kube_pods_subnet_ipv6", "ipv6", "use master_node.pod_cidr"),
            ("kube_service_addresses_ipv6", "ipv6", "use master_node.cluster_cidr"),
        ],
    )
    def test_variables_of_both_together_are_open_beside_ipv4_only(
        self, name, family, expected
    ):
        changes = {**(self.IPV6 if family == "ipv6" else {})}
        body = changed({**changes, "kubespray_vars": {name: "x"}})
        if expected is None:
            assert read(request(body))
        else:
            assert problems(body) == (
                f"kubespray_vars.{name}: cannot be set here; {expected}",
            )


class TestDrain:
    def test_nothing_given_is_the_careful_way(self):
        for changes in ({}, {"drain": {}}, {"drain": None}):
            made = parsed(changes).drain
            assert (made.timeout, made.grace_period, made.parallel) == (300, -1, 5)
            assert (made.on_failure, made.disable_eviction) == ("abort", False)
            assert made.delete_emptydir_data is True

    def test_everything_arrives(self):
        given = {
            "timeout": 60,
            "grace_period": 0,
            "on_failure": "force",
            "delete_emptydir_data": False,
            "disable_eviction": True,
            "parallel": 1,
        }
        assert parsed({"drain": given}).drain.model_dump() == given


class TestNetworks:
    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            (
                {"master_node.pod_cidr": "10.233.0.0/16"},
                "master_node.pod_cidr: 10.233.0.0/16 overlaps master_node.cluster_cidr "
                "(10.233.0.0/18)",
            ),
            (
                {"proxy.k8s_node_cidr": "10.233.64.0/24"},
                "master_node.pod_cidr: 10.233.64.0/18 overlaps proxy.k8s_node_cidr "
                "(10.233.64.0/24)",
            ),
            (
                {
                    "master_node.pod_cidr": "10.233.0.0/17",
                    "master_node.cluster_cidr": REMOVED,
                },
                "master_node.pod_cidr: 10.233.0.0/17 overlaps master_node.cluster_cidr "
                "(kubespray's default 10.233.0.0/18)",
            ),
        ],
    )
    def test_overlaps_are_named_with_both_networks(self, changes, expected):
        assert problems(changed(changes)) == (expected,)

    def test_other_problems_do_not_hide_an_overlap(self):
        found = problems(
            changed({"master_node.pod_cidr": "10.233.0.0/16", "vim_name": 5})
        )
        assert len(found) == 2

    def test_families_are_not_compared(self):
        assert parsed({"proxy.k8s_node_cidr": "::/0"})


class TestKubesprayVars:
    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("kube_pods_subnet", "cannot be set here; use master_node.pod_cidr"),
            ("no_proxy", "cannot be set here; use proxy.no_proxy"),
            ("ip", "cannot be set here; it is set for each node in the inventory"),
            ("node", "cannot be set here; it belongs to the removal of a node"),
            ("etcd", "cannot be set here; it is a group of the inventory"),
            (
                "kube_apiserver_port",
                "cannot be set here; it is 6443; external_lb_param.api_port is free",
            ),
            (
                "kube_override_hostname",
                "cannot be set here; nodes have the names of the inventory",
            ),
            (
                "kube_config_dir",
                "cannot be set here; admin.conf is looked for in /etc/kubernetes",
            ),
            (
                "ansible_password",
                "cannot be set here; it tells Ansible how to reach the nodes",
            ),
        ],
    )
    def test_variables_of_this_driver_are_refused_by_name(self, name, expected):
        body = changed({"kubespray_vars": {name: "x", "helm_enabled": True}})
        assert problems(body) == (f"kubespray_vars.{name}: {expected}",)

    @pytest.mark.parametrize("name", ["a-b", "1st", "a b", "", "a.b"])
    def test_names_must_be_variable_names(self, name):
        body = changed({"kubespray_vars": {name: 1}})
        assert "is not the name of a variable" in problems(body)[-1]

    @pytest.mark.parametrize("value", [{1, 2}, float("nan"), b"x"])
    def test_values_must_fit_json(self, value):
        body = changed({"kubespray_vars": {"calico_mtu": value}})
        assert problems(body) == (
            "kubespray_vars.calico_mtu: cannot be written as JSON",
        )
