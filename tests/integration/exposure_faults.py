# SPDX-License-Identifier: Apache-2.0
"""What fails while a CNF is exposed: each time ``retry`` continues.

kubectl of the control plane is held, so that a fault comes at a known moment.
"""

import contextlib
from collections.abc import Iterator

import requests

from lab import client
from tests.integration.cluster import Cluster, eventually
from tests.integration.exposed import BALANCED, HeldKubectl, Web, ingress, ports
from tests.integration.laboratory import Lab

_SERVICES, _STATUS = "services", "--subresource=status"
# What the driver writes for each repetition.
_RETRIED = "kubectl is retried"
# Seconds that an API server may be away, in place of minutes.
_IMPATIENT = 3


@contextlib.contextmanager
def api_away(cluster: Cluster) -> Iterator[None]:
    """Have the cluster's API server stopped; its VM continues."""
    server = cluster.server("masterNode")
    client.on_host(server, "systemctl", "stop", "kube-apiserver")
    try:
        yield
    finally:
        client.on_host(server, "systemctl", "start", "kube-apiserver")
        eventually(lambda: _all_ready(cluster))


def _all_ready(cluster: Cluster) -> bool:
    with contextlib.suppress(requests.RequestException):
        return all(cluster.ready_nodes().values())
    return False


def expose_without_api(
    lab: Lab, cluster: Cluster, kubectl: HeldKubectl, web: Web
) -> str:
    """Expose a CNF of the v2 API while the API server is away for too long.

    :returns: the operation, which has failed.
    """
    # Each hook of that API reads the configuration.
    with lab.configured(api_timeout=_IMPATIENT):
        kubectl.hold(_SERVICES)
        operation = web.begin_balanced()
        kubectl.wait(_SERVICES)
        with api_away(cluster):
            kubectl.release(_SERVICES)
            error = web.end(operation, "FAILED_TEMP")["error"]["detail"]
    assert "find the CNF's Services" in error
    assert "The connection to the server" in error
    assert ports(cluster) == {}
    return operation


def expose_while_api_restarts(
    lab: Lab, cluster: Cluster, kubectl: HeldKubectl, web: Web
) -> str:
    """Have the API server away for a while, which is waited for.

    :returns: the operation, whose kubectl is held when the CNF is exposed.
    """
    kubectl.hold(_SERVICES)
    operation = web.begin_balanced()
    kubectl.wait(_SERVICES)
    kubectl.hold(_STATUS)
    before = lab.logs().count(_RETRIED)
    with api_away(cluster):
        kubectl.release(_SERVICES)
        eventually(lambda: lab.logs().count(_RETRIED) > before)
    kubectl.wait(_STATUS)
    return operation


def retry_with_dead_balancer(
    lab: Lab, cluster: Cluster, kubectl: HeldKubectl, web: Web
) -> None:
    """Go on with an operation while nobody reaches the load balancer."""
    kubectl.hold(_SERVICES)
    operation = web.begin_retry()
    kubectl.wait(_SERVICES)
    with lab.cut(cluster.server("externalLB")):
        kubectl.release(_SERVICES)
        error = web.end(operation, "FAILED_TEMP")["error"]["detail"]
    assert "expose the Services on the load balancer" in error
    assert cluster.balancer_address() in error
    assert ports(cluster) == {}


def retry_until_exposed(kubectl: HeldKubectl, web: Web) -> str:
    """Go on with it until kubectl is held when the CNF is exposed; the operation."""
    kubectl.hold(_STATUS)
    operation = web.begin_retry()
    kubectl.wait(_STATUS)
    return operation


def kill_conductor(
    lab: Lab, cluster: Cluster, kubectl: HeldKubectl, web: Web, operation: str
) -> None:
    """Kill it between an exposure and the hook's answer."""
    assert list(ports(cluster)) == [BALANCED]
    lab.kill_conductor()
    kubectl.release(_STATUS)
    web.end_without_conductor(operation)
    web.retry()
    assert list(ports(cluster)) == [BALANCED]
    assert ingress(cluster, "web-balanced") == [cluster.balancer_address()]
    web.terminate()
    assert ports(cluster) == {}
