"""Files of a cluster's directory that are spoiled or lost, written anew.

Done at the beginning of an operation, when it has the cluster's lock. What Heat, the
cluster and the inventory tell again is rebuilt; of the inventory there is a copy.
"""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.steps.load_balancer import Balancing
from tacker_k8s_mgmt.lifecycle.steps.records import (
    JOINED_FILE,
    KEPT_INVENTORY,
    MACHINES_FILE,
    MTU_FILE,
    ClusterRecords,
    rebuilt,
)
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import upgrade_plan

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


class Rebuilding:
    """Rebuilds the records of one cluster; what is well is left as it is."""

    def __init__(
        self, site: ports.Site, records: ClusterRecords, params: InstallParams
    ) -> None:
        self._site = site
        self._records = records
        self._params = params

    def all(
        self,
        nodes: Sequence[Node],
        members: Collection[str],
        seen: Mapping[str, ports.ClusterNode],
        cluster: Callable[[], ports.Cluster],
        balancing: Balancing | None,
    ) -> None:
        """Rebuild everything but the inventory.

        :param nodes: those of the inventory.
        :param members: ids of the servers that are whole members.
        :param seen: the cluster's Node objects by name.
        :raises SpoiledFile: nothing but the file itself tells what was in it.
        """
        self.machines(nodes)
        self.joined(members)
        if self._params.cluster.network.mtu == option_types.NODES:
            ready = [one for one in nodes if one.name in seen and seen[one.name].ready]
            self.nic_mtus(ready)
        self.upgrade(
            lambda: {
                cluster().version(),
                *(node.kubelet_version for node in seen.values()),
            }
        )
        if balancing is not None:
            self.services(balancing)

    def inventory(self) -> None:
        """Put the copy in the place of an inventory that is lost or spoiled.

        :raises SpoiledFile: it is spoiled, and there is no copy.
        """
        how = f"It is restored from {KEPT_INVENTORY}."
        if rebuilt(self._records.inventory, how) is None:
            text = self._records.last_inventory()
            if text is not None and self._site.workdir.write(inventory.FILE_NAME, text):
                LOG.warning("%s was restored", inventory.FILE_NAME)

    def machines(self, nodes: Sequence[Node]) -> None:
        """Record the addresses of those nodes whose host key is known.

        Any other VM counts as one that was not seen before.
        """
        how = "It is rebuilt from the inventory and the host keys."
        if rebuilt(self._records.machines, how) is None:
            known = {
                node.server_id: node.ssh_address
                for node in nodes
                if self._site.host_keys(node.ssh_address)
            }
            self._write(MACHINES_FILE, known)

    def joined(self, members: Collection[str]) -> None:
        """Record these as the ids of the whole members."""
        how = "It is rebuilt from the inventory and the cluster."
        if rebuilt(self._records.joined, how) is None:
            self._write(JOINED_FILE, sorted(members))

    def nic_mtus(self, nodes: Sequence[Node]) -> None:
        """Record the smallest MTU that the interfaces of these nodes have."""
        how = "It is rebuilt from the interfaces of the nodes that are Ready."
        if rebuilt(self._records.nic_mtus, how) is None:
            found = [self._site.identity(node).nic_mtu for node in nodes]
            self._write(MTU_FILE, [min(found)] if found and all(found) else [])

    def upgrade(self, versions: Callable[[], Collection[str]]) -> None:
        """Record the version that all kubelets and the API server have.

        :param versions: tells those of all of them.
        :raises SpoiledFile: there are several, as an upgrade that has stopped leaves.
        """
        try:
            self._records.upgrade()
        except errors.SpoiledFile as error:
            found = set(versions())
            if len(found) != 1:
                raise
            (version,) = found
            LOG.warning("%s It is rebuilt: all have %s.", error.what, version)
            text = upgrade_plan.Record(version=version.removeprefix("v")).text()
            self._site.workdir.write(upgrade_plan.FILE_NAME, text)

    def services(self, balancing: Balancing) -> None:
        """Record what the load balancer exposes.

        :raises SpoiledFile: it does not say so.
        """
        try:
            self._records.services()
        except errors.SpoiledFile as error:
            try:
                balancing.status()
            except errors.K8sMgmtError as reason:
                LOG.warning(
                    "The load balancer does not say what it exposes: %s", reason
                )
                raise error from None
            LOG.warning("%s It is rebuilt by the load balancer.", error.what)

    def _write(self, name: str, value: object) -> None:
        self._site.workdir.write(name, json.dumps(value, indent=2) + "\n")
