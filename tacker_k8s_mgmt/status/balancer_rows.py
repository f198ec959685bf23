# SPDX-License-Identifier: Apache-2.0
"""The row of the load balancer, and what has to wait for it.

The nodes reach the API through the load balancer. Without it they are not Ready however
well they are, and a heal of one fails, since the new VM cannot join.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.request.models import LoadBalancer
from tacker_k8s_mgmt.status.columns import BLANK, UNKNOWN
from tacker_k8s_mgmt.status.facts import Answers, Cell, Finding, Row, Source
from tacker_k8s_mgmt.status.heal_commands import Heal

_ROLE = Role.LOAD_BALANCER
_HEAL = "Heal its VNFC: the new VM gets every node and every service."
_SILENT = (
    "Look whether its VM runs. If it is lost, heal its VNFC before that of any node: "
    "the new VM gets every node and every service."
)
_STOPPED = (
    "`systemctl status haproxy` on it says why; `sudo systemctl start haproxy` starts "
    "it. If it does not start, heal its VNFC before that of any node."
)
# The script of a new package may render it otherwise.
_OTHER = (
    "After a change of package the next scale or heal of a node renders haproxy.cfg "
    "again, and does not interrupt connections. Otherwise `sudo systemctl reload "
    "haproxy` on it, if haproxy.cfg was not edited."
)
_FIRST = (
    "First mend the load balancer, through which the nodes reach the API; then compare "
    "again."
)


def row(answers: Answers, wanted: LoadBalancer, nodes: Iterable[Row]) -> Row:
    """The row of the load balancer.

    Its silence alone proves nothing, so it is a difference only if a node has to wait.

    :param nodes: the rows of the nodes, as :func:`held_back` returns them.
    """
    heat = answers.machines
    machine = heat.load_balancer if heat else None
    left = (vm for vm in (heat.unfinished if heat else ()) if vm.role is _ROLE)
    server_id = machine.server_id if machine else next((v.server_id for v in left), "")
    cells = dict.fromkeys(Source, BLANK)
    cells[Source.HEAT] = _machine(answers)
    cells[Source.BALANCER] = _state(answers.balancer, wanted)
    waiting = [node.name for node in nodes if any(map(_waits, node.findings))]
    if waiting and machine and answers.balancer is None:
        text = f"does not answer, and {', '.join(waiting)} cannot do without it"
        cells[Source.BALANCER] = _differs(UNKNOWN.text, text, _SILENT)
    address = machine.ssh_address if machine else ""
    return Row("load balancer", _ROLE, server_id, address, cells)


def held_back(answers: Answers, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of nodes, without their heals while the load balancer is away."""
    if not _is_out(answers):
        yield from rows
        return
    for one in rows:
        cells = {
            source: replace(cell, findings=tuple(map(_hold, cell.findings)))
            for source, cell in one.cells.items()
        }
        yield replace(one, cells=cells)


def _is_out(answers: Answers) -> bool:
    status = answers.balancer
    if status is None:
        # Only Heat knows where to ask it.
        return answers.machines is not None
    return status.api_port is None or not status.active


def _hold(finding: Finding) -> Finding:
    if finding.heal not in (Heal.VNFC, Heal.NEXT):
        return finding
    return replace(finding, remedy=_FIRST, heal=None)


def _waits(finding: Finding) -> bool:
    return finding.remedy == _FIRST


def _differs(text: str, what: str, remedy: str) -> Cell:
    return Cell(text, (Finding(what, remedy, Heal.VNFC),))


def _machine(answers: Answers) -> Cell:
    if answers.machines is None:
        return UNKNOWN
    if answers.machines.load_balancer is None:
        return _differs("-", "no complete VM in Heat", _HEAL)
    return Cell("VM")


def _state(status: BalancerStatus | None, wanted: LoadBalancer) -> Cell:
    if status is None:
        return UNKNOWN
    if status.api_port is None:
        return _differs("not set up", "never set up", _HEAL)
    text = f"API at {status.api_port}" if status.active else "stopped"
    return Cell(text, tuple(_faults(status, wanted)))


def _faults(status: BalancerStatus, wanted: LoadBalancer) -> Iterator[Finding]:
    if status.api_port != wanted.api_port:
        text = f"the API is at port {status.api_port}, not at {wanted.api_port}"
        yield Finding(text, _HEAL, Heal.VNFC)
    if not status.active:
        yield Finding("HAProxy does not run", _STOPPED, Heal.VNFC)
    elif not status.current:
        yield Finding("HAProxy runs with another configuration than recorded", _OTHER)
    if not status.enabled:
        remedy = "`sudo systemctl enable haproxy` on it."
        yield Finding("HAProxy does not start with the VM", remedy)
    if status.udp_active is False:
        remedy = "`sudo systemctl enable --now tacker-k8s-mgmt-udp` on it."
        yield Finding("the service for UDP does not run, or not after a boot", remedy)
