"""What the operations on nodes that still inherit their steps have in common."""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory, variables
from tacker_k8s_mgmt.lifecycle import polling, ports
from tacker_k8s_mgmt.lifecycle.state import Dependencies, names_of
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.steps.load_balancer import Balancing
from tacker_k8s_mgmt.lifecycle.steps.records import (
    JOINED_FILE,
    KEPT_INVENTORY,
    MACHINES_FILE,
    MTU_FILE,
    VARIABLES_FILE,
    ClusterRecords,
    nodes_in,
    rebuilt,
)
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, api_url
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.request import option_types
from tacker_k8s_mgmt.request.params import API_PORT, InstallParams
from tacker_k8s_mgmt.topology import membership, upgrade_plan
from tacker_k8s_mgmt.topology.heal_record import Healing
from tacker_k8s_mgmt.topology.heat_stack import Machines
from tacker_k8s_mgmt.topology.membership import Membership

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

Reached = TypeVar("Reached")


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


class Operation(Keeper):
    """One operation on one VNF instance's cluster."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps.params, deps.site)
        self._vnf_id = deps.vnf_id
        self._clock = deps.clock
        self._ready_timeout = deps.ready_timeout
        self._poll_interval = deps.poll_interval
        self._on_progress = deps.on_progress
        self._nodes: tuple[Node, ...] = ()
        #: The control plane that it took out, if its VM is there to join again.
        self._returning: tuple[Node, ...] = ()
        #: Names of the control planes whose VM is gone, or was built anew without us.
        self._lost: frozenset[str] = frozenset()
        #: Ids of the control planes that did not accept a login in this operation.
        self._silent_planes: set[str] = set()

    def left(self) -> str:
        """What stays behind when a step fails."""
        return ""

    # What there is

    def _compare(self) -> tuple[Membership, Mapping[str, ports.ClusterNode]]:
        """Heat, the inventory and the cluster, compared; its Node objects by name.

        :raises ClusterError: there is no inventory to compare with.
        """
        with ThreadPoolExecutor(2) as pool:
            # Heat takes longer than two logins.
            listing = pool.submit(self._site.machines)
            listed = self._listed()
            self._site.lock()
            login = pool.submit(self._through, self._site.cluster, listed)
            self._machines = listing.result()
        self._rebuilding.inventory()
        self._healing = self._records.healing()
        out = (self._healing.plane,) if self._healing.plane else ()
        previous = self._previous()
        away = {node.name for node in out}
        self._nodes = tuple(n for n in previous if n.name not in away) or previous
        recorded = rebuilt(self._records.joined, "The cluster's nodes tell.")
        there = self._machines.places.keys()
        # Where it did not join, a server has no etcd and no API server.
        hosts = there if recorded is None else there & set(recorded)
        missing = {node.server_id for node in previous} - hosts
        self._silent_planes |= missing
        if self._nodes == listed and not missing:
            # There is no one else to ask: a refused password is not tried once more.
            login.result()
        self._meanwhile()
        seen = self._seen()
        self._members = membership.whole_members(recorded, previous, seen)
        self._rebuilding.all(
            previous, self._members, seen, self._cluster, self._balancing()
        )
        found = membership.compare(
            self._machines, previous, self._members, frozenset(seen), out
        )
        self._nodes, self._returning = found.nodes, found.returning
        if found.returning:
            LOG.warning(
                "%s was taken out to be built anew and has not joined again; the next "
                "heal joins it",
                names_of(found.returning),
            )
        if found.lost:
            self._lost = frozenset(node.name for node in found.lost)
            lost = (node for node in self._nodes if node.name in self._lost)
            self._silent_planes |= {node.server_id for node in lost}
            LOG.warning(
                "Control planes of the inventory whose VM is gone or was replaced, and "
                "which stay in it: %s",
                names_of(found.lost),
            )
        return found, seen

    def _meanwhile(self) -> None:
        """Begin what can go on while the cluster tells its nodes."""

    def _seen(self) -> Mapping[str, ports.ClusterNode]:
        """The cluster's Node objects by name."""
        return {node.name: node for node in self._cluster().nodes()}

    def _all(self) -> tuple[Machine, ...]:
        """Every VM of the cluster, the load balancer's last."""
        found = self._machines
        balancers = (found.load_balancer,) if found.load_balancer else ()
        return (*found.control_planes, *found.workers, *balancers)

    def _control_plane(self) -> Node:
        return next(node for node in self._nodes if node.role is Role.CONTROL_PLANE)

    def _planes(self) -> tuple[Node, ...]:
        return _planes_of(self._nodes)

    def _cluster(self) -> ports.Cluster:
        """The cluster through the first control plane that accepts a login.

        :raises ConnectError: none does.
        """
        return self._through(self._site.cluster)

    def _through(
        self, reach: Callable[[Node], Reached], listed: Sequence[Node] = ()
    ) -> Reached:
        """What the first control plane that accepts a login leads to.

        :param listed: the nodes, where they are not known yet.
        :raises ConnectError: none does.
        """
        control_planes = list(_planes_of(listed or self._nodes))
        while True:
            asked = control_planes.pop(0)
            if asked.server_id in self._silent_planes and control_planes:
                continue
            try:
                return reach(asked)
            except errors.ConnectError as error:
                self._silent_planes.add(asked.server_id)
                if not control_planes:
                    raise
                LOG.warning("The next control plane is asked: %s", error)

    def _endpoint(self) -> str:
        """URL at which Tacker reaches the cluster's API."""
        machine, wanted = self._machines.load_balancer, self._params.load_balancer
        if machine and wanted:
            return api_url(machine.ssh_address, wanted.api_port)
        return api_url(self._control_plane().ssh_address, API_PORT)

    def _balancing(self) -> Balancing | None:
        """The load balancer, or None where none was asked for."""
        machine, wanted = self._machines.load_balancer, self._params.load_balancer
        if machine is None or wanted is None:
            return None
        return Balancing(self._site, self._params, machine, wanted)

    def _balancer(self) -> Balancing:
        """The load balancer that was asked for."""
        balancing = self._balancing()
        if balancing is None:
            raise errors.ClusterError(detail="No load balancer was asked for.")
        return balancing

    def _expect_balancer(self) -> None:
        """Have the load balancer logged in to by the time when it is needed."""
        machine = self._machines.load_balancer
        if machine is not None and self._params.load_balancer is not None:
            self._site.expect(machine)

    # What is done

    def _run(self, request: PlaybookRequest, nodes: int) -> None:
        self._site.playbooks.run(request, nodes, self._on_progress)

    def _register(self, access: ports.ClusterAccess) -> None:
        """Make the cluster a VIM, at the address where it is."""
        spec = ports.VimSpec(
            name=preflight.vim_name(self._params, self._vnf_id),
            auth_url=self._endpoint(),
            token=access.token,
            ca_certificate=access.ca_certificate,
        )
        self._site.vims.register(spec)

    def _wait_ready(self, nodes: Sequence[Node]) -> Mapping[str, ports.ClusterNode]:
        """Wait until these nodes are Ready; the cluster's Node objects then, by name.

        :raises ClusterError: with every node that is not, after ``ready_timeout``.
        """
        seen: Mapping[str, ports.ClusterNode] = {}

        def problem() -> str:
            nonlocal seen
            seen = self._seen()
            told = ((n.name, polling.not_ready(seen.get(n.name))) for n in nodes)
            return "; ".join(f"{name}: {why}" for name, why in told if why)

        self._wait_until_well(
            problem,
            "these nodes are not Ready: {left}.",
            "Look at the kubelet's log on them, and mend it.",
        )
        return seen

    def _wait_until_well(
        self, problem: Callable[[], str], detail: str, hint: str
    ) -> None:
        """Wait until there is no problem left.

        :param detail: what there is after ``ready_timeout``, with ``{left}`` in it.
        :raises ClusterError: with what is left then.
        """
        limit = self._ready_timeout
        left = polling.until_well(problem, self._clock, limit, self._poll_interval)
        if left:
            told = detail.format(left=left)
            raise errors.ClusterError(detail=f"After {limit:g} s {told}", hint=hint)


def _planes_of(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """The control planes among nodes, in their order."""
    return tuple(node for node in nodes if node.role is Role.CONTROL_PLANE)
