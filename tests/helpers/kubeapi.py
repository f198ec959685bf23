# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Kubernetes API stand-in share: servers, clients, waiting."""

import base64
import contextlib
import http.client
import json
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.kubeapi.server import Server, start, stop
from lab.kubeapi.settings import Listener, Settings
from tests.helpers.tool_warnings import warnings_in

ADMIN_TOKEN = "an-admin-token"
QUICK = Settings(node_grace=10.0, start_delay=0.0, stop_delay=0.1)
KUBECTL = shutil.which("kubectl")
_LIMIT = 60.0
# No collection of garbage in what lives for milliseconds: a fifth of its time.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "GOGC": "off"}


def wait_for(what: Callable[[], Any], limit: float = _LIMIT) -> Any:
    """The first true value of ``what``; fails the test when the time is over."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if value := what():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not so within {limit:g} s")


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key."""
    certificate, key = directory / "server.crt", directory / "server.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"),
            *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=test"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


@dataclass(frozen=True)
class Kube:
    """A running server, and ways to talk to it."""

    server: Server
    certificate: Path

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}"

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str = ADMIN_TOKEN,
        content_type: str = "application/json",
    ) -> tuple[int, Any, http.client.HTTPMessage]:
        """Status, decoded body and headers of one request."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.server.port, timeout=60, context=context
        )
        headers = {"Content-Type": content_type}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body)
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        is_json = "json" in (answer.headers["Content-Type"] or "")
        return answer.status, json.loads(content) if is_json else content, answer.msg

    def get(self, path: str, token: str = ADMIN_TOKEN) -> Any:
        """The body of a GET that has to succeed."""
        status, body, _ = self.request("GET", path, token=token)
        assert status == 200, body
        return body

    def kubectl(
        self,
        *arguments: str,
        stdin: str = "",
        check: bool = True,
        token: str = ADMIN_TOKEN,
        expected_warning: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl.

        :param expected_warning: part of one that it may print.
        """
        access = ("--server", self.url, "--certificate-authority", self.certificate)
        done = subprocess.run(
            [KUBECTL or "kubectl", *access, "--token", token, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=_ENVIRONMENT | {"HOME": str(self.certificate.parent)},
        )
        if check:
            assert done.returncode == 0, done.stderr
        expected = [expected_warning] if expected_warning else []
        unexpected = warnings_in(done.stderr, *expected)
        assert not unexpected, unexpected
        return done

    def apply(self, *manifests: dict[str, Any]) -> str:
        """``kubectl apply -f -``."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        return self.kubectl("apply", "-f", "-", stdin=text).stdout

    def ready_nodes(self) -> set[str]:
        return {
            node["metadata"]["name"]
            for node in self.get("/api/v1/nodes")["items"]
            for condition in node.get("status", {}).get("conditions", [])
            if condition["type"] == "Ready" and condition["status"] == "True"
        }

    def pods(self, namespace: str = "default") -> list[dict[str, Any]]:
        body = self.get(f"/api/v1/namespaces/{namespace}/pods")
        items: list[dict[str, Any]] = body["items"]
        return items

    def running_pods(self, label: str = "app") -> dict[str, str]:
        """Node of every pod that is Ready and not going away, by name."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.pods()
            if label in pod["metadata"].get("labels", {})
            and "deletionTimestamp" not in pod["metadata"]
            and pod["status"]["phase"] == "Running"
        }


def listener(certificate: Path, key: Path) -> Listener:
    """HTTPS on any port, with the administrator's token."""
    return Listener(
        port=0,
        certificate=str(certificate),
        key=str(key),
        ca=str(certificate),
        admin_tokens=frozenset({ADMIN_TOKEN}),
    )


@contextlib.contextmanager
def serving(
    files: tuple[Path, Path], *nodes: str, settings: Settings = QUICK
) -> Iterator[Kube]:
    """A server with hollow nodes.

    :param files: of :func:`make_certificate`.
    """
    server = start(listener(*files), settings, hollow_nodes=nodes)
    yield Kube(server, files[0])
    stop(server)


def deployment(name: str, replicas: int, **pod: Any) -> dict[str, Any]:
    """A Deployment whose pods carry ``app=NAME``."""
    labels = {"app": name}
    containers = [{"name": "main", "image": "none"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": containers, **pod},
            },
        },
    }


def daemon_set(name: str, **pod: Any) -> dict[str, Any]:
    """A DaemonSet whose pods carry ``app=NAME``."""
    made = deployment(name, 1, **pod)
    del made["spec"]["replicas"]
    return {**made, "kind": "DaemonSet"}


def budget(name: str, version: str = "policy/v1", **spec: Any) -> dict[str, Any]:
    """A PodDisruptionBudget for the pods of :func:`deployment`."""
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": version,
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, **spec},
    }


def admin_manifests(name: str) -> Sequence[dict[str, Any]]:
    """A ServiceAccount that is bound to cluster-admin, with a token Secret."""
    metadata = {"name": name, "namespace": "kube-system"}
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
    annotation = {"kubernetes.io/service-account.name": name}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/service-account-token",
            "metadata": {**metadata, "annotations": annotation},
        },
    )


def secret_value(secret: dict[str, Any], key: str) -> str:
    return base64.b64decode(secret["data"][key]).decode()


def definition(
    plural: str = "volumesnapshots",
    group: str = "snapshot.storage.k8s.io",
    kind: str = "VolumeSnapshot",
    versions: Sequence[str] = ("v1", "v1beta1"),
    **spec: Any,
) -> dict[str, Any]:
    """A CustomResourceDefinition; the first version is the one that is stored."""
    schema = {"openAPIV3Schema": {"type": "object", **_ANYTHING}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            # Of Kubernetes, for groups below k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "schema": schema,
                }
                for name in versions
            ],
            **spec,
        },
    }


_ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
#: A webhook that converts, and whose Service is gone.
GONE_WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"namespace": "default", "name": "gone", "path": "/convert"}
        },
    },
}


def custom(
    name: str,
    namespace: str,
    version: str = "snapshot.storage.k8s.io/v1",
    kind: str = "VolumeSnapshot",
    **metadata: Any,
) -> dict[str, Any]:
    """An object of :func:`definition`."""
    place = {"name": name, "namespace": namespace}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {**place, **metadata},
        "spec": {"of": "a volume"},
    }


def define(kube: Kube, **spec: Any) -> None:
    """Have the cluster serve VolumeSnapshots, in both versions."""
    kube.apply(definition(**spec))
    wait_for(lambda: kube.request("GET", SNAPSHOTS)[0] == 200)


SNAPSHOTS = "/apis/snapshot.storage.k8s.io/v1/volumesnapshots"


def break_snapshots(kube: Kube, namespace: str = "default") -> None:
    """Have lists of VolumeSnapshots fail, as after the end of who converted them."""
    define(kube, versions=("v1beta1", "v1"))
    kube.apply(custom("old", namespace, "snapshot.storage.k8s.io/v1beta1"))
    kube.apply(definition(conversion=GONE_WEBHOOK))
    wait_for(lambda: kube.request("GET", SNAPSHOTS)[0] == 500)
