# SPDX-License-Identifier: Apache-2.0
"""Settings of Node objects, and the workloads that need their labels, with kubectl."""

import json

import pytest

from tacker_k8s_mgmt.features.node_settings import marks as node_marks
from tacker_k8s_mgmt.features.node_settings.marks import MetadataClient, Workload
from tacker_k8s_mgmt.features.node_settings.settings import NodeSettings
from tacker_k8s_mgmt.model.nodes import MAINTENANCE_TAINT
from tacker_k8s_mgmt.model.pods import Placement
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tests.helpers import kubeapi as bed
from tests.helpers.kubectl_server import needs_kubectl, pod

pytestmark = needs_kubectl
WANTED = NodeSettings(
    labels={"example.com/disk": "ssd", "empty": ""},
    annotations={"note": 'a "b"\tc\nd ü'},
    taints={("gpu", "NoSchedule"): "a"},
)


@pytest.fixture
def cluster(site, session):
    return MetadataClient(KubeClient(session))


def changes(cluster, wanted, *names):
    return {
        one.name: node_marks.change(one, wanted)
        for one in cluster.metadata()
        if one.name in names
    }


def marks(cluster, name):
    return next(one for one in cluster.metadata() if one.name == name)


def deployment(name, **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": {**pod(name)["spec"]}}
    template["spec"] |= spec
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def test_settings_there_and_back(cluster, site):
    before = marks(cluster, "w1")
    cluster.change(changes(cluster, WANTED, "w1", "w2"))
    after = marks(cluster, "w1")
    assert node_marks.change(after, WANTED) == {}
    assert after.labels == {**before.labels, **WANTED.labels}
    assert after.annotations["note"] == WANTED.annotations["note"]
    assert marks(cluster, "w10").labels.keys() == before.labels.keys()
    cluster.change(changes(cluster, NodeSettings(), "w1", "w2"))
    again = marks(cluster, "w1")
    assert (again.labels, again.taints) == (before.labels, before.taints)
    assert again.annotations == before.annotations


def test_alike_changes_take_one_command(cluster, site):
    labels = NodeSettings(labels={"a": "b"})
    cluster.change(changes(cluster, labels, "w1", "w2", "w10"))
    assert len(site.calls("patch")) == 1
    assert marks(cluster, "w10").labels["a"] == "b"


def test_a_change_of_another_version_has_no_effect(cluster, site):
    late = changes(cluster, WANTED, "w1")
    site.kube.kubectl("label", "node", "w1", "theirs=1")
    cluster.change(late)
    assert marks(cluster, "w1").taints == ()
    assert "note" not in marks(cluster, "w1").annotations


def test_maintenance_keeps_pods_away(cluster, site, session):
    def cordoned(name):
        nodes = ClusterApi(session).nodes()
        return next(node for node in nodes if node.name == name).unschedulable

    site.run(pod("web", "w1"))
    wanted = NodeSettings(taints={MAINTENANCE_TAINT: ""}, maintenance=True)
    cluster.change(changes(cluster, wanted, "w1"))
    assert marks(cluster, "w1").in_maintenance
    assert cordoned("w1")
    bed.wait_for(lambda: "web" not in site.pods_on("w1"))
    cluster.change(changes(cluster, NodeSettings(), "w1"))
    assert not cordoned("w1")


def test_workloads_that_are_bound_to_nodes(cluster, site):
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    expression = {"key": "disk", "operator": "Exists"}
    terms = [{"matchExpressions": [expression]}]
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}
    site.kube.apply(
        deployment("free"),
        deployment("bound", nodeSelector={"disk": "ssd"}),
        deployment("near", affinity=affinity),
    )
    tolerations = [{"key": "only", "operator": "Exists"}]
    pod_spec = {"nodeSelector": {"disk": "hdd"}, "tolerations": tolerations}
    containers = [{"name": "main", "image": "none"}]
    template = {
        "spec": {"containers": containers, "restartPolicy": "Never", **pod_spec}
    }
    cron = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}
    kind = {"apiVersion": "batch/v1", "kind": "CronJob"}
    site.kube.apply(
        {**kind, "metadata": {"name": "nightly", "namespace": "default"}, "spec": cron}
    )
    found = sorted(cluster.workloads(), key=str)
    assert found == [
        Workload(
            "CronJob",
            "default",
            "nightly",
            Placement({"disk": "hdd"}, tolerations=(*tolerations,)),
        ),
        Workload("Deployment", "default", "bound", Placement({"disk": "ssd"})),
        Workload("Deployment", "default", "near", Placement({}, terms)),
    ]
    json.dumps(found[2].placement.terms)
