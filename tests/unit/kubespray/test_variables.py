# SPDX-License-Identifier: Apache-2.0
import html
import re

import jinja2
import pytest

from tacker_k8s_mgmt.kubespray import variables
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes
from tacker_k8s_mgmt.request import cross_checks
from tests.helpers.samples import IPV6, REMOVED, as_json, assert_golden, machine, parsed

NODES = name_nodes([machine(Role.CONTROL_PLANE, 5), machine(Role.WORKER, 7)])
BALANCER = Machine(Role.LOAD_BALANCER, "lb", "10.99.0.19", "10.10.0.9")
PROXY = {
    "http_proxy": "http://user:pa%20ss@proxy:3128",
    "https_proxy": "https://proxy:3129",
    "no_proxy": "192.168.246.0/24, 10.0.0.1,10.10.0.9",
    "k8s_node_cidr": "10.10.0.0/24",
}
EVERYTHING = {
    "proxy": PROXY,
    "external_lb_param.api_port": 8443,
    "kubespray_vars": {
        "kube_network_plugin": "calico",
        "helm_enabled": True,
        "calico_mtu": 1450,
        "node_labels": {"kind": "vm"},
    },
}


#: What is set where the user says nothing, and may be set otherwise.
USERS = {"auto_renew_certificates", "unsafe_show_logs"}


def build(changes, balancer=BALANCER, nodes=NODES):
    return variables.build(parsed(changes), nodes, balancer)


def no_proxy(built) -> list[str]:
    return built["additional_no_proxy"].split(",")


def test_the_simple_clusters_variables_are_the_golden_ones():
    assert_golden("variables-simple.json", as_json(build({})))


def test_everything_at_once_is_the_golden_text():
    assert_golden("variables-everything.json", as_json(build(EVERYTHING)))


def test_nothing_given_leaves_kubesprays_defaults():
    changes = {
        "external_lb_param": REMOVED,
        "master_node.pod_cidr": REMOVED,
        "master_node.cluster_cidr": REMOVED,
    }
    assert build(changes, None) == {
        "supplementary_addresses_in_ssl_keys": ["10.99.0.5"],
        "auto_renew_certificates": True,
        "unsafe_show_logs": "{{ download is defined }}",
    }


FLANNEL = {"cluster.network": {"plugin": "flannel"}}


def flannel(*machines, **changes):
    nodes = name_nodes(
        Machine(Role.CONTROL_PLANE, address, outside, address)
        for address, outside in machines
    )
    built = build({**FLANNEL, **changes}, None, nodes)
    return built.get("flannel_interface_regexp")


class TestFlannel:
    """It takes the interface with the default route, unless it is told another one."""

    @pytest.mark.parametrize(
        ("addresses", "pattern"),
        [
            ([("10.10.0.1", "10.99.0.5"), ("10.10.7.9", "10.99.0.6")], "10[.]10[.]"),
            ([("10.0.1.1", "10.0.2.5"), ("10.0.1.9", "10.0.2.6")], "10[.]0[.]1[.]"),
        ],
    )
    def test_goes_through_the_clusters_network(self, addresses, pattern):
        found = flannel(*addresses)
        assert found == f"^{pattern}"
        for inside, outside in addresses:
            assert re.search(found, inside)
            assert not re.search(found, outside)

    @pytest.mark.parametrize(
        "addresses",
        [
            # One network.
            [("10.10.0.1", "10.10.0.1")],
            # Only the last octet differs.
            [("10.0.0.1", "10.0.0.201"), ("10.0.0.2", "10.0.0.202")],
            # The nodes' own have nothing in common.
            [("10.1.0.1", "172.16.0.1"), ("10.2.0.1", "172.16.0.2")],
            [("fd00:10::1", "fd00:99::1")],
        ],
    )
    def test_flannel_chooses_where_addresses_do_not_decide(self, addresses):
        assert flannel(*addresses) is None

    def test_users_choice_counts(self):
        for name, value in (
            ("flannel_interface", "ens4"),
            ("flannel_interface_regexp", "^172[.]"),
        ):
            changes = {"kubespray_vars": {name: value}}
            built = build(FLANNEL | changes)
            ours = {key for key in built if key.startswith("flannel_interface")}
            assert ours == {name}
            assert built[name] == value


@pytest.mark.parametrize(
    "url",
    [
        {"cluster.offline": {"files_repo": "https://me:secret@mirror.example.org"}},
        {"kubespray_vars": {"runc_download_url": "http://token@example.org/runc"}},
        {"kubespray_vars": {"etcd_download_url": "https://s3.example.org/a?sig=s"}},
        {"proxy": PROXY},
    ],
)
def test_downloads_stay_hidden_where_a_url_holds_a_credential(url):
    assert "unsafe_show_logs" not in build(url)


@pytest.mark.parametrize("name", sorted(USERS))
def test_users_own_word_counts(name):
    assert build({"kubespray_vars": {name: False}})[name] is False


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster.renew_certificates": False},
        {"kubespray_vars": {"kube_external_ca_mode": True}},
    ],
)
def test_certificates_are_not_renewed_where_that_is_not_wanted(changes):
    assert "auto_renew_certificates" not in build(changes)


def test_without_a_load_balancer_nodes_have_kubesprays_own_and_the_vim_any_plane():
    planes = [machine(Role.CONTROL_PLANE, number) for number in (5, 6, 7)]
    nodes = name_nodes([*planes, machine(Role.WORKER, 8)])
    built = build({"external_lb_param": REMOVED}, None, nodes)
    # Set, it would turn off loadbalancer_apiserver_localhost, which is on by default.
    assert [name for name in built if name.startswith("loadbalancer")] == []
    assert built["supplementary_addresses_in_ssl_keys"] == [
        *("10.99.0.5", "10.99.0.6", "10.99.0.7")
    ]


def test_one_network_alone_is_enough():
    pods = build({"master_node.cluster_cidr": REMOVED})
    assert pods["kube_pods_subnet"] == "10.233.64.0/18"
    assert "kube_service_addresses" not in pods
    services = build({"master_node.pod_cidr": REMOVED})
    assert services["kube_service_addresses"] == "10.233.0.0/18"
    assert "kube_pods_subnet" not in services


def test_a_proxys_credentials_arrive_whatever_they_are():
    url = "http://us&er:p$(id)`x`%22'%23|s@proxy:3128"
    assert build({"proxy": {"http_proxy": url}})["http_proxy"] == url


def test_the_certificate_names_each_address_once():
    balancer = Machine(Role.LOAD_BALANCER, "lb", "10.99.0.19", "10.99.0.19")
    addresses = build({}, balancer)["supplementary_addresses_in_ssl_keys"]
    assert addresses == ["10.99.0.19", "10.99.0.5"]


def test_without_a_proxy_url_there_are_no_proxy_variables():
    built = build({"proxy": {"no_proxy": "a", "k8s_node_cidr": "10.10.0.0/24"}})
    assert not [name for name in built if "proxy" in name]


def test_one_proxy_url_alone_is_enough():
    built = build({"proxy": {"https_proxy": "http://proxy:3128"}})
    assert "http_proxy" not in built
    assert built["https_proxy"] == "http://proxy:3128"
    assert no_proxy(built) == [
        *("10.233.64.0/18", "10.233.0.0/18", "10.99.0.19", "10.10.0.9")
    ]


def test_an_empty_proxy_structure_is_none():
    assert build({"proxy": {}}) == build({})


def test_kubesprays_own_networks_go_without_the_proxy_where_none_are_given():
    changes = {"proxy": PROXY, "master_node.pod_cidr": REMOVED}
    assert "10.233.64.0/18" in no_proxy(build(changes))


def test_workers_are_left_to_their_network_where_it_is_known():
    assert build({"proxy": PROXY})["no_proxy_exclude_workers"] is True
    without = {**PROXY, "k8s_node_cidr": ""}
    assert "no_proxy_exclude_workers" not in build({"proxy": without})


class TestIPv6:
    NODES = name_nodes(
        [
            Machine(Role.CONTROL_PLANE, "s5", "2001:db8::5", "fd00::5"),
            Machine(Role.WORKER, "s7", "2001:db8::7", "fd00::7"),
        ]
    )
    BALANCER = Machine(Role.LOAD_BALANCER, "lb", "2001:db8::19", "fd00::9")
    CHANGES = {**IPV6, "master_node.pod_cidr": "fd00:10::/112"}

    def test_the_golden_text(self):
        built = build({**self.CHANGES, "proxy": PROXY}, self.BALANCER, self.NODES)
        assert_golden("variables-ipv6.json", as_json(built))

    def test_every_other_variable_of_ours_is_closed_to_the_user(self):
        ours = build(self.CHANGES, self.BALANCER, self.NODES)
        open_ones = {name for name in ours if not cross_checks.reserved(name, "ipv6")}
        assert open_ones - USERS == set()


def test_services_have_no_external_addresses_where_there_are_tenants():
    name = "kube_apiserver_enable_admission_plugins"
    assert name not in build({})
    built = build({"tenants": [{"name": "blue"}]})
    environment = jinja2.Environment(autoescape=True)
    environment.tests["version"] = lambda found, limit, _: (
        [int(part) for part in found.split(".")[:2]]
        < [int(n) for n in limit.split(".")]
    )
    template = environment.from_string(built[name])
    for version, plugins in (
        *(("v1.29.10", "DenyServiceExternalIPs"), ("1.28.3", "DenyServiceExternalIPs")),
        *(("v1.30.0", ""), ("1.31.9", "")),
    ):
        rendered = html.unescape(template.render(kube_version=version))
        assert rendered == (f"['{plugins}']" if plugins else "[]")
    own = {"tenants": [{"name": "blue"}], "kubespray_vars": {name: ["NodeRestriction"]}}
    assert build(own)[name] == ["NodeRestriction"]
    (warning,) = [text for text in parsed(own).warnings if name in text]
    assert "DenyServiceExternalIPs" in warning


def test_every_other_variable_of_ours_is_closed_to_the_user():
    ours = build({**EVERYTHING, "kubespray_vars": {}})
    open_ones = {name for name in ours if not cross_checks.reserved(name)}
    assert open_ones - USERS == set()


@pytest.mark.parametrize(
    ("changes", "repository"),
    [
        ({}, "registry.k8s.io/pause"),
        (
            {"cluster": {"offline": {"registry_host": "images.example.org:5000/k8s"}}},
            "images.example.org:5000/k8s/pause",
        ),
        (
            {"kubespray_vars": {"kube_image_repo": "mirror.example.org"}},
            "mirror.example.org/pause",
        ),
        (
            {
                "kubespray_vars": {
                    "pod_infra_image_repo": "{{ registry_host }}/own-pause",
                    "registry_host": "mirror.example.org",
                }
            },
            "mirror.example.org/own-pause",
        ),
        ({"kubespray_vars": {"kube_image_repo": "{{ inventory_hostname }}"}}, ""),
        ({"kubespray_vars": {"kube_image_repo": "{{ kube_image_repo }}"}}, ""),
        ({"kubespray_vars": {"kube_image_repo": "{% if a %}b{% endif %}"}}, ""),
        ({"kubespray_vars": {"kube_image_repo": "a" * 300}}, ""),
        (
            {
                "kubespray_vars": {
                    "kube_image_repo": "{{ a }}" * 40,
                    "a": "{{ b }}" * 40,
                    "b": "{{ a }}" * 40,
                }
            },
            "",
        ),
    ],
)
def test_the_sandboxes_image_is_of_the_registry_that_kubespray_uses(
    changes, repository
):
    assert variables.sandbox_repository(parsed(changes)) == repository
