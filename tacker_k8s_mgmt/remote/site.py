# SPDX-License-Identifier: Apache-2.0
"""The real site of an operation: VNF, VMs, Ansible server and cluster together.

The VNF instance is its Heat stack and its package. The parts that depend on Tacker's
API are in the ``hook`` modules of ``hooks/v1`` and ``hooks/v2``. SSH sessions are
opened on first use, reopened after they dropped (a playbook may run for hours), and
closed with the site.
"""

import abc
import contextlib
import errno
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from oslo_log import log as logging

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Machine, MachineIdentity, Node, api_url
from tacker_k8s_mgmt.model.vim import Vims
from tacker_k8s_mgmt.remote import node_registries, vms
from tacker_k8s_mgmt.remote.ansible.cluster_directory import (
    ClusterDirectory,
    LockedSession,
)
from tacker_k8s_mgmt.remote.ansible.playbook_runner import PlaybookRunner, Playbooks
from tacker_k8s_mgmt.remote.ansible.server import check_server
from tacker_k8s_mgmt.remote.balancer_vm import Balancer
from tacker_k8s_mgmt.remote.kubernetes.api import ClusterApi
from tacker_k8s_mgmt.remote.kubernetes.etcd import EtcdClient
from tacker_k8s_mgmt.remote.kubernetes.helm import HelmHost
from tacker_k8s_mgmt.remote.kubernetes.kubectl import KubeClient
from tacker_k8s_mgmt.remote.kubernetes.owned_objects import Manifests
from tacker_k8s_mgmt.remote.ssh import known_hosts
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys, KeyFile
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.routes import HostConnector
from tacker_k8s_mgmt.remote.ssh.session import Session
from tacker_k8s_mgmt.remote.timing import Backoff
from tacker_k8s_mgmt.remote.vms import VmSessions
from tacker_k8s_mgmt.request.accounts import SSH_PORT, Account
from tacker_k8s_mgmt.request.reader import API_PORT, ClusterRequest
from tacker_k8s_mgmt.request.registries import certificate_problems, hosts_entries
from tacker_k8s_mgmt.topology import (
    base_hot,
    connection_points,
    heat_stack,
    stack_resources,
)
from tacker_k8s_mgmt.topology.connection_points import Attachment
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize
from tacker_k8s_mgmt.topology.stack_resources import StackResource

LOG = logging.getLogger(__name__)

_LARGEST = 20 * 1024 * 1024  # bytes of an application's files


class Vnf(abc.ABC):
    """A VNF instance; the APIs of Tacker differ in how they find stack and package."""

    def __init__(self, vnf_id: str, params: ClusterRequest) -> None:
        self._vnf_id = vnf_id
        self._params = params
        self._listed: Future[tuple[str, Sequence[StackResource]]] | None = None

    @abc.abstractmethod
    def _list_stack(self) -> tuple[str, Sequence[StackResource]]:
        """Ask Heat for name or id of the VNF's stack, and all its resources.

        :raises RemoteError: Heat failed.
        """

    def expect_stack(self) -> None:
        """List the stack in the background; errors are raised on its first use."""
        if self._listed is None:
            pool = ThreadPoolExecutor(1)
            self._listed = pool.submit(self._list_stack)
            pool.shutdown(wait=False)

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        """As :meth:`_list_stack`, asked once: the stack changes between hooks only."""
        if self._listed is None:
            found = self._list_stack()
            self._listed = Future()
            self._listed.set_result(found)
        return self._listed.result()

    @abc.abstractmethod
    def _package_root(self) -> str:
        """Return the directory of the VNF package."""

    def machines(self) -> heat_stack.Machines:
        """Return the VNF's VMs, from its Heat stack."""
        name, resources = self._stack()
        machines = heat_stack.find_machines(name, resources, self._params)
        if machines.unnamed:
            LOG.warning(
                "VNF instance %s: no parameter leads to the VMs %s; they are no part "
                "of the cluster",
                self._vnf_id,
                ", ".join(machines.unnamed),
            )
        return machines

    def attachments(self) -> Sequence[Attachment]:
        """Return the ports of the VNF's Heat stack."""
        return connection_points.attachments(self._stack()[1])

    def group_sizes(self) -> Mapping[str, GroupSize]:
        """Return the sizes of the scaling groups in Heat, by the groups' names."""
        return stack_resources.group_sizes(self._stack()[1])

    def fixed_groups(self) -> Sequence[str]:
        """Return the groups of VMs whose ports Tacker cannot change."""
        return ()

    def package_findings(self) -> Sequence[str]:
        """Return what the VNF package lacks."""
        return (*self._script_findings(), *self._certificate_findings())

    def registry_certificates(self) -> Mapping[str, bytes]:
        """Return the private registries' CA certificates, by their paths on the nodes.

        :raises OSError: the package has no such file, or a large one.
        """
        engine, found = self._params.container_engine, {}
        for registry in self._params.private_registries:
            place = registry.certificate_file(engine)
            if place and registry.certificate_path:
                files = self.package_files(registry.certificate_path)
                found[place] = files.get("", b"")
        return found

    def _certificate_findings(self) -> Iterator[str]:
        def read(path: str) -> bytes | None:
            try:
                return self.package_files(path).get("", b"")
            except OSError:
                return None

        return certificate_problems(self._params.private_registries, read)

    def _script_findings(self) -> Sequence[str]:
        if (wanted := self._params.load_balancer) is None:
            return ()
        try:
            why = wanted.script_problem(self._script())
        except OSError:
            why = wanted.script_problem(None)
        return (why,) if why else ()

    def base_hot_findings(self, flavour_id: str, user_data: str = "") -> Sequence[str]:
        """Return which names in the parameters the flavour's Base HOT does not have.

        Of a Base HOT that cannot be followed there is a warning in the log.

        :param user_data: path in the package of a script that may change the HOT.
        """
        where = f"BaseHOT/{flavour_id}"
        try:
            files = self.package_files(where)
            named = {f"{where}/{name}": content for name, content in files.items()}
            base, problems = base_hot.read(named, flavour_id)
            if base is None:
                raise ValueError("; ".join(problems))
            found = base_hot.compare(base, self._params)
            unknown = found.unknown
            if user_data and found.missing and not unknown:
                script = self.package_files(user_data).get("", b"")
                if base_hot.changes_resources(script):
                    unknown = f"{user_data} changes its resources"
        except (OSError, ValueError, RecursionError) as error:
            found, unknown = base_hot.Comparison(()), str(error)
        if not unknown:
            return found.missing
        LOG.warning(
            "VNF instance %s: %s of the VNF package cannot be followed, so the names "
            "in the request are compared with Heat's stack only: %s%s",
            *(self._vnf_id, where, unknown, "; ".join(("", *found.missing))),
        )
        return ()

    def package_files(self, path: str) -> Mapping[str, bytes]:
        """Return a file of the VNF package, or all files of a directory of it.

        :param path: relative to the package.
        :returns: by their paths below *path*; "" for a file itself.
        :raises OSError: the package has nothing there, or a file that is too large.
        """
        root = Path(self._package_root()).resolve()
        top = root / path
        found = [top] if top.is_file() else sorted(top.rglob("*"))
        if not top.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        files, size = {}, 0
        for file in filter(Path.is_file, found):
            # Tenants make packages, and another host gets what is read here.
            if not file.resolve().is_relative_to(root):
                raise OSError(errno.EPERM, "it leads out of the package", path)
            # Not by its size: a file may grow, and those of the kernel have none.
            with file.open("rb") as opened:
                content = opened.read(_LARGEST - size + 1)
            size += len(content)
            if size > _LARGEST:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
            name = "" if file == top else str(file.relative_to(top))
            files[name] = content
        return files

    def _script(self) -> bytes:
        """Return the load balancer's script from the VNF package.

        :raises OSError: the package has no such file of its own, or a large one.
        """
        wanted = self._params.load_balancer
        path = wanted.script_path if wanted else ""
        content = self.package_files(path).get("")
        if content is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return content


Self = TypeVar("Self", bound="Site")
Client = TypeVar("Client")

PARALLEL_LOGINS = 8
_LAST_TRY = 5.0  # seconds for a VM whose turn comes after boot_timeout


class Site(Vnf):
    """Everything that an operation on one VNF instance may use.

    :param project_id: whose private and host keys may be used; "" if it is not known.
    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param operation: what the site is used for, for the cluster's lock.
    """

    vims: Vims

    #: Host keys of hosts that outlive the cluster.
    key_file: type[KeyFile] = KeyFile
    #: Records what delays the operation, for those who follow it.
    note: Callable[[str], None] = staticmethod(LOG.warning)

    def __init__(
        self,
        vnf_id: str,
        project_id: str,
        params: ClusterRequest,
        options: Any,
        state_path: str,
        operation: str,
    ) -> None:
        super().__init__(vnf_id, params)
        self._options = options
        self._logins = Credentials(
            params, config.project_directory(options.key_directory, project_id)
        )
        self._ways = HostConnector(
            params,
            self._logins,
            self.key_file(*known_hosts.paths(state_path, project_id, vnf_id)),
            options.connect_timeout,
        )
        self._server = LockedSession(
            self._connect_server, params.ansible.directory, operation
        )
        self._vms = VmSessions(
            params, self._logins, self._ways, self._keys, options.connect_timeout
        )
        self._node_keys: HostKeys | None = None
        self._identities: dict[str, MachineIdentity] = {}
        self._balancers: dict[str, Balancer] = {}

    @property
    def params(self) -> ClusterRequest:
        return self._params

    @property
    def options(self) -> Any:
        """The ``[k8s_mgmt]`` group of Tacker's configuration."""
        return self._options

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for balancer in self._balancers.values():
            balancer.close()
        self._vms.close()
        self._server.close()
        self._ways.close()

    # The Ansible server

    def server_findings(self) -> Sequence[str]:
        """Return why the Ansible server, or the bastion, is not ready."""
        bastion = self._ways.finding()
        readiness = check_server(
            self._params, self._logins, self._server.get, self._vnf_id
        )
        return (*([bastion] if bastion else []), *readiness.findings)

    @property
    def workdir(self) -> ClusterDirectory:
        """The cluster's directory on the Ansible server."""
        directory = self._params.ansible.directory
        return ClusterDirectory(self._server.get(), directory, self._vnf_id)

    @property
    def playbooks(self) -> Playbooks:
        """Playbook runs in the cluster's directory."""
        ansible = self._params.ansible
        runner = PlaybookRunner(
            self._server.for_run,
            workdir=ansible.directory,
            kubespray_root=ansible.kubespray_root,
            venv=ansible.venv,
            forks=self._params.forks,
            means=self._params.means,
        )
        return Playbooks(runner, self._options, self._write_credentials)

    def lock(self, patience: float | None = None, within: float = 0.0) -> None:
        """Lock the cluster until the site is closed.

        :param patience: seconds to wait for another operation; None: hardly any.
        :param within: seconds in which it is released again, so that others wait.
        :raises LockedError: another operation works on the cluster.
        :raises RemoteError: the Ansible server could not be asked.
        """
        self._server.lock(patience, within)

    def _connect_server(self) -> Session:
        return self._ways.server()

    def _write_credentials(self) -> None:
        """Write keys and passwords to the files that the inventory names.

        Ansible accepts recorded host keys only. An operator may have removed a rebuilt
        node's key, so log in to nodes without one first, which records it.
        """
        for name, text in self._logins.secret_files().items():
            self.workdir.write(name, text)
        hosts, keys = self.workdir.read(inventory.FILE_NAME), self._keys()
        nodes = inventory.parse(hosts) if hosts else ()
        account = self._params.account
        self.unusable(
            [n for n in nodes if not keys.knows(n.ssh_address, account(n.role).port)]
        )
        self.save_host_keys()

    # The VMs

    def wait_reachable(self, machines: Sequence[Machine]) -> None:
        """Wait until Ansible can use every VM, in parallel: login, a file, sudo.

        A VM whose SSH server refuses the login is abandoned after ``login_timeout``.

        :raises RemoteError: names every VM that did not within ``boot_timeout``.
        """
        waiting = Backoff(self._options.boot_timeout)
        self._keys()  # load them before the threads share them
        accounts = self._accounts()

        def probe(machine: Machine) -> str:
            # One time limit for all: later VMs have been booting meanwhile.
            limit = max(_LAST_TRY, self._options.boot_timeout - waiting.elapsed())
            session, name = None, f"{machine.role.value} VM {machine.server_id}"
            grace = self._options.login_timeout
            account = accounts(machine)

            def refused(why: str) -> None:
                self.note(
                    f"{name}, {machine.ssh_address}, refuses the SSH login of "
                    f"{account.username}: {why}; it is tried again for up to "
                    f"{grace:g} s, because cloud-init may not have ended"
                )

            try:
                session = self._vms.log_in(machine, account, limit, grace, refused)
                self._look(machine, session)
            except errors.BastionError:
                raise  # reported once, not for each VM
            except errors.RemoteError as error:
                if session is not None:
                    session.close()
                return f"{name}: {error}"
            self._vms.keep(machine, account, session)
            return ""

        with ThreadPoolExecutor(PARALLEL_LOGINS) as pool:
            problems = [text for text in pool.map(probe, machines) if text]
        if problems:
            raise errors.RemoteError(detail=" ".join(problems))

    def unusable(
        self, nodes: Sequence[Node], renewed: Collection[str] = ()
    ) -> Mapping[str, errors.RemoteError]:
        """Return why Ansible cannot use nodes, tried in parallel, by their names.

        It needs a login, a file and sudo. Nodes that keep their login are logged in to
        as the inventory has it, because Ansible will be; see :func:`.inventory.render`.

        :param renewed: names of nodes for which it gets the request's login.
        """
        if not nodes:
            return {}
        self._keys()
        accounts = self._accounts()

        def why(node: Node) -> errors.RemoteError | None:
            try:
                is_new = node.name in renewed
                account = self._account(node) if is_new else accounts(node)
                with self._vms.lend(node, account) as session:
                    self._look(node, session)
            except errors.BastionError:
                raise  # the node's state is unknown
            except errors.RemoteError as error:
                return error
            return None

        with ThreadPoolExecutor(PARALLEL_LOGINS) as pool:
            found = zip(nodes, pool.map(why, nodes), strict=True)
            return {node.name: error for node, error in found if error}

    def _accounts(self) -> Callable[[Machine], Account]:
        """What returns the account with which Ansible logs in to a VM.

        That of its entry in the inventory, where this keeps one, or the request's.
        """
        logins = inventory.kept_logins(self.workdir.read(inventory.FILE_NAME) or "")
        return lambda vm: self._account(vm, logins.get(vm.server_id))

    def _account(
        self, machine: Machine, login: Mapping[str, str] | None = None
    ) -> Account:
        """The account of a VM.

        :param login: the login variables of its entry in the inventory; None for the
            request's login.
        """
        wanted = self._params.account(machine.role)
        if not login:
            return wanted
        account = inventory.account(wanted, login, self.workdir.read)
        self._logins.hide(account.password)
        return account

    def _look(self, machine: Machine | Node, session: Session) -> None:
        """See whether Ansible can use a VM, and keep what the VM says of itself."""
        vms.probe(session)
        self._identities[machine.server_id] = vms.read(session, machine)

    def clocks(self) -> Mapping[str, float]:
        """Return how far the clocks of the VMs that were seen are ahead, in seconds."""
        return {server: seen.ahead for server, seen in self._identities.items()}

    def identity(self, node: Node, *, again: bool = False) -> MachineIdentity:
        """Return the identity that the VM of a node reports.

        :param again: ask it although it has been asked, and wait while it boots.
        """
        known = self._identities.get(node.server_id)
        if again:
            limit, account = self._options.boot_timeout, self._accounts()(node)
            with contextlib.closing(self._vms.log_in(node, account, limit)) as session:
                known = vms.read(session, node)
        elif known is None:
            known = vms.read(self._vms.get(node, self._accounts()(node)), node)
        self._identities[node.server_id] = known
        return known

    def restart_kubelets(self, nodes: Sequence[Node]) -> None:
        """Restart the kubelets of nodes, in parallel; see :func:`.vms.restart`."""
        self._keys()
        accounts = self._accounts()

        def restart(node: Node) -> None:
            with self._vms.lend(node, accounts(node)) as session:
                vms.restart(session)

        with ThreadPoolExecutor(PARALLEL_LOGINS) as pool:
            list(pool.map(restart, nodes))

    def trust_registries(self, nodes: Sequence[Node], members: Collection[str]) -> None:
        """Give nodes what they need to pull from the private registries, in parallel.

        Names that an earlier request had for them go from those that may have any.

        :param members: server ids of the nodes that have been prepared before.
        :raises RemoteError: naming the nodes that could not be prepared.
        """
        entries = hosts_entries(self._params.private_registries)
        certificates = self.registry_certificates()
        if not entries and not certificates:
            nodes = [node for node in nodes if node.server_id in members]
        if not nodes:
            return
        self._keys()
        accounts = self._accounts()

        def prepare(node: Node) -> str:
            try:
                with self._vms.lend(node, accounts(node)) as session:
                    node_registries.place(session, certificates, entries)
            except errors.BastionError:
                raise  # reported once, not for each node
            except errors.RemoteError as error:
                return f"{node.name}: {error}"
            return ""

        with ThreadPoolExecutor(PARALLEL_LOGINS) as pool:
            problems = [text for text in pool.map(prepare, nodes) if text]
        if problems:
            raise errors.RemoteError(
                detail="The private registries could not be configured on these nodes: "
                f"{' '.join(problems)}"
            )

    def expect(self, machine: Machine) -> None:
        """Log in to a VM in the background; errors are raised on its first use."""
        self._vms.expect(machine)

    # Their host keys

    def forget(self, hosts: Sequence[str], facts: Sequence[str]) -> None:
        """Delete host keys (by address) and facts (by node name) of rebuilt VMs."""
        keys = self._keys()
        for address in hosts:
            keys.forget(address)
            self._vms.drop(address)
        self.workdir.drop_facts(facts)

    def host_keys(self, host: str) -> Sequence[Sequence[str]]:
        """Return type and key of every recorded host key of an address."""
        return self._keys().of(host, SSH_PORT)

    def record_host_keys(self, host: str, keys: Sequence[Sequence[str]]) -> None:
        """Replace the host keys of an address by these, if there are any."""
        self._keys().record(host, SSH_PORT, keys)

    def save_host_keys(self) -> None:
        """Write the host keys to the cluster's directory, where Ansible reads them."""
        keys = self._keys()
        self._ways.note_bastion(keys)
        vms.save(self.workdir, keys)

    def _keys(self) -> HostKeys:
        """Return the host keys that the cluster's directory records.

        :raises DamagedFile: the file is not valid, or lacks keys.
        """
        if self._node_keys is None:
            host = self._params.ansible.host
            self._node_keys = vms.load(self.workdir, host)
        return self._node_keys

    # The cluster

    def cluster(self, control_plane: Node) -> ClusterApi:
        """Return the cluster, through a control-plane node."""
        return ClusterApi(*self.api_access(control_plane))

    def api_access(self, control_plane: Node) -> tuple[Session, str, float]:
        """Return what kubectl on a control-plane node needs."""
        url = api_url(control_plane.address, API_PORT)
        return self._vms.get(control_plane), url, self._api_patience()

    def _api_patience(self) -> float:
        """Seconds for the restart of an API server."""
        return float(self._options.api_timeout)

    def client(
        self, connect: Callable[["Site", Node], Client], control_plane: Node
    ) -> Client:
        """Return what asks the cluster through a control-plane node.

        :param connect: makes it, of the site and that node.
        """
        return connect(self, control_plane)

    def kubectl(self, control_plane: Node) -> KubeClient:
        return KubeClient(*self.api_access(control_plane))

    def lender(self) -> Callable[[Node], contextlib.AbstractContextManager[Session]]:
        """Return what lends sessions with nodes, whose users may use sudo."""
        accounts = self._accounts()
        return lambda node: self._vms.lend(node, accounts(node))

    def helm(self, control_plane: Node) -> HelmHost:
        """Return what Tacker needs to run Helm on a control-plane node."""
        session, server, _ = self.api_access(control_plane)
        return HelmHost(session, server, partial(self._vms.log_in, control_plane))

    def manifests(self, control_plane: Node) -> Manifests:
        """Return the objects in the cluster, through a control-plane node."""
        return Manifests(KubeClient(*self.api_access(control_plane)))

    def etcd(self, control_plane: Node) -> EtcdClient:
        """Return etcd, through a control-plane node."""
        return EtcdClient(self._vms.get(control_plane))

    def balancer(self, machine: Machine) -> Balancer:
        """Return the load balancer, with the script of the VNF package."""
        session = self._vms.get(machine)
        balancer = self._balancers.get(machine.ssh_address)
        if balancer is None or balancer.session is not session:
            limit = self._options.load_balancer_timeout
            balancer = Balancer(session, self._script(), install_limit=limit)
            self._balancers[machine.ssh_address] = balancer
        return balancer
