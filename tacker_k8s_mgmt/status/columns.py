# SPDX-License-Identifier: Apache-2.0
"""The cell of each source for one VM, with the differences in it.

A source that could not be read proves nothing: no finding follows from its silence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename

from tacker_k8s_mgmt.model.load_balancer import Server
from tacker_k8s_mgmt.model.nodes import (
    CORDONED,
    ROLES,
    Count,
    Node,
    NodeObject,
    Role,
    same_server,
    unfinished,
)
from tacker_k8s_mgmt.request.installation import LoadBalancer
from tacker_k8s_mgmt.status.facts import Answers, Cell, Finding, Heal, Remedy

UNKNOWN = Cell("?")
ABSENT = Cell("-")
#: The column has nothing to do with the row.
BLANK = Cell("")

_JOIN = Remedy("The next scale-out, or heal of a VNFC, makes it a member.", Heal.VNFC)
_CLEAR = Remedy(
    "The next scale, or heal of a VNFC, takes away what is left of it.", Heal.NEXT
)
_CORRECT = Remedy(
    "The next scale, or heal of a VNFC, corrects the inventory.", Heal.NEXT
)
_UNDER_WAY = Remedy("Wait: Heat still works on it.")
_FAILED = (
    "Mend what `openstack stack failures list --long {stack}` shows, and send what the "
    "error of the operation says. If that is over, heal its VNFC; the next scale-out "
    "builds a worker that has none."
)
_HEAL_VNF = Remedy(
    "Heal the whole VNF, or its VNFC if there are other control planes.",
    Heal.VNFC | Heal.VNF,
)
_NOT_ADDED = Remedy(
    "If a heal has taken it out, heal its VNFC again. If it is a member, restore "
    "hosts.yaml in the cluster's directory. If a scaling has made it, which is not "
    "supported, have Heat delete it.",
    Heal.VNFC,
)
_RESTORE = Remedy(
    "Restore hosts.yaml in the cluster's directory, or heal the whole VNF.", Heal.VNF
)
#: For what an entry of the metadata wants.
SEND_AGAIN = Remedy(
    "Modify the VNF instance again with that entry of its metadata, even an unchanged "
    "one; `cluster labels` lists the entries."
)
_ALL_ROUTES = Remedy(
    "Heal the VNFC of the load balancer: the new VM gets every control plane.",
    Heal.BALANCER,
)
_HEAL_VNFC = Remedy("Heal its VNFC.", Heal.VNFC)
_LOST = Remedy(
    "Look at `journalctl -u kubelet` on it; heal its VNFC if it is lost.", Heal.VNFC
)
_LOOK = Remedy("Look at `journalctl -u kubelet` on it.")
_CONTROLLER = Remedy("Look at the log of the controller that takes the taint away.")


@dataclass(frozen=True)
class Member:
    """What the sources have under one name.

    :param vm: a complete VM.
    :param unfinished: what keeps its VM from being complete, "" for nothing.
    :param lacks: whether Heat calls that VM complete.
    :param listed: its entry in the inventory.
    :param seen: its Node object.
    :param route: the load balancer's server for it.
    :param joins: the next scale-out or heal joins it.
    :param out_of_service: whether it is to be cordoned, without routes.
    :param others: differences in the cluster that features have found.
    """

    name: str
    role: Role
    vm: Node | None = None
    unfinished: str = ""
    lacks: bool = False
    listed: Node | None = None
    seen: NodeObject | None = None
    route: Server | None = None
    joins: bool = False
    out_of_service: bool = False
    others: Sequence[Finding] = ()

    @property
    def is_plane(self) -> bool:
        """Whether it is a control plane."""
        return self.role is Role.CONTROL_PLANE

    @property
    def place(self) -> Node | None:
        """The node with its addresses, of Heat or else of the inventory."""
        return self.vm or self.listed

    @property
    def is_rebuilt(self) -> bool:
        """Whether its VM is another one than the inventory's."""
        ids = {node.server_id for node in (self.vm, self.listed) if node}
        return len(ids) > 1


def differs(text: str, what: str, remedy: Remedy) -> Cell:
    """A cell with one finding."""
    return Cell(text, (Finding(what, remedy),))


def heat(member: Member, answers: Answers) -> Cell:
    """Whether there is a VM."""
    vm, listed, is_plane = member.vm, member.listed, member.is_plane
    if answers.machines is None:
        return UNKNOWN
    if member.lacks:
        text = f"its VM cannot be used: {member.unfinished}"
        return differs("unusable", text, _HEAL_VNF if is_plane else _HEAL_VNFC)
    if member.unfinished:
        text = f"Heat has not completed its VM: {member.unfinished}"
        failed = Remedy(_FAILED.format(stack=answers.machines.stack_id))
        remedy = failed if member.unfinished.endswith("_FAILED") else _UNDER_WAY
        return differs("unfinished", text, remedy)
    if vm is None:
        if listed is None:
            return ABSENT
        remedy = _HEAL_VNF if is_plane else _CLEAR
        return differs("-", "in the inventory, and its VM is gone", remedy)
    if listed and member.is_rebuilt:
        text = (
            f"a new VM: Heat has the server {vm.server_id}, the inventory "
            f"{listed.server_id}"
        )
        return differs("new VM", text, _HEAL_VNF if is_plane else _JOIN)
    return Cell("VM")


def group(count: Count) -> Cell:
    """How many VMs Heat has of a group for which Tacker has another number."""
    text = f"Heat has {count.heat} VMs of it, and Tacker counts {count.tacker}"
    return differs(f"{count.heat} VMs", text, Remedy(count.remedy))


def inventory(member: Member, answers: Answers) -> Cell:
    """Whether it is in the inventory, and as a full member."""
    vm, listed = member.vm, member.listed
    if answers.inventory is None:
        return UNKNOWN
    if listed is None:
        return _unlisted(member, answers) if vm else ABSENT
    if member.is_rebuilt:
        return Cell("listed")
    if vm and vm.address != listed.address:
        text = f"at {vm.address} in Heat, at {listed.address} in the inventory"
        remedy = _HEAL_VNF if member.is_plane else _HEAL_VNFC
        return differs("other address", text, remedy)
    if vm and vm.ssh_address != listed.ssh_address:
        text = (
            f"logins are at {vm.ssh_address} in Heat, at {listed.ssh_address} in the "
            "inventory"
        )
        return differs("other address", text, _CORRECT)
    if member.joins and (member.seen or answers.nodes is None):
        return differs("not joined", "its join was not completed", _JOIN)
    return Cell("listed")


def _unlisted(member: Member, answers: Answers) -> Cell:
    if not answers.inventory:
        return differs("-", "in no inventory, for there is none", _RESTORE)
    if member.is_plane:
        text = "a VM of the control plane that is not in the inventory"
        return differs("-", text, _NOT_ADDED)
    if member.seen or answers.nodes is None:
        return differs("-", "not in the inventory", _JOIN)
    return differs("-", "a VM that is no node of the cluster", _JOIN)


def cluster(member: Member, answers: Answers) -> Cell:
    """Whether it is a node, and its conditions."""
    seen, listed = member.seen, member.listed
    if answers.nodes is None:
        return UNKNOWN
    gone = answers.machines is not None and not (member.vm or member.unfinished)
    if seen is None:
        expected = listed or (member.vm and answers.inventory is None)
        if not expected or gone or member.is_rebuilt:
            return ABSENT
        log = Remedy("Look at the log of its kubelet.")
        remedy = _JOIN if member.joins else log
        return differs("-", "not in the cluster", remedy)
    text = "Ready" if seen.ready else "NotReady"
    if seen.unschedulable:
        text += ", maintenance" if member.out_of_service else ", cordoned"
    if gone and listed:
        return Cell(text)
    if gone and answers.inventory is not None:
        return differs(
            text,
            "in the cluster, and neither in Heat nor in the inventory",
            Remedy(
                f"If its machine is gone, `kubectl delete node {member.name}`; if not, "
                "find out who joined it."
            ),
        )
    return Cell(text, tuple(_conditions(member, seen)))


def _conditions(member: Member, seen: NodeObject) -> Iterator[Finding]:
    if not seen.ready:
        remedy = _LOOK if member.is_plane else _LOST
        yield Finding(f"not Ready: {seen.reason.rstrip('.')}", remedy)
    elif problem := unfinished(seen.taints):
        yield Finding(f"Ready, and takes no pods yet: {problem}", _CONTROLLER)
    if seen.unschedulable and not member.out_of_service:
        yield _cordoned(member.name, by_us=seen.cordoned_by_us)
    if member.place and seen.internal_ip not in ("", member.place.address):
        text = f"at {seen.internal_ip} in the cluster, not at {member.place.address}"
        yield Finding(text, Remedy("Look at `--node-ip` of its kubelet."))
    if not member.joins:
        yield from member.others


def _cordoned(name: str, *, by_us: bool) -> Finding:
    uncordon = f"`kubectl uncordon {name}`"
    if not by_us:
        remedy = Remedy(f"{uncordon}, unless it is cordoned on purpose.")
        return Finding("cordoned, gets no new pods", remedy)
    return Finding(
        "cordoned by an operation that has not completed, gets no new pods",
        Remedy(
            "A retry of that operation goes on. If it was given up, or to use the node "
            f"meanwhile: {uncordon}, and `kubectl annotate node {name} {CORDONED}-`."
        ),
    )


def balancer(member: Member, answers: Answers, wanted: LoadBalancer) -> Cell:
    """Whether the load balancer sends traffic there."""
    route, place = member.route, member.place
    if answers.balancer is None:
        return UNKNOWN
    if answers.balancer.api_port is None:
        return ABSENT
    if route is None:
        return _unrouted(member, answers, wanted)
    state = route.state or "routed"
    if member.out_of_service:
        text = "in maintenance, and the load balancer routes to it"
        return differs(state, text, SEND_AGAIN)
    if place is None:
        if answers.machines is None or answers.inventory is None:
            return Cell(state)
        text = "the load balancer routes to it, and there is no such VM"
        remedy = _reroute(member, wanted, f"remove-worker {member.name}")
        return differs(state, text, remedy)
    if route.address != place.address:
        text = (
            f"the load balancer sends its traffic to {route.address}, not to "
            f"{place.address}"
        )
        return differs("other address", text, _route_to(member, place, wanted))
    if member.is_plane and state.startswith(("DOWN", "MAINT")):
        text = f"the load balancer finds its API server {state}"
        remedy = Remedy(
            f"Look whether it answers at https://{place.address}:6443/readyz. If its "
            "VM is lost, heal its VNFC, or the whole VNF if it is the only control "
            "plane."
        )
        return differs(state, text, remedy)
    return Cell(state)


def _unrouted(member: Member, answers: Answers, wanted: LoadBalancer) -> Cell:
    if member.out_of_service:
        return Cell("maintenance")
    place = member.place
    lacking = (
        answers.machines is not None and member.vm is None,
        answers.inventory is not None and member.listed is None,
        answers.nodes is not None and member.seen is None,
    )
    # A node gets its route when it has joined.
    is_routed = ROLES[member.role].route
    if place is None or member.joins or any(lacking) or not is_routed:
        return ABSENT
    end = "its API server" if member.is_plane else "it"
    text = f"the load balancer has no route to {end}"
    return differs("-", text, _route_to(member, place, wanted))


def _route_to(member: Member, place: Node, wanted: LoadBalancer) -> Remedy:
    return _reroute(member, wanted, f"add-worker {member.name}={place.address}")


def _reroute(member: Member, wanted: LoadBalancer, verb: str) -> Remedy:
    if member.is_plane:
        # These routes can only be set all at once, by `install`.
        return _ALL_ROUTES
    script = basename(wanted.script_path)
    return Remedy(f"On the load balancer: `sudo bash {script} {verb}`.")


def vim(answers: Answers, url: str | None) -> Cell:
    """Whether the cluster is a VIM in Tacker.

    :param url: where Tacker reaches the API; None where that is not known.
    """
    if answers.vims is None:
        return UNKNOWN
    if not answers.vims:
        return differs(
            "-",
            "the cluster is no VIM in Tacker",
            Remedy(
                "`retry` of an instantiation registers it, and a heal of the whole "
                "VNF. A VIM made by hand works, but is not recognized as the cluster's."
            ),
        )
    registered = answers.vims[0]
    findings = []
    if url is not None and not same_server(url, registered.auth_url):
        text = (
            f"the API is at {url}, the VIM {registered.name} at {registered.auth_url}"
        )
        findings.append(Finding(text, _HEAL_VNF))
    if not registered.named:
        text = f"the VNF instance does not name the VIM {registered.name}"
        remedy = Remedy("Retry the instantiation that was cut off; it names it.")
        findings.append(Finding(text, remedy))
    return Cell(registered.name, tuple(findings))
