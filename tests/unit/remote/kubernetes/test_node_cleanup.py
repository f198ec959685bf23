# SPDX-License-Identifier: Apache-2.0
"""Nodes that are gone: their pods and volumes are freed, their Node objects go."""

import json
import logging

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import needs_kubectl, pod, with_metadata

pytestmark = needs_kubectl

OUT_OF_SERVICE = {
    "key": "node.kubernetes.io/out-of-service",
    "value": "nodeshutdown",
    "effect": "NoExecute",
}


@pytest.fixture
def cluster(site, session):
    return ClusterApi(session)


def stateful_set(name, replicas):
    manifest = bed.deployment(name, replicas)
    manifest["spec"]["serviceName"] = name
    return {**manifest, "kind": "StatefulSet"}


def test_pods_of_a_dead_node_run_elsewhere_at_once(cluster, site):
    """A StatefulSet's pod is not made again while the old one is there."""
    site.run(stateful_set("db", 3))
    before = site.pods_on("w10")
    (lost,) = site.pods_on("w1")
    site.silence("w1")
    cluster.force_evict(["w1", "w", "gone"])
    assert OUT_OF_SERVICE in site.node("w1")["spec"]["taints"]
    assert site.pods_on("w1") == set()
    bed.wait_for(lambda: lost in site.pods_on("w10") | site.pods_on("w2"))
    assert before <= site.pods_on("w10")
    assert "taints" not in site.node("w10")["spec"]


def test_volumes_of_dead_nodes_are_detached_and_no_others(cluster, site):
    for name, node in (("a", "w1"), ("b", "w10"), ("c", "w2")):
        site.attach(name, node)
    site.silence("w1")
    site.silence("w2")
    cluster.force_evict(["w1", "w2"])
    assert site.attachments() == ["b"]


def test_a_volume_that_detaches_slowly_is_not_waited_for(cluster, site):
    site.attach("slow", "w1", "external-attacher/csi-test")
    site.silence("w1")
    cluster.force_evict(["w1"])
    cluster.force_evict(["w1"])
    assert site.attachments() == ["slow"]
    taints = site.node("w1")["spec"]["taints"]
    assert taints.count(OUT_OF_SERVICE) == 1


def test_every_pod_of_a_dead_node_is_freed(cluster, site):
    """Whatever its namespace and its kind: nothing there can still run."""
    stays = [{"operator": "Exists"}]
    agent = bed.daemon_set("agent", tolerations=stays)
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}}
    far = with_metadata(pod("far", "w1", tolerations=stays), namespace="blue")
    site.run(other, agent, far)
    before = site.pods_on("w1")
    site.silence("w1")
    cluster.force_evict(["w1"])
    assert not before & site.pods_on("w1")


def test_nothing_is_asked_of_the_cluster_for_nodes_that_are_not_in_it(cluster, site):
    cluster.force_evict(["gone"])
    (call,) = (site.sshd.home / "calls").read_text().splitlines()
    assert " get nodes " in call


def test_removed_nodes_are_gone_and_only_they(cluster, site):
    for name, node in (("a", "w1"), ("b", "w10")):
        site.attach(name, node)
    cluster.remove_nodes(["w1", "w2"])
    assert site.node_names() == ["m1", "w10"]
    assert site.attachments() == ["b"]


def test_what_is_gone_already_is_removed(cluster, site):
    site.attach("left", "w1")
    site.kube.kubectl("delete", "node", "w1")
    cluster.remove_nodes(["w1"])
    cluster.remove_nodes(["w1", "never-there"])
    cluster.remove_nodes([])
    assert site.node_names() == ["m1", "w10", "w2"]
    assert site.attachments() == []


def test_a_node_that_stays_is_an_error(cluster, site):
    patch = json.dumps({"metadata": {"finalizers": ["test/stays"]}})
    site.kube.kubectl("patch", "node", "w1", "--type=merge", "-p", patch)
    with pytest.raises(errors.ClusterError, match=r"The nodes w1 are still in the"):
        cluster.remove_nodes(["w1", "w2"], limit=0.5)
    assert site.node_names() == ["m1", "w1", "w10"]


def test_a_volume_that_stays_is_reported_and_does_not_stop_the_removal(
    cluster, site, caplog
):
    site.attach("slow", "w1", "external-attacher/csi-test")
    caplog.set_level(logging.WARNING)
    cluster.remove_nodes(["w1"], limit=0.5)
    assert "w1" not in site.node_names()
    assert "still being detached: slow" in caplog.text
