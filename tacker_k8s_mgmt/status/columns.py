"""What each place says of one VM, and what of that is not as it should be.

A place that could not be asked proves nothing: no finding depends on its silence.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import basename

from tacker_k8s_mgmt.model.cluster import NodeObject
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, Server
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.request.models import LoadBalancer
from tacker_k8s_mgmt.status.facts import Answers, Cell, Count, Finding

UNKNOWN = Cell("?")
ABSENT = Cell("-")
#: The column has nothing to do with the row.
BLANK = Cell("")

_JOIN = "The next scale-out, or heal of a VNFC, makes it a member."
_CLEAR = "The next scale, or heal of a VNFC, takes away what is left of it."
_UNDER_WAY = "Wait: Heat still works on it."
_FAILED = (
    "Mend what `openstack stack failures list --long {stack}` shows, and send what the "
    "error of the operation says. If that is over, heal its VNFC; the next scale-out "
    "builds a worker that has none."
)
_ANEW = "Heal the whole VNF, or its VNFC if there are other control planes."
_NOT_ADDED = (
    "If a heal has taken it out, heal its VNFC again. If it is a member, restore "
    "hosts.yaml in the cluster's directory. If a scaling has made it, which is not "
    "supported, have Heat delete it."
)
_RESTORE = "Restore hosts.yaml in the cluster's directory, or heal the whole VNF."
_HEAL_BALANCER = "Heal its VNFC: the new VM gets every node and every service."


@dataclass(frozen=True)
class Subject:
    """What the places have under one name.

    :param vm: a complete VM.
    :param unfinished: what keeps its VM from being complete, "" for nothing.
    :param listed: its entry in the inventory.
    :param seen: its Node object.
    :param route: the load balancer's server for it.
    :param joins: the next scale-out or heal joins it.
    """

    name: str
    role: Role
    vm: Node | None = None
    unfinished: str = ""
    listed: Node | None = None
    seen: NodeObject | None = None
    route: Server | None = None
    joins: bool = False

    @property
    def is_worker(self) -> bool:
        """Whether it is no control plane."""
        return self.role is Role.WORKER

    @property
    def place(self) -> Node | None:
        """Where it is: by Heat, or else by the inventory."""
        return self.vm or self.listed

    @property
    def exists(self) -> bool:
        """Whether Heat has a VM of it, complete or not."""
        return bool(self.vm or self.unfinished)

    @property
    def rebuilt(self) -> bool:
        """Whether its VM is another one than the inventory's."""
        if not self.vm or not self.listed:
            return False
        return self.vm.server_id != self.listed.server_id


def _cell(text: str, *findings: Finding) -> Cell:
    return Cell(text, findings)


def heat(one: Subject, said: Answers) -> Cell:
    """Whether there is a VM."""
    if said.machines is None:
        return UNKNOWN
    if one.unfinished:
        text = f"Heat has not completed its VM: {one.unfinished}"
        has_failed = one.unfinished.endswith("_FAILED")
        remedy = _FAILED if has_failed else _UNDER_WAY
        stack = said.machines.stack_id
        return _cell("unfinished", Finding(text, remedy.format(stack=stack)))
    if one.vm is None:
        if one.listed is None:
            return ABSENT
        remedy = _CLEAR if one.is_worker else _ANEW
        return _cell("-", Finding("in the inventory, and its VM is gone", remedy))
    if one.listed and one.rebuilt:
        text = (
            f"a new VM: Heat has the server {one.vm.server_id}, the inventory "
            f"{one.listed.server_id}"
        )
        return _cell("new VM", Finding(text, _JOIN if one.is_worker else _ANEW))
    return _cell("VM")


def group(one: Count) -> Cell:
    """How many VMs Heat has of a group that Tacker counts otherwise."""
    text = f"Heat has {one.heat} VMs of it, and Tacker counts {one.tacker}"
    return _cell(f"{one.heat} VMs", Finding(text, one.remedy))


def inventory(one: Subject, said: Answers) -> Cell:
    """Whether the Ansible server knows it, and as a whole member."""
    if said.inventory is None:
        return UNKNOWN
    if one.listed is None:
        return _unlisted(one, said) if one.vm else ABSENT
    if one.vm and not one.rebuilt and (moved := _moved(one.vm, one.listed)):
        return _cell("other address", moved)
    if one.joins and not one.rebuilt and (one.seen or said.nodes is None):
        text = "its join was not seen to its end"
        return _cell("not joined", Finding(text, _JOIN))
    return _cell("listed")


def _unlisted(one: Subject, said: Answers) -> Cell:
    if not said.inventory:
        return _cell("-", Finding("in no inventory, for there is none", _RESTORE))
    if one.is_worker:
        is_node = said.nodes is None or one.seen is not None
        what = (
            "not in the inventory" if is_node else "a VM that is no node of the cluster"
        )
        return _cell("-", Finding(what, _JOIN))
    text = "a VM of the control plane that is not in the inventory"
    return _cell("-", Finding(text, _NOT_ADDED))


def _moved(vm: Node, listed: Node) -> Finding | None:
    if vm.address != listed.address:
        text = f"at {vm.address} in Heat, at {listed.address} in the inventory"
        is_worker = vm.role is Role.WORKER
        return Finding(text, "Heal its VNFC." if is_worker else _ANEW)
    if vm.ssh_address != listed.ssh_address:
        logins = (
            f"at {vm.ssh_address} in Heat, at {listed.ssh_address} in the inventory"
        )
        remedy = "The next scale, or heal of a VNFC, corrects the inventory."
        return Finding(f"logins are {logins}", remedy)
    return None


def cluster(one: Subject, said: Answers) -> Cell:
    """Whether it is a node, and how it is doing."""
    if said.nodes is None:
        return UNKNOWN
    gone = said.machines is not None and not one.exists
    if one.seen is None:
        wanted = one.listed or (one.vm and said.inventory is None)
        if not wanted or gone or one.rebuilt:
            return ABSENT
        remedy = _JOIN if one.joins else "Look at the log of its kubelet."
        return _cell("-", Finding("not in the cluster", remedy))
    state = "Ready" if one.seen.ready else "NotReady"
    text = f"{state}, cordoned" if one.seen.unschedulable else state
    if gone and one.listed:
        return _cell(text)
    if gone and said.inventory is not None:
        return _cell(text, _stranger(one))
    return Cell(text, tuple(_conditions(one, one.seen)))


def _stranger(one: Subject) -> Finding:
    return Finding(
        "in the cluster, and neither in Heat nor in the inventory",
        f"If its machine is gone, `kubectl delete node {one.name}`; if not, find out "
        "who joined it.",
    )


def _conditions(one: Subject, seen: NodeObject) -> Iterator[Finding]:
    if not seen.ready:
        heal = "; heal its VNFC if it is lost" if one.is_worker else ""
        remedy = f"Look at `journalctl -u kubelet` on it{heal}."
        yield Finding(f"not Ready: {seen.reason.rstrip('.')}", remedy)
    if seen.unschedulable:
        remedy = f"`kubectl uncordon {one.name}`, unless somebody is at work on it."
        yield Finding("cordoned, gets no new pods", remedy)
    if one.place and seen.internal_ip not in ("", one.place.address):
        text = f"at {seen.internal_ip} in the cluster, not at {one.place.address}"
        yield Finding(text, "Look at `--node-ip` of its kubelet.")


def balancer(one: Subject, said: Answers, wanted: LoadBalancer) -> Cell:
    """Whether the load balancer sends traffic there."""
    if said.balancer is None:
        return UNKNOWN
    if said.balancer.api_port is None:
        return ABSENT
    if one.route is None:
        return _unrouted(one, said, wanted)
    word = one.route.state or "routed"
    if one.place is None:
        if said.machines is None or said.inventory is None:
            return _cell(word)
        what = "the load balancer routes to it, and there is no such VM"
        return _cell(word, _misrouted(one, what, wanted, f"remove-worker {one.name}"))
    address = one.place.address
    if one.route.address != address:
        sent = one.route.address
        what = f"the load balancer sends its traffic to {sent}, not to {address}"
        verb = f"add-worker {one.name}={address}"
        return _cell("other address", _misrouted(one, what, wanted, verb))
    if not one.is_worker and word.startswith(("DOWN", "MAINT")):
        remedy = f"Look whether it answers at https://{address}:6443/readyz."
        text = f"the load balancer finds its API server {word}"
        return _cell(word, Finding(text, remedy))
    return _cell(word)


def _unrouted(one: Subject, said: Answers, wanted: LoadBalancer) -> Cell:
    lacking = (
        said.machines is not None and one.vm is None,
        said.inventory is not None and one.listed is None,
        said.nodes is not None and one.seen is None,
    )
    # Whoever is no member is routed to when it becomes one.
    if one.place is None or one.joins or any(lacking):
        return ABSENT
    end = "it" if one.is_worker else "its API server"
    what = f"the load balancer has no route to {end}"
    verb = f"add-worker {one.name}={one.place.address}"
    return _cell("-", _misrouted(one, what, wanted, verb))


def _misrouted(one: Subject, what: str, wanted: LoadBalancer, verb: str) -> Finding:
    """:param verb: what a worker's route is put right with; the API's servers are all
    set at once, by ``install``.
    """
    script = basename(wanted.script_path)
    remedy = (
        f"On the load balancer: `sudo bash {script} {verb}`."
        if one.is_worker
        else "Heal the VNFC of the load balancer: the new VM gets every control plane."
    )
    return Finding(what, remedy)


def balancer_machine(said: Answers) -> Cell:
    """Whether the load balancer has a VM."""
    if said.machines is None:
        return UNKNOWN
    if said.machines.load_balancer is None:
        return _cell("-", Finding("no complete VM in Heat", _HEAL_BALANCER))
    return _cell("VM")


def balancer_state(status: BalancerStatus | None, wanted: LoadBalancer) -> Cell:
    """How the load balancer itself is doing."""
    if status is None:
        return UNKNOWN
    if status.api_port is None:
        return _cell("not set up", Finding("never set up", _HEAL_BALANCER))
    text = f"API at {status.api_port}" if status.active else "stopped"
    return Cell(text, tuple(_faults(status, wanted)))


def _faults(status: BalancerStatus, wanted: LoadBalancer) -> Iterator[Finding]:
    if status.api_port != wanted.api_port:
        text = f"the API is at port {status.api_port}, not at {wanted.api_port}"
        yield Finding(text, _HEAL_BALANCER)
    if not status.active:
        remedy = "`systemctl status haproxy` on it says why; start it."
        yield Finding("HAProxy does not run", remedy)
    elif not status.current:
        remedy = "`sudo systemctl reload haproxy` on it, if haproxy.cfg was not edited."
        yield Finding("HAProxy runs with another configuration than recorded", remedy)
    if not status.enabled:
        remedy = "`sudo systemctl enable haproxy` on it."
        yield Finding("HAProxy does not start with the VM", remedy)


def vim(said: Answers, url: str | None) -> Cell:
    """Whether Tacker has the cluster as a VIM.

    :param url: where the API is, as Tacker reaches it; None where that is not known.
    """
    if said.vims is None:
        return UNKNOWN
    if not said.vims:
        text = "the cluster is no VIM in Tacker"
        remedy = (
            "`retry` of an instantiation registers it, and a heal of the whole VNF. A "
            "VIM made by hand works, but is not known for the cluster's."
        )
        return _cell("-", Finding(text, remedy))
    found = said.vims[0]
    findings = []
    if url not in (None, found.auth_url):
        text = f"the API is at {url}, the VIM {found.name} at {found.auth_url}"
        findings.append(Finding(text, _ANEW))
    if not found.named:
        text = f"the VNF instance does not name the VIM {found.name}"
        remedy = "Retry the instantiation that was cut off; it names it."
        findings.append(Finding(text, remedy))
    return Cell(found.name, tuple(findings))
