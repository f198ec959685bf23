"""The part of an operation that keeps the cluster's inventory and records."""

import json
from collections.abc import Collection, Sequence

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.steps.rebuild import Rebuilding
from tacker_k8s_mgmt.lifecycle.steps.records import (
    JOINED_FILE,
    KEPT_INVENTORY,
    MACHINES_FILE,
    VARIABLES_FILE,
    ClusterRecords,
    nodes_in,
)
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import upgrade_plan
from tacker_k8s_mgmt.topology.heal_record import Healing
from tacker_k8s_mgmt.topology.heat_stack import Machines


class Keeper:
    """Keeps inventory, variables and records of one cluster up to date."""

    def __init__(self, params: InstallParams, site: ports.Site) -> None:
        self._params = params
        self._site = site
        self._records = ClusterRecords(site, params.ansible.host)
        self._rebuilding = Rebuilding(site, self._records, params)
        self._machines = Machines(control_planes=(), workers=(), load_balancer=None)
        #: Texts of inventory and variables, as they were written last.
        self._inputs: tuple[str, ...] = ()
        #: Ids of the servers that were whole members when the operation began.
        self._members: frozenset[str] = frozenset()
        #: A heal that is under way or was given up.
        self._healing = Healing()

    def _previous(self) -> tuple[Node, ...]:
        """The nodes of the inventory as it is on the Ansible server."""
        return nodes_in(self._records.last_inventory())

    def _listed(self) -> tuple[Node, ...]:
        """As :meth:`_previous`, of a cluster that is there.

        :raises ClusterError: there is no inventory.
        """
        nodes = self._previous()
        if not nodes:
            workdir = self._site.workdir.path
            raise errors.ClusterError(
                detail=f"There is no inventory of this cluster in {workdir} on "
                f"{self._params.ansible.host}.",
                hint=f"Restore {inventory.FILE_NAME} there, or heal the whole VNF, "
                "which builds the cluster anew.",
            )
        return nodes

    def _forget_new(self, machines: Sequence[Machine], nodes: Sequence[Node]) -> None:
        """Drop the host keys and facts of VMs that have not been seen before."""
        known = self._records.addresses()
        self._site.forget(
            hosts=[m.ssh_address for m in machines if m.server_id not in known],
            facts=[node.name for node in nodes if node.server_id not in known],
        )

    def _wait_reachable(self, machines: Sequence[Machine]) -> None:
        """Wait until these VMs accept logins, and record their host keys."""
        self._site.wait_reachable(machines)
        self._site.save_host_keys()
        known = self._records.addresses()
        known |= {machine.server_id: machine.ssh_address for machine in machines}
        self._write_json(MACHINES_FILE, known)

    def _write_inputs(
        self, nodes: Sequence[Node], without_etcd: Collection[str] = ()
    ) -> None:
        """Make inventory and variables those of a cluster of these nodes.

        :param without_etcd: names of control planes whose etcd member is gone already.
        """
        extra_vars = variables.build(
            self._installed(),
            nodes,
            self._machines.load_balancer,
            nic_mtus=self._nic_mtus(),
        )
        members = sum(n.role is Role.CONTROL_PLANE for n in nodes) - len(without_etcd)
        if self._healing.plane is not None and members % 2 == 0:
            # kubespray refuses such a number otherwise, also when workers join.
            extra_vars["ignore_assert_errors"] = True
        before = self._records.last_inventory() or ""
        hosts = inventory.render(
            nodes,
            self._params,
            previous=before,
            renewed=self._renewed(nodes),
            without_etcd=without_etcd,
        )
        extra = json.dumps(extra_vars, indent=2, sort_keys=True) + "\n"
        self._site.workdir.write(inventory.FILE_NAME, hosts)
        self._site.workdir.write(KEPT_INVENTORY, hosts)
        self._site.workdir.write(VARIABLES_FILE, extra)
        self._inputs = (hosts, extra)

    def _installed(self) -> InstallParams:
        """The parameters, with the Kubernetes version that the cluster has by now."""
        return upgrade_plan.applied(self._records.upgrade(), self._params)

    def _nic_mtus(self) -> Collection[int]:
        """What the pods' MTU is computed from, the same for a cluster's whole life."""
        if self._params.cluster.network.mtu != option_types.NODES:
            return ()
        return self._records.nic_mtus() or ()

    def _forget_members(self, gone: Sequence[Node]) -> None:
        """Take nodes out of the records of seen VMs and of whole members."""
        ids = {node.server_id for node in gone}
        known = self._records.addresses()
        kept = {server: known[server] for server in known if server not in ids}
        self._write_json(MACHINES_FILE, kept)
        joined = self._records.joined() or self._members
        self._write_json(JOINED_FILE, sorted(joined - ids))

    def _renewed(self, nodes: Sequence[Node]) -> Collection[str]:
        """Names of workers whose login changes although their VM is the same.

        None where VMs are made: the credentials of the request are theirs.
        """
        return ()

    def _write_joined(self, nodes: Sequence[Node]) -> None:
        self._write_json(JOINED_FILE, sorted(node.server_id for node in nodes))

    def _write_json(self, name: str, value: object) -> None:
        self._site.workdir.write(name, json.dumps(value, indent=2) + "\n")
