"""Instantiation: the VMs that Heat has made become a Kubernetes cluster.

Specification, "Instantiate Kubernetes cluster VNF", steps 9 to 14. One deliberate
difference in order: the load balancer is installed before ``cluster.yml`` runs, since
the cluster's nodes and its VIM reach the API through it.
"""

import json
from collections.abc import Callable, Mapping

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster import inventory, kubespray, nodes, variables
from tacker_k8s_mgmt.cluster.balancer import BalancerSpec
from tacker_k8s_mgmt.cluster.nodes import Machine, Node, Role
from tacker_k8s_mgmt.cluster.params import API_PORT, InstallParams, LoadBalancer
from tacker_k8s_mgmt.cluster.runs import Progress
from tacker_k8s_mgmt.cluster.stack import Machines
from tacker_k8s_mgmt.lifecycle import check, ports
from tacker_k8s_mgmt.lifecycle.step import Step

VARIABLES_FILE = "vars.json"
#: Server id and SSH address of every VM whose host key is recorded.
MACHINES_FILE = "machines.json"
_MAY_PASS = (errors.ConnectError, errors.CommandTimeout, errors.CommandFailed)


class Instantiate:
    """The steps of ``instantiate_end`` for one VNF instance."""

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
        self._claimed = False
        self._access: ports.ClusterAccess | None = None

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        balancer = self._params.load_balancer
        install = Step(
            "install the load balancer",
            self._install_balancer,
            verify=self._verify_balancer,
        )
        return (
            check.Preflight(self._params, self._vnf_id, self._site).step(),
            Step("find the VMs in the Heat stack", self._find_machines),
            Step("own the inventory directory", self._claim),
            Step("wait until the VMs accept SSH logins", self._wait_reachable),
            Step("write inventory and variables", self._write_inputs),
            *((install,) if balancer else ()),
            Step(
                f"run {kubespray.CLUSTER}",
                self._run_playbook,
                probe=self._playbook_done,
            ),
            Step("wait until all nodes are Ready", self._wait_ready),
            Step("read the cluster's token and CA certificate", self._read_access),
            Step("register the cluster as a VIM", self._register_vim),
        )

    def left(self) -> str:
        """What stays behind when a step fails."""
        count = len(self._machines.control_planes) + len(self._machines.workers)
        parts = []
        if count:
            parts.append(f"{count} node VM(s)")
        if self._claimed:
            # Of the parameters: the server may be what has failed.
            ansible = self._params.ansible
            parts.append(f"the directory {ansible.directory} on {ansible.host}")
        if not parts:
            return ""
        kept = " and ".join(parts)
        return (
            f"Left as they are: {kept}; retry goes on from here, rollback removes them."
        )

    def _find_machines(self) -> None:
        self._machines = self._site.machines()
        members = (*self._machines.control_planes, *self._machines.workers)
        text = self._site.workdir.read(inventory.FILE_NAME)
        self._nodes = nodes.name_nodes(
            members, previous=inventory.parse(text) if text else ()
        )

    def _claim(self) -> None:
        self._site.workdir.claim()
        self._claimed = True
        # A VM that was made anew has another host key, and other facts.
        known = json.loads(self._site.workdir.read(MACHINES_FILE) or "{}")
        self._site.forget(
            hosts=[
                one.ssh_address for one in self._all() if one.server_id not in known
            ],
            facts=[node.name for node in self._nodes if node.server_id not in known],
        )

    def _all(self) -> tuple[Machine, ...]:
        found = self._machines
        balancers = (found.load_balancer,) if found.load_balancer else ()
        return (*found.control_planes, *found.workers, *balancers)

    def _wait_reachable(self) -> None:
        self._site.wait_reachable(self._all())
        self._site.save_host_keys()
        known = {machine.server_id: machine.ssh_address for machine in self._all()}
        self._site.workdir.write(MACHINES_FILE, json.dumps(known, indent=2) + "\n")

    def _write_inputs(self) -> None:
        values = variables.build(
            self._params, self._nodes, self._machines.load_balancer
        )
        hosts = inventory.render(self._nodes, self._params)
        extra = json.dumps(values, indent=2, sort_keys=True) + "\n"
        self._site.workdir.write(inventory.FILE_NAME, hosts)
        self._site.workdir.write(VARIABLES_FILE, extra)
        self._inputs = (hosts, extra)

    def _balancer(self) -> tuple[Machine, LoadBalancer]:
        machine, wanted = self._machines.load_balancer, self._params.load_balancer
        if machine is None or wanted is None:
            raise errors.ClusterError(detail="No load balancer was asked for.")
        return machine, wanted

    def _install_balancer(self) -> None:
        machine, wanted = self._balancer()
        proxy = self._params.proxy
        spec = BalancerSpec(
            api_port=wanted.api_port,
            control_planes=_addresses(self._nodes, Role.CONTROL_PLANE),
            workers=_addresses(self._nodes, Role.WORKER),
            http_proxy=proxy.http_proxy if proxy else None,
        )
        self._site.balancer(machine).install(spec)

    def _verify_balancer(self) -> None:
        machine, wanted = self._balancer()
        status = self._site.balancer(machine).status()
        seen = (status.active, status.current, status.api_port)
        if seen != (True, True, wanted.api_port):
            raise errors.LoadBalancerError(
                host=machine.ssh_address,
                verb="install",
                reason="HAProxy does not run with what was installed.",
                hint="Look at `systemctl status haproxy` on it, mend it and retry.",
            )

    def _playbook_done(self) -> bool:
        return self._site.playbooks.done(kubespray.CLUSTER, self._inputs)

    def _run_playbook(self) -> None:
        self._site.playbooks.run(
            kubespray.CLUSTER, self._inputs, len(self._nodes), self._on_progress
        )

    def _control_plane(self) -> Node:
        return next(node for node in self._nodes if node.role is Role.CONTROL_PLANE)

    def _wait_ready(self) -> None:
        deadline = self._clock.now() + self._ready_timeout
        while True:
            late = self._clock.now() >= deadline
            try:
                missing = self._not_ready()
            except _MAY_PASS:
                # An API server that has just been set up may come and go for a while.
                if late:
                    raise
            else:
                if not missing:
                    return
                if late:
                    raise self._unready(missing)
            self._clock.sleep(self._poll_interval)

    def _unready(self, missing: Mapping[str, str]) -> errors.ClusterError:
        listed = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return errors.ClusterError(
            detail=f"After {self._ready_timeout:g} s these nodes are not "
            f"Ready: {listed}.",
            hint="Look at the kubelet's log on them, mend it and retry.",
        )

    def _not_ready(self) -> Mapping[str, str]:
        cluster = self._site.cluster(self._control_plane())
        seen = {node.name: node for node in cluster.nodes()}
        missing = {}
        for node in self._nodes:
            if node.name not in seen:
                missing[node.name] = "not in the cluster"
            elif not seen[node.name].ready:
                missing[node.name] = seen[node.name].reason
        return missing

    def _read_access(self) -> None:
        self._access = self._site.cluster(self._control_plane()).admin_access()

    def _register_vim(self) -> None:
        if self._access is None:
            raise errors.VimError(detail="The cluster's token was not read.")
        spec = ports.VimSpec(
            name=check.vim_name(self._params, self._vnf_id),
            auth_url=self._endpoint(),
            token=self._access.token,
            ca_certificate=self._access.ca_certificate,
        )
        self._site.vims.register(spec)

    def _endpoint(self) -> str:
        if self._params.load_balancer:
            machine, wanted = self._balancer()
            return _url(machine.ssh_address, wanted.api_port)
        return _url(self._control_plane().ssh_address, API_PORT)


def _addresses(members: tuple[Node, ...], role: Role) -> tuple[tuple[str, str], ...]:
    return tuple((node.name, node.address) for node in members if node.role is role)


def _url(address: str, port: int) -> str:
    host = f"[{address}]" if ":" in address else address
    return f"https://{host}:{port}"
