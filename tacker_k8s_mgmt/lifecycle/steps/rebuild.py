"""Files of a cluster's directory that are spoiled or lost, written anew.

Done at the beginning of an operation, when it has the cluster's lock. What Heat, the
cluster and the inventory tell again is rebuilt, and what is well is left as it is; of
the inventory there is a copy.
"""

import logging
from collections.abc import Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.inventory import FILE_NAME
from tacker_k8s_mgmt.lifecycle.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.lifecycle.steps.records import (
    JOINED_FILE,
    KEPT_INVENTORY,
    MACHINES_FILE,
    MTU_FILE,
    rebuilt,
)
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.topology import upgrade_plan

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


def records(state: ClusterState, nodes: Sequence[Node], seen: NodeObjects) -> None:
    """Rebuild everything but the inventory.

    :param nodes: those of the inventory.
    :param seen: the cluster's Node objects by name.
    :raises SpoiledFile: nothing but the file itself tells what was in it.
    """
    machines(state, nodes)
    how = "It is rebuilt from the inventory and the cluster."
    if rebuilt(state.records.joined, how) is None:
        state.write_json(JOINED_FILE, sorted(state.members))
    if state.params.cluster.network.mtu == option_types.NODES:
        how = "It is rebuilt from the interfaces of the nodes that are Ready."
        if rebuilt(state.records.nic_mtus, how) is None:
            ready = [n for n in nodes if n.name in seen and seen[n.name].ready]
            write_nic_mtu(state, ready)
    _upgrade(state, seen)
    _services(state)


def inventory(state: ClusterState) -> None:
    """Put the copy in the place of an inventory that is lost or spoiled.

    :raises SpoiledFile: it is spoiled, and there is no copy.
    """
    how = f"It is restored from {KEPT_INVENTORY}."
    if rebuilt(state.records.inventory, how) is None:
        text = state.records.last_inventory()
        if text is not None and state.site.workdir.write(FILE_NAME, text):
            LOG.warning("%s was restored", FILE_NAME)


def machines(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Record the addresses of those nodes whose host key is known.

    Any other VM counts as one that was not seen before.
    """
    how = "It is rebuilt from the inventory and the host keys."
    if rebuilt(state.records.machines, how) is None:
        known = {
            node.server_id: node.ssh_address
            for node in nodes
            if state.site.host_keys(node.ssh_address)
        }
        state.write_json(MACHINES_FILE, known)


def write_nic_mtu(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Record the smallest MTU of these nodes, if that of each is known."""
    found = [state.site.identity(node).nic_mtu for node in nodes]
    state.write_json(MTU_FILE, [min(found)] if found and all(found) else [])


def _upgrade(state: ClusterState, seen: NodeObjects) -> None:
    """Record the version that all kubelets and the API server have.

    :raises SpoiledFile: there are several, as an upgrade that has stopped leaves.
    """
    try:
        state.records.upgrade()
    except errors.SpoiledFile as error:
        versions = {node.kubelet_version for node in seen.values()}
        found = {state.cluster().version()} | versions
        if len(found) != 1:
            raise
        (version,) = found
        LOG.warning("%s It is rebuilt: all have %s.", error.what, version)
        text = upgrade_plan.Record(version=version.removeprefix("v")).text()
        state.site.workdir.write(upgrade_plan.FILE_NAME, text)


def _services(state: ClusterState) -> None:
    """Record what the load balancer exposes.

    :raises SpoiledFile: it does not say so.
    """
    balancing = state.balancing()
    if balancing is None:
        return
    try:
        state.records.services()
    except errors.SpoiledFile as error:
        try:
            balancing.status()
        except errors.K8sMgmtError as reason:
            LOG.warning("The load balancer does not say what it exposes: %s", reason)
            raise error from None
        LOG.warning("%s It is rebuilt by the load balancer.", error.what)
