import json

from tacker_k8s_mgmt.cluster import kubespray, variables
from tacker_k8s_mgmt.cluster.nodes import Machine, Role, name_nodes
from tests.unit.cluster.samples import REMOVED, as_json, assert_golden, machine, parsed

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


def build(changes, balancer=BALANCER):
    return variables.build(parsed(changes), NODES, balancer)


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
        "supplementary_addresses_in_ssl_keys": ["10.99.0.5"]
    }


def test_the_certificate_names_each_address_once():
    balancer = Machine(Role.LOAD_BALANCER, "lb", "10.99.0.19", "10.99.0.19")
    addresses = build({}, balancer)["supplementary_addresses_in_ssl_keys"]
    assert addresses == ["10.99.0.19", "10.99.0.5"]


def test_without_a_proxy_url_nothing_is_said_about_proxies():
    built = build({"proxy": {"no_proxy": "a", "k8s_node_cidr": "10.10.0.0/24"}})
    assert not [name for name in built if "proxy" in name]


def test_one_proxy_url_alone_is_enough():
    built = build({"proxy": {"https_proxy": "http://proxy:3128"}})
    assert "http_proxy" not in built
    assert built["https_proxy"] == "http://proxy:3128"
    assert built["additional_no_proxy"] == "10.99.0.19,10.10.0.9"


def test_types_survive_json():
    built = json.loads(json.dumps(build(EVERYTHING)))
    assert built["no_proxy_exclude_workers"] is True
    assert built["loadbalancer_apiserver"] == {"address": "10.10.0.9", "port": 8443}
    assert (built["helm_enabled"], built["calico_mtu"]) == (True, 1450)


def test_every_variable_of_ours_is_closed_to_the_user():
    ours = build({**EVERYTHING, "kubespray_vars": {}})
    assert [name for name in ours if not kubespray.reserved(name)] == []
