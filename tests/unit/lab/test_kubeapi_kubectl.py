# SPDX-License-Identifier: Apache-2.0
"""The real kubectl against the Kubernetes API stand-in."""

import json
import subprocess
from typing import Any

import pytest

from tests.helpers import kubeapi as bed

pytestmark = pytest.mark.skipif(not bed.KUBECTL, reason="no kubectl on PATH")

DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--force")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return bed.make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def kube(certificate):
    with bed.serving(certificate, "m1", "w1", "w2") as served:
        bed.wait_for(lambda: served.ready_nodes() == {"m1", "w1", "w2"})
        yield served


def _web_on_both_workers(kube, **spec):
    """Two pods ``web``, one on each worker, with a budget if one is given."""
    if spec:
        kube.apply(bed.budget("web", **spec))
    kube.apply(bed.deployment("web", 2))
    bed.wait_for(lambda: len(kube.running_pods()) == 2)
    assert set(kube.running_pods().values()) == {"w1", "w2"}


def test_nodes_as_an_operator_sees_them(kube):
    lines = kube.kubectl("get", "nodes", "-o", "wide").stdout.splitlines()
    assert lines[0].split()[:5] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["m1", "Ready", "control-plane"],
        ["w1", "Ready", "<none>"],
        ["w2", "Ready", "<none>"],
    ]
    assert "KubeletReady" in kube.kubectl("describe", "node", "w1").stdout


def test_label_taint_and_cordon(kube):
    kube.kubectl("label", "node", "w1", "zone=a")
    kube.kubectl("taint", "node", "w1", "k=v:NoSchedule")
    kube.kubectl("cordon", "w2")
    assert (
        kube.kubectl("get", "node", "-l", "zone=a", "-o", "name").stdout == "node/w1\n"
    )
    bed.wait_for(lambda: "SchedulingDisabled" in kube.kubectl("get", "no", "w2").stdout)
    kube.kubectl("taint", "node", "w1", "k-")
    kube.kubectl("uncordon", "w2")
    assert "SchedulingDisabled" not in kube.kubectl("get", "no", "w2").stdout


def test_apply_twice_changes_nothing(kube):
    assert "created" in kube.apply(bed.deployment("web", 1))
    assert "unchanged" in kube.apply(bed.deployment("web", 1))
    assert "configured" in kube.apply(bed.deployment("web", 2))
    kube.kubectl("rollout", "status", "deployment/web", "--timeout", "15s")
    kube.kubectl("scale", "deployment/web", "--replicas", "1")
    bed.wait_for(lambda: len(kube.running_pods()) == 1)


def test_drain_leaves_other_nodes_pods_alone(kube):
    """It finds pods by spec.nodeName; were that ignored, others would die."""
    _web_on_both_workers(kube)
    (kept,) = [name for name, node in kube.running_pods().items() if node == "w2"]
    kube.kubectl("drain", "w1", *DRAIN)
    bed.wait_for(lambda: list(kube.running_pods().values()) == ["w2", "w2"])
    assert kept in kube.running_pods()


def _start_drain(kube, node: str, timeout: str) -> subprocess.Popen[str]:
    """A drain that has been refused an eviction once and will try again in 5 s."""
    drain = subprocess.Popen(
        [
            *(bed.KUBECTL, "--server", kube.url, "--token", bed.ADMIN_TOKEN),
            *("--certificate-authority", str(kube.certificate)),
            *("drain", node, *DRAIN, "--timeout", timeout),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert any("violate the pod's disruption budget" in line for line in drain.stdout)
    return drain


def test_a_blocked_drain_ends_at_its_timeout_or_goes_on_when_it_may(kube):
    _web_on_both_workers(kube, minAvailable="100%")
    impatient = _start_drain(kube, "w1", "1s")
    patient = _start_drain(kube, "w2", "60s")
    kube.apply(bed.budget("web", minAvailable=0))
    assert "timeout" in impatient.communicate(timeout=60)[0]
    assert impatient.returncode != 0
    output, _ = patient.communicate(timeout=60)
    assert patient.returncode == 0, output
    assert list(kube.running_pods().values()) == ["w1"]


def test_drain_of_a_dead_node_times_out_and_deleting_it_frees_its_pods(kube):
    _web_on_both_workers(kube)
    kube.kubectl("annotate", "node", "w1", "kapi.sim/ready=false")
    bed.wait_for(lambda: "w1" not in kube.ready_nodes())
    done = kube.kubectl("drain", "w1", *DRAIN, "--timeout", "1s", check=False)
    assert done.returncode != 0
    kube.kubectl("delete", "node", "w1")
    bed.wait_for(lambda: list(kube.running_pods().values()) == ["w2", "w2"])
    bed.wait_for(lambda: len(kube.pods()) == 2)
    assert kube.ready_nodes() == {"m1", "w2"}


def test_service_account_with_token_secret_is_an_administrator(kube):
    kube.apply(*bed.admin_manifests("tacker"))
    path = "/api/v1/namespaces/kube-system/secrets/tacker"
    secret = bed.wait_for(lambda: (s := kube.get(path)).get("data") and s)
    token = bed.secret_value(secret, "token")
    assert "w1" in kube.kubectl("get", "nodes", token=token).stdout
    assert (
        kube.kubectl("auth", "can-i", "delete", "pods", token=token).stdout == "yes\n"
    )


def test_an_unbound_service_account_is_forbidden(kube):
    kube.kubectl("create", "serviceaccount", "guest")
    manifest = bed.admin_manifests("guest")[2]
    manifest["metadata"]["namespace"] = "default"
    kube.apply(manifest)
    path = "/api/v1/namespaces/default/secrets/guest"
    secret = bed.wait_for(lambda: (s := kube.get(path)).get("data") and s)
    token = bed.secret_value(secret, "token")
    done = kube.kubectl("get", "nodes", token=token, check=False)
    assert "nodes is forbidden" in done.stderr
    words = ("auth", "can-i", "list", "nodes", "--all-namespaces")
    allowed = kube.kubectl(*words, token=token, check=False)
    assert allowed.stdout == "no\n"


def test_typed_creates_and_deleting_a_namespace(kube):
    kube.kubectl("create", "namespace", "blue")
    kube.kubectl("-n", "blue", "create", "serviceaccount", "sa")
    kube.kubectl("delete", "namespace", "blue", "--timeout", "10s")
    assert kube.request("GET", "/api/v1/namespaces/blue/serviceaccounts/sa")[0] == 404


def test_services_get_endpoints_and_daemon_sets_a_pod_per_node(kube):
    _web_on_both_workers(kube)
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "type": "NodePort",
            "selector": {"app": "web"},
            "ports": [{"port": 80}],
        },
    }
    daemon_set = bed.deployment("agent", 1, tolerations=[{"operator": "Exists"}])
    daemon_set["kind"] = "DaemonSet"
    del daemon_set["spec"]["replicas"]
    kube.apply(service, daemon_set)
    endpoints = "/api/v1/namespaces/default/endpoints/web"
    bed.wait_for(lambda: kube.request("GET", endpoints)[0] == 200)
    assert len(kube.get(endpoints)["subsets"][0]["addresses"]) == 2
    bed.wait_for(lambda: len(kube.running_pods()) == 5)
    agents = [n for p, n in kube.running_pods().items() if p.startswith("agent")]
    assert sorted(agents) == ["m1", "w1", "w2"]


def test_services_are_listed_with_their_outer_addresses(kube):
    balanced = {"type": "LoadBalancer", "ports": [{"port": 80}]}
    services: dict[str, dict[str, Any]] = {
        "inner": {"type": "ClusterIP"},
        "given": {"externalIPs": ["192.0.2.7"], "type": "NodePort"},
        "pending": {},
        "balanced": {"externalIPs": ["192.0.2.9"]},
    }
    for name, more in services.items():
        metadata = {"name": name, "namespace": "default"}
        kube.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {**balanced, **more},
            }
        )
    ingress = {"loadBalancer": {"ingress": [{"ip": "192.0.2.8"}, {"hostname": "lb"}]}}
    patch = json.dumps({"status": ingress})
    options = ("--subresource", "status", "--type", "merge", "--patch", patch)
    kube.kubectl("patch", "service", "balanced", *options)
    lines = kube.kubectl("get", "services", "--no-headers").stdout.splitlines()
    outer = {line.split()[0]: line.split()[3] for line in lines}
    del outer["kubernetes"]
    assert outer == {
        "inner": "<none>",
        "given": "192.0.2.7",
        "pending": "<pending>",
        "balanced": "192.0.2.8,lb,192.0.2.9",
    }


def test_a_no_execute_taint_empties_a_node_and_events_say_so(kube):
    _web_on_both_workers(kube)
    kube.kubectl("taint", "node", "w1", "gone=yes:NoExecute")
    bed.wait_for(lambda: list(kube.running_pods().values()) == ["w2", "w2"])
    events = kube.kubectl("get", "events").stdout
    assert "TaintManagerEviction" in events
    assert "Marking for deletion Pod default/web-" in events


def _description(kube, node: str) -> str:
    return kube.kubectl("describe", "node", node).stdout


def test_a_cordon_is_seen_in_the_nodes_description(kube):
    kube.kubectl("cordon", "w1")
    bed.wait_for(lambda: "NodeNotSchedulable" in _description(kube, "w1"))
    kube.kubectl("uncordon", "w1")
    told = {"NodeNotSchedulable", "NodeSchedulable"}
    bed.wait_for(lambda: told <= set(_description(kube, "w1").split()))
    assert "NodeNotSchedulable" not in _description(kube, "w2")


def test_a_volume_attachment_goes_when_its_finalizer_does(kube):
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "csi-1", "finalizers": ["external-attacher/csi-test"]},
        "spec": {
            "attacher": "csi.test",
            "nodeName": "w1",
            "source": {"persistentVolumeName": "pv-1"},
        },
    }
    kube.apply(attachment)
    row = kube.kubectl("get", "volumeattachments").stdout.splitlines()[1].split()
    assert row[:5] == ["csi-1", "csi.test", "pv-1", "w1", "false"]
    kube.kubectl("delete", "volumeattachment", "csi-1", "--wait=false")
    path = "/apis/storage.k8s.io/v1/volumeattachments/csi-1"
    assert kube.get(path)["metadata"]["deletionTimestamp"]
    free = ("--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    kube.kubectl("patch", "volumeattachment", "csi-1", *free)
    assert kube.request("GET", path)[0] == 404


def test_deletion_in_the_foreground_ends_after_the_pods(kube):
    kube.apply(bed.deployment("web", 2))
    kube.kubectl("rollout", "status", "deployment/web", "--timeout", "15s")
    kube.kubectl("delete", "deployment/web", "--cascade=foreground", "--wait=true")
    assert kube.kubectl("get", "deploy,rs,pods", "-o", "name").stdout == ""
    bed.wait_for(lambda: kube.running_pods() == {})
