# SPDX-License-Identifier: Apache-2.0
"""Services of CNFs by the real kubectl, and the address in their status."""

import json
from dataclasses import replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.services import PUBLISHED_ANNOTATION, ServicePort
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tests.helpers import kubectl_server
from tests.helpers.cnf import CNF, written
from tests.helpers.kubeapi import QUICK
from tests.helpers.kubectl_server import needs_kubectl

pytestmark = needs_kubectl

ADDRESS = "203.0.113.9"


@pytest.fixture
def cluster(site, session):
    return ClusterApi(session)


@pytest.fixture
def former(sshd, api_certificate):
    """A cluster of the last release that drops ipMode."""
    settings = replace(QUICK, version="v1.29.15")
    certificate, key = api_certificate
    site = kubectl_server.open_site(sshd, certificate, key, settings=settings)
    yield site
    kubectl_server.close_site(site)


def apply(site, *services):
    site.kube.apply(*({"apiVersion": "v1", **one} for one in services))


def lb(cluster):
    (found,) = (one for one in cluster.services("default") if one.name == "lb")
    return found


def write_without_mode(site):
    change = {
        "metadata": {"annotations": {PUBLISHED_ANNOTATION: ADDRESS}},
        "status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}},
    }
    merge = ("--subresource=status", "--type=merge", "-p", json.dumps(change))
    site.kube.kubectl("patch", "service", "lb", *merge)


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

    assert lb(cluster).ingress == ()
    for address in (ADDRESS, ADDRESS, "", ""):
        cluster.publish(lb(cluster), address)
        assert lb(cluster).ingress == ((address,) if address else ())
        # Else kube-proxy gives the address to every node.
        assert lb(cluster).modes == (("Proxy",) if address else ())
        assert lb(cluster).published == address
    assert lb(cluster).ports[0].node_port


def test_address_of_a_release_that_wrote_no_mode_is_repaired(cluster, site):
    apply(site, written("lb", (443, "TCP", None), type="LoadBalancer"))
    write_without_mode(site)
    assert (lb(cluster).published, lb(cluster).modes) == (ADDRESS, ("VIP",))
    assert not lb(cluster).shows(ADDRESS)
    cluster.publish(lb(cluster), ADDRESS)
    assert lb(cluster).shows(ADDRESS)


def test_api_server_that_drops_the_mode_gets_no_address(former, session, caplog):
    cluster = ClusterApi(session)
    apply(former, written("lb", (443, "TCP", None), type="LoadBalancer"))
    cluster.publish(lb(cluster), ADDRESS)
    assert (lb(cluster).published, lb(cluster).ingress) == ("", ())
    assert "Kubernetes 1.30" in caplog.text
    write_without_mode(former)
    assert lb(cluster).modes == ("",)
    cluster.publish(lb(cluster), ADDRESS)
    assert (lb(cluster).published, lb(cluster).ingress) == ("", ())


def test_service_that_has_gone_is_an_error(cluster, site):
    apply(site, written("lb", (443, "TCP", None), type="LoadBalancer"))
    gone = lb(cluster)
    site.kube.kubectl("delete", "service", "lb")
    with pytest.raises(errors.CommandFailed, match="NotFound"):
        cluster.publish(gone, ADDRESS)
