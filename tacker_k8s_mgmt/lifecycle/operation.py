"""What every operation on the cluster's nodes has in common."""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster import inventory, membership, values, variables
from tacker_k8s_mgmt.cluster.membership import Membership
from tacker_k8s_mgmt.cluster.nodes import Machine, Node, Role
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.cluster.runs import PlaybookRequest, Progress
from tacker_k8s_mgmt.cluster.stack import Machines
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.balancing import Balancing

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

VARIABLES_FILE = "vars.json"
#: Server id and SSH address of every VM whose host key is recorded.
MACHINES_FILE = "machines.json"
#: The smallest MTU of the nodes' interfaces when the cluster was made.
MTU_FILE = "nic_mtu.json"
#: Ids of the servers that were seen to be whole members of the cluster.
JOINED_FILE = "joined.json"
_FIRST_PAUSE = 0.2  # seconds; each later one doubles it, up to the poll interval
_MAY_PASS = (errors.ConnectError, errors.CommandTimeout, errors.CommandFailed)


class Operation:
    """One operation on one VNF instance's cluster.

    :param ready_timeout: seconds for nodes to become Ready.
    :param poll_interval: longest pause between two looks, seconds.
    :param on_progress: is told how far a playbook has come.
    """

    def __init__(
        self,
        params: InstallParams,
        vnf_id: str,
        site: ports.Site,
        clock: ports.Clock,
        *,
        ready_timeout: float,
        poll_interval: float,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._params = params
        self._vnf_id = vnf_id
        self._site = site
        self._clock = clock
        self._ready_timeout = ready_timeout
        self._poll_interval = poll_interval
        self._on_progress = on_progress
        self._machines = Machines(control_planes=(), workers=(), load_balancer=None)
        self._nodes: tuple[Node, ...] = ()
        self._inputs: tuple[str, ...] = ()
        #: Ids of the servers that were whole members when the operation began.
        self._members: frozenset[str] = frozenset()
        #: Ids of the control planes that did not accept a login in this operation.
        self._silent_planes: set[str] = set()

    # What there is

    def _previous(self) -> tuple[Node, ...]:
        """The nodes of the inventory as it lies on the Ansible server."""
        text = self._site.workdir.read(inventory.FILE_NAME)
        return inventory.parse(text) if text else ()

    def _compare(self) -> tuple[Membership, Mapping[str, ports.ClusterNode]]:
        """Heat, the inventory and the cluster, compared; its Node objects by name.

        :raises ClusterError: there is no inventory to compare with.
        """
        if not self._previous():
            workdir = self._site.workdir.path
            raise errors.ClusterError(
                detail=f"There is no inventory of this cluster in {workdir} on "
                f"{self._params.ansible.host}.",
                hint=f"Restore {inventory.FILE_NAME} there, or heal the whole VNF, "
                "which builds the cluster anew.",
            )
        self._site.lock()
        self._machines = self._site.machines()
        self._nodes = previous = self._previous()
        seen = self._seen()
        self._members = self._joined(previous, seen)
        found = membership.compare(
            self._machines, previous, self._members, frozenset(seen)
        )
        self._nodes = found.nodes
        if found.lost:
            LOG.warning(
                "Control planes of the inventory whose VM is gone or was replaced, and "
                "which stay in it: %s",
                names_of(found.lost),
            )
        return found, seen

    def _joined(
        self, previous: Sequence[Node], seen: Collection[str]
    ) -> frozenset[str]:
        text = self._site.workdir.read(JOINED_FILE)
        recorded = None if text is None else json.loads(text)
        return membership.whole_members(recorded, previous, seen)

    def _seen(self) -> Mapping[str, ports.ClusterNode]:
        """The cluster's Node objects by name."""
        return {node.name: node for node in self._cluster().nodes()}

    def _control_plane(self) -> Node:
        return next(node for node in self._nodes if node.role is Role.CONTROL_PLANE)

    def _cluster(self) -> ports.Cluster:
        """The cluster through the first control plane that accepts a login.

        :raises ConnectError: none does.
        """
        control_planes = [n for n in self._nodes if n.role is Role.CONTROL_PLANE]
        while True:
            asked = control_planes.pop(0)
            if asked.server_id in self._silent_planes and control_planes:
                continue
            try:
                return self._site.cluster(asked)
            except errors.ConnectError as error:
                self._silent_planes.add(asked.server_id)
                if not control_planes:
                    raise
                LOG.warning("The next control plane is asked: %s", error)

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

    # What is written

    def _forget_new(self, machines: Sequence[Machine], nodes: Sequence[Node]) -> None:
        """Drop the host keys and facts of VMs that have not been seen before."""
        known = json.loads(self._site.workdir.read(MACHINES_FILE) or "{}")
        self._site.forget(
            hosts=[m.ssh_address for m in machines if m.server_id not in known],
            facts=[node.name for node in nodes if node.server_id not in known],
        )

    def _wait_reachable(self, machines: Sequence[Machine]) -> None:
        """Wait until these VMs accept logins, and record their host keys."""
        self._site.wait_reachable(machines)
        self._site.save_host_keys()
        known = json.loads(self._site.workdir.read(MACHINES_FILE) or "{}")
        known |= {machine.server_id: machine.ssh_address for machine in machines}
        self._write_json(MACHINES_FILE, known)

    def _write_inputs(self, nodes: Sequence[Node]) -> None:
        """Make inventory and variables those of a cluster of these nodes."""
        extra_vars = variables.build(
            self._params,
            nodes,
            self._machines.load_balancer,
            nic_mtus=self._nic_mtus(),
        )
        before = self._site.workdir.read(inventory.FILE_NAME) or ""
        hosts = inventory.render(
            nodes, self._params, previous=before, renewed=self._renewed(nodes)
        )
        extra = json.dumps(extra_vars, indent=2, sort_keys=True) + "\n"
        self._site.workdir.write(inventory.FILE_NAME, hosts)
        self._site.workdir.write(VARIABLES_FILE, extra)
        self._inputs = (hosts, extra)

    def _nic_mtus(self) -> Collection[int]:
        """What the pods' MTU is computed from, the same for a cluster's whole life."""
        if self._params.cluster.network.mtu != values.NODES:
            return ()
        return tuple(json.loads(self._site.workdir.read(MTU_FILE) or "[]"))

    def _forget_members(self, gone: Sequence[Node]) -> None:
        """Take nodes out of the records of seen VMs and of whole members."""
        ids = {node.server_id for node in gone}
        known = json.loads(self._site.workdir.read(MACHINES_FILE) or "{}")
        kept = {server: known[server] for server in known if server not in ids}
        self._write_json(MACHINES_FILE, kept)
        joined = json.loads(self._site.workdir.read(JOINED_FILE) or "[]")
        self._write_json(JOINED_FILE, [one for one in joined if one not in ids])

    def _renewed(self, nodes: Sequence[Node]) -> Collection[str]:
        """Names of workers whose login changes although their VM is the same.

        None where VMs are made: the credentials of the request are theirs.
        """
        return ()

    def _write_joined(self, nodes: Sequence[Node]) -> None:
        self._write_json(JOINED_FILE, sorted(node.server_id for node in nodes))

    def _write_json(self, name: str, value: object) -> None:
        self._site.workdir.write(name, json.dumps(value, indent=2) + "\n")

    # What is done

    def _run(self, request: PlaybookRequest, nodes: int) -> None:
        self._site.playbooks.run(request, nodes, self._on_progress)

    def _wait_ready(self, nodes: Sequence[Node]) -> Mapping[str, ports.ClusterNode]:
        """Wait until these nodes are Ready; the cluster's Node objects then, by name.

        :raises ClusterError: with every node that is not, after ``ready_timeout``.
        """
        deadline = self._clock.now() + self._ready_timeout
        pause = min(_FIRST_PAUSE, self._poll_interval)
        while True:
            late = self._clock.now() >= deadline
            try:
                seen = self._seen()
            except _MAY_PASS:
                # An API server that has just been set up may come and go for a while.
                if late:
                    raise
            else:
                missing = _not_ready(nodes, seen)
                if not missing:
                    return seen
                if late:
                    raise self._unready(missing)
            self._clock.sleep(pause)
            pause = min(2 * pause, self._poll_interval)

    def _unready(self, missing: Mapping[str, str]) -> errors.ClusterError:
        listed = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return errors.ClusterError(
            detail=f"After {self._ready_timeout:g} s these nodes are not "
            f"Ready: {listed}.",
            hint="Look at the kubelet's log on them, mend it and retry.",
        )


def _not_ready(
    nodes: Sequence[Node], seen: Mapping[str, ports.ClusterNode]
) -> Mapping[str, str]:
    """Why nodes are not Ready, by name."""
    missing = {}
    for node in nodes:
        if node.name not in seen:
            missing[node.name] = "not in the cluster"
        elif not seen[node.name].ready:
            missing[node.name] = seen[node.name].reason
    return missing


def names_of(nodes: Sequence[Node]) -> str:
    """The nodes' names as they are listed in a sentence."""
    return ", ".join(node.name for node in nodes)
