# SPDX-License-Identifier: Apache-2.0
"""Measures the pod network with pods of its own, which are gone afterwards.

The pods run the pause image, which every node has for the sandboxes of pods. It has no
tools, so the measuring is done by :mod:`.pod_network_probe` on the nodes.
"""

import json
import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import pod_network, untrusted
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.remote.kubernetes import pod_network_probe
from tacker_k8s_mgmt.remote.kubernetes.kubectl import NOT_UNDERSTOOD, KubeClient
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.text import short

LOG = logging.getLogger(__name__)

_PARALLEL_LOGINS = 8
_WARNINGS, _LONGEST = 5, 600  # of kubelets, in an error; characters of each
_LABEL = "tacker-k8s-mgmt/pod-network"
_NAME = "probe"
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
# A kubelet reports 50 images, 12 kB of a Node. That of sandboxes is the smallest.
_LARGEST_IMAGE = 8_000_000  # bytes
# Flatcar's Python is called python.
_PYTHON = 'exec "$(command -v python3 || command -v python)" -'


class PodNetwork:
    """The pod network of one cluster.

    :param client: kubectl on a control plane.
    :param open_session: logs in to a node, whose user may use sudo.
    :param limit: seconds for the pods to start, for packets to arrive, and for the
        API's Service to be reached.
    :param repository: of the image; "" if it is not known.
    """

    def __init__(
        self,
        client: KubeClient,
        open_session: Callable[[Node], Session],
        limit: float,
        repository: str,
    ) -> None:
        self._client = client
        self._open = open_session
        self._limit = limit
        self._repository = repository

    def measure(
        self, nodes: Sequence[Node], hub: Node
    ) -> tuple[pod_network.Measurement, ...]:
        """Measure between a pod on each node and one on the hub.

        :param nodes: the nodes that are also to reach the API's Service; they may
            include the hub.
        :raises RemoteError: a node cannot be reached, or kubectl or the probe fails.
        :raises ClusterError: the pods do not start.
        """
        probed = {hub.name: hub} | {node.name: node for node in nodes}
        spokes = [name for name in probed if name != hub.name]
        with ExitStack() as opened:
            with ThreadPoolExecutor(_PARALLEL_LOGINS) as pool:
                login = pool.map(
                    lambda node: opened.enter_context(self._open(node)),
                    probed.values(),
                )
                sessions = dict(zip(probed, login, strict=True))
            services, token = self._services(), secrets.token_hex(4)
            with self._pods(tuple(probed)) as addresses:

                def probe(name: str) -> pod_network.Measurement:
                    others = spokes if name == hub.name else [hub.name]
                    request = {
                        "own": addresses[name],
                        "others": [ip for other in others for ip in addresses[other]],
                        "services": services if probed[name] in nodes else [],
                        "limit": self._limit,
                        "token": token,
                    }
                    return self._probe(sessions[name], request, name)

                # All at once, because they measure each other.
                with ThreadPoolExecutor(len(probed)) as pool:
                    return tuple(pool.map(probe, probed))

    def _probe(
        self, session: Session, request: Mapping[str, Any], name: str
    ) -> pod_network.Measurement:
        source = Path(pod_network_probe.__file__).read_text(encoding="utf-8")
        result = session.run(
            ["sh", "-c", _PYTHON],
            stdin=f"{source}\nmain({request!r})\n",
            timeout=3 * self._limit + 30,
            sudo=True,
        )
        try:
            answer = untrusted.parse_json(result.stdout)
            paths = {
                address: pod_network.Path(**path)
                for address, path in answer["paths"].items()
            }
            return pod_network.Measurement(
                name, tuple(request["own"]), paths, answer["services"]
            )
        except NOT_UNDERSTOOD as error:
            raise errors.ClusterError(
                detail=f"The answer of the pod network's probe on {session.host} could "
                f"not be understood ({type(error).__name__})."
            ) from error

    def _services(self) -> list[tuple[str, int]]:
        """Return addresses and port of the API's Service."""

        def read(service: Mapping[str, Any]) -> list[tuple[str, int]]:
            spec = service["spec"]
            hosts = spec.get("clusterIPs") or [spec["clusterIP"]]
            return [(host, int(spec["ports"][0]["port"])) for host in hosts]

        return self._client.get(
            "service", "kubernetes", "--namespace=default", read=read
        )

    def _images(self, names: Sequence[str]) -> dict[str, str]:
        """Return the pause image by node, of the repository that kubespray uses.

        What a kubelet reports may be made up, so that only the tag is taken from it.
        It has its largest 50 images, so that a node may have an image that it does not
        report; then it is that of most others. A new kubelet reports none at first.
        """
        waiting = Backoff(self._limit)
        while self._repository:
            reported = dict(self._client.table("nodes", _IMAGE_FIELDS, self._image))
            found = Counter(filter(None, reported.values())).most_common(1)
            if found:
                return {name: reported.get(name) or found[0][0] for name in names}
            if waiting.spent():
                break
            waiting.pause()
        wanted = self._repository or "a repository that its templates hide"
        raise errors.ClusterError(
            detail="No node reports a pause image (status.images of the nodes) of "
            f"{wanted}, with which the pod network could be verified.",
            hint="If the nodes have it of another one, name that in "
            "cluster.offline.registry_host or, without a template, as "
            "pod_infra_image_repo in kubespray_vars; cluster.verify_pod_network: false "
            "leaves this out.",
        )

    def _image(self, node: str, images: Sequence[Sequence[str]]) -> tuple[str, str]:
        """Return a node's name and its pause image, given its :data:`_IMAGE_FIELDS`."""
        for name in chain(*images):
            repository, _, tag = name.rpartition(":")
            if repository == self._repository and _TAG.fullmatch(tag):
                return node, name
        return node, ""

    @contextmanager
    def _pods(self, nodes: Sequence[str]) -> Iterator[dict[str, list[str]]]:
        """Run a pod on each node; yield the pods' addresses by node."""
        self._delete()
        # A name of its own: the end of a former namespace may take any time.
        namespace = f"tacker-k8s-mgmt-pod-network-{secrets.token_hex(3)}"
        items = [*_around(namespace)]
        items += [
            _pod(namespace, number, node, image, 300 + int(4 * self._limit))
            for number, (node, image) in enumerate(self._images(nodes).items())
        ]
        manifest = {"apiVersion": "v1", "kind": "List", "items": items}
        try:
            # Not create, which fails if it is repeated after the answer was lost.
            self._client.run("apply", "-f", "-", stdin=json.dumps(manifest))
            yield self._addresses(namespace, nodes)
        finally:
            try:
                self._delete()
            except errors.RemoteError as error:
                LOG.warning("The namespace %s stays: %s", namespace, error)

    def _delete(self) -> None:
        """Delete the namespace, and those of operations that were killed."""
        self._client.run("delete", "namespace", f"--selector={_LABEL}", "--wait=false")

    def _addresses(self, namespace: str, nodes: Sequence[str]) -> dict[str, list[str]]:
        """Wait until the pods run; return their addresses by node."""
        waiting = Backoff(self._limit, longest=1.0)
        where = f"--namespace={namespace}"
        while True:
            pods = self._client.table("pods", _POD_FIELDS, _running, where)
            addresses = {node: found for node, found in pods if found}
            if all(addresses.get(node) for node in nodes):
                return addresses
            if waiting.spent():
                raise self._not_started(
                    namespace, [node for node in nodes if not addresses.get(node)]
                )
            waiting.pause()

    def _not_started(self, namespace: str, nodes: Sequence[str]) -> errors.ClusterError:
        events = self._client.table(
            *("events", (".type", ".message"), lambda *event: event),
            f"--namespace={namespace}",
        )
        warnings = {
            short(str(message), _LONGEST)
            for type_, message in events
            if type_ != "Normal"
        }
        shown = sorted(warnings)[:_WARNINGS]
        return errors.ClusterError(
            detail=f"The pods that verify the pod network do not start on "
            f"{', '.join(nodes)} within {self._limit:g} s: "
            f"{'; '.join(shown) or 'there is no event that says why'}.",
            hint="Look at the logs of the kubelet and of the network plugin there.",
        )


_IMAGE_FIELDS = (
    ".metadata.name",
    f".status.images[?(@.sizeBytes<{_LARGEST_IMAGE})].names",
)


_POD_FIELDS = (".spec.nodeName", ".status.phase", ".status.podIPs[*].ip")


def _running(
    node: str | None, phase: str | None, addresses: Sequence[str]
) -> tuple[str, list[str]]:
    """Return a pod's node, "" before it has one, and its addresses if it runs."""
    return str(node or ""), list(map(str, addresses)) if phase == "Running" else []


def _around(namespace: str) -> Iterator[dict[str, Any]]:
    """The namespace and, not to wait for its default one, a service account."""
    yield _object("Namespace", {"name": namespace, "labels": {_LABEL: "true"}})
    yield _object(
        "ServiceAccount",
        {"name": _NAME, "namespace": namespace},
        automountServiceAccountToken=False,
    )


def _pod(
    namespace: str, number: int, node: str, image: str, lifetime: int
) -> dict[str, Any]:
    """A pod on a node.

    :param lifetime: seconds after which the kubelet ends it if it was left behind.
    """
    container = {
        "name": "pause",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    spec = {
        "nodeName": node,
        "serviceAccountName": _NAME,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "activeDeadlineSeconds": lifetime,
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65535,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    metadata = {"name": f"{_NAME}-{number}", "namespace": namespace}
    return _object("Pod", metadata, spec=spec)


def _object(kind: str, metadata: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}
