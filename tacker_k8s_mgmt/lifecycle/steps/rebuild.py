# SPDX-License-Identifier: Apache-2.0
"""Rebuilds spoiled or lost files of the cluster's directory.

An operation does so at its beginning, with the cluster's lock. The content comes from
Heat, the cluster and the inventory; of the inventory there is a copy.
"""

from collections.abc import Sequence

from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray.inventory import FILE_NAME
from tacker_k8s_mgmt.lifecycle.state import ClusterState, NodeObjects
from tacker_k8s_mgmt.lifecycle.steps import exposures, load_balancer
from tacker_k8s_mgmt.lifecycle.steps.records import (
    JOINED_FILE,
    KEPT_INVENTORY,
    MACHINES_FILE,
    MTU_FILE,
    SERVICES_FILE,
    rebuilt,
)
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.topology import heal_record, upgrade_plan
from tacker_k8s_mgmt.topology.heal_record import Healing

LOG = logging.getLogger(__name__)


def records(state: ClusterState, nodes: Sequence[Node], seen: NodeObjects) -> None:
    """Rebuild everything but the inventory.

    :param nodes: of the inventory.
    :raises SpoiledFile: a file's content cannot be had from elsewhere.
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
    """Restore an inventory that is lost or spoiled from its copy.

    :raises SpoiledFile: it is spoiled, and there is no copy.
    """
    how = f"It is restored from {KEPT_INVENTORY}."
    if rebuilt(state.records.inventory, how) is None:
        text = state.records.last_inventory()
        if text is not None and state.site.workdir.write(FILE_NAME, text):
            LOG.warning("%s was restored", FILE_NAME)


def forget_former(state: ClusterState) -> None:
    """Empty what a former cluster has left, whose directory could not be removed.

    Its upgrades are among it: the new cluster gets the version of its own request.
    """
    for name, text in (
        (SERVICES_FILE, "[]\n"),
        (heal_record.FILE_NAME, Healing().text()),
        (upgrade_plan.FILE_NAME, upgrade_plan.Record().text()),
    ):
        try:
            is_there = state.site.workdir.read(name) is not None
        except errors.SpoiledFile:
            is_there = True
        if is_there and state.site.workdir.write(name, text):
            LOG.warning("%s of a former cluster was emptied", name)


def machines(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Rebuild the record of seen VMs from the nodes whose host key is known."""
    how = "It is rebuilt from the inventory and the host keys."
    if rebuilt(state.records.machines, how) is None:
        known = {
            node.server_id: node.ssh_address
            for node in nodes
            if state.site.host_keys(node.ssh_address)
        }
        state.write_json(MACHINES_FILE, known)


def write_nic_mtu(state: ClusterState, nodes: Sequence[Node]) -> None:
    """Record the smallest MTU of these nodes, if all are known."""
    mtus = [state.site.identity(node).nic_mtu for node in nodes]
    state.write_json(MTU_FILE, [min(mtus)] if mtus and all(mtus) else [])


def _upgrade(state: ClusterState, seen: NodeObjects) -> None:
    """Record the version of kubelets and API server, if they have the same."""
    try:
        state.records.upgrade()
    except errors.SpoiledFile as error:
        kubelets = {node.kubelet_version for node in seen.values()}
        versions = {state.cluster().version()} | kubelets
        if len(versions) != 1:
            raise
        (version,) = versions
        LOG.warning("%s It is rebuilt: all have %s.", error.what, version)
        text = upgrade_plan.Record(version=version.removeprefix("v")).text()
        state.site.workdir.write(upgrade_plan.FILE_NAME, text)


def _services(state: ClusterState) -> None:
    """Record the services that the load balancer exposes."""
    if not load_balancer.exists(state):
        return
    for read, rebuild in (
        (state.records.services, load_balancer.status),
        (state.records.exposures, exposures.recorded),
    ):
        try:
            read()
        except errors.SpoiledFile as error:
            try:
                rebuild(state)
            except errors.K8sMgmtError as reason:
                LOG.warning(
                    "The load balancer does not report its services: %s", reason
                )
                raise error from None
            LOG.warning("%s It is rebuilt by the load balancer.", error.what)
