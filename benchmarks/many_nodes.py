# SPDX-License-Identifier: Apache-2.0
"""Operations on fakes with hundreds of nodes: what our own decisions cost.

The site is the unit tests' one. Its stack is read as a real one is, from listings of
Heat's resources, so that the calls and the work on their answers are measured as well.
Nothing waits: time passes only where this project, or its fakes, compute.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from benchmarks import figures
from benchmarks.figures import OperationFigures
from tacker_k8s_mgmt.config import Limits
from tacker_k8s_mgmt.journal import Journal
from tacker_k8s_mgmt.model.nodes import Machine, Role
from tacker_k8s_mgmt.model.timeline import Timeline
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.scale import ScaleIn, ScaleOut
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Runner
from tacker_k8s_mgmt.remote import heat
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.text import Redactor
from tacker_k8s_mgmt.topology import heat_stack
from tacker_k8s_mgmt.topology.heat_stack import Machines
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite
from tests.helpers.requests import VNF, params

TOP = "stack"
GROUP = "group"
#: Control planes and workers of the cases.
SIZES = ((1, 2), (3, 500))
_NAMES = {
    Role.CONTROL_PLANE: ("m_ssh", "m_nic"),
    Role.WORKER: ("w_ssh", "w_nic"),
    Role.LOAD_BALANCER: ("lb_ssh", "lb_nic"),
}


class Heat:
    """Heat's resource API for these VMs, each but the load balancer in a stack."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self.calls = 0
        self._items = [
            _item(GROUP, "OS::Heat::AutoScalingGroup", TOP, GROUP, nested=GROUP)
        ]
        for machine in machines:
            self._add(machine)
        for number, item in enumerate(self._items):
            item.creation_time = f"{number:08}"  # sorts as Heat's times do

    def _add(self, machine: Machine) -> None:
        place = TOP
        if machine.role is not Role.LOAD_BALANCER:
            place = f"member-{machine.server_id}"
            around = GROUP if machine.role is Role.WORKER else TOP
            self._items.append(_item(place, "Member", around, place, nested=place))
        self._items.append(_item("vm", "OS::Nova::Server", place, machine.server_id))
        addresses = (machine.ssh_address, machine.address)
        for name, address in zip(_NAMES[machine.role], addresses, strict=True):
            given = {
                "fixed_ips": [{"ip_address": address}],
                "device_id": machine.server_id,
            }
            port = f"{name}-{machine.server_id}"
            self._items.append(
                _item(name, "OS::Neutron::Port", place, port, attributes=given)
            )

    def list(self, stack_id: str, **kwargs: Any) -> list[Any]:
        """As heatclient's; a type is a part of a name."""
        self.calls += 1
        return [
            item for item in self._items if kwargs.get("type", "") in item.resource_type
        ]

    def get(self, stack_id: str, resource_name: str) -> Any:
        """As heatclient's."""
        self.calls += 1
        return next(item for item in self._items if item.resource_name == resource_name)


def _item(
    name: str,
    kind: str,
    place: str,
    physical: str,
    nested: str = "",
    attributes: dict[str, Any] | None = None,
) -> Any:
    links = [{"rel": "stack", "href": f"http://heat/stacks/{place}/{place}"}]
    if nested:
        links.append({"rel": "nested", "href": f"http://heat/stacks/{nested}/{nested}"})
    return SimpleNamespace(
        resource_name=name,
        resource_type=kind,
        physical_resource_id=physical,
        resource_status="CREATE_COMPLETE",
        links=links,
        attributes=attributes or {},
    )


class ManyNodes(FakeSite):
    """The unit tests' site, with this many VMs and a stack that is read."""

    def __init__(self, control_planes: int, workers: int) -> None:
        super().__init__()
        self.heat_calls = 0
        self.control_planes = [
            machine(Role.CONTROL_PLANE, number) for number in range(control_planes)
        ]
        self.workers = [machine(Role.WORKER, number) for number in range(workers)]
        self.load_balancer = machine(Role.LOAD_BALANCER, 0)
        self._numbers = workers

    def machines(self) -> Machines:
        self.touch("machines")
        there = (*self.control_planes, *self.workers, self.load_balancer)
        api = Heat(one for one in there if one is not None)
        resources = heat.list_resources(api, TOP)
        self.heat_calls += api.calls
        return heat_stack.find_machines(TOP, resources, params())

    def grow(self, count: int) -> list[str]:
        """Add workers, as Heat does; their group members."""
        new = [machine(Role.WORKER, self._numbers + one) for one in range(count)]
        self._numbers += count
        self.workers += new
        return [f"member-{one.server_id}" for one in new]


def machine(role: Role, number: int) -> Machine:
    """A VM with this number in its addresses, one of up to 65536 of its role."""
    block = list(Role).index(role)
    tail = f"{number // 256}.{number % 256}"
    server = f"{role.value}-{number}"
    return Machine(role, server, f"172.{16 + block}.{tail}", f"10.{block}.{tail}")


class _Journal(Journal):
    """Records with the time, as a journal's reader gets them."""

    def __init__(self, hook: str) -> None:
        self._stamp = {"run": hook, "hook": hook, "api": "v1"}
        self.records: list[dict[str, Any]] = []

    def record(self, event: str, **fields: Any) -> None:
        stamped = {"time": time.time(), **self._stamp, "event": event, **fields}
        self.records.append(stamped)


def measure(control_planes: int, workers: int, runs: int) -> list[OperationFigures]:
    """The operations on fakes of that size."""
    found = []
    for _ in range(runs):
        site = ManyNodes(control_planes, workers)
        found.append(_operation("instantiate", site, "instantiate_end", Instantiate))
        for steps in (1, 10):
            stacks = site.grow(steps)
            # Tacker's v1 API announces those that Heat removes, the oldest.
            oldest = [f"member-{one.server_id}" for one in site.workers[:steps]]
            out, leave = (
                partial(ScaleOut, stacks=stacks),
                partial(ScaleIn, stacks=oldest),
            )
            found.append(_operation(f"scale out {steps}", site, "scale_end", out))
            found.append(_operation(f"scale in {steps}", site, "scale_start", leave))
            del site.workers[:steps]
        start = partial(HealStart, servers={site.workers[0].server_id: "vnfc"})
        first = _operation("heal 1", site, "heal_start", start)
        site.workers[0] = _rebuilt(site.workers[0])
        end = partial(HealEnd, servers={site.workers[0].server_id: "vnfc"})
        second = _operation("heal 1", site, "heal_end", end)
        both = (*first.hooks, *second.hooks)
        found.append(OperationFigures("heal 1", first.seconds + second.seconds, both))
    return found


def _rebuilt(one: Machine) -> Machine:
    return Machine(one.role, f"{one.server_id}-new", one.ssh_address, one.address)


def _operation(
    name: str, site: ManyNodes, hook: str, make: Callable[[OperationContext], Operation]
) -> OperationFigures:
    began = time.perf_counter()
    measured = _hook(hook, make, site)
    return OperationFigures(name, time.perf_counter() - began, (measured,))


def _hook(
    hook: str, make: Callable[[OperationContext], Operation], site: ManyNodes
) -> figures.HookFigures:
    request, journal = params(), _Journal(hook)
    deps = OperationContext(
        request,
        VNF,
        # The unit tests' fakes have what operations use of it, and no types.
        cast(Site, site),
        FakeClock(),
        Limits(ready_timeout=60, poll_interval=5),
        on_progress=lambda progress: None,
        features=site.features,
    )
    work = make(deps)
    heat_calls, calls = site.heat_calls, len(site.calls)
    redact = Redactor(request.secrets())
    runner = Runner(hook, journal, Clock(), redact, work.left)
    runner.run(work.steps())
    (operation,) = Timeline(journal.records).operations
    seen = Counter(call.split(".")[0].split()[0] for call in site.calls[calls:])
    answered = [operation.started] * (site.heat_calls - heat_calls)
    return figures.hook_figures(operation, answered=answered, calls=dict(seen))
