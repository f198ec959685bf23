# SPDX-License-Identifier: Apache-2.0
"""What the hooks of a heal leave for each other."""

import json
from dataclasses import replace

from tacker_k8s_mgmt.model.nodes import Machine, Node, Role
from tacker_k8s_mgmt.operations import records
from tacker_k8s_mgmt.operations.records import Healing
from tacker_k8s_mgmt.topology.heat_stack import Machines
from tacker_k8s_mgmt.topology.membership import compare


def plane(number: int, server: str = "") -> Node:
    return Node(
        name=f"control-plane-10-10-0-{number}",
        role=Role.CONTROL_PLANE,
        server_id=server or f"server-{number}",
        ssh_address=f"192.0.2.{number}",
        address=f"10.10.0.{number}",
        etcd_member_name=f"etcd{number}",
    )


ONE, TWO, THREE = plane(1), plane(2), plane(3)
SEEN = frozenset(node.name for node in (ONE, TWO, THREE))


def machines(*nodes: Node) -> Machines:
    found = tuple(
        Machine(one.role, one.server_id, one.ssh_address, one.address) for one in nodes
    )
    return Machines(
        found,
        places={one.server_id: frozenset({"top"}) for one in found},
    )


class TestFile:
    def test_what_is_written_is_read(self):
        told = Healing(("worker-1",), ("worker-2",), TWO, first=True)
        assert records.parse(told.text()) == told

    def test_none_is_an_empty_one(self):
        assert records.parse(None) == records.parse("{}\n") == Healing()
        assert json.loads(Healing().text()) == {}

    def test_what_an_earlier_release_has_written(self):
        text = json.dumps({"rebuilt": ["worker-1"], "not_ready": []})
        assert records.parse(text) == Healing(("worker-1",))

    def test_a_control_plane_that_is_out_outlives_the_heal(self):
        ended = Healing(("worker-1",), ("worker-2",), TWO).ended()
        assert ended == Healing(plane=TWO)


class TestMembership:
    """A control plane that a heal has begun to take out, in all its states."""

    def test_that_is_still_a_whole_member(self):
        nodes = (ONE, TWO, THREE)
        joined = {node.server_id for node in nodes}
        found = compare(machines(*nodes), nodes, joined, SEEN, out=[TWO])
        assert found.nodes == nodes
        assert found.returning == ()

    def test_whose_node_is_gone_and_that_is_listed_yet(self):
        nodes = (ONE, TWO, THREE)
        joined = {node.server_id for node in nodes}
        seen = SEEN - {TWO.name}
        found = compare(machines(*nodes), nodes, joined, seen, out=[TWO])
        assert found.nodes == (ONE, THREE)
        assert found.returning == (TWO,)

    def test_that_was_built_anew_and_keeps_its_names(self):
        anew = plane(2, "another")
        joined = {ONE.server_id, THREE.server_id}
        seen = SEEN - {TWO.name}
        there = machines(ONE, anew, THREE)
        found = compare(there, (ONE, THREE), joined, seen, out=[TWO])
        assert found.nodes == (ONE, THREE)
        assert found.returning == (anew,)
        assert found.added == found.lost == ()

    def test_whose_vm_is_not_there(self):
        joined = {ONE.server_id, THREE.server_id}
        there, seen = machines(ONE, THREE), SEEN - {TWO.name}
        found = compare(there, (ONE, THREE), joined, seen, out=[TWO])
        assert found.nodes == (ONE, THREE)
        assert found.returning == found.lost == ()

    def test_whose_vm_is_not_there_and_that_is_listed_yet(self):
        joined = {ONE.server_id, THREE.server_id}
        nodes = (ONE, THREE, TWO)
        found = compare(machines(ONE, THREE), nodes, joined, SEEN, out=[TWO])
        assert found.nodes == nodes
        assert found.lost == (TWO,)
        assert found.returning == ()

    def test_whose_vm_heat_does_not_call_complete_and_that_is_listed_yet(self):
        nodes = (ONE, TWO, THREE)
        joined = {node.server_id for node in nodes}
        there = replace(
            machines(ONE, THREE),
            places={node.server_id: frozenset({"top"}) for node in nodes},
        )
        found = compare(there, nodes, joined, SEEN, out=[TWO])
        assert found.nodes == nodes
        assert found.returning == found.lost == ()

    def test_another_one_is_still_none_of_ours(self):
        four = plane(4)
        joined = {ONE.server_id, THREE.server_id}
        found = compare(
            machines(ONE, THREE, four), (ONE, THREE), joined, SEEN, out=[TWO]
        )
        assert [node.name for node in found.added] == [four.name]
