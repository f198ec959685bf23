"""Heat, inventory, cluster, load balancer and VIM side by side, a row for each VM.

Who is who is decided as the operations decide it
(:mod:`tacker_k8s_mgmt.topology.membership`). What is said of each, column by column, is
in :mod:`.columns`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from tacker_k8s_mgmt.model.nodes import Node, Role, api_url, name_nodes
from tacker_k8s_mgmt.request.models import LoadBalancer
from tacker_k8s_mgmt.request.params import API_PORT, InstallParams
from tacker_k8s_mgmt.status import columns
from tacker_k8s_mgmt.status.columns import BLANK, Subject
from tacker_k8s_mgmt.status.facts import Answers, Cell, Count, Row, Source
from tacker_k8s_mgmt.topology import membership
from tacker_k8s_mgmt.topology.heat_stack import Machines

_NOT_COMPLETE = "it is on its way"


def compare(said: Answers, params: InstallParams) -> tuple[Row, ...]:
    """The rows: control planes, workers and, where one was asked for, load balancer.

    A group of VMs has a row of its own where Tacker takes it for larger or smaller.

    :raises ClusterError: if two VMs have one address.
    """
    wanted = params.load_balancer
    rows = [_row(one, said, wanted) for one in _subjects(said)]
    if wanted:
        rows.append(_balancer_row(said, wanted))
    rows += [_group_row(one) for one in said.counts or () if one.heat != one.tacker]
    return _with_vim(rows, said, wanted)


def sources(params: InstallParams) -> tuple[Source, ...]:
    """Who is to be asked."""
    wanted = params.load_balancer
    return tuple(one for one in Source if wanted or one is not Source.BALANCER)


# Who is who


def _subjects(said: Answers) -> list[Subject]:
    listed = {node.name: node for node in said.inventory or ()}
    seen = {node.name: node for node in said.nodes or ()}
    status = said.balancer
    backends = {one.name: one for one in status.control_planes} if status else {}
    routes = {one.name: one for one in status.workers} if status else {}
    vms, joining = _vms(said)
    states = _unfinished(said, listed.values())

    def subject(name: str) -> Subject:
        place = vms.get(name) or listed.get(name)
        role = Role.CONTROL_PLANE if name in backends else Role.WORKER
        return Subject(
            name,
            place.role if place else role,
            vm=vms.get(name),
            unfinished=states.get(name, ""),
            listed=listed.get(name),
            seen=seen.get(name),
            route=routes.get(name) or backends.get(name),
            joins=name in joining,
        )

    names = dict.fromkeys((*listed, *vms, *seen, *backends, *routes))
    found = [*map(subject, names), *_nameless(said, vms, listed.values())]
    return sorted(found, key=lambda one: one.is_worker)


def _vms(said: Answers) -> tuple[Mapping[str, Node], Collection[str]]:
    """The complete VMs by their names in the cluster, and who of them would join."""
    found = said.machines
    if found is None:
        return {}, ()
    previous = said.inventory or ()
    complete = (*found.control_planes, *found.workers)
    if said.nodes is None:
        seen = frozenset(node.name for node in name_nodes(complete, previous))
    else:
        seen = frozenset(node.name for node in said.nodes)
    joined = membership.whole_members(said.joined, previous, seen)
    ids = frozenset(machine.server_id for machine in complete)
    members = membership.compare(
        found, previous, ids if said.inventory is None else joined, seen
    )
    named = (*members.nodes, *members.added)
    vms = {node.name: node for node in named if node.server_id in ids}
    return vms, frozenset(node.name for node in members.joining)


def _unfinished(said: Answers, listed: Iterable[Node]) -> Mapping[str, str]:
    """What keeps the VMs of the inventory's nodes from being complete, by name."""
    found = said.machines
    if found is None:
        return {}
    states = {one.server_id: one.state for one in found.unfinished}
    complete = _complete(found)
    return {
        node.name: states.get(node.server_id, _NOT_COMPLETE)
        for node in listed
        if node.server_id in found.places and node.server_id not in complete
    }


def _complete(found: Machines) -> frozenset[str]:
    machines = (*found.control_planes, *found.workers)
    return frozenset(machine.server_id for machine in machines)


def _nameless(
    said: Answers, vms: Mapping[str, Node], listed: Iterable[Node]
) -> list[Subject]:
    """VMs that are not complete and so have no name yet."""
    known = {node.server_id for node in (*vms.values(), *listed)}
    return [
        Subject(f"VM {one.server_id}".strip(), one.role, unfinished=one.state)
        for one in (said.machines.unfinished if said.machines else ())
        if one.server_id not in known
    ]


# The rows


def _row(one: Subject, said: Answers, wanted: LoadBalancer | None) -> Row:
    cells = {
        Source.HEAT: columns.heat(one, said),
        Source.INVENTORY: columns.inventory(one, said),
        Source.CLUSTER: columns.cluster(one, said),
    }
    if wanted:
        cells[Source.BALANCER] = columns.balancer(one, said, wanted)
    place = one.place
    return Row(
        one.name,
        one.role,
        server_id=place.server_id if place else "",
        address=place.address if place else "",
        cells={**cells, Source.VIM: BLANK},
    )


def _balancer_row(said: Answers, wanted: LoadBalancer) -> Row:
    machine = said.machines.load_balancer if said.machines else None
    return Row(
        "load balancer",
        Role.LOAD_BALANCER,
        server_id=machine.server_id if machine else "",
        address=machine.ssh_address if machine else "",
        cells={
            Source.HEAT: columns.balancer_machine(said),
            Source.INVENTORY: BLANK,
            Source.CLUSTER: BLANK,
            Source.BALANCER: columns.balancer_state(said.balancer, wanted),
            Source.VIM: BLANK,
        },
    )


def _group_row(one: Count) -> Row:
    cells = {**dict.fromkeys(Source, BLANK), Source.HEAT: columns.group(one)}
    return Row(one.group, Role.WORKER, "", "", cells)


def _with_vim(
    rows: list[Row], said: Answers, wanted: LoadBalancer | None
) -> tuple[Row, ...]:
    """The rows, with the VIM in that of whoever offers the API to Tacker."""
    role = Role.LOAD_BALANCER if wanted else Role.CONTROL_PLANE
    place = next((n for n, row in enumerate(rows) if row.role is role), None)
    cell = columns.vim(said, _endpoint(said, wanted))
    if place is None:
        return (*rows, _bare_row(cell))
    row = rows[place]
    rows[place] = replace(row, cells={**row.cells, Source.VIM: cell})
    return tuple(rows)


def _bare_row(cell: Cell) -> Row:
    cells = dict.fromkeys(Source, BLANK)
    return Row("cluster", Role.CONTROL_PLANE, "", "", {**cells, Source.VIM: cell})


def _endpoint(said: Answers, wanted: LoadBalancer | None) -> str | None:
    """Where Tacker reaches the API, as instantiation registers it."""
    if wanted:
        machine = said.machines.load_balancer if said.machines else None
        return api_url(machine.ssh_address, wanted.api_port) if machine else None
    found = said.machines.control_planes if said.machines else said.inventory or ()
    leading = next((one for one in found if one.role is Role.CONTROL_PLANE), None)
    return api_url(leading.ssh_address, API_PORT) if leading else None
