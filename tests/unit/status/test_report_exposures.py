# SPDX-License-Identifier: Apache-2.0
"""The ports of CNFs on the load balancer, beside their record."""

from dataclasses import replace
from typing import Any

import pytest

from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.load_balancer import ExposedService, Server
from tests.helpers.cnf import service
from tests.helpers.status_scene import (
    BALANCER,
    CP,
    PARAMS,
    W5,
    W55,
    Scene,
    cells,
    findings,
    remedy,
    rows,
)

CNF = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
WEB = Exposure(CNF, "shop", "web", "tcp", 80, 30080)
ROW = f"80/tcp -> shop/web:30080 of CNF {CNF}"


def exposed(one: Exposure, *states: str) -> ExposedService:
    nodes = ((W5, "10.10.0.5"), (W55, "10.10.0.55"))
    servers = tuple(
        Server(*node, state) for node, state in zip(nodes, states, strict=False)
    )
    return replace(one.on_balancer(), servers=servers, check_port=one.node_port)


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.exposures = [WEB]
    scene.services = [exposed(WEB, "UP", "UP")]
    inner = service("web", (80, "TCP", WEB.node_port))
    scene.cluster_services = [replace(inner, namespace=WEB.namespace)]
    return scene


def test_a_row_has_the_cnf_the_service_and_the_health_of_each_worker(
    scene: Scene,
) -> None:
    by_hand = ExposedService("ntp", 123, 30123, servers=(), protocol="udp")
    scene.services.append(by_hand)
    found = rows(scene)
    assert list(found) == [CP, W5, W55, BALANCER, ROW]
    assert cells(found[ROW]) == ["", "recorded", "Service", f"UP: {W5}, {W55}", ""]
    assert found[BALANCER].cells != found[ROW].cells
    assert findings(scene) == {}
    # A worker without a pod of the CNF, for example.
    scene.services = [exposed(WEB, "UP", "DOWN")]
    assert findings(scene) == {}
    assert f"UP: {W5}; DOWN: {W55}" in cells(rows(scene)[ROW])


def test_what_is_recorded_and_not_exposed_is_a_difference(scene: Scene) -> None:
    scene.services = []
    assert findings(scene) == {
        ROW: ["not exposed by the load balancer, although it is recorded"]
    }
    assert "Heal the CNF" in remedy(scene, ROW)


def test_what_is_exposed_and_not_recorded_is_a_difference(scene: Scene) -> None:
    scene.exposures = []
    assert findings(scene) == {ROW: ["exposed by the load balancer, and not recorded"]}
    assert f"unexpose {WEB.name}" in remedy(scene, ROW)
    assert f"UP: {W5}, {W55}" in cells(rows(scene)[ROW])


@pytest.mark.parametrize(
    "change",
    [
        {"node_port": 30090},
        {"health_port": 32000},
        {"sources": ("10.0.0.0/8",)},
        {"proxy_protocol": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_values_than_the_recorded_are_a_difference(
    scene: Scene, change: dict[str, Any]
) -> None:
    scene.services = [replace(scene.services[0], **change)]
    (texts,) = findings(scene).values()
    assert texts == [
        "exposed with another node port, check, source or PROXY protocol than recorded"
    ]


@pytest.mark.parametrize("states", [("DOWN", "DOWN"), ("", ""), ()])
def test_a_port_without_a_healthy_worker_is_a_difference(
    scene: Scene, states: tuple[str, ...]
) -> None:
    scene.services = [exposed(WEB, *states)]
    assert findings(scene) == {ROW: ["no worker is healthy for it"]}


def test_the_service_for_udp_has_to_run(scene: Scene) -> None:
    scene.balancing["udp_active"] = False
    assert findings(scene) == {
        BALANCER: ["the service for UDP does not run, or not after a boot"]
    }
    scene.balancing["udp_active"] = True
    assert findings(scene) == {}


def test_a_service_that_is_gone_is_a_difference_although_its_workers_are_up(
    scene: Scene,
) -> None:
    """A UDP port without a health check node port is checked at the kubelets."""
    (there,) = scene.cluster_services
    scene.cluster_services = [
        replace(there, name="other"),
        replace(there, namespace="elsewhere"),
    ]
    assert findings(scene) == {ROW: ["its Service is not in the cluster"]}
    assert "Heal the CNF" in remedy(scene, ROW)
    moved = tuple(replace(port, node_port=30081) for port in there.ports)
    scene.cluster_services = [replace(there, ports=moved)]
    assert findings(scene) == {ROW: ["its Service has no node port 30080/tcp"]}


@pytest.mark.parametrize("silent", ["exposures", "balancer", "services"])
def test_silence_is_no_difference(scene: Scene, silent: str) -> None:
    assert findings(scene, silent=[silent]) == {}
    assert "?" in cells(rows(scene, silent=[silent])[ROW])


def test_the_vim_is_the_load_balancers_not_a_ports(scene: Scene) -> None:
    found = rows(scene, PARAMS).values()
    assert [row.name for row in found if "our-vim" in cells(row)] == [BALANCER]
