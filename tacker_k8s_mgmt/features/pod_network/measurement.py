# SPDX-License-Identifier: Apache-2.0
"""Measures the pod network with pods of the driver's own, and judges what was measured.

The pods run the pause image, which every node has for the sandboxes of pods. It has no
tools, so the measuring is done by :mod:`.probe` on the nodes. The pods are gone
afterwards.
"""

import json
import logging
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.pod_network import probe
from tacker_k8s_mgmt.kubespray import variables
from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.remote.kubernetes.kubectl import NOT_UNDERSTOOD, KubeClient
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.text import short

_CARRIERS = {
    "vxlan": "VXLAN (calico: UDP 4789; cilium, flannel: UDP 8472; weave: UDP 6784)",
    "geneve": "Geneve (UDP 6081)",
    "ipip": "IP in IP (protocol 4)",
}
_NO_CARRIER = (
    "Without encapsulation the VMs' network carries packets with addresses of pods: "
    "give the VMs' ports allowed_address_pairs with the pods' network "
    "(kube_pods_subnet), or turn their port security off, and have their security "
    "groups admit the addresses of pods, not only members of the groups."
)
_CARRIER = (
    "With encapsulation the nodes exchange packets of pods in {carrier}: have the "
    "security groups of the VMs admit it between all nodes."
)
_MTU = (
    "The network between the VMs takes smaller packets than the MTU of their "
    "interfaces, from which that of pods follows: give the interfaces the MTU that the "
    "network really has. Or instantiate with cluster.network.mtu {mtu}, where the "
    "plugin takes it."
)
_SERVICE = (
    "Look at the logs of kube-proxy and of the network plugin on the nodes that do "
    "not reach the API's Service."
)


@dataclass(frozen=True)
class PodPath:
    """What a pod measured of another one.

    :param tried: the pod's MTU on the way there, bytes; 0: it has no route.
    :param arrived: size of the largest packet that arrived from there, bytes.
    :param error: why the last packet could not be sent; "" if it could.
    """

    tried: int
    arrived: int
    error: str = ""


@dataclass(frozen=True)
class Measurement:
    """What the pod on one node measured.

    :param node: the node's name.
    :param addresses: of the pod, one per address family.
    :param paths: by the address of the other pod.
    :param services: by address of the API's Service, why it was not reached, or "".
    """

    node: str
    addresses: tuple[str, ...]
    paths: Mapping[str, PodPath] = field(hash=False)
    services: Mapping[str, str] = field(hash=False)


def check(measured: Sequence[Measurement], encapsulation: str) -> None:
    """Check that everything arrived.

    :param encapsulation: of packets between nodes; "" if it is not known.
    :raises PodNetworkError: with what did not, the likely cause and its remedy.
    """
    lost, cut = [], []
    sizes = set()
    for source, target, sent, arrived in _directions(measured):
        way = f"from a pod on {source.node} to one on {target.node}"
        if not sent.tried:
            lost.append(f"{way} no packet can be sent ({sent.error})")
        elif not arrived:
            reason = f" ({sent.error})" if sent.error else ""
            lost.append(f"{way} no UDP packet, small or large, arrives{reason}")
        elif arrived < sent.tried:
            sizes.add(arrived)
            cut.append(
                f"{way} packets of {arrived} bytes arrive, but with DF set none of "
                f"{sent.tried} bytes, the MTU of the pod"
            )
    unreached = [
        f"from a pod on {one.node} the API's Service {address} cannot be reached over "
        f"TCP ({reason})"
        for one in measured
        for address, reason in one.services.items()
        if reason
    ]
    if not lost + cut + unreached:
        return
    hints = []
    if lost:
        if encapsulation != network_plugins.NO_ENCAPSULATION:
            known = _CARRIERS.get(encapsulation)
            hints.append(_CARRIER.format(carrier=known or "packets of their own"))
        if encapsulation not in _CARRIERS:
            hints.append(_NO_CARRIER)
    if cut:
        hints.append(_MTU.format(mtu=min(sizes)))
    if unreached:
        hints.append(_SERVICE)
    raise errors.PodNetworkError([*lost, *cut, *unreached], hint=" ".join(hints))


def _directions(
    measured: Iterable[Measurement],
) -> Iterator[tuple[Measurement, Measurement, PodPath, int]]:
    """Source, target, the source's path to it, and the size that arrived there."""
    holders = {address: one for one in measured for address in one.addresses}
    for address, source in holders.items():
        for other, path in source.paths.items():
            if (":" in address) is (":" in other):
                target = holders[other]
                yield source, target, path, target.paths[address].arrived


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
    :param lend_session: lends a session with a node, whose user may use sudo.
    :param limit: seconds for the pods to start, for packets to arrive, and for the
        API's Service to be reached.
    :param repository: of the image; "" if it is not known.
    """

    def __init__(
        self,
        client: KubeClient,
        lend_session: Callable[[Node], AbstractContextManager[Session]],
        limit: float,
        repository: str,
    ) -> None:
        self._client = client
        self._lend = lend_session
        self._limit = limit
        self._repository = repository

    @classmethod
    def through(cls, site: Site, control_plane: Node) -> "PodNetwork":
        limit = site.options.pod_network_timeout
        repository = variables.sandbox_repository(site.params)
        return cls(site.kubectl(control_plane), site.lender(), limit, repository)

    def measure(self, nodes: Sequence[Node], hub: Node) -> tuple[Measurement, ...]:
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
                    lambda node: opened.enter_context(self._lend(node)), probed.values()
                )
                services, images = self._services(), self._images(tuple(probed))
                sessions = dict(zip(probed, login, strict=True))
            token = secrets.token_hex(4)
            with self._pods(images) as addresses:

                def from_node(name: str) -> Measurement:
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
                    return tuple(pool.map(from_node, probed))

    def _probe(
        self, session: Session, request: Mapping[str, Any], name: str
    ) -> Measurement:
        source = Path(probe.__file__).read_text(encoding="utf-8")
        result = session.run(
            ["sh", "-c", _PYTHON],
            stdin=f"{source}\nmain({request!r})\n",
            timeout=3 * self._limit + 30,
            sudo=True,
        )
        try:
            answer = untrusted.parse_json(result.stdout)
            paths = {
                address: PodPath(**path) for address, path in answer["paths"].items()
            }
            return Measurement(name, tuple(request["own"]), paths, answer["services"])
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
    def _pods(self, images: Mapping[str, str]) -> Iterator[dict[str, list[str]]]:
        """Run a pod on each node; yield the pods' addresses by node.

        :param images: by node.
        """
        # A name of its own: the end of a former namespace may take any time.
        namespace = f"tacker-k8s-mgmt-pod-network-{secrets.token_hex(3)}"
        items = [*_around(namespace)]
        items += [
            _pod(namespace, number, node, image, 300 + int(4 * self._limit))
            for number, (node, image) in enumerate(images.items())
        ]
        manifest = {"apiVersion": "v1", "kind": "List", "items": items}
        try:
            # Not create, which fails if it is repeated after the answer was lost.
            self._client.run("apply", "-f", "-", stdin=json.dumps(manifest))
            yield self._addresses(namespace, tuple(images))
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
