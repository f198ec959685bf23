# SPDX-License-Identifier: Apache-2.0
"""What holds after each operation of a history."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.model.nodes import Machine
from tests.helpers.model.site import ModelSite
from tests.helpers.model.tacker import Kind, Operation, Tacker

#: After these, every VM that answers is a member.
JOINING = (Kind.INSTANTIATE, Kind.SCALE_OUT, Kind.HEAL, Kind.HEAL_ALL)


@dataclass
class Tampered:
    """What has been changed by hand, or is not known after a modification abandoned.

    :ivar routes: names of workers whose routes were deleted.
    :ivar nodes: ids of servers whose Node objects were deleted.
    :ivar settings: ids of servers of whose maintenance it is not known.
    :ivar exposed: services that were exposed by hand.
    """

    routes: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)
    exposed: tuple[ExposedService, ...] = ()


def node_name(vm: Machine) -> str:
    """The name of a VM's node."""
    return f"{vm.role.value}-{vm.address.replace('.', '-')}"


def _listed(site: ModelSite) -> dict[str, str]:
    """Servers of the inventory, by the names of their nodes."""
    text = site.files.get("hosts.yaml") or site.files.get("hosts.last.yaml")
    nodes = inventory.parse(text) if text else ()
    return {node.name: node.server_id for node in nodes}


def _vms(site: ModelSite) -> dict[str, str]:
    vms = (*site.control_planes, *site.workers)
    return {node_name(vm): vm.server_id for vm in vms}


def nothing_lost(site: ModelSite, tampered: Tampered) -> Iterator[str]:
    """Members that the operation was not about are members still."""
    listed = set(_listed(site).values())
    nodes = {node.machine_id for node in site.cluster_nodes}
    for server in sorted((site.begun - site.targets) & site.every()):
        if server not in listed:
            yield f"{server} is not in the inventory any more"
        if server not in nodes | tampered.nodes:
            yield f"{server} has no Node object any more"


def after_success(
    tacker: Tacker, operation: Operation, tampered: Tampered
) -> Iterator[str]:
    """What does not hold after an operation that has succeeded."""
    kind = operation.kind
    if kind is Kind.TERMINATE:
        # What cannot be removed is logged, and keeps no VNF instance.
        yield from () if tacker.fired else left_behind(tacker)
        return
    if (count := tacker.vim_count()) != 1:
        yield f"{count} VIMs are registered"
    if kind is Kind.HEAL:
        for server in sorted(tacker.targets(operation) & tacker.site.unfinished):
            yield f"Heat has not completed {server}"
    yield from _memberships(tacker.site, kind, tampered)
    yield from _service(tacker, kind, tampered)


def left_behind(tacker: Tacker) -> Iterator[str]:
    """What is left after the end of a cluster."""
    site = tacker.site
    left = {
        "files": site.files,
        "directory": site.owner,
        "VIMs": tacker.vim_count(),
        "VMs": site.every(),
    }
    yield from (f"{what} left behind: {value}" for what, value in left.items() if value)


def _memberships(site: ModelSite, kind: Kind, tampered: Tampered) -> Iterator[str]:
    """Heat, inventory and cluster have the same members."""
    vms, listed = _vms(site), _listed(site)
    nodes = {node.name: node.machine_id for node in site.cluster_nodes}
    # A modification changes no membership.
    for name in () if kind is Kind.MODIFY else sorted(listed.keys() | nodes.keys()):
        if name not in vms:
            yield f"{name} is in inventory or cluster, and its VM is gone"
    full = site.full_members()
    for name, server in vms.items():
        is_due = kind in JOINING and server not in site.dead | site.unfinished
        if not is_due and server not in full:
            continue
        if listed.get(name) != server:
            yield f"{name} is not in the inventory as {server}"
        if nodes.get(name) != server and (is_due or server not in tampered.nodes):
            yield f"{name} has no Node object as {server}"
        if is_due and server not in full:
            yield f"{name} is not recorded as a member"


def _service(tacker: Tacker, kind: Kind, tampered: Tampered) -> Iterator[str]:
    """Members in service have routes and are not cordoned; those out of it are."""
    site = tacker.site
    out, full = tacker.in_maintenance(tacker.metadata()), site.full_members()
    routes = {name for name, _ in site.routes}
    workers = {node_name(vm): vm.server_id for vm in site.workers}
    lacks = site.lacks_balancer
    if lacks and kind is Kind.HEAL:
        yield "the load balancer is not complete"
    if not lacks and site.exposed != tampered.exposed:
        yield f"exposed: {site.exposed}, wanted: {tampered.exposed}"
    for name in () if kind is Kind.MODIFY else sorted(routes - workers.keys()):
        yield f"{name} has a route, and its VM is gone"
    for name, server in workers.items():
        if server not in full or server in tampered.settings:
            continue
        if (name in site.cordoned) != (server in out):
            yield f"{name}: cordoned {name in site.cordoned}, wanted {server in out}"
        if not site.has_balancer or lacks or name in tampered.routes:
            continue
        if (name in routes) == (server in out):
            yield f"{name}: route {name in routes}, maintenance {server in out}"
