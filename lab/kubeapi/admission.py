# SPDX-License-Identifier: Apache-2.0
"""Defaults that a real API server fills in when an object is written."""

import base64
import ipaddress
import random
from collections.abc import Callable

from .objects import Obj, name_of
from .taints import default_tolerations

SERVICE_NETWORK = "10.233.0.0/18"
"""The default network of service addresses."""

#: Of a DaemonSet: the number of its pods' template.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NODE_PORTS = range(30000, 32768)


def encode(text: str) -> str:
    """Base64, as the values of a Secret's ``data`` are written."""
    return base64.b64encode(text.encode()).decode()


def random_address(network: str) -> str:
    """An address of the network; its first ten stay free, as kubespray uses some."""
    net = ipaddress.ip_network(network)
    return str(net[random.randrange(11, min(net.num_addresses, 1 << 16) - 1)])


def _namespace(obj: Obj, _network: str) -> None:
    obj["status"] = {"phase": "Active"}
    obj["spec"]["finalizers"] = ["kubernetes"]
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = name_of(obj)


def _node(obj: Obj, _network: str) -> None:
    if not obj["spec"].get("taints"):
        obj["spec"].pop("taints", None)
    endpoints = {"kubeletEndpoint": {"Port": 0}}
    obj.setdefault("status", {}).setdefault("daemonEndpoints", endpoints)
    labels = obj["metadata"].setdefault("labels", {})
    labels.setdefault("kubernetes.io/hostname", name_of(obj))
    labels.setdefault("kubernetes.io/os", "linux")
    labels.setdefault("kubernetes.io/arch", "amd64")


def _config_map(obj: Obj, _network: str) -> None:
    if not obj.get("data"):
        obj.pop("data", None)


def _pod(obj: Obj, _network: str) -> None:
    spec = obj["spec"]
    spec["tolerations"] = default_tolerations(spec.get("tolerations"))
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("serviceAccountName", "default")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _secret(obj: Obj, _network: str) -> None:
    texts = obj.pop("stringData", None) or {}
    if texts:
        encoded = {key: encode(value) for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    obj.setdefault("type", "Opaque")


def _service(obj: Obj, network: str) -> None:
    spec = obj["spec"]
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("clusterIP", random_address(network))
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    has_node_ports = spec["type"] == "NodePort" or (
        spec["type"] == "LoadBalancer" and spec["allocateLoadBalancerNodePorts"]
    )
    for port in spec.get("ports", []):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])
        if has_node_ports:
            port.setdefault("nodePort", random.choice(_NODE_PORTS))


def _stateful_set(obj: Obj, network: str) -> None:
    _replicas(obj, network)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    obj["spec"].setdefault("updateStrategy", rolling)


def _daemon_set(obj: Obj, _network: str) -> None:
    surge = {"maxSurge": 0, "maxUnavailable": 1}
    rolling = {"type": "RollingUpdate", "rollingUpdate": surge}
    obj.setdefault("spec", {}).setdefault("updateStrategy", rolling)
    annotations = obj["metadata"].setdefault("annotations", {})
    annotations[TEMPLATE_GENERATION] = "1"


def with_template_generation(old: Obj, new: Obj) -> Obj:
    """A DaemonSet as updated: the number of its template follows the template."""
    annotations = old["metadata"].get("annotations") or {}
    number = int(annotations.get(TEMPLATE_GENERATION, "1"))
    changed = new["spec"].get("template") != old["spec"].get("template")
    own = {TEMPLATE_GENERATION: str(number + changed)}
    annotations = {**(new["metadata"].get("annotations") or {}), **own}
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def _replicas(obj: Obj, _network: str) -> None:
    obj["spec"].setdefault("replicas", 1)
    # Before its controller has written anything, too: clients look into it.
    obj.setdefault("status", {})


def _job(obj: Obj, _network: str) -> None:
    spec, uid = obj.setdefault("spec", {}), obj["metadata"].get("uid")
    for field, value in (("parallelism", 1), ("completions", 1), ("backoffLimit", 6)):
        spec.setdefault(field, value)
    obj.setdefault("status", {})
    prefix = "batch.kubernetes.io/"
    own = {f"{prefix}controller-uid": uid, f"{prefix}job-name": name_of(obj)}
    metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    former = {"controller-uid": uid, "job-name": name_of(obj)}
    metadata["labels"] = {**(metadata.get("labels") or {}), **own, **former}
    selector = {"matchLabels": {f"{prefix}controller-uid": uid}}
    spec.setdefault("selector", selector)


def _limit_range(obj: Obj, _network: str) -> None:
    for limit in obj["spec"].get("limits", []):
        if limit.get("type") != "Container":
            continue
        limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        requests = {**(limit.get("min") or {}), **limits}
        requests |= limit.get("defaultRequest") or {}
        limit |= {"default": limits} if limits else {}
        limit |= {"defaultRequest": requests} if requests else {}


def with_ip_modes(service: Obj, version: str) -> Obj:
    """A Service with the mode of each address in its status.

    The feature LoadBalancerIPMode, on from Kubernetes 1.30: before, the field is
    dropped, and then it has a default.

    :param version: of Kubernetes, with a leading ``v``.
    """
    is_known = [int(part) for part in version.lstrip("v").split(".")[:2]] >= [1, 30]
    status = service.get("status") or {}
    balancer = status.get("loadBalancer") or {}
    ingress = [
        {
            **{key: value for key, value in entry.items() if key != "ipMode"},
            **({"ipMode": entry.get("ipMode") or "VIP"} if is_known else {}),
        }
        if entry.get("ip")
        else entry
        for entry in balancer.get("ingress") or ()
    ]
    if not ingress:
        return service
    balancer = {**balancer, "ingress": ingress}
    return {**service, "status": {**status, "loadBalancer": balancer}}


_DEFAULTS: dict[str, Callable[[Obj, str], None]] = {
    "configmaps": _config_map,
    "jobs": _job,
    "limitranges": _limit_range,
    "namespaces": _namespace,
    "nodes": _node,
    "pods": _pod,
    "secrets": _secret,
    "services": _service,
    "deployments": _replicas,
    "replicasets": _replicas,
    "statefulsets": _stateful_set,
    "daemonsets": _daemon_set,
}
_ALWAYS_SPEC = ("nodes", "pods", "namespaces", "services")


def fill_defaults(plural: str, obj: Obj, service_network: str) -> None:
    """Fill in what the kind defaults; changes ``obj``, which is not shared yet."""
    if plural in _ALWAYS_SPEC:
        obj.setdefault("spec", {})
    if plural in _DEFAULTS:
        _DEFAULTS[plural](obj, service_network)
