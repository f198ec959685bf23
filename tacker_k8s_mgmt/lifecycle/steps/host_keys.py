"""SSH host keys of VMs whose address changes."""

from tacker_k8s_mgmt.lifecycle.state import ClusterState
from tacker_k8s_mgmt.lifecycle.steps.records import MACHINES_FILE, MOVING_FILE, rebuilt


def carry(state: ClusterState) -> None:
    """Let the keys that are recorded for a server be those of its new address.

    They are noted by server first: two servers may have exchanged their addresses,
    and an operation may be cut off at any place.
    """
    known = state.records.addresses()
    moved = {
        one.server_id: one.ssh_address
        for one in state.vms()
        if known.get(one.server_id, one.ssh_address) != one.ssh_address
    }
    if not moved:
        return
    noted = rebuilt(state.records.moving, "It is written anew.") or {}
    keys = {
        server: noted.get(server) or state.site.host_keys(known[server])
        for server in moved
    }
    state.write_json(MOVING_FILE, keys)
    here = {one.ssh_address for one in state.vms()}
    left = [known[server] for server in moved if known[server] not in here]
    state.site.forget(hosts=left, facts=())
    for server, address in moved.items():
        state.site.record_host_keys(address, keys[server])
    state.site.save_host_keys()
    state.write_json(MACHINES_FILE, known | moved)
    state.write_json(MOVING_FILE, {})
