# SPDX-License-Identifier: Apache-2.0
"""Histories of one VNF instance, as a state machine of Hypothesis."""

import json
from collections.abc import Callable, Collection
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tests.helpers.model.course import Course
from tests.helpers.model.faults import NONE, Fault, Trouble
from tests.helpers.model.invariants import node_name
from tests.helpers.model.tacker import (
    CALM,
    Kind,
    Operation,
    Troubles,
    maintenance,
)

#: Settings of Hypothesis for histories.
STATEFUL = settings(
    deadline=None,
    database=None,
    stateful_step_count=15,
    suppress_health_check=list(HealthCheck),
)
_LEAST, _MOST = 1, 5  # workers
_faults = st.builds(
    Fault,
    at=st.integers(0, 55),
    after=st.booleans(),
    dies=st.sampled_from([False, False, False, True]),
)
_away = st.sampled_from(["workdir", "playbooks", "cluster", "balancer", "vims"])
_trouble = st.one_of(
    st.just(NONE),
    st.just(NONE),
    st.builds(Trouble, faults=st.tuples(_faults)),
    st.builds(Trouble, faults=st.tuples(_faults, _faults)),
    st.builds(Trouble, away=st.frozensets(_away, min_size=1, max_size=1)),
)
_heat = st.sampled_from(["", "", "", "refuses", "unfinished", "dies"])
troubles = st.one_of(
    st.just(CALM),
    st.builds(Troubles, start=_trouble, heat=_heat, end=_trouble),
)
_which = st.integers(0, 7)
_FILES = ("hosts.yaml", "machines.json", "joined.json")


def _idle(history: "History") -> bool:
    tacker = history.tacker
    return tacker.instantiated and tacker.failed is None


def _whole(history: "History") -> bool:
    return _idle(history) and not history.broken


def when(condition: Callable[["History"], object]) -> Callable[[Any], Any]:
    """Decorates a rule that can be applied then, in histories that have it."""

    def decorate(function: Any) -> Any:
        name = function.__name__

        def holds(history: "History") -> bool:
            return name in (history.only or (name,)) and bool(condition(history))

        return precondition(holds)(function)

    return decorate


class History(Course):
    """Operations, faults and changes by hand, in any order.

    :cvar only: names of the rules that these histories have; all by default.
    """

    only: Collection[str] = ()

    @initialize(load_balancer=st.sampled_from([True, True, False]), troubles=troubles)
    def begin(self, load_balancer: bool, troubles: Troubles) -> None:
        self.open(load_balancer)
        self._send(Operation(Kind.INSTANTIATE), troubles)

    # Operations

    @when(lambda self: not self.tacker.instantiated and not self.tacker.failed)
    @rule(troubles=troubles)
    def instantiate(self, troubles: Troubles) -> None:
        self._send(Operation(Kind.INSTANTIATE), troubles)

    @when(_whole)
    @rule(troubles=troubles)
    def scale_out(self, troubles: Troubles) -> None:
        if len(self.tacker.site.workers) < _MOST:
            self._send(Operation(Kind.SCALE_OUT), troubles)

    @when(_whole)
    @rule(troubles=troubles)
    def scale_in(self, troubles: Troubles) -> None:
        if len(self._workers()) > _LEAST and len(self.tacker.site.workers) > _LEAST:
            self._send(Operation(Kind.SCALE_IN), troubles)

    @when(_whole)
    @rule(chosen=st.sets(_which, min_size=1, max_size=2), troubles=troubles)
    def heal_workers(self, chosen: set[int], troubles: Troubles) -> None:
        if workers := self._workers():
            vnfcs = {workers[number % len(workers)] for number in chosen}
            self._send(Operation(Kind.HEAL, tuple(sorted(vnfcs))), troubles)

    @when(_whole)
    @rule(with_worker=st.booleans(), troubles=troubles)
    def heal_balancer(self, with_worker: bool, troubles: Troubles) -> None:
        balancer = self.tacker.site.load_balancer
        server = balancer and balancer.server_id
        vnfcs = [v for v, s in self.tacker.vnfcs().items() if s == server]
        if not vnfcs:
            return
        vnfcs += self._workers()[:1] if with_worker else []
        self._send(Operation(Kind.HEAL, tuple(vnfcs)), troubles)

    @when(_idle)
    @rule(everything=st.booleans(), troubles=troubles)
    def heal_all(self, everything: bool, troubles: Troubles) -> None:
        # Tacker can have nothing replaced in a stack that is gone.
        everything = everything or not self.tacker.site.every()
        self._send(Operation(Kind.HEAL_ALL, everything=everything), troubles)

    @when(_whole)
    @rule(value=st.sampled_from(["ssd", "hdd", None]), troubles=troubles)
    def label(self, value: str | None, troubles: Troubles) -> None:
        patch = {"k8s_nodes:worker:label:disk": value}
        self._send(Operation(Kind.MODIFY, patch=patch), troubles)

    @when(_whole)
    @rule(which=_which, begins=st.booleans(), troubles=troubles)
    def maintain(self, which: int, begins: bool, troubles: Troubles) -> None:
        if workers := self._workers():
            entry = maintenance(workers[which % len(workers)])
            patch = {entry: "true" if begins else None}
            self._send(Operation(Kind.MODIFY, patch=patch), troubles)

    @when(_idle)
    @rule(troubles=troubles)
    def terminate(self, troubles: Troubles) -> None:
        self._send(Operation(Kind.TERMINATE), troubles)

    @when(lambda self: self.tacker.failed is not None)
    @rule(which=_which, mended=st.booleans(), troubles=troubles)
    def follow_advice(self, which: int, mended: bool, troubles: Troubles) -> None:
        if mended:
            self._mend()
        verbs = self.tacker.verbs()
        self._follow(list(verbs)[which % len(verbs)], troubles)

    # By hand, or by accident

    @when(lambda self: self.tacker.site.every())
    @rule(which=_which)
    def vm_dies(self, which: int) -> None:
        site = self.tacker.site
        planes = {vm.server_id for vm in site.control_planes}
        mortal = sorted(site.every() - planes)
        if mortal:
            site.dead.add(mortal[which % len(mortal)])

    @when(lambda self: self.tacker.site.dead)
    @rule()
    def vms_revive(self) -> None:
        self.tacker.site.dead &= self.tacker.site.deleted

    @when(lambda self: self.tacker.site.every())
    @rule(which=_which)
    def server_is_deleted_in_nova(self, which: int) -> None:
        """Behind Heat, which calls it complete; its ports are unbound."""
        site = self.tacker.site
        planes = {vm.server_id for vm in site.control_planes}
        if mortal := sorted(site.every() - planes - site.unfinished):
            server = mortal[which % len(mortal)]
            site.deleted.add(server)
            site.dead.add(server)

    @when(_whole)
    @rule(which=_which)
    def member_is_marked_unhealthy(self, which: int) -> None:
        """A heal that was abandoned leaves that, too; the VM works."""
        site = self.tacker.site
        bound = [vm for vm in site.workers if vm.server_id not in site.deleted]
        if bound:
            site.unfinished.add(bound[which % len(bound)].server_id)

    @when(_whole)
    @rule(which=_which)
    def port_gets_another_address(self, which: int) -> None:
        """Neutron lists it first, for it orders addresses as texts."""
        site = self.tacker.site
        balancer = [site.load_balancer] if site.load_balancer else []
        vms = (*site.control_planes, *site.workers, *balancer)
        full = [vm for vm in vms if vm.server_id in site.full_members()]
        if full:
            vm = full[which % len(full)]
            number = int(vm.address.rpartition(".")[2])
            site.more[vm.address] = f"10.10.0.1{number:02}"

    @when(_whole)
    @rule(which=_which)
    def vm_is_deleted(self, which: int) -> None:
        workers = self.tacker.site.workers
        if len(workers) > _LEAST:
            server = workers[which % len(workers)].server_id
            self.tacker.site.delete(server, by_hand=True)

    @when(_whole)
    @rule(which=_which)
    def node_object_is_deleted(self, which: int) -> None:
        site = self.tacker.site
        nodes = [n for n in site.cluster_nodes if n.name.startswith("worker")]
        if nodes:
            node = nodes[which % len(nodes)]
            self.tampered.nodes.add(node.machine_id)
            site.free = True
            site.remove(node.name)

    @when(_whole)
    @rule(which=_which)
    def route_is_deleted(self, which: int) -> None:
        site = self.tacker.site
        if routes := sorted(site.routes):
            route = routes[which % len(routes)]
            self.tampered.routes.add(route[0])
            site.routes -= {route}

    @when(_whole)
    @rule(which=_which)
    def service_is_exposed(self, which: int) -> None:
        """With the script of the load balancer; an operation has seen it since."""
        site = self.tacker.site
        if not site.lacks_balancer and site.balanced and site.files:
            service = ExposedService(f"web{which}", 8080, 30080, ())
            self.tampered.exposed = site.exposed = (service,)
            seen = {"name": service.name, "port": 8080, "node_port": 30080}
            site.files["services.json"] = json.dumps([seen])

    @when(_whole)
    @rule(name=st.sampled_from(_FILES), spoiled=st.booleans())
    def file_is_lost(self, name: str, spoiled: bool) -> None:
        files = self.tacker.site.files
        if name in files and "hosts.last.yaml" in files:
            files.pop(name)
            if spoiled:
                files[name] = ""

    @when(_whole)
    @rule(which=_which)
    def pods_are_kept(self, which: int) -> None:
        workers = self.tacker.site.workers
        if workers:
            self.tacker.site.blocked.add(node_name(workers[which % len(workers)]))
