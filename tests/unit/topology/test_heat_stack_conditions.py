# SPDX-License-Identifier: Apache-2.0
"""VMs that Heat calls complete and that Nova or Neutron have changed.

None of it is a fault of the request: such a VM cannot be used, and all others can.
"""

import dataclasses

import pytest

from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.fakes.heat_site import unbound, with_addresses
from tests.helpers.heat_stacks import (
    ASG,
    BALANCER,
    FLOATING_IP,
    MASTER,
    find,
    worker,
    workers_group,
    workers_of,
)
from tests.helpers.samples import REMOVED, nested, vm


def changed(resources, change, name=""):
    return [
        change(one) if "CP" in one.name and one.name.endswith(name) else one
        for one in resources
    ]


def without_addresses(port):
    return with_addresses(port)


def of_ipv6(port):
    return with_addresses(port, "fd00::5")


def of_pods(port):
    return with_addresses(port, "10.233.64.5")


def unknown(port):
    """What Heat lists of a port that was deleted in Neutron."""
    return dataclasses.replace(port, attributes={})


CONDITIONS = {
    "server deleted in Nova": (unbound, "", "is not attached to a VM"),
    "port deleted in Neutron": (unknown, "", "is not attached to a VM"),
    "one port detached": (unbound, "CP1", ""),
    "the other port detached": (unbound, "CP2", ""),
    "no address": (without_addresses, "", "has no"),
    "address of the other family": (of_ipv6, "", "no ipv4 address, only ipv6"),
    "address of a pod": (of_pods, "", "which is in 10.233.64.0/18"),
}
VMS = {
    "control plane": (MASTER, Role.CONTROL_PLANE, "m1"),
    "load balancer": (BALANCER, Role.LOAD_BALANCER, "lb"),
    "worker": (worker(21, "w-a"), Role.WORKER, "w21"),
}


@pytest.mark.parametrize("which", VMS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_all_others_are_found(which, condition):
    change, port, text = CONDITIONS[condition]
    broken, role, server = VMS[which]
    parts = {name: resources for name, (resources, _, _) in VMS.items()}
    parts[which] = changed(broken, change, port)
    group = workers_group(parts["worker"], worker(22, "w-b"))
    found = find([*parts["control plane"], *parts["load balancer"], *group])
    (vm_now,) = found.unfinished
    assert (vm_now.role, vm_now.server_id, vm_now.lacks) == (role, server, True)
    assert text in vm_now.state
    assert len(found.control_planes) == (which != "control plane")
    assert (found.load_balancer is None) == (which == "load balancer")
    expected = ["w22"] if which == "worker" else ["w21", "w22"]
    assert [one.server_id for one in workers_of(found)] == expected
    assert found.unnamed == ()
    # Of such VMs no cluster is built.
    with pytest.raises(DiscoveryError, match="stack top"):
        found.require_whole()


def test_a_stack_that_is_whole_has_no_problem():
    found = find([*MASTER, *BALANCER, *workers_group(worker(21, "a"))])
    assert (found.unfinished, found.problems) == ((), ())
    found.require_whole()


class TestFloatingIPs:
    """The only name of a worker is that of its floating IP."""

    NAMED = {
        "worker_node.ssh_cp_name": "workerNode_FIP",
        "worker_node.nic_cp_name": REMOVED,
    }

    def stack(self, *port_ids):
        members = []
        for number, port_id in enumerate(port_ids, 21):
            stack_id = f"w-{number}"
            attributes = {"floating_ip_address": f"203.0.113.{number}"}
            fip = StackResource(
                stack_id,
                "workerNode_FIP",
                FLOATING_IP,
                f"fip-{number}",
                "CREATE_COMPLETE",
                attributes={**attributes, "port_id": port_id},
            )
            members.append([*worker(number, stack_id), fip])
        return [*MASTER, *BALANCER, *workers_group(*members)]

    def test_one_that_was_taken_away(self):
        found = find(self.stack(None, "port-workerNode_CP1-w22"), self.NAMED)
        assert [one.server_id for one in workers_of(found)] == ["w22"]
        (lost,) = found.unfinished
        assert "belongs to no port" in lost.state

    def test_the_only_ones(self):
        assert len(find(self.stack(None, None), self.NAMED).unfinished) == 2


def plane(n, stack):
    addresses = {"masterNode_CP1": f"10.99.0.1{n}", "masterNode_CP2": f"10.10.0.1{n}"}
    return vm(stack, "masterNode", f"m{n}", addresses)


FAILED = "CREATE_FAILED"
THIRD = {
    "server failed": (
        [
            nested("masters", "z", "file:///master.yaml", "c", FAILED),
            *[r for r in plane(3, "c") if r.name != "masterNode"],
            StackResource("c", "masterNode", "OS::Nova::Server", "", FAILED),
        ],
        "z is CREATE_FAILED",
    ),
    # Heat did not come as far as to the nested stack: a time-out between its engines,
    # a quota of stacks, an error of Keystone.
    "no nested stack": (
        [StackResource("masters", "z", "file:///master.yaml", "", FAILED)],
        "z is CREATE_FAILED",
    ),
    "nested stack is empty": (
        [nested("masters", "z", "file:///master.yaml", "c", FAILED)],
        "z is CREATE_FAILED",
    ),
    "nested stack is complete and empty": (
        [nested("masters", "z", "file:///master.yaml", "c")],
        "z has no resources",
    ),
    "member is being deleted": (
        [nested("masters", "z", "file:///master.yaml", "c", "DELETE_IN_PROGRESS")],
        "",
    ),
    "member is gone": ([], ""),
}


@pytest.mark.parametrize("aspect", ["master_instance", REMOVED])
@pytest.mark.parametrize("how", THIRD)
def test_two_control_planes_of_three_are_found(how, aspect):
    third, state = THIRD[how]
    stack = [
        *BALANCER,
        *workers_group(worker(21, "w-a")),
        nested("top", "master_instance", ASG, "masters"),
        nested("masters", "x", "file:///master.yaml", "a"),
        *plane(1, "a"),
        nested("masters", "y", "file:///master.yaml", "b"),
        *plane(2, "b"),
        *third,
    ]
    found = find(stack, {"master_node.aspect_id": aspect})
    assert [one.server_id for one in found.control_planes] == ["m1", "m2"]
    # Which member is a control plane, only its group says.
    known = (
        [state] if state and (aspect is not REMOVED or how == "server failed") else []
    )
    assert [vm.state for vm in found.unfinished] == known
    # For a new cluster two are an even number, or one of three is missing.
    with pytest.raises(DiscoveryError, match=r"odd number|not every VM"):
        found.require_whole()


def test_a_group_of_workers_whose_only_member_heat_has_not_begun():
    group = nested("top", "worker_instance", ASG, "asg")
    member = StackResource("asg", "m", "file:///worker.yaml", "", FAILED)
    found = find([*MASTER, *BALANCER, group, member])
    assert workers_of(found) == ()
    assert [vm.state for vm in found.unfinished] == ["m is CREATE_FAILED"]


class TestNames:
    """What every VM of a role lacks is wrong in the request, whenever it is read."""

    @pytest.mark.parametrize(
        ("attribute", "name"),
        [
            ("worker_node.ssh_cp_name", "nope"),
            ("worker_node.nic_cp_name", "nope"),
            ("worker_node.nic_cp_name", "workerNode"),
            ("master_node.nic_cp_name", "externalLB_CP2"),
        ],
    )
    def test_of_all_vms(self, attribute, name):
        group = workers_group(worker(21, "w-a"), worker(22, "w-b"))
        with pytest.raises(DiscoveryError, match=attribute):
            find([*MASTER, *BALANCER, *group], {attribute: name})

    def test_of_one_vm(self):
        """Its template is another one, such as after a change of package."""
        other = [
            dataclasses.replace(one, name="workerNode_other")
            if one.name == "workerNode_CP1"
            else one
            for one in worker(21, "w-a")
        ]
        found = find([*MASTER, *BALANCER, *workers_group(other, worker(22, "w-b"))])
        assert [one.server_id for one in workers_of(found)] == ["w22"]
        (lacking,) = found.unfinished
        assert lacking.state == "there is no workerNode_CP1 beside workerNode_CP2"


@pytest.mark.parametrize("more", ["10.10.0.100", "10.10.0.3", "fd00::1", "10.233.64.9"])
def test_all_addresses_of_a_port_are_known(more):
    """But those that pods and services have."""
    stack = [
        with_addresses(one, "10.10.0.5", more) if one.name == "masterNode_CP2" else one
        for one in MASTER
    ]
    found = find([*stack, *BALANCER, *workers_group(worker(21, "a"))])
    (leader,) = found.control_planes
    usual = {"10.10.0.5"} | ({more} if more.startswith("10.10.") else set())
    assert set(leader.addresses) == usual
    assert leader.address == min(usual)
