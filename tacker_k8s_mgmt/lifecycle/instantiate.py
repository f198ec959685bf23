"""Instantiation: the VMs that Heat has made become a Kubernetes cluster.

Specification, "Instantiate Kubernetes cluster VNF", steps 9 to 14. One deliberate
difference in order: the load balancer is installed before ``cluster.yml`` runs, since
the cluster's nodes and its VIM reach the API through it.
"""

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle import ports
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies, Operation
from tacker_k8s_mgmt.lifecycle.steps import preflight
from tacker_k8s_mgmt.lifecycle.steps.records import MTU_FILE
from tacker_k8s_mgmt.model import kubespray_releases, nodes
from tacker_k8s_mgmt.model.playbook_runs import PlaybookRequest
from tacker_k8s_mgmt.request import option_types


class Instantiate(Operation):
    """The steps of ``instantiate_end``, and of ``heal_end`` for a whole VNF."""

    def __init__(self, deps: Dependencies) -> None:
        super().__init__(deps)
        self._claimed = False
        self._access: ports.ClusterAccess | None = None

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        install = Step(
            "install the load balancer",
            self._install_balancer,
            verify=self._verify_balancer,
        )
        return (
            preflight.Preflight(self._params, self._vnf_id, self._site).step(),
            Step("find the VMs in the Heat stack", self._find_machines),
            Step("own the inventory directory", self._claim),
            Step("wait until the VMs accept SSH logins", self._reach_all),
            Step("write inventory and variables", self._write_all),
            *((install,) if self._params.load_balancer else ()),
            Step(
                f"run {kubespray_releases.CLUSTER}",
                self._run_playbook,
                probe=self._playbook_done,
            ),
            Step("wait until all nodes are Ready", self._see_ready),
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
        return f"Left as they are: {' and '.join(parts)}." if parts else ""

    def _find_machines(self) -> None:
        """Find the VMs that the cluster is made of.

        :raises ClusterError: Heat has finished none of the workers' VMs.
        """
        self._machines = self._site.machines()
        late = [
            one for one in self._machines.unfinished if one.role is nodes.Role.WORKER
        ]
        if late and not self._machines.workers:
            raise errors.ClusterError(
                detail=f"No worker VM is complete: {late[0].state}.",
                hint="Look why with `openstack stack failures list --long "
                f"{self._machines.stack_id}`, and mend it.",
            )
        members = (*self._machines.control_planes, *self._machines.workers)
        self._nodes = nodes.name_nodes(members, previous=self._previous())

    def _claim(self) -> None:
        self._site.workdir.claim()
        self._claimed = True
        self._site.lock()
        self._rebuilding.inventory()
        if previous := self._previous():
            self._rebuilding.machines(previous)
        self._records.upgrade()
        # A VM that was made anew has another host key, and other facts.
        self._forget_new(self._all(), self._nodes)

    def _reach_all(self) -> None:
        self._wait_reachable(self._all())
        if self._params.cluster.network.mtu == option_types.NODES:
            mtus = [self._site.identity(node).nic_mtu for node in self._nodes]
            self._write_json(MTU_FILE, [min(mtus)] if all(mtus) else [])

    def _write_all(self) -> None:
        self._write_inputs(self._nodes)

    def _install_balancer(self) -> None:
        self._balancer().install(self._nodes)

    def _verify_balancer(self) -> None:
        self._balancer().verify()

    def _request(self) -> PlaybookRequest:
        return PlaybookRequest(kubespray_releases.CLUSTER, inputs=self._inputs)

    def _playbook_done(self) -> bool:
        return self._site.playbooks.done(self._request())

    def _run_playbook(self) -> None:
        self._run(self._request(), len(self._nodes))

    def _see_ready(self) -> None:
        self._wait_ready(self._nodes)
        self._write_joined(self._nodes)

    def _read_access(self) -> None:
        self._access = self._cluster().admin_access()

    def _register_vim(self) -> None:
        if self._access is None:
            raise errors.VimError(detail="The cluster's token was not read.")
        self._register(self._access)
