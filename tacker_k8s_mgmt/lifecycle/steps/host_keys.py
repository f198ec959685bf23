"""SSH host keys of VMs whose address changes."""

from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps.records import MACHINES_FILE, MOVING_FILE, rebuilt


def carry(state: ClusterState) -> None:
    """Record the host keys of moved servers for their new addresses.

    The keys are first recorded by server: two servers may have exchanged their
    addresses, and an operation may be interrupted at any point.
    """
    known = state.records.addresses()
    addresses = {vm.server_id: vm.ssh_address for vm in state.vms()}
    moved = {
        server: address
        for server, address in addresses.items()
        if known.get(server, address) != address
    }
    if not moved:
        return
    moving = rebuilt(state.records.moving, "It is written anew.") or {}
    keys = {
        server: moving.get(server) or state.site.host_keys(known[server])
        for server in moved
    }
    state.write_json(MOVING_FILE, keys)
    left = [known[server] for server in moved]
    unused = [address for address in left if address not in addresses.values()]
    state.site.forget(hosts=unused, facts=())
    for server, address in moved.items():
        state.site.record_host_keys(address, keys[server])
    state.site.save_host_keys()
    state.write_json(MACHINES_FILE, known | moved)
    state.write_json(MOVING_FILE, {})
