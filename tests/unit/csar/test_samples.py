"""The sample request is one that our own model takes, and fits the sample package."""

import json

import pytest
import yaml

from tacker_k8s_mgmt.cluster import params
from tacker_k8s_mgmt.csar import sources


@pytest.fixture(scope="module")
def request_body():
    path = sources.samples() / "requests/instantiate-simple.json"
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def nodes(parts):
    vnfd = yaml.safe_load(parts["Definitions/kubernetes_df_simple.yaml"])
    return vnfd["topology_template"]["node_templates"]


def test_the_sample_request_is_accepted(request_body):
    parsed = params.parse(request_body["additionalParams"])
    assert parsed is not None
    assert parsed.vim_name == "kubernetes_vim"
    assert parsed.workers.aspect_id == "worker_instance"
    assert parsed.control_plane.aspect_id is None
    assert parsed.load_balancer is not None


def test_connection_points_of_the_request_are_in_the_vnfd(request_body, nodes):
    given = request_body["additionalParams"]["k8s_cluster_installation_param"]
    named = {
        group[key]
        for group in (
            given["master_node"],
            given["worker_node"],
            given["external_lb_param"],
        )
        for key in ("ssh_cp_name", "nic_cp_name")
    }
    named |= {
        cp["cpdId"] for link in request_body["extVirtualLinks"] for cp in link["extCps"]
    }
    cps = {n for n, node in nodes.items() if node["type"] == "tosca.nodes.nfv.VduCp"}
    assert named == cps


def test_every_external_connection_point_gets_a_network(request_body, nodes):
    external = {
        name
        for name, node in nodes.items()
        if node["type"] == "tosca.nodes.nfv.VduCp"
        and not any("virtual_link" in entry for entry in node["requirements"])
    }
    given = [
        cp["cpdId"] for link in request_body["extVirtualLinks"] for cp in link["extCps"]
    ]
    assert sorted(given) == sorted(external)
