# SPDX-License-Identifier: Apache-2.0
"""Stacks that do not fit the parameters, with everything that is wrong named."""

import pytest

from tests.helpers.heat_stacks import ASG, FLOATING_IP, SIMPLE, problems, with_changed
from tests.helpers.samples import REMOVED, nested, vm

MISFITS = [
    pytest.param(
        with_changed(SIMPLE, "masterNode_CP1", name="other"),
        {},
        ["master_node.ssh_cp_name: there is no masterNode_CP1 in the stack"],
        id="no-ssh-port",
    ),
    pytest.param(
        SIMPLE,
        {"worker_node.ssh_cp_name": "nope", "external_lb_param.ssh_cp_name": "missing"},
        [
            "worker_node.ssh_cp_name: there is no nope in the group worker_instance",
            "external_lb_param.ssh_cp_name: there is no missing in the stack",
        ],
        id="everything-missing-at-once",
    ),
    pytest.param(
        SIMPLE,
        {"worker_node.nic_cp_name": "nope"},
        ["worker_node.nic_cp_name: there is no nope beside workerNode_CP2"],
        id="no-nic-port-said-once-for-all-workers",
    ),
    pytest.param(
        with_changed(
            SIMPLE,
            "masterNode_CP2",
            type=FLOATING_IP,
            attributes={"floating_ip_address": "1.2.3.4", "port_id": None},
        ),
        {},
        [
            "master_node.nic_cp_name: the floating IP masterNode_CP2 belongs to no "
            "port of the stack; name the VM's port in nic_cp_name"
        ],
        id="floating-ip-of-nothing",
    ),
    pytest.param(
        with_changed(
            SIMPLE,
            "externalLB_CP1",
            type=FLOATING_IP,
            attributes={"floating_ip_address": "1.2.3.4", "port_id": "elsewhere"},
        ),
        {"external_lb_param.nic_cp_name": REMOVED},
        [
            "external_lb_param.ssh_cp_name: the floating IP externalLB_CP1 belongs to "
            "no port of the stack; name the VM's port in nic_cp_name"
        ],
        id="floating-ip-of-a-port-elsewhere",
    ),
    pytest.param(
        with_changed(SIMPLE, "masterNode_CP1", type="OS::Nova::Server"),
        {},
        [
            "master_node.ssh_cp_name: masterNode_CP1 is an OS::Nova::Server, not a "
            "port or floating IP"
        ],
        id="not-a-port",
    ),
    pytest.param(
        with_changed(SIMPLE, "masterNode_CP2", attributes={"device_id": "m1"}),
        {},
        [
            "master_node.nic_cp_name: masterNode_CP2 has no ipv4 address; "
            "address_family is ipv4"
        ],
        id="no-address",
    ),
    pytest.param(
        with_changed(SIMPLE, "masterNode_CP1", type=FLOATING_IP, attributes={}),
        {},
        ["master_node.ssh_cp_name: masterNode_CP1 has no address"],
        id="no-floating-address",
    ),
    pytest.param(
        with_changed(SIMPLE, "masterNode_CP2", attributes={"device_id": ""}),
        {},
        ["master_node.nic_cp_name: the port masterNode_CP2 is not attached to a VM"],
        id="not-attached",
    ),
    pytest.param(
        SIMPLE,
        {"master_node.nic_cp_name": "externalLB_CP2"},
        [
            "master_node.nic_cp_name: externalLB_CP2 belongs to another VM than "
            "masterNode_CP1"
        ],
        id="ports-of-two-vms",
    ),
    pytest.param(
        with_changed(SIMPLE, "masterNode", status="CREATE_FAILED"),
        {},
        [
            "master_node.ssh_cp_name: no VM in the stack is complete, masterNode is "
            "CREATE_FAILED"
        ],
        id="control-plane-failed",
    ),
    pytest.param(
        SIMPLE,
        {
            "external_lb_param.ssh_cp_name": "masterNode_CP1",
            "external_lb_param.nic_cp_name": REMOVED,
        },
        ["the VM m1 was found for 2 roles; name its ports once"],
        id="one-vm-two-roles",
    ),
    pytest.param(
        [
            *SIMPLE,
            nested("top", "more", ASG, "more"),
            *vm(
                "more",
                "m",
                "m2",
                {"masterNode_CP1": "10.99.0.12", "masterNode_CP2": "10.10.0.6"},
            ),
            *vm(
                "more",
                "l",
                "l2",
                {"externalLB_CP1": "10.99.0.13", "externalLB_CP2": "10.10.0.8"},
            ),
        ],
        {},
        [
            "master_node.ssh_cp_name: there are 2 VMs; etcd wants an odd number of "
            "them",
            "external_lb_param.ssh_cp_name: there are 2 VMs; one load balancer is "
            "supported",
        ],
        id="too-many",
    ),
]


@pytest.mark.parametrize(("resources", "changes", "expected"), MISFITS)
def test_what_does_not_fit_is_named(resources, changes, expected):
    assert list(problems(resources, changes)) == expected


def test_an_empty_stack_names_every_role():
    assert len(problems([])) == 3
