# SPDX-License-Identifier: Apache-2.0
"""Heat, inventory, cluster, load balancer and VIM side by side, a row for each VM.

The rows are those of the :class:`~tacker_k8s_mgmt.topology.membership.Membership` with
which operations work; :mod:`.columns` makes their cells.

The load balancer has a row of its own. The nodes reach the API through it. Without it
they are not Ready however healthy they are, and a heal of one fails, since the new VM
cannot join. So heals of nodes wait for it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tacker_k8s_mgmt.model import nodes as clock_skew
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus
from tacker_k8s_mgmt.model.nodes import ROLES, Role, api_url, name_nodes
from tacker_k8s_mgmt.request.installation import LoadBalancer
from tacker_k8s_mgmt.request.reader import API_PORT, ClusterRequest
from tacker_k8s_mgmt.status import columns
from tacker_k8s_mgmt.status.columns import BLANK, UNKNOWN, Member
from tacker_k8s_mgmt.status.facts import (
    Answers,
    Cell,
    Contribution,
    Finding,
    Heal,
    Remedy,
    Row,
    Source,
)
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.membership import Membership

_ROLE = Role.LOAD_BALANCER
_HEAL = Remedy(
    "Heal its VNFC: the new VM gets every node and every service.", Heal.VNFC
)
_SILENT = Remedy(
    "Look whether its VM runs. If it is lost, heal its VNFC before that of any node: "
    "the new VM gets every node and every service.",
    Heal.VNFC,
)
_STOPPED = Remedy(
    "`systemctl status haproxy` on it says why; `sudo systemctl start haproxy` starts "
    "it. If it does not start, heal its VNFC before that of any node.",
    Heal.VNFC,
)
# The script of a new package may render it otherwise.
_OTHER = Remedy(
    "After a change of package the next scale or heal of a node renders haproxy.cfg "
    "again, and does not interrupt connections. Otherwise `sudo systemctl reload "
    "haproxy` on it, if haproxy.cfg was not edited."
)
_FIRST = Remedy(
    "First mend the load balancer, through which the nodes reach the API; then compare "
    "again."
)


def balancer_row(answers: Answers, wanted: LoadBalancer, nodes: Iterable[Row]) -> Row:
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
        cells[Source.BALANCER] = columns.differs(UNKNOWN.text, text, _SILENT)
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
    if finding.remedy.heal not in (Heal.VNFC, Heal.NEXT):
        return finding
    return replace(finding, remedy=_FIRST)


def _waits(finding: Finding) -> bool:
    return finding.remedy == _FIRST


def _machine(answers: Answers) -> Cell:
    if answers.machines is None:
        return UNKNOWN
    if answers.machines.load_balancer is None:
        return columns.differs("-", "no complete VM in Heat", _HEAL)
    return Cell("VM")


def _state(status: BalancerStatus | None, wanted: LoadBalancer) -> Cell:
    if status is None:
        return UNKNOWN
    if status.api_port is None:
        return columns.differs("not set up", "never set up", _HEAL)
    text = f"API at {status.api_port}" if status.active else "stopped"
    return Cell(text, tuple(_faults(status, wanted)))


def _faults(status: BalancerStatus, wanted: LoadBalancer) -> Iterator[Finding]:
    if status.api_port != wanted.api_port:
        text = f"the API is at port {status.api_port}, not at {wanted.api_port}"
        yield Finding(text, _HEAL)
    if not status.active:
        yield Finding("HAProxy does not run", _STOPPED)
    elif not status.current:
        yield Finding("HAProxy runs with another configuration than recorded", _OTHER)
    if not status.enabled:
        remedy = Remedy("`sudo systemctl enable haproxy` on it.")
        yield Finding("HAProxy does not start with the VM", remedy)
    if status.udp_active is False:
        remedy = Remedy("`sudo systemctl enable --now tacker-k8s-mgmt-udp` on it.")
        yield Finding("the service for UDP does not run, or not after a boot", remedy)


_NOT_COMPLETE = "it is on its way"


def compare(
    members: Iterable[Member],
    answers: Answers,
    params: ClusterRequest,
    contributions: Sequence[Contribution] = (),
) -> tuple[Row, ...]:
    """The rows: control planes, workers and, if there is one, the load balancer.

    A group of VMs has a row where Tacker's number of its VMs is not Heat's. The rows of
    features come last.

    :param members: see :func:`members_of`.
    """
    wanted = params.load_balancer
    rows = [_row(_with(contributions, member), answers, wanted) for member in members]
    if wanted:
        rows = list(held_back(answers, rows))
        rows.append(balancer_row(answers, wanted, rows))
    rows += [
        _plain_row(count.group, Role.WORKER, Source.HEAT, columns.group(count))
        for count in answers.counts or ()
        if count.heat != count.tacker
    ]
    rows += _clock_rows(answers)
    # The VIM belongs to the row that offers the API to Tacker.
    cell = columns.vim(answers, endpoint(answers, wanted))
    role = Role.LOAD_BALANCER if wanted else Role.CONTROL_PLANE
    if row := next((row for row in rows if row.role is role), None):
        row.cells[Source.VIM] = cell
    else:
        rows.append(_plain_row("cluster", Role.CONTROL_PLANE, Source.VIM, cell))
    return (*rows, *(row for one in contributions for row in one.rows))


def _with(contributions: Iterable[Contribution], member: Member) -> Member:
    name = member.name
    found = [text for one in contributions for text in one.findings.get(name, ())]
    out = any(name in one.out_of_service for one in contributions)
    return replace(member, out_of_service=out, others=found)


def sources(params: ClusterRequest) -> tuple[Source, ...]:
    """The sources of this cluster."""
    return tuple(s for s in Source if params.load_balancer or s is not Source.BALANCER)


def members_of(answers: Answers) -> list[Member]:
    """The nodes and VMs that the sources have under one name each.

    :raises ClusterError: two VMs have one address.
    """
    heat, members = answers.machines, _membership(answers)
    listed = {node.name: node for node in answers.inventory or ()}
    seen = {node.name: node for node in answers.nodes or ()}
    status = answers.balancer
    backends = (
        {server.name: server for server in status.control_planes} if status else {}
    )
    routes = {server.name: server for server in status.workers} if status else {}
    nodes = {n.name: n for n in (*members.nodes, *members.added)} if members else {}
    joining = members.joining if members else ()
    complete = {vm.server_id for vm in heat.nodes} if heat else ()
    states = {vm.server_id: vm for vm in heat.unfinished} if heat else {}

    def member(name: str) -> Member:
        node, entry, unfinished, lacks = nodes.get(name), listed.get(name), "", False
        vm = node if node and node.server_id in complete else None
        if node and not vm and heat and node.server_id in heat.places:
            known = states.get(node.server_id)
            unfinished = known.state if known else _NOT_COMPLETE
            lacks = bool(known and known.lacks)
        place = vm or entry
        role = Role.CONTROL_PLANE if name in backends else Role.WORKER
        return Member(
            name,
            place.role if place else role,
            vm=vm,
            unfinished=unfinished,
            lacks=lacks,
            listed=entry,
            seen=seen.get(name),
            route=routes.get(name) or backends.get(name),
            joins=node in joining,
        )

    there = {name: nodes[name] for name in nodes if nodes[name].server_id in complete}
    names = dict.fromkeys((*listed, *there, *seen, *backends, *routes))
    known = {node.server_id for node in (*there.values(), *listed.values())}
    # Without a complete VM, a new member has no name yet.
    nameless = [
        Member(
            f"VM {vm.server_id}".strip(), vm.role, unfinished=vm.state, lacks=vm.lacks
        )
        for vm in (heat.unfinished if heat else ())
        if vm.server_id not in known
    ]
    roles = list(ROLES)
    every = [*map(member, names), *nameless]
    return sorted(every, key=lambda one: roles.index(one.role))


def _membership(answers: Answers) -> Membership | None:
    """The membership, if Heat could be read; any other silent source agrees with it."""
    heat, previous = answers.machines, answers.inventory or ()
    if heat is None:
        return None
    complete = heat.nodes
    nodes = name_nodes(complete, previous) if answers.nodes is None else answers.nodes
    seen = frozenset(node.name for node in nodes)
    joined = membership.full_members(answers.joined, previous, seen)
    if answers.inventory is None:
        joined = frozenset(vm.server_id for vm in complete)
    return membership.compare(heat, previous, joined, seen)


def _row(member: Member, answers: Answers, wanted: LoadBalancer | None) -> Row:
    cells = {
        Source.HEAT: columns.heat(member, answers),
        Source.INVENTORY: columns.inventory(member, answers),
        Source.CLUSTER: columns.cluster(member, answers),
    }
    if wanted:
        cells[Source.BALANCER] = columns.balancer(member, answers, wanted)
    place = member.place
    return Row(
        member.name,
        member.role,
        server_id=place.server_id if place else "",
        address=place.address if place else "",
        cells={**cells, Source.VIM: BLANK},
    )


def _clock_rows(answers: Answers) -> Iterator[Row]:
    """A row for each node whose clock differs from that of this host."""
    roles = {node.name: node.role for node in answers.inventory or ()}
    for name, ahead in sorted((answers.clocks or {}).items()):
        if abs(ahead) > clock_skew.NOTED:
            text = clock_skew.text(ahead)
            what = f"its clock is {text} of that of this host"
            cell = columns.differs(text, what, Remedy(clock_skew.HINT))
            yield _plain_row(f"clock of {name}", roles[name], Source.CLUSTER, cell)


def _plain_row(name: str, role: Role, source: Source, cell: Cell) -> Row:
    return Row(name, role, "", "", {**dict.fromkeys(Source, BLANK), source: cell})


def endpoint(answers: Answers, wanted: LoadBalancer | None) -> str | None:
    """Where Tacker reaches the API, as instantiation registers it.

    :returns: the URL; None where it is not known.
    """
    heat = answers.machines
    if wanted:
        machine = heat.load_balancer if heat else None
        return api_url(machine.ssh_address, wanted.api_port) if machine else None
    members = heat.control_planes if heat else answers.inventory or ()
    leading = next((m for m in members if m.role is Role.CONTROL_PLANE), None)
    return api_url(leading.ssh_address, API_PORT) if leading else None
