# SPDX-License-Identifier: Apache-2.0
"""The VMs of a cluster, found in its Heat stack."""

import dataclasses

import pytest

from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.topology.heat_stack import Unfinished
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.heat_stacks import (
    ASG,
    BALANCER,
    BOTH_WORKERS,
    FLOATING_IP,
    MASTER,
    RESOURCE_GROUP,
    SIMPLE,
    find,
    problems,
    with_changed,
    worker,
    workers_group,
    workers_of,
)
from tests.helpers.samples import REMOVED, nested, port, vm


def test_the_simple_package_is_one_control_plane_two_workers_and_a_load_balancer():
    machines = find(SIMPLE)
    assert machines.control_planes == (
        Machine(Role.CONTROL_PLANE, "m1", "10.99.0.11", "10.10.0.5"),
    )
    assert workers_of(machines) == BOTH_WORKERS
    assert machines.load_balancer == Machine(
        Role.LOAD_BALANCER, "lb", "10.99.0.19", "10.10.0.9"
    )


SPECIFIED = "externalLB_instance"
NAMES = ("external_lb_param.ssh_cp_name", "external_lb_param.nic_cp_name")


class TestTheSpecificationsNameOfTheBalancersPort:
    def test_stands_for_the_port(self):
        alone = {
            "external_lb_param.ssh_cp_name": SPECIFIED,
            "external_lb_param.nic_cp_name": REMOVED,
        }
        assert find(SIMPLE, alone).load_balancer == Machine(
            Role.LOAD_BALANCER, "lb", "10.99.0.19", "10.99.0.19"
        )

    def test_also_beside_another_port_or_as_that(self):
        for names, address in (
            ((SPECIFIED, "externalLB_CP2"), "10.10.0.9"),
            ((SPECIFIED, SPECIFIED), "10.99.0.19"),
        ):
            changes = dict(zip(NAMES, names, strict=True))
            assert find(SIMPLE, changes).load_balancer == Machine(
                Role.LOAD_BALANCER, "lb", "10.99.0.19", address
            )

    def test_is_a_resource_where_the_stack_has_it(self):
        own = port("top", SPECIFIED, "lb", "10.99.0.77")
        found = find([*SIMPLE, own], {NAMES[0]: SPECIFIED}).load_balancer
        assert found.ssh_address == "10.99.0.77"

    def test_is_missing_in_a_stack_with_neither(self):
        other = with_changed(SIMPLE, "externalLB_CP1", name="outer")
        assert problems(other, {NAMES[0]: SPECIFIED}) == (
            f"{NAMES[0]}: there is no {SPECIFIED} in the stack",
        )

    def test_is_that_of_the_load_balancer_alone(self):
        (problem,) = problems(SIMPLE, {"master_node.ssh_cp_name": SPECIFIED})
        assert problem.startswith(f"master_node.ssh_cp_name: there is no {SPECIFIED}")


LAYOUTS = [
    pytest.param(workers_group(worker(21, "a"), worker(22, "b")), {}, id="autoscaling"),
    pytest.param(
        workers_group(worker(21, "a"), worker(22, "b"), kind=RESOURCE_GROUP),
        {},
        id="resource-group",
    ),
    pytest.param(
        [
            nested("top", "wrapper", "file:///wrap.yaml", "wrap"),
            nested("wrap", "worker_instance", ASG, "asg"),
            nested("asg", "x", "file:///worker.yaml", "member"),
            nested("member", "vdu", "file:///vdu.yaml", "vdu-a"),
            *worker(21, "vdu-a"),
            nested("asg", "y", "file:///worker.yaml", "member2"),
            *worker(22, "member2"),
        ],
        {},
        id="deeply-nested",
    ),
    pytest.param(
        workers_group(worker(21, "a"), worker(22, "b")),
        {"worker_node.aspect_id": "no_such_group"},
        id="aspect-names-nothing",
    ),
    pytest.param(
        workers_group(worker(21, "a"), worker(22, "b")),
        {"worker_node.aspect_id": REMOVED},
        id="no-aspect",
    ),
]


@pytest.mark.parametrize(("workers", "changes"), LAYOUTS)
def test_workers_are_found_in_every_layout(workers, changes):
    assert workers_of(find([*MASTER, *BALANCER, *workers], changes)) == BOTH_WORKERS


def test_a_single_worker_in_the_top_stack_is_found():
    machines = find([*MASTER, *BALANCER, *worker(21, "top")])
    assert workers_of(machines) == BOTH_WORKERS[:1]


def test_only_the_group_is_searched_when_it_exists():
    stray = [nested("top", "other", ASG, "other"), *worker(23, "other")]
    assert workers_of(find([*SIMPLE, *stray])) == BOTH_WORKERS


def test_a_group_without_members_has_no_workers():
    assert workers_of(find([*MASTER, *BALANCER, *workers_group()])) == ()


@pytest.mark.parametrize("part", ["workerNode", "workerNode_CP1"])
def test_a_group_whose_only_member_failed_can_be_repaired(part):
    failed = with_changed(worker(21, "a"), part, status="CREATE_FAILED")
    found = find([*MASTER, *BALANCER, *workers_group(failed)])
    assert workers_of(found) == ()
    state = f"{part} is CREATE_FAILED"
    assert found.unfinished == (Unfinished(Role.WORKER, "w21", state),)


def test_without_load_balancer_parameters_none_is_looked_for():
    assert find(SIMPLE, {"external_lb_param": REMOVED}).load_balancer is None


def test_the_load_balancers_cluster_address_defaults_to_its_ssh_address():
    machines = find(SIMPLE, {"external_lb_param.nic_cp_name": REMOVED})
    assert machines.load_balancer.address == "10.99.0.19"


class TestAddresses:
    def test_ipv4_is_taken_wherever_it_stands(self):
        dual = port("top", "masterNode_CP2", "m1", "fd00::5", "10.10.0.5")
        machines = find(
            with_changed(SIMPLE, "masterNode_CP2", attributes=dual.attributes)
        )
        assert machines.control_planes[0].address == "10.10.0.5"

    def test_without_ipv4_the_attribute_that_asks_for_ipv6_is_named(self):
        only6 = port("top", "masterNode_CP2", "m1", "fd00::5", "fd00::6")
        stack = with_changed(SIMPLE, "masterNode_CP2", attributes=only6.attributes)
        assert problems(stack) == (
            "master_node.nic_cp_name: masterNode_CP2 has no ipv4 address, only ipv6; "
            "address_family is ipv4",
        )

    def test_a_floating_ip_is_the_ssh_address_and_the_nic_port_identifies_the_server(
        self,
    ):
        floating = with_changed(
            SIMPLE,
            "masterNode_CP1",
            type=FLOATING_IP,
            attributes={"floating_ip_address": "203.0.113.5"},
        )
        assert find(floating).control_planes == (
            Machine(Role.CONTROL_PLANE, "m1", "203.0.113.5", "10.10.0.5"),
        )


def floating(stack_id, name, port_name, server, address):
    """A floating IP as Heat describes it, in front of a port of :func:`vm`."""
    attributes = {
        "id": f"fip-{server}",
        "status": "ACTIVE",
        "port_id": f"port-{port_name}-{server}",
        "fixed_ip_address": "10.10.0.99",
        "floating_ip_address": address,
        "floating_network_id": "public",
        "router_id": "router",
    }
    done = "CREATE_COMPLETE"
    return StackResource(
        stack_id, name, FLOATING_IP, f"fip-{server}", done, "", attributes
    )


class TestFloatingIPs:
    """A floating IP is named, and no port beside it."""

    def stack(self, **changes):
        """As :data:`SIMPLE`, with one port on each VM and a floating IP before it."""
        workers = []
        for number, inner in ((21, "w-a"), (22, "w-b")):
            cp, server, address = "workerNode_CP", f"w{number}", f"10.10.0.{number}"
            workers.append(
                [
                    *vm(inner, "workerNode", server, {cp: address}),
                    floating(inner, "workerNode_FIP", cp, server, f"10.99.0.{number}"),
                ]
            )
        return [
            *vm("top", "masterNode", "m1", {"masterNode_CP": "10.10.0.5"}),
            floating("top", "masterNode_FIP", "masterNode_CP", "m1", "10.99.0.11"),
            *vm("top", "externalLB", "lb", {"externalLB_CP": "10.10.0.9"}),
            floating("top", "externalLB_FIP", "externalLB_CP", "lb", "10.99.0.19"),
            *workers_group(*workers),
        ]

    NAMED = {
        "master_node.ssh_cp_name": "masterNode_FIP",
        "master_node.nic_cp_name": REMOVED,
        "worker_node.ssh_cp_name": "workerNode_FIP",
        "worker_node.nic_cp_name": REMOVED,
        "external_lb_param.ssh_cp_name": "externalLB_FIP",
        "external_lb_param.nic_cp_name": REMOVED,
    }

    def test_the_address_on_the_vm_is_that_of_the_port_behind_it(self):
        found, usual = find(self.stack(), self.NAMED), find(SIMPLE)
        assert found.control_planes == usual.control_planes
        assert workers_of(found) == BOTH_WORKERS
        assert found.load_balancer == usual.load_balancer

    def test_a_port_that_is_named_beside_it_is_taken(self):
        extra = [*self.stack(), port("top", "second", "m1", "10.10.7.7")]
        changes = {**self.NAMED, "master_node.nic_cp_name": "second"}
        assert find(extra, changes).control_planes[0].address == "10.10.7.7"

    def test_one_in_the_place_of_the_port_stands_for_it(self):
        changes = {**self.NAMED, "master_node.nic_cp_name": "masterNode_FIP"}
        assert find(self.stack(), changes).control_planes[0].address == "10.10.0.5"

    def test_an_aspect_of_its_own_may_name_it_too(self):
        aspect = {"aspect_id": "worker_instance", "ssh_cp_name": "workerNode_FIP"}
        changes = {**self.NAMED, "worker_node.aspects": [aspect]}
        changes["worker_node.ssh_cp_name"] = "nothing"
        workers = workers_of(find(self.stack(), changes))
        assert [one.address for one in workers] == ["10.10.0.21", "10.10.0.22"]

    def test_a_vm_whose_server_failed_is_unfinished(self):
        failed = [
            dataclasses.replace(one, status="CREATE_FAILED")
            if one.physical_id == "w21"
            else one
            for one in self.stack()
        ]
        found = find(failed, self.NAMED)
        assert [one.server_id for one in workers_of(found)] == ["w22"]
        state = "workerNode is CREATE_FAILED"
        assert found.unfinished == (Unfinished(Role.WORKER, "w21", state),)

    def test_its_port_has_an_address_of_the_other_family_only(self):
        only6 = port("", "", "lb", "fd00::9").attributes
        stack = with_changed(self.stack(), "externalLB_CP", attributes=only6)
        assert problems(stack, self.NAMED) == (
            "external_lb_param.ssh_cp_name: externalLB_CP has no ipv4 address, only "
            "ipv6; address_family is ipv4",
        )


class TestIPv6:
    ASKED = {
        "address_family": "ipv6",
        "master_node.pod_cidr": REMOVED,
        "master_node.cluster_cidr": REMOVED,
        "external_lb_param": REMOVED,
    }

    def leader(self, ssh, nic):
        stack = with_changed(SIMPLE, "masterNode_CP1", attributes=ssh)
        for name, attributes in (
            ("masterNode_CP2", nic),
            ("workerNode_CP1", port("", "", "w21", "fd00::21").attributes),
        ):
            stack = with_changed(stack, name, attributes=attributes)
        stack = [part for part in stack if part.stack_id != "w-b"]
        (leader,) = find(stack, self.ASKED).control_planes
        return leader.ssh_address, leader.address

    def test_it_is_taken_on_both_ports_wherever_it_stands(self):
        ssh = port("", "", "m1", "10.99.0.11", "2001:db8::11").attributes
        nic = port("", "", "m1", "10.10.0.5", "fd00::5").attributes
        assert self.leader(ssh, nic) == ("2001:db8::11", "fd00::5")

    def test_logins_take_ipv4_where_their_port_has_nothing_else(self):
        ssh = port("", "", "m1", "10.99.0.11").attributes
        nic = port("", "", "m1", "fd00::5").attributes
        assert self.leader(ssh, nic) == ("10.99.0.11", "fd00::5")

    def test_a_port_without_it_is_named(self):
        (problem, *_) = problems(SIMPLE, self.ASKED)
        assert problem == (
            "master_node.nic_cp_name: masterNode_CP2 has no ipv6 address, only ipv4; "
            "address_family is ipv6"
        )


class TestServersThatNobodyNamed:
    def test_there_are_none_in_the_simple_package(self):
        assert find(SIMPLE).unnamed == ()

    def test_a_second_worker_with_ports_of_its_own_does_not_go_unseen(self):
        second = vm("top", "workerNode2", "w2", {"workerNode2_CP1": "10.10.0.30"})
        assert find([*SIMPLE, *second]).unnamed == ("workerNode2",)

    def test_a_vm_of_a_role_that_heat_still_works_at_is_known(self):
        late = with_changed(SIMPLE, "member0", status="UPDATE_IN_PROGRESS")
        assert find(late).unnamed == ()

    def test_those_that_are_not_complete_do_not_count(self):
        gone = vm("top", "old", "o", {}, status="DELETE_COMPLETE")
        assert find([*SIMPLE, *gone]).unnamed == ()


class TestNodesInTheClustersNetworks:
    def test_one_in_the_pods_network_is_named(self):
        assert problems(SIMPLE, {"master_node.pod_cidr": "10.10.0.16/28"}) == (
            "master_node.pod_cidr: the VM w21 has the address 10.10.0.21, which is in "
            "10.10.0.16/28",
            "master_node.pod_cidr: the VM w22 has the address 10.10.0.22, which is in "
            "10.10.0.16/28",
        )

    def test_one_in_the_default_services_network_is_named(self):
        moved = port("", "", "m1", "10.233.0.5").attributes
        stack = with_changed(SIMPLE, "masterNode_CP2", attributes=moved)
        (problem,) = problems(stack, {"master_node.cluster_cidr": REMOVED})
        assert problem.startswith("master_node.cluster_cidr: the VM m1 has")


class TestVmsInTransition:
    @pytest.mark.parametrize(
        "status",
        ["CREATE_COMPLETE", "UPDATE_COMPLETE", "CHECK_COMPLETE", "RESUME_COMPLETE"],
    )
    def test_complete_vms_count(self, status):
        members = workers_group(worker(21, "a", status=status))
        assert len(workers_of(find([*MASTER, *BALANCER, *members]))) == 1

    @pytest.mark.parametrize(
        "status",
        ["CREATE_FAILED", "CREATE_IN_PROGRESS", "CHECK_FAILED", "DELETE_COMPLETE"],
    )
    @pytest.mark.parametrize("part", ["workerNode", "workerNode_CP1", "workerNode_CP2"])
    def test_vms_with_an_unfinished_part_are_left_out(self, part, status):
        unfinished = with_changed(worker(21, "a"), part, status=status)
        members = workers_group(unfinished, worker(22, "b"))
        found = find([*MASTER, *BALANCER, *members])
        assert workers_of(found) == BOTH_WORKERS[1:]
        state = f"{part} is {status}"
        assert found.unfinished == (Unfinished(Role.WORKER, "w21", state),)
        assert found.unnamed == ()

    def test_vms_without_a_server_yet_are_listed_too(self):
        growing = [port("a", "workerNode_CP2", "", status="CREATE_IN_PROGRESS")]
        members = workers_group(growing, worker(22, "b"))
        (told,) = find([*MASTER, *BALANCER, *members]).unfinished
        assert told.server_id == ""
        assert told.state == "workerNode_CP2 is CREATE_IN_PROGRESS"

    def test_members_that_are_being_deleted_are_left_out(self):
        leaving = with_changed(SIMPLE, "member0", status="DELETE_IN_PROGRESS")
        assert workers_of(find(leaving)) == BOTH_WORKERS[1:]

    @pytest.mark.parametrize(
        ("changed", "expected"),
        [({}, []), ({"member0": "CHECK_FAILED"}, ["member0"])],
    )
    def test_nested_stacks_that_are_built_again(self, changed, expected):
        """Not those of which only a resource is; nor those that have failed."""
        stack = with_changed(SIMPLE, "member1", status="UPDATE_FAILED")
        stack = with_changed(stack, "workerNode", status="CHECK_FAILED")
        for name, status in changed.items():
            stack = with_changed(stack, name, status=status)
        found = find(stack)
        assert [one.name for one in found.unhealthy_stacks] == expected
        assert all(
            one.nested_stack_id in found.places["w21"] for one in found.unhealthy_stacks
        )

    def test_a_group_that_failed_to_grow_keeps_its_good_members(self):
        members = workers_group(
            worker(21, "a"), worker(22, "b"), status="UPDATE_FAILED"
        )
        assert workers_of(find([*MASTER, *BALANCER, *members])) == BOTH_WORKERS


class TestComputeHosts:
    ASKED = {"worker_node.compute_host_label": "CIS-node"}

    @pytest.mark.parametrize(
        ("attributes", "expected"),
        [
            ({"OS-EXT-SRV-ATTR:host": "compute-1", "hostId": "abc"}, "compute-1"),
            ({"OS-EXT-SRV-ATTR:host": None, "hostId": "abc"}, "abc"),
            ({"hostId": "abc"}, "abc"),
            ({"OS-EXT-SRV-ATTR:host": "no label/at all", "hostId": "abc"}, "abc"),
        ],
    )
    def test_the_name_is_taken_and_else_the_id(self, attributes, expected):
        told = with_changed(SIMPLE, "workerNode", attributes=attributes)
        found = find(told, self.ASKED)
        assert [one.compute_host for one in workers_of(found)] == [expected] * 2
        assert found.control_planes[0].compute_host == ""

    @pytest.mark.parametrize("attributes", [{}, {"hostId": ""}])
    def test_what_nova_does_not_report_is_unknown(self, attributes):
        told = with_changed(SIMPLE, "workerNode", attributes=attributes)
        assert {one.compute_host for one in workers_of(find(told, self.ASKED))} == {""}

    def test_control_planes_are_asked_for_by_themselves(self):
        told = with_changed(SIMPLE, "masterNode", attributes={"hostId": "abc"})
        found = find(told, {"master_node.compute_host_label": "CIS-node"})
        assert found.control_planes[0].compute_host == "abc"
        assert {one.compute_host for one in workers_of(found)} == {""}
