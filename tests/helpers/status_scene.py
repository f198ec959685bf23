# SPDX-License-Identifier: Apache-2.0
"""A cluster as five sources report it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacker_k8s_mgmt.features.exposure import rows as exposure_rows
from tacker_k8s_mgmt.model.exposure import Exposure
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, ExposedService, Server
from tacker_k8s_mgmt.model.nodes import (
    Count,
    Machine,
    Node,
    Role,
    name_nodes,
)
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.model.vim import Vim
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status.facts import Answers, Row, Source
from tacker_k8s_mgmt.status.rows import compare, members_of
from tacker_k8s_mgmt.topology.heat_stack import Machines, Unfinished
from tests.helpers.fakes.nodes import FakeNode
from tests.helpers.samples import REMOVED, machine, parsed

CP, W5, W55 = "control-plane-10-10-0-4", "worker-10-10-0-5", "worker-10-10-0-55"
BALANCER = "load balancer"
PARAMS = parsed()
WITHOUT_BALANCER = parsed({"external_lb_param": REMOVED})
COLUMNS = (Source.HEAT, Source.INVENTORY, Source.CLUSTER, Source.BALANCER, Source.VIM)


@dataclass
class Scene:
    """A cluster on which all sources agree, to be damaged by a test.

    :ivar gone: the sources that do not answer.
    """

    planes: list[Machine] = field(
        default_factory=lambda: [machine(Role.CONTROL_PLANE, 4)]
    )
    workers: list[Machine] = field(
        default_factory=lambda: [machine(Role.WORKER, 5), machine(Role.WORKER, 55)]
    )
    balancer: Machine | None = field(
        default_factory=lambda: machine(Role.LOAD_BALANCER, 9)
    )
    unfinished: list[Unfinished] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    counts: tuple[Count, ...] = ()
    vims: list[Vim] = field(
        default_factory=lambda: [Vim("v", "our-vim", "https://10.99.0.9:6443", True)]
    )

    def __post_init__(self) -> None:
        nodes = name_nodes([*self.planes, *self.workers])
        self.listed: dict[str, Node] = {node.name: node for node in nodes}
        self.joined: set[str] | None = {node.server_id for node in nodes}
        self.nodes = {
            node.name: FakeNode(node.name, internal_ip=node.address) for node in nodes
        }
        routes = {node.name: Server(node.name, node.address) for node in nodes}
        self.backends = {CP: replace(routes.pop(CP), state="UP")}
        self.routes = routes
        self.balancing: dict[str, Any] = {
            "active": True,
            "enabled": True,
            "current": True,
        }
        self.port: int | None = 6443
        self.services: list[ExposedService] = []
        self.exposures: list[Exposure] = []
        self.cluster_services: list[Service] = []

    def node(self, name: str, **changes: Any) -> None:
        self.nodes[name] = replace(self.nodes[name], **changes)

    def entry(self, name: str, **changes: Any) -> None:
        self.listed[name] = replace(self.listed[name], **changes)

    def add_worker(self, number: int) -> None:
        self.workers.append(machine(Role.WORKER, number))

    def answers(self, silent: Iterable[str] = ()) -> Answers:
        there: list[Machine | Unfinished] = [
            *self.planes,
            *self.workers,
            *self.unfinished,
        ]
        servers = [*(one.server_id for one in there), *self.elsewhere]
        said = Answers(
            machines=Machines(
                vms=(*self.planes, *self.workers, *filter(None, [self.balancer])),
                places={server: frozenset({"top"}) for server in servers},
                unfinished=tuple(self.unfinished),
                stack_id="stack-7",
            ),
            inventory=tuple(self.listed.values()),
            joined=None if self.joined is None else frozenset(self.joined),
            nodes=tuple(self.nodes.values()),
            balancer=BalancerStatus(
                **self.balancing,
                options={"api_port": self.port},
                control_planes=tuple(self.backends.values()),
                workers=tuple(self.routes.values()),
                services=tuple(self.services),
            ),
            vims=tuple(self.vims),
            counts=self.counts,
        )
        unread: Any = dict.fromkeys(set(silent) - {"exposures", "services"})
        return replace(said, **unread)

    def exposed(self, silent: Iterable[str] = ()) -> exposure_rows.Answers:
        return exposure_rows.Answers(
            None if "exposures" in silent else tuple(self.exposures),
            None if "services" in silent else tuple(self.cluster_services),
            None if "balancer" in silent else tuple(self.services),
        )


def rows(
    scene: Scene, params: ClusterRequest = PARAMS, silent: Iterable[str] = ()
) -> dict[str, Row]:
    answers = scene.answers(silent)
    found = compare(members_of(answers), answers, params)
    exposed = exposure_rows.rows(scene.exposed(silent)) if params.load_balancer else ()
    return {row.name: row for row in (*found, *exposed)}


def cells(row: Row, columns: Sequence[Source] = COLUMNS) -> list[str]:
    return [row.cells[column].text for column in columns]


def findings(
    scene: Scene, params: ClusterRequest = PARAMS, silent: Iterable[str] = ()
) -> dict[str, list[str]]:
    """Everything that differs, by row."""
    found = rows(scene, params, silent)
    differing = {
        name: [finding.text for finding in row.findings] for name, row in found.items()
    }
    return {name: texts for name, texts in differing.items() if texts}


def remedy(scene: Scene, name: str, silent: Iterable[str] = ()) -> str:
    (found,) = rows(scene, silent=silent)[name].findings
    return str(found.remedy.text)
