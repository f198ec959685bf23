# SPDX-License-Identifier: Apache-2.0
"""Runs of kubespray's playbooks, with the inventory, variables and records they need.

These are files in the cluster's directory on the Ansible server.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from tacker_k8s_mgmt.kubespray import inventory, runs, variables
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, of_role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.operations import records, upgrade_plan
from tacker_k8s_mgmt.operations.records import (
    JOINED_FILE,
    KEPT_INVENTORY,
    MOVING_FILE,
    VARIABLES_FILE,
    Healing,
    read_or_none,
)
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.remote.vms import MACHINES_FILE
from tacker_k8s_mgmt.request.reader import ClusterRequest


def forget_new(
    state: ClusterState, machines: Sequence[Machine], nodes: Sequence[Node]
) -> None:
    """Drop host keys and facts recorded for the addresses and names of unseen VMs."""
    known = state.records.addresses()
    state.site.forget(
        hosts=[m.ssh_address for m in machines if m.server_id not in known],
        facts=[node.name for node in nodes if node.server_id not in known],
    )


def wait_reachable(state: ClusterState, machines: Sequence[Machine]) -> None:
    """Wait until these VMs accept logins, and record their host keys."""
    state.site.wait_reachable(machines)
    state.site.save_host_keys()
    known = state.records.addresses()
    known |= {machine.server_id: machine.ssh_address for machine in machines}
    state.write_json(MACHINES_FILE, known)


def move_host_keys(state: ClusterState) -> None:
    """Record the host keys of moved servers for their new addresses.

    The keys are first recorded by server: two servers may have exchanged their
    addresses, and an operation may be interrupted at any point.
    """
    known = state.records.addresses()
    addresses = {vm.server_id: vm.ssh_address for vm in state.machines.vms}
    moved = {
        server: address
        for server, address in addresses.items()
        if known.get(server, address) != address
    }
    if not moved:
        return
    moving = read_or_none(state.records.moving, "It is written again.") or {}
    keys = {
        server: moving.get(server) or state.site.host_keys(known[server])
        for server in moved
    }
    state.write_json(MOVING_FILE, keys)
    for server, address in moved.items():
        state.site.record_host_keys(address, keys[server])
    state.site.save_host_keys()
    recorded = {server: moved[server] for server in moved if keys[server]}
    others = {server: known[server] for server in known if server not in moved}
    state.write_json(MACHINES_FILE, others | recorded)
    # A recorded VM has a key at any time, so the former ones go last.
    left = [known[server] for server in moved]
    unused = [address for address in left if address not in addresses.values()]
    state.site.forget(hosts=unused, facts=())
    state.site.save_host_keys()
    state.write_json(MOVING_FILE, {})


def write_inputs(
    state: ClusterState,
    nodes: tuple[Node, ...],
    *,
    params: ClusterRequest | None = None,
    renewed: Collection[str] = (),
    without_etcd: Collection[str] = (),
) -> None:
    """Write inventory and variables of a cluster of these nodes.

    A control plane that can lead a playbook run comes first.

    :param params: in place of the request's with the cluster's Kubernetes version.
    :param renewed: names of nodes whose login changes while their VM stays; none
        where VMs are made, because the credentials of the request are theirs.
    :param without_etcd: names of control planes whose etcd member is already removed.
    """
    nodes = state.led(nodes)
    members = len(of_role(nodes, Role.CONTROL_PLANE)) - len(without_etcd)
    extra_vars = variables.build(
        params or upgrade_plan.applied(state.records.upgrade(), state.params),
        nodes,
        # Of one that is to be rebuilt, the record: its port keeps the addresses.
        state.machines.load_balancer or state.balancer,
        nic_mtus=state.nic_mtus(),
        healing_members=members if state.healing.plane else None,
    )
    hosts = inventory.render(
        nodes,
        state.params,
        previous=state.records.last_inventory() or "",
        renewed=renewed,
        without_etcd=without_etcd,
    )
    extra = json.dumps(extra_vars, indent=2, sort_keys=True) + "\n"
    state.site.workdir.write(inventory.FILE_NAME, hosts)
    state.site.workdir.write(KEPT_INVENTORY, hosts)
    state.site.workdir.write(VARIABLES_FILE, extra)
    state.inputs = (hosts, extra)


def put_leader_first(state: ClusterState) -> None:
    """Write the inventory again if its first control plane cannot lead a run."""
    nodes = state.inventory_nodes()
    if state.led(nodes) != nodes:
        write_inputs(state, nodes)


def write_without(
    state: ClusterState,
    staying: tuple[Node, ...],
    leaving: Sequence[Node],
    renewed: Collection[str] = (),
) -> None:
    """Write inventory and records of the cluster without the nodes that leave."""
    write_inputs(state, staying, renewed=renewed)
    state.site.forget(
        hosts=[node.ssh_address for node in leaving],
        facts=[node.name for node in leaving],
    )
    state.site.save_host_keys()
    forget_members(state, leaving)


def forget_members(state: ClusterState, gone: Sequence[Node]) -> None:
    """Remove nodes from the records of seen VMs and of full members."""
    ids = {node.server_id for node in gone}
    known = state.records.addresses()
    kept = {server: known[server] for server in known if server not in ids}
    state.write_json(MACHINES_FILE, kept)
    joined = state.records.joined() or state.members
    state.write_json(JOINED_FILE, sorted(joined - ids))


def write_healing(state: ClusterState, healing: Healing) -> None:
    """Record the heal that is under way or was abandoned."""
    state.healing = healing
    state.site.workdir.write(records.HEALING_FILE, healing.text())


def run(state: ClusterState, request: PlaybookRequest, nodes: int) -> None:
    """Run a playbook to its end, or wait for the end of the same run.

    :param nodes: how many nodes it works on, which sets its time limit.
    The nodes whose container engine it configures first get what they need to pull
    from the private registries.

    :raises PlaybookError: it failed or exceeded its time limit.
    :raises RemoteError: naming the nodes that could not be prepared.
    """
    configured = runs.configured(request, state.nodes)
    state.site.trust_registries(configured, state.members)
    state.site.playbooks.run(request, nodes, state.deps.on_progress)


def gather_facts(state: ClusterState, without: Iterable[str] = ()) -> None:
    """Gather the facts of all hosts, which kubespray then reads from its cache.

    :param without: names of the nodes that accept no SSH login.
    """
    run(state, runs.facts(without, state.inputs), len(state.nodes))
