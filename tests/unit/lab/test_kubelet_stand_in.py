# SPDX-License-Identifier: Apache-2.0
"""The kubelet stand-in as a process against the Kubernetes API stand-in."""

import contextlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers import kubeapi as bed

LAB = Path(__file__).parents[3] / "lab"
KUBELET = LAB / "kubespray/roles/kubeadm/files/kubelet.py"
GRACE = 1.2


def _openssl(directory: Path, *arguments: str) -> None:
    command = ["openssl", *arguments]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)


def _client_certificate(directory: Path, ca: Path, ca_key: Path, node: str) -> Path:
    """A PEM file with a kubelet's certificate and key."""
    request = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    subject = ("-subj", f"/O=system:nodes/CN=system:node:{node}")
    files = ("-keyout", "client.key", "-out", "client.csr")
    _openssl(directory, "req", "-new", *request, *subject, *files)
    signer = ("-CA", str(ca), "-CAkey", str(ca_key), "-set_serial", "7")
    output = ("-in", "client.csr", "-out", "client.crt")
    _openssl(directory, "x509", "-req", *signer, "-days", "2", *output)
    both = directory / "client.pem"
    parts = [directory / "client.crt", directory / "client.key"]
    both.write_text("".join(part.read_text() for part in parts))
    return both


@pytest.fixture
def kube(tmp_path):
    settings = replace(bed.QUICK, node_grace=GRACE)
    with bed.serving(bed.make_certificate(tmp_path), settings=settings) as served:
        yield served


@pytest.fixture
def config(kube, tmp_path):
    key = kube.certificate.with_suffix(".key")
    client = _client_certificate(tmp_path, kube.certificate, key, "w1")
    path = tmp_path / "config.json"
    content = {
        "server": kube.url,
        "ca": str(kube.certificate),
        "client": str(client),
        "name": "w1",
        "address": "10.10.0.7",
        "version": "v1.35.4",
        "labels": {"zone": "a"},
        "taints": ["k=v:NoSchedule"],
        "heartbeat_seconds": 0.2,
    }
    path.write_text(json.dumps(content))
    return path


@contextlib.contextmanager
def kubelet(config: Path):
    """A running kubelet; it is killed at the end, as when its host dies."""
    process = subprocess.Popen(
        [sys.executable, str(KUBELET), str(config)], stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _node(kube):
    return kube.get("/api/v1/nodes/w1")


def test_a_node_lives_as_long_as_its_kubelet(kube, config):
    with kubelet(config):
        bed.wait_for(lambda: kube.ready_nodes() == {"w1"})
        node = _node(kube)
        assert node["metadata"]["labels"]["zone"] == "a"
        assert node["spec"]["taints"] == [
            {"key": "k", "value": "v", "effect": "NoSchedule"}
        ]
        address = {"type": "InternalIP", "address": "10.10.0.7"}
        assert address in node["status"]["addresses"]
        information = node["status"]["nodeInfo"]
        assert information["kubeletVersion"] == "v1.35.4"
        assert len(information["bootID"]) == 36
    bed.wait_for(lambda: kube.ready_nodes() == set())
    with kubelet(config):
        bed.wait_for(lambda: kube.ready_nodes() == {"w1"})


def test_a_deleted_node_stays_away_until_its_kubelet_is_started_again(kube, config):
    with kubelet(config) as process:
        bed.wait_for(lambda: kube.ready_nodes() == {"w1"})
        kube.request("DELETE", "/api/v1/nodes/w1")
        lines = (process.stdout.readline(), process.stdout.readline())
        assert lines[0] == "registered\n"
        assert 'nodes "w1" not found' in lines[1]
        assert kube.request("GET", "/api/v1/nodes/w1")[0] == 404
    with kubelet(config):
        bed.wait_for(lambda: kube.ready_nodes() == {"w1"})


def test_what_others_put_on_a_node_survives_its_kubelets_restart(kube, config):
    with kubelet(config):
        bed.wait_for(lambda: kube.ready_nodes() == {"w1"})
    change = {
        "metadata": {"labels": {"rack": "7"}},
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "mine", "effect": "NoSchedule"}],
        },
    }
    merge = "application/merge-patch+json"
    kube.request("PATCH", "/api/v1/nodes/w1", change, content_type=merge)
    with kubelet(config):
        bed.wait_for(lambda: "k" in {t["key"] for t in _node(kube)["spec"]["taints"]})
        assert "mine" in {t["key"] for t in _node(kube)["spec"]["taints"]}
        assert _node(kube)["metadata"]["labels"]["rack"] == "7"
        assert _node(kube)["spec"]["unschedulable"] is True


def test_a_kubelet_may_only_speak_for_its_own_node(kube, config):
    content = json.loads(config.read_text())
    config.write_text(json.dumps({**content, "name": "w2"}))
    with kubelet(config) as process:
        assert process.stdout.readline() == "registered\n"
        assert "is forbidden" in process.stdout.readline()
