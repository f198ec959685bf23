# SPDX-License-Identifier: Apache-2.0
"""Endpoints of Services: the addresses of the ready pods that a Service selects."""

from ..objects import Obj, is_ready, labels_of, name_of, namespace_of
from ..objects import owner_reference as reference_to
from ..resources import ENDPOINTS, PODS, SERVICES
from ..selectors import selector_matches
from ..store import Store


def step(store: Store) -> None:
    """One round over all Services that have a selector."""
    for service in store.all(SERVICES):
        if service["spec"].get("selector"):
            _endpoints(store, service)


def _endpoints(store: Store, service: Obj) -> None:
    namespace, spec = namespace_of(service), service["spec"]
    addresses = [
        {
            "ip": pod["status"]["podIP"],
            "nodeName": pod["spec"]["nodeName"],
            "targetRef": {
                "kind": "Pod",
                "name": name_of(pod),
                "namespace": namespace,
                "uid": pod["metadata"]["uid"],
            },
        }
        for pod in store.all(PODS, namespace)
        if is_ready(pod) and selector_matches(spec["selector"], labels_of(pod))
    ]
    ports = [
        {"port": _port(p), "protocol": p["protocol"]} for p in spec.get("ports", [])
    ]
    subsets = [{"addresses": addresses, "ports": ports}] if addresses else []
    found = store.find(ENDPOINTS, namespace, name_of(service))
    if found is None:
        metadata = {
            "name": name_of(service),
            "ownerReferences": [reference_to(service)],
        }
        found = store.create(ENDPOINTS, namespace, {"metadata": metadata})
    store.replace(ENDPOINTS, found, subsets=subsets)


def _port(port: Obj) -> int:
    target = port["targetPort"]
    return target if isinstance(target, int) else port["port"]
