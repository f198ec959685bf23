# SPDX-License-Identifier: Apache-2.0
"""The parameter that says which Services of a CNF are exposed, and where."""

import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.services import Cnf, Service
from tacker_k8s_mgmt.request import cnf_exposure
from tests.helpers.cnf import CNF, service

CLUSTER = "9f3b0f6e-9c0d-4f4e-8f7a-3b1c5d7e9f01"
WEB = service("web", (80, "TCP", 30080), (443, "TCP", 30443))
DNS = service("dns", (53, "UDP", 30053), type="LoadBalancer")
INNER = service("inner", (9000, "TCP", None), type="ClusterIP")


def exposed(raw, *services):
    return cnf_exposure.parse(raw).exposures(CNF, services)


def ports(found):
    return [(one.service, one.protocol, one.port, one.node_port) for one in found]


def problems(raw, *services):
    with pytest.raises(errors.ExposureError) as caught:
        exposed(raw, *services)
    return caught.value.problems


class TestDefault:
    def test_every_service_with_node_ports(self):
        assert ports(exposed(None, WEB, DNS, INNER)) == [
            ("web", "tcp", 30080, 30080),
            ("web", "tcp", 30443, 30443),
            ("dns", "udp", 53, 30053),
        ]

    def test_of_a_load_balancer_class_is_left_to_that(self):
        other = service("lb", (80, "TCP", 30081), loadBalancerClass="metallb")
        assert exposed(None, other) == ()

    def test_without_node_ports_it_is_left_to_another_one(self):
        none = {"allocateLoadBalancerNodePorts": False}
        other = service("lb", (80, "TCP", None), type="LoadBalancer", **none)
        assert exposed(None, other) == ()
        (problem,) = problems({"services": [{"name": "lb"}]}, other)
        assert "port 80/tcp has no node port, because allocateLoadBalancerN" in problem
        # A port may have one nevertheless.
        own = service("lb", (80, "TCP", 30081), type="LoadBalancer", **none)
        assert ports(exposed(None, own)) == [("lb", "tcp", 80, 30081)]

    def test_sctp_is_left_out(self):
        amf = service("amf", (38412, "SCTP", 30412), (80, "TCP", 30080))
        assert ports(exposed({}, amf)) == [("amf", "tcp", 30080, 30080)]

    def test_source_ranges_and_health_check_port_of_the_service(self):
        ranges = {"loadBalancerSourceRanges": ["192.0.2.0/24"]}
        one = service("lb", (80, "TCP", 30081), healthCheckNodePort=31000, **ranges)
        (found,) = exposed(None, one)
        assert (found.check_port, found.sources) == (31000, ("192.0.2.0/24",))

    def test_source_ranges_are_written_as_the_load_balancer_writes_them(self):
        """Else `cluster check` would find another source than recorded."""
        ranges = [" 2001:DB8::/32", "192.0.2.7/24 ", "2001:0db8:0:0::1/128"]
        one = service("lb", (80, "TCP", 30081), loadBalancerSourceRanges=ranges)
        (found,) = exposed(None, one)
        assert found.sources == ("2001:db8::/32", "192.0.2.0/24", "2001:db8::1/128")

    def test_source_range_that_is_none_is_named_before_anything_is_exposed(self):
        ranges = ["192.0.2.0/24", "192.0.2.0/33", "all", "192.0.2.1"]
        one = service("lb", (80, "TCP", 30081), loadBalancerSourceRanges=ranges)
        found = problems(None, one)
        assert [text.split("'")[1] for text in found] == ["192.0.2.0/33", "all"]
        # Those of the request replace them.
        wanted = {"services": [{"name": "lb", "sources": ["192.0.2.0/24"]}]}
        assert exposed(wanted, one)


def test_listed_services_only_at_the_ports_that_are_given():
    wanted = {
        "services": [
            {
                "name": "web",
                "ports": [{"port": 443, "external_port": 8443}],
                "sources": ["192.0.2.0/24", "2001:db8::/64"],
                "proxy_protocol": True,
            }
        ]
    }
    assert exposed(wanted, WEB, DNS) == (
        Exposure(
            CNF,
            "default",
            "web",
            "tcp",
            8443,
            30443,
            sources=("192.0.2.0/24", "2001:db8::/64"),
            proxy_protocol=True,
        ),
    )
    assert cnf_exposure.parse(wanted).announced(CNF, "default") == (
        Exposure(CNF, "default", "web", "tcp", 8443, 0),
    )


def test_no_services_are_none():
    assert exposed({"services": []}, WEB) == ()


def test_port_of_a_manifest_is_known_as_far_as_it_says():
    unset = service("web", (80, "TCP", None))
    balanced = service("lb", (443, "TCP", None), type="LoadBalancer")
    assert ports(exposed(None, unset, balanced)) == [("lb", "tcp", 443, 0)]


def test_all_problems_of_services_are_in_one_error():
    wanted = {
        "services": [
            {"name": "gone"},
            {"name": "inner"},
            {"name": "web", "ports": [{"port": 81}]},
            {"name": "dns", "proxy_protocol": True},
        ]
    }
    assert problems(wanted, WEB, DNS, INNER) == (
        "there is no Service gone; there are dns, inner, web",
        "Service inner is of type ClusterIP and has no node ports; its type must be "
        "NodePort or LoadBalancer",
        "Service web has no port 81/tcp; it has 80/tcp, 443/tcp",
        "Service dns: port 53/udp cannot have proxy_protocol, which is for tcp",
    )


def test_cnf_without_services_has_none():
    assert problems({"services": [{"name": "web"}]}) == (
        "there is no Service web; there are none",
    )


def test_udp_needs_a_health_check_port_where_nodes_drop_packets():
    """Else flows to workers without a pod are lost, and no check shows it."""
    local = {"externalTrafficPolicy": "Local"}
    both = (53, "TCP", 30053), (53, "UDP", 30054)
    (problem,) = problems(None, service("dns", *both, **local))
    assert "Service dns: port 53/udp cannot be exposed" in problem
    assert "type be LoadBalancer" in problem
    checked = {**local, "healthCheckNodePort": 31000}
    found = exposed(None, service("dns", *both, type="LoadBalancer", **checked))
    assert [one.check_port for one in found] == [31000, 31000]
    # The API has not chosen it yet for a manifest.
    assert exposed(None, service("dns", *both, type="LoadBalancer", **local))
    assert exposed(None, service("web", (80, "TCP", 30080), **local))
    assert exposed(None, service("dns", *both))


def test_one_port_for_two_services_is_refused():
    other = service("b", (80, "TCP", 30081), type="LoadBalancer")
    udp = service("c", (80, "UDP", 30082), type="LoadBalancer")
    one = service("a", (80, "TCP", 30080), type="LoadBalancer")
    (problem,) = problems(None, one, other, udp)
    assert problem.startswith("port 80/tcp of the load balancer is wanted for a and b;")


class TestReading:
    def test_json_text_and_camel_case_are_the_same(self):
        port = {"port": 80, "externalPort": 8080}
        wanted = {"clusterVnfInstanceId": CLUSTER}
        wanted["services"] = [{"name": "web", "ports": [port], "proxyProtocol": True}]
        snake = {"cluster_vnf_instance_id": CLUSTER}
        port = {"port": 80, "external_port": 8080}
        snake["services"] = [{"name": "web", "ports": [port], "proxy_protocol": True}]
        text = cnf_exposure.parse(json.dumps(wanted))
        assert text == cnf_exposure.parse(snake) == cnf_exposure.parse(wanted)

    def test_attribute_is_found_in_either_spelling(self):
        assert cnf_exposure.attribute_of({"k8sCnfExposureParam": {"services": []}}) == {
            "services": []
        }
        assert cnf_exposure.attribute_of(None) is None

    def test_all_problems_are_in_one_error(self):
        wanted = {
            "cluster_vnf_instance_id": "no-id",
            "service": [],
            "services": [
                {"name": "web", "ports": [{"port": 0}, {"port": 80, "protocol": "S"}]},
                {"name": "dns", "sources": ["10.0.0.1"], "source": []},
            ],
        }
        with pytest.raises(errors.ExposureParamError) as caught:
            cnf_exposure.parse(wanted)
        assert str(caught.value).startswith("k8s_cnf_exposure_param has 6 problem(s): ")
        assert [one.partition(":")[0] for one in caught.value.problems] == [
            "service",
            "services.1.source",
            "cluster_vnf_instance_id",
            "services.0.ports.0.port",
            "services.0.ports.1.protocol",
            "services.1.sources.0",
        ]

    def test_repetitions_are_refused(self):
        port = {"port": 80}
        wanted = {"services": [{"name": "a", "ports": [port, port]}, {"name": "a"}]}
        with pytest.raises(errors.ExposureParamError) as caught:
            cnf_exposure.parse(wanted)
        assert caught.value.problems == (
            "services: a is given 2 times",
            "services: port 80/tcp of a is given 2 times",
        )

    @pytest.mark.parametrize("raw", ["{", "[]", [], 7])
    def test_what_is_no_structure_is_refused(self, raw):
        with pytest.raises(errors.ExposureParamError):
            cnf_exposure.parse(raw)


class TestServicesOfACnf:
    @pytest.mark.parametrize(
        ("metadata", "is_owned"),
        [
            ({"name": "web"}, True),
            ({"name": "x", "labels": {"tacker_vnf_instance_id": CNF}}, True),
            ({"name": "x", "labels": {"tacker_vnf_instance_id": CLUSTER}}, False),
            ({"name": "x", "annotations": {"meta.helm.sh/release-name": "r"}}, True),
            ({"name": "web", "namespace": "other"}, False),
            ({"name": "x"}, False),
        ],
    )
    def test_are_told_by_name_label_or_release(self, metadata, is_owned):
        cnf = Cnf(CNF, "default", frozenset({"web"}), release="r")
        assert cnf.owns(Service.read({"metadata": metadata})) is is_owned

    def test_no_release_is_none_of_ours(self):
        assert not Cnf(CNF, "default").owns(Service.read({"metadata": {"name": "x"}}))


@pytest.mark.parametrize(
    "change",
    [
        {"apiVersion": "serving.knative.dev/v1"},
        {"kind": "Deployment"},
        {"spec": {"ports": "none"}},
        {"spec": {"ports": [{"port": "http"}]}},
        {"spec": []},
        {"metadata": None},
    ],
)
def test_an_object_that_is_no_service(change):
    spec = {"ports": [{"port": 80}]}
    whole = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}
    assert Service.of_object({**whole, "spec": spec}).name == "a"
    found = Service.of_object({**whole, "spec": spec, **change})
    assert found is None or found.ports == ()
