# SPDX-License-Identifier: Apache-2.0
"""A site whose VMs are found in what Heat lists, as Nova and Neutron have left it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.topology.heat_stack import Machines, find_machines
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.fakes.site import FakeSite
from tests.helpers.requests import BALANCER, params
from tests.helpers.samples import nested, vm

_PREFIX = {Role.CONTROL_PLANE: "m", Role.WORKER: "w", Role.LOAD_BALANCER: "lb"}


def unbound(resource: StackResource) -> StackResource:
    """A port that Nova did not create, when the server has been deleted.

    ``nova/network/neutron.py``, ``_unbind_ports``.
    """
    if "device_id" not in resource.attributes:
        return resource
    free = {**resource.attributes, "device_id": "", "device_owner": ""}
    return replace(resource, attributes=free)


def with_addresses(resource: StackResource, *addresses: str) -> StackResource:
    """A port with these fixed addresses, in Neutron's order.

    ``neutron/db/models_v2.py``, ``Port.fixed_ips``: ordered by ``ip_address``, a text.
    """
    fixed = [{"subnet_id": "s", "ip_address": address} for address in sorted(addresses)]
    return replace(resource, attributes={**resource.attributes, "fixed_ips": fixed})


class HeatSite(FakeSite):
    """A fake site with the driver's own search for the VMs.

    :ivar deleted: ids of servers that were deleted in Nova.
    :ivar addresses: of a server's port in the cluster, where it has others.
    :ivar lost_stacks: ids of servers for which Heat has a member and no stack.
    :ivar others: ids of servers of a VDU that is none of the cluster's.
    """

    def __init__(self, load_balancer: bool = True) -> None:
        super().__init__(load_balancer)
        self.deleted: set[str] = set()
        self.addresses: dict[str, tuple[str, ...]] = {}
        self.lost_stacks: set[str] = set()
        self.others: list[str] = []

    def machines(self) -> Machines:
        self.touch("machines")
        return find_machines("stack-of-the-vnf", self.resources(), _params(self))

    def resources(self) -> list[StackResource]:
        """What Heat lists."""
        found = [
            nested("top", f"{prefix}_group", "OS::Heat::AutoScalingGroup", prefix)
            for prefix in (*_PREFIX.values(), "gw")
        ]
        balancer = [self.load_balancer] if self.load_balancer else []
        for machine in [*self.control_planes, *self.workers, *balancer]:
            found += self._member(machine)
        for server in self.others:
            found.append(
                nested("gw", f"member-{server}", "gw.yaml", f"member-{server}")
            )
            found += vm(f"member-{server}", "gateway", server, {"gw_cp": "10.10.9.9"})
        return found

    def _member(self, machine: Machine) -> list[StackResource]:
        prefix, server = _PREFIX[machine.role], machine.server_id
        stack = f"member-{server}"
        if server in self.lost_stacks:
            kind, status = f"{prefix}.yaml", "CREATE_FAILED"
            return [StackResource(prefix, stack, kind, "", status)]
        ports = {f"{prefix}_ssh": machine.ssh_address, f"{prefix}_nic": machine.address}
        made = vm(stack, f"{prefix}_vdu", server, ports)
        if server in self.unfinished:
            made[1] = replace(made[1], status="CREATE_FAILED")
        if server in self.deleted:
            made = [unbound(resource) for resource in made]
        if more := self.addresses.get(server):
            made[2] = with_addresses(made[2], *more)
        return [nested(prefix, stack, f"{prefix}.yaml", stack), *made]


def _params(site: HeatSite) -> Any:
    """The sample request's, with the groups of this site."""
    node = {"username": "ubuntu", "password": "n0de-secret"}
    return params(
        master_node={
            "aspect_id": "m_group",
            "ssh_cp_name": "m_ssh",
            "nic_cp_name": "m_nic",
            **node,
        },
        worker_node={
            "aspect_id": "w_group",
            "ssh_cp_name": "w_ssh",
            "nic_cp_name": "w_nic",
            **node,
        },
        external_lb_param=BALANCER if site.load_balancer else None,
    )


def delete_in_nova(site: HeatSite, *servers: str) -> None:
    """``openstack server delete``, behind Heat."""
    site.deleted |= set(servers)
    for server in servers:
        site.kill(server)


def heat_rebuilds(site: HeatSite, servers: Collection[str]) -> None:
    """The new servers are on the same ports."""
    site.deleted -= set(servers)
    site.lost_stacks -= set(servers)
    for server in servers:
        if server in site.addresses:
            site.addresses[f"{server}-anew"] = site.addresses[server]
