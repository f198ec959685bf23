# SPDX-License-Identifier: Apache-2.0
"""The rows of the comparison for the ports of CNFs on the load balancer."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacker_k8s_mgmt.model.exposure import Exposure, of_service, shown
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.status.facts import (
    ABSENT,
    BLANK,
    UNKNOWN,
    Cell,
    Remedy,
    Row,
    Source,
    differs,
)

_HEAL = Remedy("Heal the CNF.")


class Answers(NamedTuple):
    """What the sources report of exposures; None where one could not be read.

    :ivar recorded: empty where there is no record.
    :ivar services: those of the cluster in the namespaces of *recorded*.
    :ivar exposed: what the load balancer exposes, of CNFs or not.
    """

    recorded: Sequence[Exposure] | None
    services: Sequence[Service] | None
    exposed: Sequence[ExposedService] | None


def rows(answers: Answers) -> Iterator[Row]:
    """A row for each port of a CNF that is recorded or exposed."""
    recorded = {one.name: one for one in answers.recorded or ()}
    found = [(of_service(service), service) for service in answers.exposed or ()]
    exposed = {one.name: (one, service) for one, service in found if one}
    present = {name: one for name, (one, _) in exposed.items()}
    for name, exposure in sorted({**present, **recorded}.items()):
        wanted = recorded.get(name)
        service = exposed[name][1] if name in exposed else None
        cells = {
            **dict.fromkeys(Source, BLANK),
            Source.INVENTORY: _recorded(wanted, answers),
            Source.CLUSTER: _service(wanted, answers),
            Source.BALANCER: _exposed(wanted, service, answers),
        }
        title = f"{exposure.port}/{exposure.protocol}"
        title += f" -> {exposure.namespace}/{exposure.service}:{exposure.node_port}"
        owner = shown(exposure.owner).removeprefix("the ")
        yield Row(f"{title} of {owner}", Role.LOAD_BALANCER, "", "", cells)


def _recorded(wanted: Exposure | None, answers: Answers) -> Cell:
    """Whether a CNF's port is recorded in the cluster's directory."""
    if answers.recorded is None:
        return UNKNOWN
    return Cell("recorded") if wanted else ABSENT


def _service(wanted: Exposure | None, answers: Answers) -> Cell:
    """Whether a recorded port's Service is in the cluster, with this node port.

    For UDP the health of a worker may be that of its kubelet, which says nothing.
    """
    if wanted is None:
        return BLANK
    if answers.services is None:
        return UNKNOWN
    place = (wanted.namespace, wanted.service)
    found = [s for s in answers.services if (s.namespace, s.name) == place]
    if not found:
        remedy = Remedy(
            "Heal the CNF, which takes it from the load balancer, or terminate it."
        )
        return differs("-", "its Service is not in the cluster", remedy)
    ports = ((port.protocol, port.node_port) for port in found[0].ports)
    if (wanted.protocol, wanted.node_port) not in ports:
        text = f"its Service has no node port {wanted.node_port}/{wanted.protocol}"
        return differs("other ports", text, _HEAL)
    return Cell("Service")


def _exposed(
    wanted: Exposure | None, service: ExposedService | None, answers: Answers
) -> Cell:
    """Whether a CNF's port is as recorded, and the state of each worker behind it."""
    if answers.exposed is None:
        return UNKNOWN
    if service is None:
        text = "not exposed by the load balancer, although it is recorded"
        remedy = Remedy("Heal the CNF, which exposes it, or the load balancer's VNFC.")
        return differs("-", text, remedy)
    states: dict[str, list[str]] = {}
    for server in service.servers:
        states.setdefault(server.state or "unknown", []).append(server.name)
    text = "; ".join(f"{state}: {', '.join(states[state])}" for state in states)
    present = of_service(service)
    if wanted is None and answers.recorded is not None:
        return differs(
            text or "exposed",
            "exposed by the load balancer, and not recorded",
            Remedy(
                "The next exposure of any CNF removes it; or `unexpose "
                f"{service.name}` of the load balancer's script."
            ),
        )
    if wanted and wanted != present:
        what = "exposed with another node port, check, source or PROXY protocol"
        return differs(text or "exposed", f"{what} than recorded", _HEAL)
    if not any(state.startswith("UP") for state in states):
        what = "no worker is healthy for it"
        remedy = Remedy(
            "See that the CNF's pods are Ready and its node port is not filtered."
        )
        return differs(text or "no worker", what, remedy)
    return Cell(text)
