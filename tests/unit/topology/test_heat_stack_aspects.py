# SPDX-License-Identifier: Apache-2.0
"""The workers of several scaling aspects."""

from tacker_k8s_mgmt.model.nodes import Machine, Role
from tests.helpers.heat_stacks import (
    ASG,
    BALANCER,
    BOTH_WORKERS,
    MASTER,
    SIMPLE,
    find,
    problems,
    worker,
    workers_group,
    workers_of,
)
from tests.helpers.samples import REMOVED, nested, vm

GPU = {"aspect_id": "gpu_instance", "ssh_cp_name": "gpu_CP2", "nic_cp_name": "gpu_CP1"}
OTHER_PORTS = {"gpu_CP1": "10.10.0.31", "gpu_CP2": "10.99.0.31"}


def gpu_group(*members, stack_id="top"):
    found = [nested(stack_id, "gpu_instance", ASG, "gpus")]
    for resources in members:
        inner = resources[0].stack_id
        found += [nested("gpus", f"member-{inner}", "file:///gpu.yaml", inner)]
        found += resources
    return found


class TestAspects:
    ALL = [
        *(*MASTER, *BALANCER, *workers_group(worker(21, "w-a"), worker(22, "w-b"))),
        *gpu_group(vm("g-a", "gpuNode", "g31", OTHER_PORTS)),
    ]

    def aspects(self, resources, aspects, **changes):
        given = {f"worker_node.{name}": value for name, value in changes.items()}
        return workers_of(find(resources, {**given, "worker_node.aspects": aspects}))

    def test_workers_are_those_of_all_of_them(self):
        assert self.aspects(self.ALL, [GPU]) == (
            *BOTH_WORKERS,
            Machine(Role.WORKER, "g31", "10.99.0.31", "10.10.0.31", "gpu_instance"),
        )

    def test_without_an_aspect_of_worker_node_theirs_are_all(self):
        (only,) = self.aspects(self.ALL, [GPU], aspect_id=REMOVED)
        assert only.server_id == "g31"

    def test_ports_are_named_as_worker_nodes_by_default(self):
        same = [
            *(*MASTER, *BALANCER, *workers_group(worker(21, "w-a"))),
            *gpu_group(worker(32, "g-b")),
        ]
        found = self.aspects(same, [{"aspect_id": "gpu_instance"}])
        assert [(one.server_id, one.aspect_id) for one in found] == [
            ("w21", ""),
            ("w32", "gpu_instance"),
        ]

    def test_a_vm_of_an_aspect_is_not_found_twice_where_the_stack_is_searched(self):
        same = [
            *(*MASTER, *BALANCER, *worker(21, "top")),
            *gpu_group(worker(32, "g-b")),
        ]
        found = self.aspects(
            same, [{"aspect_id": "gpu_instance"}], aspect_id="no_such_group"
        )
        assert [one.server_id for one in found] == ["w21", "w32"]

    def test_worker_nodes_own_aspect_may_be_among_them(self):
        found = self.aspects(SIMPLE, [{"aspect_id": "worker_instance"}])
        assert {one.aspect_id for one in found} == {"worker_instance"}
        assert len(found) == 2

    def test_one_of_which_all_are_scaled_in_is_right(self):
        empty = [*MASTER, *BALANCER, *workers_group(worker(21, "a")), *gpu_group()]
        assert len(self.aspects(empty, [GPU])) == 1

    def test_one_that_is_not_there_is_named(self):
        assert problems(SIMPLE, {"worker_node.aspects": [GPU]}) == (
            "worker_node.aspects.0.aspect_id: there is no group gpu_instance in the "
            "stack",
        )
