# SPDX-License-Identifier: Apache-2.0
"""Heat, inventory, cluster, load balancer and VIM side by side, a row for each VM.

The rows are those of the :class:`~tacker_k8s_mgmt.topology.membership.Membership` with
which operations work. A cell has what one source reports of one VM, and the differences
in it. A source that could not be read proves nothing: no finding follows from its
silence.

The load balancer has a row of its own. The nodes reach the API through it. Without it
they are not Ready however healthy they are, and a heal of one fails, since the new VM
cannot join. So heals of nodes wait for it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from posixpath import basename

from tacker_k8s_mgmt.model import clock_skew
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, Server
from tacker_k8s_mgmt.model.nodes import (
    CORDONED,
    ROLES,
    Count,
    Node,
    NodeObject,
    Role,
    api_url,
    name_nodes,
    same_server,
)
from tacker_k8s_mgmt.request.installation import LoadBalancer
from tacker_k8s_mgmt.request.reader import API_PORT, ClusterRequest
from tacker_k8s_mgmt.status.facts import (
    ABSENT,
    BLANK,
    UNKNOWN,
    Answers,
    Cell,
    Contribution,
    Finding,
    Heal,
    Remedy,
    Row,
    Source,
    differs,
)
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.membership import Membership

_JOIN = Remedy("The next scale-out, or heal of a VNFC, makes it a member.", Heal.VNFC)
_CLEAR = Remedy(
    "The next scale, or heal of a VNFC, takes away what is left of it.", Heal.NEXT
)
_CORRECT = Remedy(
    "The next scale, or heal of a VNFC, corrects the inventory.", Heal.NEXT
)
_UNDER_WAY = Remedy("Wait: Heat still works on it.")
_FAILED = (
    "Fix what `openstack stack failures list --long {stack}` shows, and send what the "
    "error of the operation says. If that is over, heal its VNFC; the next scale-out "
    "builds a worker that has none."
)
_HEAL_VNF = Remedy(
    "Heal the whole VNF, or its VNFC if there are other control planes.",
    Heal.VNFC | Heal.VNF,
)
_NOT_ADDED = Remedy(
    "If a heal has taken it out, heal its VNFC again. If it is a member, restore "
    "hosts.yaml in the cluster's directory. If a scaling has created it, which is not "
    "supported, have Heat delete it.",
    Heal.VNFC,
)
_RESTORE = Remedy(
    "Restore hosts.yaml in the cluster's directory, or heal the whole VNF.", Heal.VNF
)
#: For what an entry of the metadata wants.
SEND_AGAIN = Remedy(
    "Modify the VNF instance again with that entry of its metadata, even an unchanged "
    "one; `cluster labels` lists the entries."
)
_ALL_ROUTES = Remedy(
    "Heal the VNFC of the load balancer: the new VM gets every control plane.",
    Heal.BALANCER,
)
_HEAL_VNFC = Remedy("Heal its VNFC.", Heal.VNFC)
_LOST = Remedy(
    "Look at `journalctl -u kubelet` on it; heal its VNFC if it is lost.", Heal.VNFC
)
_LOOK = Remedy("Look at `journalctl -u kubelet` on it.")
_ROLE = Role.LOAD_BALANCER
_HEAL_BALANCER = Remedy(
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
    "First fix the load balancer, through which the nodes reach the API; then compare "
    "again."
)
_NOT_COMPLETE = "it is on its way"


@dataclass(frozen=True)
class Member:
    """What the sources have under one name.

    :param vm: a complete VM.
    :param unfinished: what keeps its VM from being complete, "" for nothing.
    :param lacks: whether Heat calls that VM complete.
    :param listed: its entry in the inventory.
    :param seen: its Node object.
    :param route: the load balancer's server for it.
    :param joins: the next scale-out or heal joins it.
    :param out_of_service: whether it is to be cordoned, without routes.
    :param others: differences in the cluster that features have found.
    """

    name: str
    role: Role
    vm: Node | None = None
    unfinished: str = ""
    lacks: bool = False
    listed: Node | None = None
    seen: NodeObject | None = None
    route: Server | None = None
    joins: bool = False
    out_of_service: bool = False
    others: Sequence[Finding] = ()

    @property
    def is_plane(self) -> bool:
        """Whether it is a control plane."""
        return self.role is Role.CONTROL_PLANE

    @property
    def place(self) -> Node | None:
        """The node with its addresses, of Heat or else of the inventory."""
        return self.vm or self.listed

    @property
    def is_rebuilt(self) -> bool:
        """Whether its VM is another one than the inventory's."""
        ids = {node.server_id for node in (self.vm, self.listed) if node}
        return len(ids) > 1


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
        _plain_row(count.group, Role.WORKER, Source.HEAT, _group(count))
        for count in answers.counts or ()
        if count.heat != count.tacker
    ]
    rows += _clock_rows(answers)
    # The VIM belongs to the row that offers the API to Tacker.
    cell = _vim(answers, endpoint(answers, wanted))
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
        Source.HEAT: _heat(member, answers),
        Source.INVENTORY: _inventory(member, answers),
        Source.CLUSTER: _cluster(member, answers),
    }
    if wanted:
        cells[Source.BALANCER] = _routes(member, answers, wanted)
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
            cell = differs(text, what, Remedy(clock_skew.HINT))
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


# The cells of a node


def _heat(member: Member, answers: Answers) -> Cell:
    """Whether there is a VM."""
    vm, listed, is_plane = member.vm, member.listed, member.is_plane
    if answers.machines is None:
        return UNKNOWN
    if member.lacks:
        text = f"its VM cannot be used: {member.unfinished}"
        return differs("unusable", text, _HEAL_VNF if is_plane else _HEAL_VNFC)
    if member.unfinished:
        text = f"Heat has not completed its VM: {member.unfinished}"
        failed = Remedy(_FAILED.format(stack=answers.machines.stack_id))
        remedy = failed if member.unfinished.endswith("_FAILED") else _UNDER_WAY
        return differs("unfinished", text, remedy)
    if vm is None:
        if listed is None:
            return ABSENT
        remedy = _HEAL_VNF if is_plane else _CLEAR
        return differs("-", "in the inventory, and its VM is gone", remedy)
    if listed and member.is_rebuilt:
        text = (
            f"a new VM: Heat has the server {vm.server_id}, the inventory "
            f"{listed.server_id}"
        )
        return differs("new VM", text, _HEAL_VNF if is_plane else _JOIN)
    return Cell("VM")


def _group(count: Count) -> Cell:
    """How many VMs Heat has of a group for which Tacker has another number."""
    text = f"Heat has {count.heat} VMs of it, and Tacker counts {count.tacker}"
    return differs(f"{count.heat} VMs", text, Remedy(count.remedy))


def _inventory(member: Member, answers: Answers) -> Cell:
    """Whether it is in the inventory, and as a full member."""
    vm, listed = member.vm, member.listed
    if answers.inventory is None:
        return UNKNOWN
    if listed is None:
        return _unlisted(member, answers) if vm else ABSENT
    if member.is_rebuilt:
        return Cell("listed")
    if vm and vm.address != listed.address:
        text = f"at {vm.address} in Heat, at {listed.address} in the inventory"
        remedy = _HEAL_VNF if member.is_plane else _HEAL_VNFC
        return differs("other address", text, remedy)
    if vm and vm.ssh_address != listed.ssh_address:
        text = (
            f"logins are at {vm.ssh_address} in Heat, at {listed.ssh_address} in the "
            "inventory"
        )
        return differs("other address", text, _CORRECT)
    if member.joins and (member.seen or answers.nodes is None):
        return differs("not joined", "its join was not completed", _JOIN)
    return Cell("listed")


def _unlisted(member: Member, answers: Answers) -> Cell:
    if not answers.inventory:
        return differs("-", "in no inventory, for there is none", _RESTORE)
    if member.is_plane:
        text = "a VM of the control plane that is not in the inventory"
        return differs("-", text, _NOT_ADDED)
    if member.seen or answers.nodes is None:
        return differs("-", "not in the inventory", _JOIN)
    return differs("-", "a VM that is no node of the cluster", _JOIN)


def _cluster(member: Member, answers: Answers) -> Cell:
    """Whether it is a node, and its conditions."""
    seen, listed = member.seen, member.listed
    if answers.nodes is None:
        return UNKNOWN
    gone = answers.machines is not None and not (member.vm or member.unfinished)
    if seen is None:
        expected = listed or (member.vm and answers.inventory is None)
        if not expected or gone or member.is_rebuilt:
            return ABSENT
        log = Remedy("Look at the log of its kubelet.")
        remedy = _JOIN if member.joins else log
        return differs("-", "not in the cluster", remedy)
    text = "Ready" if seen.ready else "NotReady"
    if seen.unschedulable:
        text += ", maintenance" if member.out_of_service else ", cordoned"
    if gone and listed:
        return Cell(text)
    if gone and answers.inventory is not None:
        return differs(
            text,
            "in the cluster, and neither in Heat nor in the inventory",
            Remedy(
                f"If its machine is gone, `kubectl delete node {member.name}`; if not, "
                "find out who joined it."
            ),
        )
    return Cell(text, tuple(_conditions(member, seen)))


def _conditions(member: Member, seen: NodeObject) -> Iterator[Finding]:
    if not seen.ready:
        remedy = _LOOK if member.is_plane else _LOST
        yield Finding(f"not Ready: {seen.problem.rstrip('.')}", remedy)
    for fault in seen.faults:
        yield Finding(f"Ready, but {fault.text}", Remedy(fault.remedy))
    if seen.unschedulable and not member.out_of_service:
        yield _cordoned(member.name, by_us=seen.cordoned_by_us)
    if member.place and seen.internal_ip not in ("", member.place.address):
        text = f"at {seen.internal_ip} in the cluster, not at {member.place.address}"
        yield Finding(text, Remedy("Look at `--node-ip` of its kubelet."))
    if not member.joins:
        yield from member.others


def _cordoned(name: str, *, by_us: bool) -> Finding:
    uncordon = f"`kubectl uncordon {name}`"
    if not by_us:
        remedy = Remedy(f"{uncordon}, unless it is cordoned on purpose.")
        return Finding("cordoned, gets no new pods", remedy)
    return Finding(
        "cordoned by an operation that has not completed, gets no new pods",
        Remedy(
            "A retry of that operation continues. If it was abandoned, or to use the "
            f"node meanwhile: {uncordon}, and `kubectl annotate node {name} "
            f"{CORDONED}-`."
        ),
    )


def _routes(member: Member, answers: Answers, wanted: LoadBalancer) -> Cell:
    """Whether the load balancer sends traffic there."""
    route, place = member.route, member.place
    if answers.balancer is None:
        return UNKNOWN
    if answers.balancer.api_port is None:
        return ABSENT
    if route is None:
        return _unrouted(member, answers, wanted)
    state = route.state or "routed"
    if member.out_of_service:
        text = "in maintenance, and the load balancer routes to it"
        return differs(state, text, SEND_AGAIN)
    if place is None:
        if answers.machines is None or answers.inventory is None:
            return Cell(state)
        text = "the load balancer routes to it, and there is no such VM"
        remedy = _reroute(member, wanted, f"remove-worker {member.name}")
        return differs(state, text, remedy)
    if route.address != place.address:
        text = (
            f"the load balancer sends its traffic to {route.address}, not to "
            f"{place.address}"
        )
        return differs("other address", text, _route_to(member, place, wanted))
    if member.is_plane and state.startswith(("DOWN", "MAINT")):
        text = f"the load balancer finds its API server {state}"
        remedy = Remedy(
            f"Look whether it answers at https://{place.address}:6443/readyz. If its "
            "VM is lost, heal its VNFC, or the whole VNF if it is the only control "
            "plane."
        )
        return differs(state, text, remedy)
    return Cell(state)


def _unrouted(member: Member, answers: Answers, wanted: LoadBalancer) -> Cell:
    if member.out_of_service:
        return Cell("maintenance")
    place = member.place
    lacking = (
        answers.machines is not None and member.vm is None,
        answers.inventory is not None and member.listed is None,
        answers.nodes is not None and member.seen is None,
    )
    # A node gets its route when it has joined.
    is_routed = ROLES[member.role].route
    if place is None or member.joins or any(lacking) or not is_routed:
        return ABSENT
    end = "its API server" if member.is_plane else "it"
    text = f"the load balancer has no route to {end}"
    return differs("-", text, _route_to(member, place, wanted))


def _route_to(member: Member, place: Node, wanted: LoadBalancer) -> Remedy:
    return _reroute(member, wanted, f"add-worker {member.name}={place.address}")


def _reroute(member: Member, wanted: LoadBalancer, verb: str) -> Remedy:
    if member.is_plane:
        # These routes can only be set all at once, by `install`.
        return _ALL_ROUTES
    script = basename(wanted.script_path)
    return Remedy(f"On the load balancer: `sudo bash {script} {verb}`.")


def _vim(answers: Answers, url: str | None) -> Cell:
    """Whether the cluster is a VIM in Tacker.

    :param url: where Tacker reaches the API; None where that is not known.
    """
    if answers.vims is None:
        return UNKNOWN
    if not answers.vims:
        return differs(
            "-",
            "the cluster is no VIM in Tacker",
            Remedy(
                "`retry` of an instantiation registers it, and a heal of the whole "
                "VNF. A VIM registered by hand works, but is not recognized as the "
                "cluster's."
            ),
        )
    registered = answers.vims[0]
    findings = []
    if url is not None and not same_server(url, registered.auth_url):
        text = (
            f"the API is at {url}, the VIM {registered.name} at {registered.auth_url}"
        )
        findings.append(Finding(text, _HEAL_VNF))
    if not registered.named:
        text = f"the VNF instance does not name the VIM {registered.name}"
        remedy = Remedy("Retry the instantiation that was cut off; it names it.")
        findings.append(Finding(text, remedy))
    return Cell(registered.name, tuple(findings))


# The load balancer


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
        cells[Source.BALANCER] = differs(UNKNOWN.text, text, _SILENT)
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
        return differs("-", "no complete VM in Heat", _HEAL_BALANCER)
    return Cell("VM")


def _state(status: BalancerStatus | None, wanted: LoadBalancer) -> Cell:
    if status is None:
        return UNKNOWN
    if status.api_port is None:
        return differs("not set up", "never set up", _HEAL_BALANCER)
    text = f"API at {status.api_port}" if status.active else "stopped"
    return Cell(text, tuple(_faults(status, wanted)))


def _faults(status: BalancerStatus, wanted: LoadBalancer) -> Iterator[Finding]:
    for option in wanted.options:
        if text := option.difference(status):
            yield Finding(text, _HEAL_BALANCER)
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
