# SPDX-License-Identifier: Apache-2.0
"""Options that do not go together are refused before anything is made."""

import pytest

from tests.helpers.samples import changed, parsed, problems

CREDENTIAL = {
    f"application_credential_{name}": value
    for name, value in (("id", "a"), ("name", "b"), ("secret", "cccc"))
}
USER = {"username": "u", "password": "pppp", "project_id": "p", "domain_name": "d"}
CLOUD = {"auth_url": "https://cloud:5000/v3", "region": "one"}


def network(**given):
    return {"cluster.network": given}


def registry(**given):
    return {"cluster.registries": [{"prefix": "r", **given}]}


def older(**given):
    return {"private_registry_connection_info": [{"connection_type": 0, **given}]}


def own_registry(**given):
    return {"cluster.node_registry": given}


def without(values, name):
    return {key: value for key, value in values.items() if key != name}


ALLOWED = [
    network(plugin="calico", encapsulation="ipip", mtu=1400),
    network(plugin="flannel", encapsulation="none"),
    network(plugin="kube-ovn", mtu="nodes"),
    network(mtu=1400),
    network(plugin="macvlan"),
    network(plugin="kube-router", encapsulation="none"),
    network(plugin="macvlan", encapsulation=""),
    {"cluster.openstack": {**CLOUD, **CREDENTIAL}, "cluster.storage.cinder": True},
    {"cluster.openstack": {**CLOUD, **USER, "cloud_controller": True}},
    {"cluster.storage.cinder": False},
    own_registry(),
    own_registry() | {"cluster.local_registry": True},
    own_registry(storage_class="nfs"),
    own_registry(storage_class="local-path") | {"cluster.storage.local_path": True},
    own_registry(address="10.96.0.12") | {"master_node.cluster_cidr": "10.96.0.0/12"},
]
IPV6 = {
    "address_family": "ipv6",
    "master_node.pod_cidr": "fd00:1::/112",
    "master_node.cluster_cidr": "fd00:2::/116",
}
LABEL_IS_SET = "worker_node.compute_host_label sets this label already"
CALICOS = "cluster.network.encapsulation: with calico it can be vxlan or ipip or none"
REFUSED = [
    (
        {
            "worker_node.compute_host_label": "CIS-node",
            "worker_node.node_labels": ["CIS-node=by-hand"],
        },
        f"worker_node.node_labels: {LABEL_IS_SET}",
    ),
    (
        {
            "worker_node.compute_host_label": "CIS-node",
            "worker_node.aspects": [
                {"aspect_id": "gpu", "node_labels": ["a=b", "CIS-node=by-hand"]}
            ],
        },
        f"worker_node.aspects.0.node_labels: {LABEL_IS_SET}",
    ),
    (
        {"worker_node.aspects": [{"aspect_id": "gpu"}, {"aspect_id": "gpu"}]},
        "worker_node.aspects.1.aspect_id: the aspect is given twice",
    ),
    (
        own_registry() | {"cluster.container_manager": "docker"},
        "cluster.node_registry: Docker has mirrors of docker.io only; use containerd "
        "or crio",
    ),
    (
        own_registry() | {"cluster.local_registry": False},
        "cluster.local_registry: is false, and cluster.node_registry runs a registry "
        "in the cluster",
    ),
    (
        own_registry() | registry(prefix="registry.local:5000"),
        "cluster.node_registry.name: the registry is given twice",
    ),
    (
        own_registry(address="10.96.0.12"),
        "cluster.node_registry.address: must be in 10.233.0.0/18, of Services",
    ),
    (
        own_registry() | {"master_node.cluster_cidr": "10.96.0.0/29"},
        "cluster.node_registry: the network of Services is too small for its address",
    ),
    (
        own_registry(address="ten"),
        "cluster.node_registry.address: must be an IP address",
    ),
    (
        own_registry(size="20 GB"),
        "cluster.node_registry.size: must be a size such as 20Gi",
    ),
    (
        own_registry(storage_class="local-path"),
        "cluster.node_registry.storage_class: local-path comes with "
        "cluster.storage.local_path, which is not requested",
    ),
    (
        network(plugin="calcio"),
        "cluster.network.plugin: must be one of calico, cilium, cloud, cni, "
        "custom_cni, flannel, kube-ovn, kube-router, macvlan, none, weave",
    ),
    (
        network(plugin="cilium", encapsulation="ipip"),
        "cluster.network.encapsulation: with cilium it can be vxlan or geneve",
    ),
    (network(encapsulation="geneve"), CALICOS),
    (network(encapsulation="gre"), CALICOS),
    (
        network(plugin="macvlan", encapsulation="none"),
        "cluster.network.encapsulation: with macvlan it can be nothing: it has no such "
        "choice",
    ),
    (
        network(plugin="flannel", mtu=1400),
        "cluster.network.mtu: flannel finds out by itself; it can be set for calico, "
        "cilium, kube-ovn, weave",
    ),
    (
        IPV6 | network(encapsulation="ipip"),
        "cluster.network.encapsulation: ipip carries no IPv6, which address_family "
        "asks for",
    ),
    (
        IPV6 | network(mtu=1200),
        "cluster.network.mtu: IPv6, which address_family asks for, needs 1280 at least",
    ),
    (registry(username="u"), "cluster.registries.0: username and password go together"),
    (
        older(server="r", password="pppp"),
        "private_registry_connection_info.0: username and password go together",
    ),
    (
        {"cluster.registries": [{"prefix": "r"}, {"prefix": "r"}]},
        "cluster.registries.1: the registry is given twice",
    ),
    (
        registry(prefix="r:5000") | older(server="r:5000"),
        "private_registry_connection_info.0: the registry is given twice",
    ),
    (
        registry(ca_file="/etc/ca.pem") | {"cluster.container_manager": "crio"},
        "cluster.registries.0.ca_file: is for containerd only",
    ),
    (
        registry(username="u", password="pppp")
        | {"cluster.container_manager": "docker"},
        "cluster.registries.0.password: kubespray logs Docker in to no registry; use "
        "containerd or crio",
    ),
    (
        registry(mirrors=["http://m"]) | {"cluster.container_manager": "docker"},
        "cluster.registries.0.mirrors: Docker has mirrors of docker.io only; use "
        "containerd or crio",
    ),
    (
        {"cluster.storage.cinder": True},
        "cluster.storage.cinder: needs cluster.openstack, with the login at OpenStack",
    ),
    (
        {"cluster.openstack": {**CLOUD, **CREDENTIAL, **USER}},
        "cluster.openstack: has both an application credential and a user; give one of "
        "them",
    ),
    *(
        (
            {"cluster.openstack": {**CLOUD, **without(CREDENTIAL, name)}},
            f"cluster.openstack: {name} is missing; kubespray wants id, name and "
            "secret",
        )
        for name in CREDENTIAL
    ),
    *(
        (
            {"cluster.openstack": {**CLOUD, **without(USER, name)}},
            f"cluster.openstack: {shown} is missing, and there is no application "
            "credential",
        )
        for name, shown in (
            ("username", "username"),
            ("password", "password"),
            ("project_id", "project_id or project_name"),
            ("domain_name", "domain_id or domain_name"),
        )
    ),
    (
        {"cluster.openstack": {**CLOUD, **USER, "load_balancer_subnet_id": "s"}},
        "cluster.openstack.load_balancer_subnet_id: needs cloud_controller: true",
    ),
    (
        {
            "cluster.authentication.webhook": {
                "url": "https://w",
                "ca_certificate": "-----BEGIN CERTIFICATE-----\nAA==\n"
                "-----END CERTIFICATE-----",
                "skip_tls_verify": True,
            }
        },
        "cluster.authentication.webhook.skip_tls_verify: leaves ca_certificate without "
        "effect; give one of them",
    ),
]


@pytest.mark.parametrize("changes", ALLOWED)
def test_what_goes_together_is_taken(changes):
    assert parsed(changes).warnings == ()


@pytest.mark.parametrize(
    ("changes", "expected"), REFUSED, ids=[case[1][:60] for case in REFUSED]
)
def test_what_does_not_go_together_is_one_problem(changes, expected):
    assert problems(changed(changes)) == (expected,)


def test_all_of_them_come_at_once():
    body = changed(
        {
            "cluster.network": {"plugin": "flannel", "mtu": 1400},
            "cluster.storage.cinder": True,
            "cluster.registries": [{"prefix": "r", "username": "u", "colour": 1}],
            "cluster.kubernetes_version": "1.31",
            "worker_node.node_labels": ["x", "a=b"],
            "kubespray_vars": {"kube_network_plugin": "calico"},
        }
    )
    assert sorted(problems(body)) == [
        "cluster.kubernetes_version: must be a whole version such as 1.31.9",
        "cluster.network.mtu: flannel finds out by itself; it can be set for calico, "
        "cilium, kube-ovn, weave",
        "cluster.registries.0.colour: is not a known attribute",
        "cluster.registries.0: username and password go together",
        "cluster.storage.cinder: needs cluster.openstack, with the login at OpenStack",
        "kubespray_vars.kube_network_plugin: cannot be set beside "
        "cluster.network.plugin, which stands for it",
        "worker_node.node_labels.0: must be a label such as example.org/kind=fast",
    ]
