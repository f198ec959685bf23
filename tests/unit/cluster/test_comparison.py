"""Five places side by side: each way in which one of them may differ."""

import dataclasses
from dataclasses import dataclass, field, replace

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster import comparison
from tacker_k8s_mgmt.cluster.answers import Answers, Source, Vim
from tacker_k8s_mgmt.cluster.balancer import BalancerStatus, Server
from tacker_k8s_mgmt.cluster.nodes import Node, Role, name_nodes
from tacker_k8s_mgmt.cluster.stack import Machines, Unfinished
from tests.unit.cluster.samples import REMOVED, machine, parsed

CP, W5, W55 = "control-plane-10-10-0-4", "worker-10-10-0-5", "worker-10-10-0-55"
BALANCER = "load balancer"
PARAMS = parsed()
WITHOUT_BALANCER = parsed({"external_lb_param": REMOVED})
COLUMNS = (Source.HEAT, Source.INVENTORY, Source.CLUSTER, Source.BALANCER, Source.VIM)


@dataclass(frozen=True)
class FakeObject:
    name: str
    internal_ip: str
    ready: bool = True
    reason: str = ""
    unschedulable: bool = False


@dataclass
class Scene:
    """A cluster of which everybody says the same, to be spoiled by a test.

    :ivar gone: the sources that do not answer.
    """

    planes: list = field(default_factory=lambda: [machine(Role.CONTROL_PLANE, 4)])
    workers: list = field(
        default_factory=lambda: [machine(Role.WORKER, 5), machine(Role.WORKER, 55)]
    )
    balancer: object = field(default_factory=lambda: machine(Role.LOAD_BALANCER, 9))
    unfinished: list = field(default_factory=list)
    elsewhere: list = field(default_factory=list)
    vims: list = field(
        default_factory=lambda: [Vim("v", "our-vim", "https://10.99.0.9:6443", True)]
    )

    def __post_init__(self):
        nodes = name_nodes([*self.planes, *self.workers])
        self.listed: dict[str, Node] = {node.name: node for node in nodes}
        self.joined: set | None = {node.server_id for node in nodes}
        self.nodes = {node.name: FakeObject(node.name, node.address) for node in nodes}
        routes = {node.name: Server(node.name, node.address) for node in nodes}
        self.backends = {CP: replace(routes.pop(CP), state="UP")}
        self.routes = routes
        self.balancing: dict = {"active": True, "enabled": True, "current": True}
        self.port: int | None = 6443

    def node(self, name, **changes):
        self.nodes[name] = replace(self.nodes[name], **changes)

    def entry(self, name, **changes):
        self.listed[name] = replace(self.listed[name], **changes)

    def add_worker(self, number):
        self.workers.append(machine(Role.WORKER, number))

    def answers(self, silent=()) -> Answers:
        there = [*self.planes, *self.workers, *self.unfinished]
        servers = [*(one.server_id for one in there), *self.elsewhere]
        said = Answers(
            machines=Machines(
                control_planes=tuple(self.planes),
                workers=tuple(self.workers),
                load_balancer=self.balancer,
                places={one: frozenset({"top"}) for one in servers},
                unfinished=tuple(self.unfinished),
            ),
            inventory=tuple(self.listed.values()),
            joined=None if self.joined is None else frozenset(self.joined),
            nodes=tuple(self.nodes.values()),
            balancer=BalancerStatus(
                **self.balancing,
                api_port=self.port,
                control_planes=tuple(self.backends.values()),
                workers=tuple(self.routes.values()),
                services=(),
            ),
            vims=tuple(self.vims),
        )
        return replace(said, **dict.fromkeys(silent))


def rows(scene, params=PARAMS, silent=()):
    return {row.name: row for row in comparison.compare(scene.answers(silent), params)}


def cells(row, columns=COLUMNS):
    return [row.cells[column].text for column in columns]


def findings(scene, params=PARAMS, silent=()):
    """Everything that differs, by row."""
    found = rows(scene, params, silent)
    told = {name: [one.text for one in row.findings] for name, row in found.items()}
    return {name: texts for name, texts in told.items() if texts}


def remedy(scene, name, silent=()):
    (found,) = rows(scene, silent=silent)[name].findings
    return found.remedy


# Each takes a good scene and spoils it.


def orphan(scene):
    scene.add_worker(7)


def orphan_in_the_cluster(scene):
    scene.add_worker(7)
    scene.nodes["worker-10-10-0-7"] = FakeObject("worker-10-10-0-7", "10.10.0.7")


def vanished(scene):
    del scene.workers[0]
    scene.node(W5, ready=False, reason="no word")


def no_node_object(scene):
    del scene.nodes[W5]


def no_control_plane_object(scene):
    del scene.nodes[CP]


def not_ready(scene):
    scene.node(W5, ready=False, reason="KubeletNotReady: no network.")


def control_plane_not_ready(scene):
    scene.node(CP, ready=False, reason="no word")


def cordoned(scene):
    scene.node(W5, unschedulable=True)


def other_node_address(scene):
    scene.node(W5, internal_ip="10.99.0.5")


def stranger(scene):
    scene.nodes["guest"] = FakeObject("guest", "10.10.0.77")


def no_route(scene):
    del scene.routes[W5]


def route_to_nobody(scene):
    scene.routes["worker-10-10-0-8"] = Server("worker-10-10-0-8", "10.10.0.8")


def route_elsewhere(scene):
    scene.routes[W5] = Server(W5, "10.10.0.66")


def no_backend(scene):
    del scene.backends[CP]


def backend_to_nobody(scene):
    other = "control-plane-10-10-0-8"
    scene.backends[other] = Server(other, "10.10.0.8", "DOWN")


def backend_elsewhere(scene):
    scene.backends[CP] = Server(CP, "10.10.0.66", "UP")


def backend_down(scene):
    scene.backends[CP] = replace(scene.backends[CP], state="DOWN")


def rebuilt(scene):
    scene.workers[0] = replace(scene.workers[0], server_id="server-new")


def rebuilt_and_gone_from_the_cluster(scene):
    rebuilt(scene)
    del scene.nodes[W5]


def control_plane_rebuilt(scene):
    scene.planes[0] = replace(scene.planes[0], server_id="server-new")


def control_plane_gone(scene):
    scene.planes = []


def control_plane_added(scene):
    scene.planes.append(machine(Role.CONTROL_PLANE, 6))


def unfinished(scene):
    del scene.workers[0]
    state = "workerNode is UPDATE_FAILED"
    scene.unfinished = [Unfinished(Role.WORKER, "server-5", state)]


def unfinished_for_unknown_reasons(scene):
    del scene.workers[0]
    scene.elsewhere = ["server-5"]


def unfinished_and_new(scene):
    state = "workerNode is CREATE_IN_PROGRESS"
    scene.unfinished = [Unfinished(Role.WORKER, "server-8", state)]


def not_joined(scene):
    scene.joined.discard("server-5")


def moved(scene):
    scene.entry(W5, address="10.10.0.66")
    scene.nodes[W5] = FakeObject(W5, "10.10.0.5")


def logins_moved(scene):
    scene.entry(W5, ssh_address="10.99.0.66")


def control_plane_moved(scene):
    scene.entry(CP, address="10.10.0.66")


def no_inventory(scene):
    scene.listed = {}
    scene.joined = None


def balancer_never_set_up(scene):
    scene.port, scene.routes, scene.backends = None, {}, {}


def balancer_at_another_port(scene):
    scene.port = 8443


def balancer_stopped(scene):
    scene.balancing.update(active=False, current=False)
    scene.backends[CP] = Server(CP, "10.10.0.4")


def balancer_out_of_date(scene):
    scene.balancing["current"] = False


def balancer_not_enabled(scene):
    scene.balancing["enabled"] = False


def balancer_without_vm(scene):
    scene.balancer = None


def no_vim(scene):
    scene.vims = []


def vim_elsewhere(scene):
    scene.vims = [replace(scene.vims[0], auth_url="https://10.99.0.77:6443")]


def vim_unnamed(scene):
    scene.vims = [replace(scene.vims[0], named=False)]


JOIN = "The next scale-out, or heal of a VNFC, makes it a member."
GONE = "in the inventory, and its VM is gone"
TABLE = [
    (
        orphan,
        "worker-10-10-0-7",
        "VM - - - ",
        "a VM that is no node of the cluster",
        JOIN,
    ),
    (
        orphan_in_the_cluster,
        "worker-10-10-0-7",
        "VM - Ready - ",
        "not in the inventory",
        JOIN,
    ),
    (vanished, W5, "- listed NotReady routed ", GONE, "takes away what is left"),
    (no_node_object, W5, "VM listed - routed ", "not in the cluster", JOIN),
    (
        no_control_plane_object,
        CP,
        "VM listed - UP ",
        "not in the cluster",
        "log of its kubelet",
    ),
    (
        not_ready,
        W5,
        "VM listed NotReady routed ",
        "not Ready: KubeletNotReady: no network",
        "journalctl -u kubelet` on it; heal its VNFC",
    ),
    (
        control_plane_not_ready,
        CP,
        "VM listed NotReady UP ",
        "not Ready: no word",
        "Look at `journalctl -u kubelet` on it.",
    ),
    (
        cordoned,
        W5,
        "VM listed Ready,cordoned routed ",
        "cordoned, gets no new pods",
        f"`kubectl uncordon {W5}`",
    ),
    (
        other_node_address,
        W5,
        "VM listed Ready routed ",
        "at 10.99.0.5 in the cluster, not at 10.10.0.5",
        "--node-ip",
    ),
    (
        stranger,
        "guest",
        "- - Ready - ",
        "in the cluster, and neither in Heat nor in the inventory",
        "`kubectl delete node guest`",
    ),
    (
        no_route,
        W5,
        "VM listed Ready - ",
        "the load balancer has no route to it",
        f"`sudo bash install_external_lb.sh add-worker {W5}=10.10.0.5`",
    ),
    (
        route_to_nobody,
        "worker-10-10-0-8",
        "- - - routed ",
        "the load balancer routes to it, and there is no such VM",
        "`sudo bash install_external_lb.sh remove-worker worker-10-10-0-8`",
    ),
    (
        route_elsewhere,
        W5,
        "VM listed Ready otheraddress ",
        "the load balancer sends its traffic to 10.10.0.66, not to 10.10.0.5",
        f"add-worker {W5}=10.10.0.5`",
    ),
    (
        no_backend,
        CP,
        "VM listed Ready - ",
        "the load balancer has no route to its API server",
        "Heal the VNFC of the load balancer",
    ),
    (
        backend_to_nobody,
        "control-plane-10-10-0-8",
        "- - - DOWN ",
        "the load balancer routes to it, and there is no such VM",
        "Heal the VNFC of the load balancer",
    ),
    (
        backend_elsewhere,
        CP,
        "VM listed Ready otheraddress ",
        "the load balancer sends its traffic to 10.10.0.66, not to 10.10.0.4",
        "Heal the VNFC of the load balancer",
    ),
    (
        backend_down,
        CP,
        "VM listed Ready DOWN ",
        "the load balancer finds its API server DOWN",
        "https://10.10.0.4:6443/readyz",
    ),
    (
        rebuilt,
        W5,
        "newVM listed Ready routed ",
        "a new VM: Heat has the server server-new, the inventory server-5",
        JOIN,
    ),
    (
        rebuilt_and_gone_from_the_cluster,
        W5,
        "newVM listed - routed ",
        "a new VM: Heat has the server server-new, the inventory server-5",
        JOIN,
    ),
    (
        control_plane_rebuilt,
        CP,
        "newVM listed Ready UP ",
        "a new VM: Heat has the server server-new, the inventory server-4",
        "Heal the whole VNF",
    ),
    (control_plane_gone, CP, "- listed Ready UP ", GONE, "Heal the whole VNF"),
    (
        control_plane_added,
        "control-plane-10-10-0-6",
        "VM - - - ",
        "a VM of the control plane that is not in the inventory",
        "roll that back",
    ),
    (
        unfinished,
        W5,
        "unfinished listed Ready routed ",
        "Heat has not completed its VM: workerNode is UPDATE_FAILED",
        "openstack stack resource list",
    ),
    (
        unfinished_for_unknown_reasons,
        W5,
        "unfinished listed Ready routed ",
        "Heat has not completed its VM: it is on its way",
        "openstack stack resource list",
    ),
    (
        unfinished_and_new,
        "VM server-8",
        "unfinished - - - ",
        "Heat has not completed its VM: workerNode is CREATE_IN_PROGRESS",
        "openstack stack resource list",
    ),
    (
        not_joined,
        W5,
        "VM notjoined Ready routed ",
        "its join was not seen to its end",
        JOIN,
    ),
    (
        logins_moved,
        W5,
        "VM otheraddress Ready routed ",
        "logins are at 10.99.0.5 in Heat, at 10.99.0.66 in the inventory",
        "corrects the inventory",
    ),
    (
        moved,
        W5,
        "VM otheraddress Ready routed ",
        "at 10.10.0.5 in Heat, at 10.10.0.66 in the inventory",
        "Heal its VNFC.",
    ),
    (
        control_plane_moved,
        CP,
        "VM otheraddress Ready UP ",
        "at 10.10.0.4 in Heat, at 10.10.0.66 in the inventory",
        "Heal the whole VNF",
    ),
    (
        balancer_never_set_up,
        BALANCER,
        "VM   notsetup our-vim",
        "never set up",
        "Heal its VNFC",
    ),
    (
        balancer_at_another_port,
        BALANCER,
        "VM   APIat8443 our-vim",
        "the API is at port 8443, not at 6443",
        "Heal its VNFC",
    ),
    (
        balancer_stopped,
        BALANCER,
        "VM   stopped our-vim",
        "HAProxy does not run",
        "systemctl status haproxy",
    ),
    (
        balancer_out_of_date,
        BALANCER,
        "VM   APIat6443 our-vim",
        "HAProxy runs with another configuration than recorded",
        "systemctl reload haproxy",
    ),
    (
        balancer_not_enabled,
        BALANCER,
        "VM   APIat6443 our-vim",
        "HAProxy does not start with the VM",
        "systemctl enable haproxy",
    ),
    (
        balancer_without_vm,
        BALANCER,
        "-   APIat6443 our-vim",
        "no complete VM in Heat",
        "Heal its VNFC",
    ),
    (
        no_vim,
        BALANCER,
        "VM   APIat6443 -",
        "the cluster is no VIM in Tacker",
        "`retry` of an instantiation registers it",
    ),
    (
        vim_elsewhere,
        BALANCER,
        "VM   APIat6443 our-vim",
        "the API is at https://10.99.0.9:6443, the VIM our-vim at "
        "https://10.99.0.77:6443",
        "Heal the whole VNF",
    ),
    (
        vim_unnamed,
        BALANCER,
        "VM   APIat6443 our-vim",
        "the VNF instance does not name the VIM our-vim",
        "Retry the instantiation",
    ),
]


@pytest.mark.parametrize(
    ("spoil", "name", "shown", "text", "way_out"),
    TABLE,
    ids=[entry[0].__name__ for entry in TABLE],
)
def test_one_difference_is_one_finding_in_its_row(spoil, name, shown, text, way_out):
    scene = Scene()
    spoil(scene)
    assert findings(scene) == {name: [text]}
    assert way_out in remedy(scene, name)
    row = rows(scene)[name]
    assert " ".join(cell.replace(" ", "") for cell in cells(row)) == shown


def test_a_cluster_of_which_all_say_the_same():
    found = rows(Scene())
    assert findings(Scene()) == {}
    assert list(found) == [CP, W5, W55, BALANCER]
    assert cells(found[CP]) == ["VM", "listed", "Ready", "UP", ""]
    assert cells(found[W5]) == ["VM", "listed", "Ready", "routed", ""]
    assert cells(found[BALANCER]) == ["VM", "", "", "API at 6443", "our-vim"]
    assert (found[W5].server_id, found[W5].address) == ("server-5", "10.10.0.5")
    assert found[BALANCER].address == "10.99.0.9"


def test_names_are_compared_whole():
    scene = Scene()
    del scene.routes[W5]
    scene.node(W55, unschedulable=True)
    assert set(findings(scene)) == {W5, W55}


def test_without_a_load_balancer_there_is_no_column_and_the_vim_is_the_control_planes():
    scene = Scene()
    scene.vims = [Vim("v", "our-vim", "https://10.99.0.4:6443", True)]
    found = rows(scene, WITHOUT_BALANCER)
    assert findings(scene, WITHOUT_BALANCER) == {}
    assert list(found) == [CP, W5, W55]
    assert Source.BALANCER not in found[CP].cells
    assert found[CP].cells[Source.VIM].text == "our-vim"
    others = tuple(one for one in COLUMNS if one is not Source.BALANCER)
    assert comparison.sources(WITHOUT_BALANCER) == others
    assert comparison.sources(PARAMS) == COLUMNS


def test_an_empty_inventory_is_said_of_every_vm():
    scene = Scene()
    no_inventory(scene)
    told = findings(scene)
    assert set(told) == {CP, W5, W55}
    assert told[CP] == told[W5] == ["in no inventory, for there is none"]
    assert "Restore hosts.yaml" in remedy(scene, W5)


def test_without_a_record_of_joins_whoever_is_in_the_cluster_has_joined():
    scene = Scene()
    scene.joined = None
    assert findings(scene) == {}
    del scene.nodes[W5]
    assert findings(scene) == {W5: ["not in the cluster"]}


SOURCES = {
    "machines": Source.HEAT,
    "inventory": Source.INVENTORY,
    "nodes": Source.CLUSTER,
    "balancer": Source.BALANCER,
    "vims": Source.VIM,
}


@pytest.mark.parametrize("silent", SOURCES)
def test_silence_of_one_place_is_no_difference(silent):
    found = rows(Scene(), silent=[silent])
    assert findings(Scene(), silent=[silent]) == {}
    column = SOURCES[silent]
    marked = {name for name, row in found.items() if row.cells[column].text == "?"}
    expected = {CP, W5, W55} if silent != "vims" else {BALANCER}
    if silent in ("machines", "balancer"):
        expected |= {BALANCER}
    assert marked == expected


@pytest.mark.parametrize("silent", SOURCES)
@pytest.mark.parametrize("entry", TABLE, ids=[one[0].__name__ for one in TABLE])
def test_silence_tells_nothing_of_others(entry, silent):
    scene = Scene()
    entry[0](scene)
    # Without the inventory, a VM that is not complete has no name.
    assert set(findings(scene, silent=[silent])) <= {entry[1], "VM server-5"}


def all_but(*heard):
    return [one.name for one in dataclasses.fields(Answers) if one.name not in heard]


@pytest.mark.parametrize("heard", ["machines", "inventory", "balancer"])
def test_one_alone_knows_who_is_who(heard):
    found = rows(Scene(), silent=all_but(heard))
    assert findings(Scene(), silent=all_but(heard)) == {}
    roles = {row.name: row.role for row in found.values()}
    assert roles == {
        CP: Role.CONTROL_PLANE,
        W5: Role.WORKER,
        W55: Role.WORKER,
        BALANCER: Role.LOAD_BALANCER,
    }


def test_the_cluster_alone_knows_its_nodes():
    found = rows(Scene(), silent=all_but("nodes"))
    assert findings(Scene(), silent=all_but("nodes")) == {}
    assert set(found) == {CP, W5, W55, BALANCER}


def test_a_vim_alone_has_a_row():
    found = rows(Scene(), WITHOUT_BALANCER, all_but("vims"))
    assert [row.cells[Source.VIM].text for row in found.values()] == ["our-vim"]


@pytest.mark.parametrize(
    ("spoil", "silent"),
    [
        (no_route, "machines"),
        (no_route, "inventory"),
        (no_route, "nodes"),
        (no_node_object, "machines"),
        (no_node_object, "inventory"),
        (not_joined, "nodes"),
        (rebuilt, "nodes"),
        (vanished, "nodes"),
    ],
)
def test_what_the_others_prove_is_told(spoil, silent):
    scene = Scene()
    spoil(scene)
    assert set(findings(scene, silent=[silent])) == {W5}


@pytest.mark.parametrize(
    ("spoil", "silent"),
    [
        (stranger, ["machines"]),
        (stranger, ["inventory"]),
        (route_to_nobody, ["machines"]),
        (route_to_nobody, ["inventory"]),
        (route_to_nobody, ["machines", "inventory"]),
        (unfinished_for_unknown_reasons, ["machines"]),
        (vim_elsewhere, ["machines"]),
    ],
)
def test_what_nobody_proves_is_not_told(spoil, silent):
    scene = Scene()
    spoil(scene)
    assert findings(scene, silent=silent) == {}


@pytest.mark.parametrize(
    ("spoil", "also", "text"),
    [
        (
            rebuilt,
            logins_moved,
            "a new VM: Heat has the server server-new, the inventory server-5",
        ),
        (not_joined, no_route, "its join was not seen to its end"),
        (vanished, no_node_object, GONE),
        (vanished, no_route, GONE),
        (vanished, cordoned, GONE),
        (no_node_object, no_route, "not in the cluster"),
    ],
)
def test_what_follows_from_a_difference_is_not_told_again(spoil, also, text):
    scene = Scene()
    spoil(scene)
    also(scene)
    assert findings(scene) == {W5: [text]}


def test_a_vm_that_is_not_complete_may_still_be_a_node_that_is_not_ready():
    scene = Scene()
    unfinished(scene)
    scene.node(W5, ready=False, reason="no word")
    assert findings(scene)[W5][1:] == ["not Ready: no word"]


def test_a_worker_has_no_api_server_that_could_be_down():
    scene = Scene()
    scene.routes[W5] = replace(scene.routes[W5], state="DOWN")
    assert findings(scene) == {}


def test_without_heat_and_load_balancer_the_inventory_tells_where_the_api_is():
    scene = Scene()
    scene.listed = dict(reversed(scene.listed.items()))
    scene.vims = [Vim("v", "our-vim", "https://10.99.0.5:6443", True)]
    (text,) = findings(scene, WITHOUT_BALANCER, ["machines"])[CP]
    assert text.startswith("the API is at https://10.99.0.4:6443, the VIM our-vim at")


def test_what_no_inventory_says_about_a_node_depends_on_the_cluster_being_asked():
    scene = Scene()
    scene.add_worker(7)
    told = findings(scene, silent=["nodes"])
    assert told == {"worker-10-10-0-7": ["not in the inventory"]}


def test_a_node_may_have_several_findings():
    scene = Scene()
    scene.node(W5, ready=False, reason="no word", unschedulable=True)
    del scene.routes[W5]
    assert len(findings(scene)[W5]) == 3


def test_two_vms_with_one_address_cannot_be_compared():
    scene = Scene()
    scene.workers.append(replace(scene.workers[0], server_id="other"))
    with pytest.raises(errors.ClusterError, match="same address"):
        rows(scene)
