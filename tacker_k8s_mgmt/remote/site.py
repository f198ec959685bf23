"""The real site of an operation: what it may touch, joined with the effects.

What depends on Tacker's API is in the ``context`` modules of ``hooks/v1`` and
``hooks/v2``. Sessions are
opened when they are first needed, opened again when they have dropped (a playbook may
run for hours), and closed with the site.
"""

import abc
import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory, network
from tacker_k8s_mgmt.lifecycle.ports import MachineIdentity, Vims
from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.model.nodes import Machine, Node, Role, api_url
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ansible.site import ServerSite
from tacker_k8s_mgmt.remote.backoff import Backoff
from tacker_k8s_mgmt.remote.kubernetes.cluster import KubeControl
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.remote.load_balancer import Balancer
from tacker_k8s_mgmt.remote.ssh import bastion_errors, known_hosts, session
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.request.params import API_PORT, InstallParams
from tacker_k8s_mgmt.topology import connection_points, heat_stack
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.heat_stack import StackResource

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)

Self = TypeVar("Self", bound="Site")

KNOWN_HOSTS = server.KNOWN_HOSTS
_PARALLEL_LOGINS = 8
# A kubelet reports the first two in its Node object. Not every image ends the line in
# /etc/machine-id.
_WHO_AM_I = """
printf '%s\\n' "$(cat /etc/machine-id)" "$(cat /proc/sys/kernel/random/boot_id)"
ip -j addr show to "$1" || :
"""
_KEYS_LOST = (
    "Restore it. Or delete it: then the key that each VM shows next is trusted, so "
    "compare them with what the VMs' consoles show."
)
_LAST_TRY = 5.0  # seconds for a VM whose turn comes when boot_timeout has passed


def _identity(session: session.Session, machine: Machine | Node) -> MachineIdentity:
    argv = ["sh", "-c", _WHO_AM_I, "sh", machine.address]
    told = session.run(argv, timeout=60, sudo=True).stdout
    machine_id, boot_id, links = (*told.split("\n", 2), "", "", "")[:3]
    return MachineIdentity(machine_id, boot_id, network.nic_mtu(links))


class Site(ServerSite):
    """Everything that an operation on one VNF instance may touch."""

    vims: Vims

    def __init__(
        self,
        vnf_id: str,
        project_id: str,
        params: InstallParams,
        options: Any,
        state_path: str,
        operation: str,
    ) -> None:
        super().__init__(vnf_id, project_id, params, options, state_path, operation)
        self._node_keys: HostKeys | None = None
        self._sessions: dict[str, session.Session] = {}
        self._expected: dict[str, Future[session.Session]] = {}
        self._identities: dict[str, MachineIdentity] = {}
        self._balancers: dict[str, Balancer] = {}

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for one in self._balancers.values():
            one.close()
        for expected in self._expected.values():
            if expected.exception() is None:
                expected.result().close()
        for opened in self._sessions.values():
            opened.close()
        self._close_server()

    # Heat and the package

    @abc.abstractmethod
    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        """Name or id of the VNF's Heat stack, and everything in it.

        :raises RemoteError: Heat did not answer as it should.
        """

    @abc.abstractmethod
    def _package_root(self) -> str:
        """The directory of the VNF package."""

    def machines(self) -> heat_stack.Machines:
        """The VNF's VMs, from its Heat stack."""
        name, resources = self._stack()
        found = heat_stack.find_machines(name, resources, self._params)
        if found.unnamed:
            LOG.warning(
                "VNF instance %s: no parameter leads to the VMs %s; they are no part "
                "of the cluster",
                self._vnf_id,
                ", ".join(found.unnamed),
            )
        return found

    def attachments(self) -> Sequence[Attachment]:
        """The ports of the VNF's Heat stack."""
        return connection_points.attachments(self._stack()[1])

    def fixed_groups(self) -> Sequence[str]:
        """The groups of VMs that keep Tacker from changing the stack's ports."""
        return ()

    def package_findings(self) -> Sequence[str]:
        """What the VNF package lacks."""
        if self._params.load_balancer is None:
            return ()
        attribute = "external_lb_param.script_path"
        path = self._params.load_balancer.script_path
        try:
            why = load_balancer.unusable(self._script())
        except OSError:
            return (f"{attribute}: the VNF package has no file {path}",)
        return (f"{attribute}: {path}: {why}",) if why else ()

    def _script(self) -> bytes:
        """The load balancer's script.

        :raises OSError: the VNF package has none that can be read.
        """
        wanted = self._params.load_balancer
        path = os.path.join(self._package_root(), wanted.script_path if wanted else "")
        with open(path, "rb") as file:
            return file.read()

    # The VMs

    def _write_credentials(self) -> None:
        """Put keys and passwords where the inventory says they are."""
        for name, text in self._logins.secret_files().items():
            self.workdir.write(name, text)
        self._see_unknown()
        self.save_host_keys()

    def _see_unknown(self) -> None:
        """Log in to nodes whose host key is not recorded: Ansible takes no other.

        An operator may have removed it, of a node that was rebuilt on purpose.
        """
        text, keys = self.workdir.read(inventory.FILE_NAME), self._keys()
        nodes = inventory.parse(text) if text else ()
        self.unreachable([n for n in nodes if not keys.knows(n.ssh_address, 22)])

    def wait_reachable(self, machines: Sequence[Machine]) -> None:
        """Wait until every VM accepts a login and sudo, side by side.

        :raises RemoteError: with every VM that did not, within ``boot_timeout``.
        """

        waiting = Backoff(self._options.boot_timeout)
        self._keys()  # read once, here: the threads below share them

        def probe(machine: Machine) -> str:
            # One limit for all: those that come late find their VM long booted.
            limit = max(_LAST_TRY, self._options.boot_timeout - waiting.elapsed())
            try:
                session = self._open(machine, limit, auth_grace=60)
            except bastion_errors.BastionError:
                raise  # once, and not for each VM
            except errors.RemoteError as exc:
                return f"{machine.role.value} VM {machine.server_id}: {exc}"
            try:
                told = _identity(session, machine)
            except errors.RemoteError as exc:
                session.close()
                return f"{machine.role.value} VM {machine.server_id}: {exc}"
            self._identities[machine.server_id] = told
            if machine.role is Role.WORKER:
                session.close()
            else:
                # Few, and needed again in this hook.
                self._sessions[machine.ssh_address] = session
            return ""

        with ThreadPoolExecutor(_PARALLEL_LOGINS) as pool:
            found = [text for text in pool.map(probe, machines) if text]
        if found:
            raise errors.RemoteError(detail=" ".join(found))

    def unreachable(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """The names of these nodes that do not accept a login, tried side by side.

        A refused password or a changed host key is an answer: such a host is alive.
        """
        if not nodes:
            return ()
        self._keys()

        def is_silent(node: Node) -> bool:
            try:
                self._open(node, self._options.connect_timeout).close()
            except bastion_errors.BastionError:
                raise  # it tells nothing of the node
            except errors.ConnectError:
                return True
            except errors.RemoteError as exc:
                LOG.warning("%s is alive, but: %s", node.name, exc)
            return False

        with ThreadPoolExecutor(_PARALLEL_LOGINS) as pool:
            silent = list(pool.map(is_silent, nodes))
        return tuple(n.name for n, gone in zip(nodes, silent, strict=True) if gone)

    def identity(self, node: Node) -> MachineIdentity:
        """What the VM of a node says it is."""
        known = self._identities.get(node.server_id)
        if known is None:
            known = _identity(self._session(node), node)
            self._identities[node.server_id] = known
        return known

    def forget(self, hosts: Sequence[str], facts: Sequence[str]) -> None:
        """Drop host keys (by address) and facts (by node name) of VMs made anew."""
        keys = self._keys()
        for address in hosts:
            keys.forget(address)
        self.workdir.drop_facts(facts)

    def host_keys(self, host: str) -> Sequence[Sequence[str]]:
        """Type and key of every host key that is recorded for an address."""
        return self._keys().of(host, 22)

    def record_host_keys(self, host: str, keys: Sequence[Sequence[str]]) -> None:
        """Make these the host keys of an address, if there are any."""
        self._keys().record(host, 22, keys)

    def save_host_keys(self) -> None:
        """Store the host keys beside the inventory, where Ansible reads them."""
        keys = self._keys()
        self._ways.note_bastion(keys)
        self.workdir.write(KNOWN_HOSTS, keys.text())

    def cluster(self, control_plane: Node) -> KubeControl:
        """The cluster, through a control-plane node."""
        url = api_url(control_plane.address, API_PORT)
        return KubeControl(self._session(control_plane), url, self._api_patience())

    def _api_patience(self) -> float:
        """Seconds for an API server that restarts."""
        return float(self._options.api_timeout)

    def etcd(self, control_plane: Node) -> EtcdClient:
        """etcd, through a control-plane node."""
        return EtcdClient(self._session(control_plane))

    def balancer(self, machine: Machine) -> Balancer:
        """The load balancer, with the script of the VNF package."""
        session = self._session(machine)
        known = self._balancers.get(machine.ssh_address)
        if known is None or known.session is not session:
            limit = self._options.load_balancer_timeout
            known = Balancer(session, self._script(), install_limit=limit)
            self._balancers[machine.ssh_address] = known
        return known

    def expect(self, machine: Machine) -> None:
        """Log in to a VM meanwhile.

        Whoever uses it next waits for that, and is the one who gets its error.
        """
        address = machine.ssh_address
        if address in self._sessions or address in self._expected:
            return
        self._keys()  # read once, here: the thread shares them
        pool, limit = ThreadPoolExecutor(1), self._options.connect_timeout
        self._expected[address] = pool.submit(self._open, machine, limit)
        pool.shutdown(wait=False)

    def _session(self, machine: Machine | Node) -> session.Session:
        expected = self._expected.pop(machine.ssh_address, None)
        if expected is not None:
            self._sessions[machine.ssh_address] = expected.result()
        session = self._sessions.get(machine.ssh_address)
        if session is None or not session.alive:
            session = self._open(machine, self._options.connect_timeout)
            self._sessions[machine.ssh_address] = session
        return session

    def _open(
        self, machine: Machine | Node, limit: float, auth_grace: float = 0
    ) -> session.Session:
        account = self._params.account(machine.role)
        return session.connect(
            self._ways.machine(account, machine.ssh_address),
            host_keys=self._keys(),
            redact=self._logins.redact,
            deadline=limit,
            auth_grace=auth_grace,
        )

    def _keys(self) -> HostKeys:
        if self._node_keys is None:
            path, host = self.workdir.path, self._params.ansible.host
            label = f"{path}/{KNOWN_HOSTS} on {host}"
            self._node_keys = HostKeys(self._recorded_keys(), label)
        return self._node_keys

    def _recorded_keys(self) -> str:
        """The text of ``known_hosts``, which nothing else tells.

        :raises SpoiledFile: it is there and is none.
        """
        try:
            text = self.workdir.read(KNOWN_HOSTS) or ""
        except errors.SpoiledFile as error:
            raise errors.SpoiledFile(hint=_KEYS_LOST, **error.fields) from error
        if reason := known_hosts.damage(text):
            path = f"{self.workdir.path}/{KNOWN_HOSTS}"
            host = self._params.ansible.host
            raise errors.SpoiledFile(
                hint=_KEYS_LOST, path=path, host=host, reason=reason
            )
        return text
