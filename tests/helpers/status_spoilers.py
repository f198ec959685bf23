# SPDX-License-Identifier: Apache-2.0
"""Ways in which one of the five places may differ: each damages a good scene."""

from dataclasses import replace

from tacker_k8s_mgmt.model.load_balancer import Server
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.topology.heat_stack import Unfinished
from tests.helpers.fakes.nodes import FakeNode
from tests.helpers.samples import machine
from tests.helpers.status_scene import CP, W5, Scene


def orphan(scene: Scene) -> None:
    scene.add_worker(7)


def orphan_in_the_cluster(scene: Scene) -> None:
    scene.add_worker(7)
    scene.nodes["worker-10-10-0-7"] = FakeNode(
        "worker-10-10-0-7", internal_ip="10.10.0.7"
    )


def vanished(scene: Scene) -> None:
    del scene.workers[0]
    scene.node(W5, ready=False, reason="no word")


def no_node_object(scene: Scene) -> None:
    del scene.nodes[W5]


def no_control_plane_object(scene: Scene) -> None:
    del scene.nodes[CP]


def not_ready(scene: Scene) -> None:
    scene.node(W5, ready=False, reason="KubeletNotReady: no network.")


def control_plane_not_ready(scene: Scene) -> None:
    scene.node(CP, ready=False, reason="no word")


def without_network(scene: Scene) -> None:
    key = "node.kubernetes.io/network-unavailable"
    scene.node(W5, taints=({"key": key, "effect": "NoSchedule"},))


def cordoned(scene: Scene) -> None:
    scene.node(W5, unschedulable=True)


def left_cordoned(scene: Scene) -> None:
    scene.node(W5, unschedulable=True, cordoned_by_us=True)


def other_node_address(scene: Scene) -> None:
    scene.node(W5, internal_ip="10.99.0.5")


def stranger(scene: Scene) -> None:
    scene.nodes["guest"] = FakeNode("guest", internal_ip="10.10.0.77")


def no_route(scene: Scene) -> None:
    del scene.routes[W5]


def route_without_vm(scene: Scene) -> None:
    scene.routes["worker-10-10-0-8"] = Server("worker-10-10-0-8", "10.10.0.8")


def route_elsewhere(scene: Scene) -> None:
    scene.routes[W5] = Server(W5, "10.10.0.66")


def no_backend(scene: Scene) -> None:
    del scene.backends[CP]


def backend_without_vm(scene: Scene) -> None:
    other = "control-plane-10-10-0-8"
    scene.backends[other] = Server(other, "10.10.0.8", "DOWN")


def backend_elsewhere(scene: Scene) -> None:
    scene.backends[CP] = Server(CP, "10.10.0.66", "UP")


def backend_down(scene: Scene) -> None:
    scene.backends[CP] = replace(scene.backends[CP], state="DOWN")


def rebuilt(scene: Scene) -> None:
    scene.workers[0] = replace(scene.workers[0], server_id="server-new")


def rebuilt_and_gone_from_the_cluster(scene: Scene) -> None:
    rebuilt(scene)
    del scene.nodes[W5]


def control_plane_rebuilt(scene: Scene) -> None:
    scene.planes[0] = replace(scene.planes[0], server_id="server-new")


def control_plane_gone(scene: Scene) -> None:
    scene.planes = []


def control_plane_added(scene: Scene) -> None:
    scene.planes.append(machine(Role.CONTROL_PLANE, 6))


def unfinished(scene: Scene) -> None:
    del scene.workers[0]
    state = "workerNode is UPDATE_FAILED"
    scene.unfinished = [Unfinished(Role.WORKER, "server-5", state)]


def unfinished_for_unknown_reasons(scene: Scene) -> None:
    del scene.workers[0]
    scene.elsewhere = ["server-5"]


def unfinished_and_new(scene: Scene) -> None:
    state = "workerNode is CREATE_IN_PROGRESS"
    scene.unfinished = [Unfinished(Role.WORKER, "server-8", state)]


def not_joined(scene: Scene) -> None:
    assert scene.joined is not None
    scene.joined.discard("server-5")


def moved(scene: Scene) -> None:
    scene.entry(W5, address="10.10.0.66")
    scene.nodes[W5] = FakeNode(W5, internal_ip="10.10.0.5")


def logins_moved(scene: Scene) -> None:
    scene.entry(W5, ssh_address="10.99.0.66")


def control_plane_moved(scene: Scene) -> None:
    scene.entry(CP, address="10.10.0.66")


def no_inventory(scene: Scene) -> None:
    scene.listed = {}
    scene.joined = None


def balancer_never_set_up(scene: Scene) -> None:
    scene.port, scene.routes, scene.backends = None, {}, {}


def balancer_at_another_port(scene: Scene) -> None:
    scene.port = 8443


def balancer_stopped(scene: Scene) -> None:
    scene.balancing.update(active=False, current=False)
    scene.backends[CP] = Server(CP, "10.10.0.4")


def balancer_out_of_date(scene: Scene) -> None:
    scene.balancing["current"] = False


def balancer_not_enabled(scene: Scene) -> None:
    scene.balancing["enabled"] = False


def balancer_without_vm(scene: Scene) -> None:
    scene.balancer = None


def no_vim(scene: Scene) -> None:
    scene.vims = []


def vim_elsewhere(scene: Scene) -> None:
    scene.vims = [replace(scene.vims[0], auth_url="https://10.99.0.77:6443")]


def vim_unnamed(scene: Scene) -> None:
    scene.vims = [replace(scene.vims[0], named=False)]
