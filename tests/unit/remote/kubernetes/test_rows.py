# SPDX-License-Identifier: Apache-2.0
"""Lists as the real kubectl prints them: hostile texts in them, and many large objects.

A kubelet writes its own Node, and a tenant its pods and custom resources.
"""

import copy
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tacker_k8s_mgmt
from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import workloads
from tacker_k8s_mgmt.features.node_settings.marks import MetadataClient
from tacker_k8s_mgmt.features.pod_network import measurement
from tacker_k8s_mgmt.remote.kubernetes import draining
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.remote.ssh import channel
from tests.helpers.hostile import places
from tests.helpers.kubeapi import KUBECTL
from tests.helpers.kubectl_server import needs_kubectl

#: It ends a row and a field, whatever separates them, and adds one of another node.
HOSTILE = '\t"]}\n]\n[\n"m1"\n]\nm1\t\x1b[2J\u2028\x00\ufeff{"a": [\n\n"NodeList"\n'
REPOSITORY = "registry.k8s.io/pause"


def resource(name: str, kind: str, *, namespaced: bool) -> dict[str, Any]:
    verbs = ["get", "list", "delete"]
    return {"name": name, "kind": kind, "namespaced": namespaced, "verbs": verbs}


class Api(http.server.BaseHTTPRequestHandler):
    """Answers with the lists of ``server.lists``, as an API server does."""

    KINDS = (
        ("nodes", "Node", False),
        ("pods", "Pod", True),
        ("events", "Event", True),
        ("volumeattachments", "VolumeAttachment", False),
    )

    def do_GET(self) -> None:
        resources = [resource(n, k, namespaced=within) for n, k, within in self.KINDS]
        core = {"groupVersion": "v1", "resources": resources}
        answers = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
            "/api/v1": {"kind": "APIResourceList", "apiVersion": "v1", **core},
        }
        path = self.path.partition("?")[0]
        data = self.encoded(answers.get(path) or path.rpartition("/")[2])
        self.send_response(200 if data else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def encoded(self, answer: dict[str, Any] | str) -> bytes:
        """The bytes of an answer, or of the list of a plural; none without such one."""
        if isinstance(answer, dict):
            return json.dumps(answer).encode()
        for plural, kind, _ in self.KINDS:
            if plural == answer:
                return self.listed(kind, self.server.lists.get(plural, []))  # type: ignore[attr-defined]
        return b""

    @staticmethod
    def listed(kind: str, items: list[dict[str, Any]]) -> bytes:
        # As of an API server: the items of a list do not say of which kind they are.
        types = ("apiVersion", "kind")
        bare = [{k: v for k, v in one.items() if k not in types} for one in items]
        head = {"kind": f"{kind}List", "apiVersion": "v1"}
        body = {**head, "metadata": {"resourceVersion": "1"}, "items": bare}
        return json.dumps(body).encode()

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


class Session:
    """Runs the real kubectl against :class:`Api`, within the limit of a session."""

    host = "192.0.2.7"

    def __init__(self, home: Path) -> None:
        self.home = home
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.api.lists = {}  # type: ignore[attr-defined]
        threading.Thread(target=self.api.serve_forever, daemon=True).start()

    def run(self, argv, *, stdin=None, timeout, sudo):
        words = list(argv[1:])
        at = words.index("--kubeconfig")
        words[at : at + 2] = ["--server", f"http://127.0.0.1:{self.api.server_port}"]
        home = {"HOME": str(self.home), "KUBECONFIG": str(self.home / "none")}
        done = subprocess.run(
            [KUBECTL or "kubectl", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**home, "GOGC": "400"},
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.encode()) <= channel.STDOUT_CAP
        return channel.Result(0, done.stdout, done.stderr)


@pytest.fixture
def api(tmp_path):
    session = Session(tmp_path)
    yield session
    session.api.shutdown()
    session.api.server_close()


def node(name: str, **more: Any) -> dict[str, Any]:
    """A Node as a kubelet reports it, of about 20 kB as JSON."""
    digest = "sha256:" + "0123456789abcdef" * 4
    images = [
        {
            "names": [f"quay.io/some/image-{n}@{digest}", f"quay.io/some/image-{n}:v1"],
            "sizeBytes": 90_000_000 - n,
        }
        for n in range(112)
    ]
    images.append({"names": [f"{REPOSITORY}:3.10.1"], "sizeBytes": 320_368})
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": "KubeletHasNoDiskPressure",
            "message": "kubelet has no disk pressure",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    labels = {f"example.org/label-{n}": f"value-{n}" for n in range(12)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": labels,
            "annotations": {"projectcalico.org/address": "10.0.0.1/24", **more},
        },
        "spec": {
            "providerID": f"openstack:///{name}",
            "taints": [{"key": "gpu", "effect": "NoSchedule", "value": "x"}],
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": conditions,
            "nodeInfo": {
                "machineID": "m",
                "bootID": "b",
                "kubeletVersion": "v1.35.4",
                "osImage": "Ubuntu",
            },
            "images": images,
        },
    }


def pod(name: str) -> dict[str, Any]:
    """A pod of about 36 kB."""
    variables = [{"name": f"V{n}", "value": "x" * 40} for n in range(300)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": "web"},
            "annotations": {"example.org/config": "x" * 16_000},
        },
        "spec": {
            "nodeName": "w1",
            "containers": [{"name": "a", "image": "b", "env": variables}],
            "volumes": [{"name": "a", "emptyDir": {}}],
            "tolerations": [{"operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "podIPs": [{"ip": "10.233.64.7"}],
            "containerStatuses": [{"name": "a", "ready": True}],
        },
    }


def client(api: Session) -> KubeClient:
    return KubeClient(api)


def network(api: Session, repository: str = REPOSITORY) -> measurement.PodNetwork:
    def refuse(_: Any) -> Any:
        raise AssertionError("nobody logs in")

    return measurement.PodNetwork(client(api), refuse, 0.3, repository)


READ = {
    "nodes": lambda api: [one.name for one in ClusterApi(api).nodes()],
    "marks": lambda api: [one.name for one in MetadataClient(client(api)).metadata()],
    "images": lambda api: list(network(api)._images(["m1", "w1"])),
    "what is left": lambda api: draining._remaining(client(api), ["m1", "w1"])[0],
}


def spoiled_nodes() -> Iterator[dict[str, Any]]:
    """A Node for each of its texts, with the hostile one there."""
    whole = node("w1", **{"tacker-k8s-mgmt/cordoned": "true"})
    whole["status"]["images"] = whole["status"]["images"][-2:]
    for number, place in enumerate(places(whole)):
        one = copy.deepcopy(whole)
        one["metadata"]["name"] = f"w{1000 + number}"
        inner: Any = one
        for step in place[:-1]:
            inner = inner[step]
        fixed = (("kind",), ("apiVersion",), ("metadata", "name"))
        if place and place not in fixed and isinstance(inner[place[-1]], str):
            inner[place[-1]] = HOSTILE
            yield one


@needs_kubectl
def test_no_text_of_a_kubelet_says_anything_about_another_node(api):
    nodes = [node("m1"), *spoiled_nodes()]
    names = [one["metadata"]["name"] for one in nodes]
    assert len(names) > 30
    api.api.lists["nodes"] = nodes
    found = ClusterApi(api).nodes()
    assert [one.name for one in found] == names
    assert (found[0].ready, found[0].machine_id) == (True, "m")
    assert [one.name for one in MetadataClient(KubeClient(api)).metadata()] == names
    images = network(api)._images(names)
    assert list(images) == names
    assert set(images.values()) == {f"{REPOSITORY}:3.10.1"}
    assert draining._remaining(client(api), [*names, "w1"])[0] == names


@needs_kubectl
def test_texts_come_as_they_were_written(api):
    hostile = node("w1", **{"tacker-k8s-mgmt/cordoned": HOSTILE})
    hostile["spec"]["providerID"] = HOSTILE
    api.api.lists["nodes"] = [node("m1"), hostile]
    first, second = ClusterApi(api).nodes()
    assert (first.ready, first.machine_id) == (True, "m")
    assert (second.provider_id, second.cordoned_by_us) == (HOSTILE, False)
    marks = MetadataClient(KubeClient(api)).metadata()[1]
    assert marks.annotations["tacker-k8s-mgmt/cordoned"] == HOSTILE


@needs_kubectl
def test_the_type_of_a_custom_resource_invents_no_object(api):
    one = {**pod("a"), "type": "x\t\nv1\tSecret\tdefault\tinvented\t\t\n"}
    api.api.lists = {"pods": [one], "nodes": [node("m1")]}
    found = Manifests(client(api)).owned("app.a")
    assert [obj["metadata"]["name"] for obj in found.objects] == ["m1", "a"]


@needs_kubectl
@pytest.mark.parametrize("read", READ.values(), ids=READ.keys())
def test_a_node_that_is_there_twice_is_refused(api, read):
    api.api.lists["nodes"] = [node("m1"), node("w1"), node("m1")]
    with pytest.raises(errors.ClusterError, match="could not be understood"):
        read(api)


@needs_kubectl
def test_a_thousand_nodes_and_full_nodes_stay_below_the_limit_of_a_session(api):
    assert len(json.dumps(node("m1"))) > 18_000
    assert len(json.dumps(pod("m1"))) > 34_000
    names = [f"worker-10-10-{n // 250}-{n % 250}" for n in range(1_000)]
    api.api.lists["nodes"] = list(map(node, names))
    api.api.lists["pods"] = [pod(f"web-{n}") for n in range(250)]
    control = ClusterApi(api)
    assert [one.name for one in control.nodes()] == sorted(names)
    assert len(MetadataClient(KubeClient(api)).metadata()) == 1_000
    assert len(network(api)._images(names)) == 1_000
    found = draining.pods_on(client(api), "w1")
    assert len(found) == 250
    assert {(one.ready, one.local_storage, one.phase) for one in found} == {
        (True, True, "Running")
    }
    metadata = {"name": "web", "namespace": "default"}
    labels = {"matchLabels": {"app": "web"}}
    one = {"kind": "DaemonSet", "metadata": metadata, "spec": {"selector": labels}}
    assert len(workloads.Workloads(client(api))._pods(one)) == 250
    assert network(api)._addresses("default", ["w1"]) == {"w1": ["10.233.64.7"]}


@needs_kubectl
def test_no_text_of_a_kubelet_fills_an_error(api):
    one = node("w1")
    text = "a line\n" * 100_000
    one["status"]["conditions"] = [
        {"type": "Ready", "status": "False", "reason": "x" * 1000, "message": text}
    ]
    one["status"]["nodeInfo"]["kubeletVersion"] = text
    events = [
        {
            **{"apiVersion": "v1", "kind": "Event", "type": "Warning"},
            "metadata": {"name": f"e{number}", "namespace": "default"},
            "message": f"{number} {text[:1000]}",
        }
        for number in range(1000)
    ]
    api.api.lists = {"nodes": [one], "events": events}
    (found,) = ClusterApi(api).nodes()
    assert len(found.reason) < 1000
    assert found.reason.startswith("xxx")
    assert len(found.kubelet_version) < 1000
    error = network(api)._not_started("default", ["w1"])
    assert 1000 < len(str(error)) < 5000
    assert "\n" not in str(error)


@needs_kubectl
def test_no_kubelet_alone_exceeds_the_limit_of_a_session(api):
    # As much as an API server takes: 3 MiB of JSON, 1.5 MiB in etcd.
    one = node("w1")
    conditions = [{"type": "Ready", "status": "True"}] * 75_000
    one["status"] = {**one["status"], "conditions": conditions}
    api.api.lists["nodes"] = [node("m1"), one]
    assert [each.ready for each in ClusterApi(api).nodes()] == [True, True]
    addresses = [
        {"type": "InternalIP", "address": f"a{number}"} for number in range(120_000)
    ]
    one["status"] = {**one["status"], "conditions": [], "addresses": addresses}
    found = ClusterApi(api).nodes()
    assert [each.internal_ip for each in found] == ["10.0.0.1", "a0"]
    one["status"]["images"] = [{"names": ["a"], "sizeBytes": 1}] * 120_000
    assert list(network(api)._images(["m1"])) == ["m1"]
    assert len(MetadataClient(KubeClient(api)).metadata()) == 2


@needs_kubectl
@pytest.mark.parametrize(
    "image",
    [
        "evil.example.org/pause:3.10.1",
        "registry.k8s.io.evil.example.org/pause:3.10.1",
        "registry.k8s.io/pause@sha256:00",
        "registry.k8s.io/pause:3.10.1@sha256:00",
        "registry.k8s.io/pause:3.10\n.1",
        "registry.k8s.io/pause:",
        "registry.k8s.io/pause",
        "registry.k8s.io/evil/pause:3.10.1",
        "docker.io/library/x,registry.k8s.io/pause:3.10",
    ],
)
def test_pods_of_the_probe_take_no_image_of_another_registry(api, image):
    one = node("w1")
    one["status"]["images"] = [{"names": [image], "sizeBytes": 1000}]
    api.api.lists["nodes"] = [one]
    with pytest.raises(errors.ClusterError, match="registry_host"):
        network(api)._images(["w1"])
    api.api.lists["nodes"] = [one, node("m1")]
    assert network(api)._images(["w1"]) == {"w1": f"{REPOSITORY}:3.10.1"}


@needs_kubectl
def test_a_tag_that_one_kubelet_makes_up_is_not_that_of_others(api):
    fresh, liar = node("w1"), node("w2")
    fresh["status"]["images"] = []
    liar["status"]["images"] = [{"names": [f"{REPOSITORY}:none"], "sizeBytes": 1}]
    api.api.lists["nodes"] = [liar, fresh, node("m1"), node("w3")]
    assert network(api)._images(["w1"]) == {"w1": f"{REPOSITORY}:3.10.1"}


def test_no_repository_is_an_error_that_says_what_to_do(api):
    with pytest.raises(errors.ClusterError, match="pod_infra_image_repo"):
        network(api, "")._images(["w1"])


def test_every_list_of_kubectl_is_read_as_json():
    package = Path(tacker_k8s_mgmt.__file__).parent
    sources = {path: path.read_text() for path in package.rglob("*.py")}
    for path, text in sources.items():
        assert "jsonpath=" not in text, path
        assert "go-template" not in text, path
        assert "custom-columns" not in text, path
    assert any("jsonpath-as-json=" in text for text in sources.values())
