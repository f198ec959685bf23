# SPDX-License-Identifier: Apache-2.0
"""The specification's sample body on the package ``simple``, through Tacker's v1 API.

Address, paths and the id of the VIM are filled in, and nothing else is changed. Then
what the package's security groups do not admit is dropped, as Neutron would.
"""

from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from lab import client
from lab.cloud import ansible_server
from tacker_k8s_mgmt.tools.csar import archive
from tests.helpers import specification
from tests.integration.cluster import eventually
from tests.integration.conftest import ANSIBLE_SERVER, PARAMETERS, Cluster, Lab

pytestmark = pytest.mark.lab

TOP = "BaseHOT/simple/base_hot_top.yaml"
KUBELET, API, SSH = 10250, 6443, 22
#: A site of the specification has ansible-playbook on the user's PATH.
PROGRAM = "/usr/local/bin/ansible-playbook"
LISTENER = """
import socket
server = socket.create_server(("", {port}), reuse_port=True)
while True:
    server.accept()[0].close()
"""
KNOCK = """
import socket
try:
    socket.create_connection(("{address}", {port}), timeout=2).close()
    print("open")
except OSError:
    print("closed")
"""


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Cluster]:
    body = specification.instantiate()
    ours = body["additionalParams"][PARAMETERS]
    (vim,) = (one for one in lab.tacker.vims() if one["type"] == "openstack")
    body["vimConnectionInfo"][0]["vimId"] = vim["id"]
    with lab.instance("specification") as made:
        made.vim_name = ours["vim_name"]
        ours["ansible"] |= {
            "ip_address": ANSIBLE_SERVER,
            "kubespray_root_path": ansible_server.KUBESPRAY,
            "transferring_inventory_path": made.directory,
        }
        made.body = body
        link = f"ln -sfn {ansible_server.ENVIRONMENT}/bin/ansible-playbook {PROGRAM}"
        lab.ansible(link)
        try:
            made.instantiate()
            yield made
        finally:
            lab.ansible(f"rm {PROGRAM}")


def outside(cluster: Cluster) -> dict[str, list[str]]:
    """Addresses on the external network, by VDU."""
    found: dict[str, list[str]] = {}
    for server, vdu in cluster.servers().items():
        found.setdefault(vdu, []).append(cluster.address(server))
    return found


def test_the_cluster_meets_on_the_ports_of_the_request(lab, cluster):
    nodes = cluster.ready_nodes()
    assert all(nodes.values()), nodes
    known = outside(cluster)
    every = [*known["masterNode"], *known["workerNode"]]
    told = {
        address["address"]
        for node in cluster.nodes()
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    }
    assert told == set(every)
    assert len(cluster.routes()) == len(known["workerNode"]) == 2
    assert cluster.api("/readyz") == "ok"
    (vim,) = (one for one in lab.tacker.vims() if one["name"] == "kubernetes_vim")
    assert known["externalLB"][0] in vim["auth_url"]


def rules(lab: Lab, vdu: str, members: list[str]) -> Iterator[str]:
    """What the external port of a VM lets in, as rules of nftables.

    :param members: addresses of the ports with the group that admits its members.
    """
    tree = yaml.safe_load(archive.read(lab.csar)[TOP])
    resources, schemas = tree["resources"], tree["parameters"]
    ports = {
        "masterNode": resources["masterNode_CP1"]["properties"]["security_groups"],
        "externalLB": resources["externalLB_CP1"]["properties"]["security_groups"],
        "workerNode": resources["worker_instance"]["properties"]["resource"][
            "properties"
        ]["external_security_groups"],
    }
    assert all(
        {"get_resource": "external_cluster_access"} in one for one in ports.values()
    )

    def value(given):
        is_parameter = isinstance(given, dict)
        return schemas[given["get_param"]]["default"] if is_parameter else given

    for group in ports[vdu]:
        for rule in resources[group["get_resource"]]["properties"]["rules"]:
            words = []
            if rule.get("remote_mode") == "remote_group_id":
                words += ["ip saddr", "{", ", ".join(members), "}"]
            else:
                words += ["ip saddr", value(rule["remote_ip_prefix"])]
            if "port_range_min" in rule:
                low, high = value(rule["port_range_min"]), value(rule["port_range_max"])
                words += [rule["protocol"], "dport", f"{low}-{high}"]
            elif "protocol" in rule:
                words += ["ip protocol", rule["protocol"]]
            yield " ".join([*words, "accept"])


def filtered(lab: Lab, cluster: Cluster) -> None:
    """Have the VMs drop what their security groups do not admit."""
    members = [one for group in outside(cluster).values() for one in group]
    for server, vdu in cluster.servers().items():
        address = cluster.address(server)
        lines = [
            "ct state established,related accept",
            f"ip daddr != {address} accept",
            *rules(lab, vdu, members),
            "drop",
        ]
        chain = "type filter hook input priority -5; policy accept;"
        text = ["table inet neutron {", f"chain input {{ {chain}", *lines, "}", "}"]
        client.on_host(server, "nft", "-f", "-", stdin="\n".join([*text, ""]))


def knock(host: str, address: str, port: int) -> str:
    """Whether a host gets a connection to a port: ``open`` or ``closed``."""
    script = KNOCK.format(address=address, port=port)
    return client.on_host(host, "python3", "-c", script).strip()


def is_open(address: str, port: int) -> bool:
    return knock(ANSIBLE_SERVER, address, port) == "open"


def test_its_security_groups_admit_the_cluster_and_nobody_else(lab, cluster):
    of_vdu = {vdu: server for server, vdu in cluster.servers().items()}
    address = {vdu: cluster.address(server) for vdu, server in of_vdu.items()}
    for vdu in ("masterNode", "workerNode"):
        words = ["setsid", "-f", "python3", "-c", LISTENER.format(port=KUBELET)]
        script = 'exec "$@" >/dev/null 2>&1 </dev/null'
        client.on_host(of_vdu[vdu], "sh", "-c", script, "sh", *words)
    wanted = [("masterNode", "workerNode", KUBELET), ("workerNode", "masterNode", API)]
    wanted += [("workerNode", "masterNode", KUBELET), ("externalLB", "masterNode", API)]
    others = [("masterNode", KUBELET), ("workerNode", KUBELET)]
    for vdu, port in others:
        # A program that was just started may not listen yet.
        eventually(partial(is_open, address[vdu], port))
    filtered(lab, cluster)
    for source, vdu, port in wanted:
        assert knock(of_vdu[source], address[vdu], port) == "open", (source, vdu, port)
    for vdu, port in others:
        assert knock(ANSIBLE_SERVER, address[vdu], port) == "closed", (vdu, port)
    # It is on the management subnet.
    for vdu in address:
        assert knock(ANSIBLE_SERVER, address[vdu], SSH) == "open", vdu
    assert cluster.api("/readyz") == "ok"
    assert cluster.kubectl("get", "nodes", "-o", "name").count("node/") == 3


def test_terminate_leaves_nothing(cluster):
    cluster.terminate()
    cluster.assert_nothing_left()
