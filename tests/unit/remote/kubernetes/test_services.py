# SPDX-License-Identifier: Apache-2.0
"""Services of CNFs by the real kubectl, and the address in their status."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.services import ServicePort
from tacker_k8s_mgmt.remote.kubernetes.cluster import KubeControl
from tests.helpers.cnf import CNF, written
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl

ADDRESS = "203.0.113.9"


@pytest.fixture
def cluster(site, session):
    return KubeControl(session)


def apply(site, *services):
    site.kube.apply(*({"apiVersion": "v1", **one} for one in services))


def test_services_of_a_namespace_are_read(cluster, site):
    lb = written("lb", (53, "UDP", 30053), type="LoadBalancer", healthCheckNodePort=31)
    lb["metadata"]["annotations"] = {"meta.helm.sh/release-name": "r"}
    apply(site, written("web", (80, "TCP", 30080)), lb)
    found = {one.name: one for one in cluster.services("default")}
    web = found["web"]
    assert (web.type, web.instance, web.release) == ("NodePort", CNF, "")
    assert web.ports == (ServicePort(80, "tcp", 30080),)
    assert (found["lb"].check_port, found["lb"].release) == (31, "r")
    assert cluster.services("kube-public") == ()


def test_address_is_written_into_the_status_and_taken_out(cluster, site):
    apply(site, written("lb", (443, "TCP", None), type="LoadBalancer"))

    def lb():
        (found,) = (one for one in cluster.services("default") if one.name == "lb")
        return found

    assert lb().ingress == ()
    for address in (ADDRESS, ADDRESS, "", ""):
        cluster.publish(lb(), address)
        assert lb().ingress == ((address,) if address else ())
        assert lb().published == address
    assert lb().ports[0].node_port


def test_service_that_has_gone_is_an_error(cluster, site):
    apply(site, written("lb", (443, "TCP", None), type="LoadBalancer"))
    (lb,) = (one for one in cluster.services("default") if one.name == "lb")
    site.kube.kubectl("delete", "service", "lb")
    with pytest.raises(errors.CommandFailed, match="NotFound"):
        cluster.publish(lb, ADDRESS)
