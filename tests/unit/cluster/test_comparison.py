"""Five places side by side: each way in which one of them may differ."""

import pytest

from tacker_k8s_mgmt.status import report
from tacker_k8s_mgmt.status.facts import Source, Vim
from tests.unit.cluster import spoilers
from tests.unit.cluster.scene import (
    BALANCER,
    COLUMNS,
    CP,
    PARAMS,
    W5,
    W55,
    WITHOUT_BALANCER,
    Scene,
    cells,
    findings,
    remedy,
    rows,
)

JOIN = "The next scale-out, or heal of a VNFC, makes it a member."
GONE = "in the inventory, and its VM is gone"
TABLE = [
    (
        spoilers.orphan,
        "worker-10-10-0-7",
        "VM - - - ",
        "a VM that is no node of the cluster",
        JOIN,
    ),
    (
        spoilers.orphan_in_the_cluster,
        "worker-10-10-0-7",
        "VM - Ready - ",
        "not in the inventory",
        JOIN,
    ),
    (
        spoilers.vanished,
        W5,
        "- listed NotReady routed ",
        GONE,
        "takes away what is left",
    ),
    (spoilers.no_node_object, W5, "VM listed - routed ", "not in the cluster", JOIN),
    (
        spoilers.no_control_plane_object,
        CP,
        "VM listed - UP ",
        "not in the cluster",
        "log of its kubelet",
    ),
    (
        spoilers.not_ready,
        W5,
        "VM listed NotReady routed ",
        "not Ready: KubeletNotReady: no network",
        "journalctl -u kubelet` on it; heal its VNFC",
    ),
    (
        spoilers.control_plane_not_ready,
        CP,
        "VM listed NotReady UP ",
        "not Ready: no word",
        "Look at `journalctl -u kubelet` on it.",
    ),
    (
        spoilers.cordoned,
        W5,
        "VM listed Ready,cordoned routed ",
        "cordoned, gets no new pods",
        f"`kubectl uncordon {W5}`",
    ),
    (
        spoilers.other_node_address,
        W5,
        "VM listed Ready routed ",
        "at 10.99.0.5 in the cluster, not at 10.10.0.5",
        "--node-ip",
    ),
    (
        spoilers.stranger,
        "guest",
        "- - Ready - ",
        "in the cluster, and neither in Heat nor in the inventory",
        "`kubectl delete node guest`",
    ),
    (
        spoilers.no_route,
        W5,
        "VM listed Ready - ",
        "the load balancer has no route to it",
        f"`sudo bash install_external_lb.sh add-worker {W5}=10.10.0.5`",
    ),
    (
        spoilers.route_to_nobody,
        "worker-10-10-0-8",
        "- - - routed ",
        "the load balancer routes to it, and there is no such VM",
        "`sudo bash install_external_lb.sh remove-worker worker-10-10-0-8`",
    ),
    (
        spoilers.route_elsewhere,
        W5,
        "VM listed Ready otheraddress ",
        "the load balancer sends its traffic to 10.10.0.66, not to 10.10.0.5",
        f"add-worker {W5}=10.10.0.5`",
    ),
    (
        spoilers.no_backend,
        CP,
        "VM listed Ready - ",
        "the load balancer has no route to its API server",
        "Heal the VNFC of the load balancer",
    ),
    (
        spoilers.backend_to_nobody,
        "control-plane-10-10-0-8",
        "- - - DOWN ",
        "the load balancer routes to it, and there is no such VM",
        "Heal the VNFC of the load balancer",
    ),
    (
        spoilers.backend_elsewhere,
        CP,
        "VM listed Ready otheraddress ",
        "the load balancer sends its traffic to 10.10.0.66, not to 10.10.0.4",
        "Heal the VNFC of the load balancer",
    ),
    (
        spoilers.backend_down,
        CP,
        "VM listed Ready DOWN ",
        "the load balancer finds its API server DOWN",
        "https://10.10.0.4:6443/readyz",
    ),
    (
        spoilers.rebuilt,
        W5,
        "newVM listed Ready routed ",
        "a new VM: Heat has the server server-new, the inventory server-5",
        JOIN,
    ),
    (
        spoilers.rebuilt_and_gone_from_the_cluster,
        W5,
        "newVM listed - routed ",
        "a new VM: Heat has the server server-new, the inventory server-5",
        JOIN,
    ),
    (
        spoilers.control_plane_rebuilt,
        CP,
        "newVM listed Ready UP ",
        "a new VM: Heat has the server server-new, the inventory server-4",
        "Heal the whole VNF",
    ),
    (spoilers.control_plane_gone, CP, "- listed Ready UP ", GONE, "Heal the whole VNF"),
    (
        spoilers.control_plane_added,
        "control-plane-10-10-0-6",
        "VM - - - ",
        "a VM of the control plane that is not in the inventory",
        "restore hosts.yaml",
    ),
    (
        spoilers.unfinished,
        W5,
        "unfinished listed Ready routed ",
        "Heat has not completed its VM: workerNode is UPDATE_FAILED",
        "Mend what `openstack stack failures list --long stack-7` shows",
    ),
    (
        spoilers.unfinished_for_unknown_reasons,
        W5,
        "unfinished listed Ready routed ",
        "Heat has not completed its VM: it is on its way",
        "Wait: Heat still works on it",
    ),
    (
        spoilers.unfinished_and_new,
        "VM server-8",
        "unfinished - - - ",
        "Heat has not completed its VM: workerNode is CREATE_IN_PROGRESS",
        "Wait: Heat still works on it",
    ),
    (
        spoilers.not_joined,
        W5,
        "VM notjoined Ready routed ",
        "its join was not seen to its end",
        JOIN,
    ),
    (
        spoilers.logins_moved,
        W5,
        "VM otheraddress Ready routed ",
        "logins are at 10.99.0.5 in Heat, at 10.99.0.66 in the inventory",
        "corrects the inventory",
    ),
    (
        spoilers.moved,
        W5,
        "VM otheraddress Ready routed ",
        "at 10.10.0.5 in Heat, at 10.10.0.66 in the inventory",
        "Heal its VNFC.",
    ),
    (
        spoilers.control_plane_moved,
        CP,
        "VM otheraddress Ready UP ",
        "at 10.10.0.4 in Heat, at 10.10.0.66 in the inventory",
        "Heal the whole VNF",
    ),
    (
        spoilers.balancer_never_set_up,
        BALANCER,
        "VM   notsetup our-vim",
        "never set up",
        "Heal its VNFC",
    ),
    (
        spoilers.balancer_at_another_port,
        BALANCER,
        "VM   APIat8443 our-vim",
        "the API is at port 8443, not at 6443",
        "Heal its VNFC",
    ),
    (
        spoilers.balancer_stopped,
        BALANCER,
        "VM   stopped our-vim",
        "HAProxy does not run",
        "systemctl status haproxy",
    ),
    (
        spoilers.balancer_out_of_date,
        BALANCER,
        "VM   APIat6443 our-vim",
        "HAProxy runs with another configuration than recorded",
        "systemctl reload haproxy",
    ),
    (
        spoilers.balancer_not_enabled,
        BALANCER,
        "VM   APIat6443 our-vim",
        "HAProxy does not start with the VM",
        "systemctl enable haproxy",
    ),
    (
        spoilers.balancer_without_vm,
        BALANCER,
        "-   APIat6443 our-vim",
        "no complete VM in Heat",
        "Heal its VNFC",
    ),
    (
        spoilers.no_vim,
        BALANCER,
        "VM   APIat6443 -",
        "the cluster is no VIM in Tacker",
        "`retry` of an instantiation registers it",
    ),
    (
        spoilers.vim_elsewhere,
        BALANCER,
        "VM   APIat6443 our-vim",
        "the API is at https://10.99.0.9:6443, the VIM our-vim at "
        "https://10.99.0.77:6443",
        "Heal the whole VNF",
    ),
    (
        spoilers.vim_unnamed,
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
    assert report.sources(WITHOUT_BALANCER) == others
    assert report.sources(PARAMS) == COLUMNS


def test_an_empty_inventory_is_said_of_every_vm():
    scene = Scene()
    spoilers.no_inventory(scene)
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
