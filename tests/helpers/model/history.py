# SPDX-License-Identifier: Apache-2.0
"""Histories of one VNF instance, as a state machine of Hypothesis."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tests.helpers.model import invariants
from tests.helpers.model.faults import NONE, Fault, Trouble
from tests.helpers.model.invariants import Tampered, node_name
from tests.helpers.model.tacker import (
    CALM,
    Kind,
    Operation,
    Tacker,
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


class History(RuleBasedStateMachine):
    """Operations, faults and changes by hand; and what holds after each operation.

    :cvar api: makes Tacker, with a load balancer or without.
    :ivar broken: a whole heal or a termination was given up, so that only another one
        can follow.
    """

    api: Any

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.tampered = Tampered()
        self.tacker: Tacker
        self._place: AbstractContextManager[None] | None = None
        self._before: tuple[Any, Any] = (frozenset(), frozenset())

    @initialize(load_balancer=st.sampled_from([True, True, False]), troubles=troubles)
    def begin(self, load_balancer: bool, troubles: Troubles) -> None:
        self.tacker = self.api(load_balancer)
        self._place = self.tacker.in_place()
        self._place.__enter__()
        self._send(Operation(Kind.INSTANTIATE), troubles)

    # Operations

    @precondition(lambda self: not self.tacker.instantiated and not self.tacker.failed)
    @rule(troubles=troubles)
    def instantiate(self, troubles: Troubles) -> None:
        self._send(Operation(Kind.INSTANTIATE), troubles)

    @precondition(_whole)
    @rule(troubles=troubles)
    def scale_out(self, troubles: Troubles) -> None:
        if len(self.tacker.site.workers) < _MOST:
            self._send(Operation(Kind.SCALE_OUT), troubles)

    @precondition(_whole)
    @rule(troubles=troubles)
    def scale_in(self, troubles: Troubles) -> None:
        if len(self._workers()) > _LEAST and len(self.tacker.site.workers) > _LEAST:
            self._send(Operation(Kind.SCALE_IN), troubles)

    @precondition(_whole)
    @rule(chosen=st.sets(_which, min_size=1, max_size=2), troubles=troubles)
    def heal_workers(self, chosen: set[int], troubles: Troubles) -> None:
        if workers := self._workers():
            vnfcs = {workers[number % len(workers)] for number in chosen}
            self._send(Operation(Kind.HEAL, tuple(sorted(vnfcs))), troubles)

    @precondition(_whole)
    @rule(with_worker=st.booleans(), troubles=troubles)
    def heal_balancer(self, with_worker: bool, troubles: Troubles) -> None:
        balancer = self.tacker.site.load_balancer
        server = balancer and balancer.server_id
        vnfcs = [v for v, s in self.tacker.vnfcs().items() if s == server]
        if not vnfcs:
            return
        vnfcs += self._workers()[:1] if with_worker else []
        self._send(Operation(Kind.HEAL, tuple(vnfcs)), troubles)

    @precondition(_idle)
    @rule(troubles=troubles)
    def heal_all(self, troubles: Troubles) -> None:
        self._send(Operation(Kind.HEAL_ALL), troubles)

    @precondition(_whole)
    @rule(value=st.sampled_from(["ssd", "hdd", None]), troubles=troubles)
    def label(self, value: str | None, troubles: Troubles) -> None:
        patch = {"k8s_nodes:worker:label:disk": value}
        self._send(Operation(Kind.MODIFY, patch=patch), troubles)

    @precondition(_whole)
    @rule(which=_which, begins=st.booleans(), troubles=troubles)
    def maintain(self, which: int, begins: bool, troubles: Troubles) -> None:
        if workers := self._workers():
            entry = maintenance(workers[which % len(workers)])
            patch = {entry: "true" if begins else None}
            self._send(Operation(Kind.MODIFY, patch=patch), troubles)

    @precondition(_idle)
    @rule(troubles=troubles)
    def terminate(self, troubles: Troubles) -> None:
        self._send(Operation(Kind.TERMINATE), troubles)

    @precondition(lambda self: self.tacker.failed is not None)
    @rule(which=_which, mended=st.booleans(), troubles=troubles)
    def follow_advice(self, which: int, mended: bool, troubles: Troubles) -> None:
        if mended:
            self._mend()
        verbs = self.tacker.verbs()
        self._follow(list(verbs)[which % len(verbs)], troubles)

    # By hand, or by accident

    @precondition(lambda self: self.tacker.site.every())
    @rule(which=_which)
    def vm_dies(self, which: int) -> None:
        site = self.tacker.site
        planes = {vm.server_id for vm in site.control_planes}
        mortal = sorted(site.every() - planes)
        if mortal:
            site.dead.add(mortal[which % len(mortal)])

    @precondition(lambda self: self.tacker.site.dead)
    @rule()
    def vms_revive(self) -> None:
        self.tacker.site.dead.clear()

    @precondition(_whole)
    @rule(which=_which)
    def vm_is_deleted(self, which: int) -> None:
        workers = self.tacker.site.workers
        if len(workers) > _LEAST:
            server = workers[which % len(workers)].server_id
            self.tacker.site.delete(server, by_hand=True)

    @precondition(_whole)
    @rule(which=_which)
    def node_object_is_deleted(self, which: int) -> None:
        site = self.tacker.site
        nodes = [n for n in site.cluster_nodes if n.name.startswith("worker")]
        if nodes:
            node = nodes[which % len(nodes)]
            self.tampered.nodes.add(node.machine_id)
            site.free = True
            site.remove(node.name)

    @precondition(_whole)
    @rule(which=_which)
    def route_is_deleted(self, which: int) -> None:
        site = self.tacker.site
        if routes := sorted(site.routes):
            route = routes[which % len(routes)]
            self.tampered.routes.add(route[0])
            site.routes -= {route}

    @precondition(_whole)
    @rule(which=_which)
    def service_is_exposed(self, which: int) -> None:
        """With the script of the load balancer; an operation has seen it since."""
        site = self.tacker.site
        if not site.lacks_balancer and site.balanced and site.files:
            service = ExposedService(f"web{which}", 8080, 30080, ())
            self.tampered.exposed = site.exposed = (service,)
            seen = {"name": service.name, "port": 8080, "node_port": 30080}
            site.files["services.json"] = json.dumps([seen])

    @precondition(_whole)
    @rule(name=st.sampled_from(_FILES), spoiled=st.booleans())
    def file_is_lost(self, name: str, spoiled: bool) -> None:
        files = self.tacker.site.files
        if name in files and "hosts.last.yaml" in files:
            files.pop(name)
            if spoiled:
                files[name] = ""

    @precondition(_whole)
    @rule(which=_which)
    def pods_are_kept(self, which: int) -> None:
        workers = self.tacker.site.workers
        if workers:
            self.tacker.site.blocked.add(node_name(workers[which % len(workers)]))

    # How it goes on

    def _workers(self) -> list[str]:
        """VNFCs of workers that Heat has."""
        servers = {vm.server_id for vm in self.tacker.site.workers}
        return sorted(v for v, s in self.tacker.vnfcs().items() if s in servers)

    def _send(self, operation: Operation, troubles: Troubles = CALM) -> None:
        site = self.tacker.site
        self._before = (site.cordoned, site.routes)
        self._ended(operation, self.tacker.send(operation, troubles))

    def _follow(self, verb: str, troubles: Troubles = CALM) -> None:
        tacker = self.tacker
        operation = tacker.failed
        assert operation is not None
        note(f"{verb} after: {operation.text}")
        if verb == "retry":
            self._ended(operation, tacker.retry(troubles))
        elif verb == "fail":
            tacker.fail()
            # They may be out of service, which the error text says.
            self.tampered.settings |= tacker.site.targets
            if operation.kind in (Kind.HEAL_ALL, Kind.TERMINATE):
                self.broken = True
        else:
            done = tacker.rollback(troubles)
            self._check(operation, self._undone(operation) if done else ())

    def _undone(self, operation: Operation) -> Iterator[str]:
        # What cannot be removed is logged, and keeps no VNF instance.
        if operation.kind is Kind.INSTANTIATE and not self.tacker.fired:
            yield from invariants.left_behind(self.tacker)

    def _ended(self, operation: Operation, done: bool) -> None:
        tacker, kind = self.tacker, operation.kind
        note(f"{kind.name} {'has ended well' if done else operation.text}")
        if not done:
            self._check(operation, self._unexpected(operation))
            return
        if operation.data.get("without hook"):
            return
        self._trust(operation)
        self._fill()
        self._check(operation, invariants.after_success(tacker, kind, self.tampered))

    def _trust(self, operation: Operation) -> None:
        """What an operation that has ended well has mended."""
        kind, tampered, site = operation.kind, self.tampered, self.tacker.site
        if kind in (Kind.HEAL_ALL, Kind.INSTANTIATE, Kind.TERMINATE):
            self.tampered, self.broken = Tampered(), False
        elif kind in invariants.JOINING:
            tampered.nodes.clear()
            tampered.routes &= {name for name in tampered.routes if self._lacks(name)}
        if operation.patch and any(":maintenance" in entry for entry in operation.patch):
            tampered.settings.clear()
            tampered.routes &= {name for name in tampered.routes if self._lacks(name)}
        site.unfinished &= site.every()

    def _lacks(self, name: str) -> bool:
        return all(name != route for route, _ in self.tacker.site.routes)

    def _fill(self) -> None:
        """Pods start where they can."""
        site = self.tacker.site
        for node in site.cluster_nodes:
            if node.name not in site.cordoned and site.is_ready(node):
                site.pods[node.name] = ["web"]

    def _unexpected(self, operation: Operation) -> Iterator[str]:
        """Why an operation must not have failed."""
        tacker = self.tacker
        site = tacker.site
        if operation.kind is Kind.MODIFY:
            self.tampered.settings |= site.serviced
        if not (tacker.fired or self._is_hindered(operation)):
            yield f"failed for no reason: {operation.text}"
        is_kept = "could not be drained" in operation.text and not tacker.fired
        cordoned, routes = self._before
        if is_kept and (site.cordoned != cordoned or not routes <= site.routes):
            yield f"not taken back: {site.cordoned} {site.routes} {operation.text}"

    def _is_hindered(self, operation: Operation) -> bool:
        """Whether the operation can fail although no call does."""
        site = self.tacker.site
        # A VNFC without a node has no settings.
        lacks = operation.kind is Kind.MODIFY and any(
            vm.server_id not in site.full_members() for vm in site.workers
        )
        # A heal completes a load balancer that another one has left.
        lacks |= operation.kind is not Kind.HEAL and site.lacks_balancer
        hindered = site.dead or site.unfinished or site.blocked or lacks
        return bool(hindered) or operation.refused

    def _check(self, operation: Operation, found: Any) -> None:
        tacker = self.tacker
        problems = [*tacker.violations, *found]
        if not tacker.site.free:
            problems += invariants.nothing_lost(tacker.site, self.tampered)
        assert not problems, f"{operation.kind.name}: {problems}"

    def _mend(self) -> None:
        site = self.tacker.site
        site.dead.clear()
        site.blocked.clear()
        site.finish()

    def teardown(self) -> None:
        """Mend everything, and bring the history to an end."""
        if self._place is None:
            return
        try:
            self._close()
        finally:
            self._place.__exit__(None, None, None)

    def _close(self) -> None:
        self._mend()
        self._settle()
        tacker = self.tacker
        if not tacker.instantiated:
            return
        workers = self._workers()
        if self.broken or not workers:
            self._send(Operation(Kind.HEAL_ALL))
        else:
            self._send(Operation(Kind.HEAL, (workers[0],)))
        assert tacker.failed is None, tacker.failed
        self._send(Operation(Kind.TERMINATE))
        assert tacker.failed is None, tacker.failed

    def _settle(self) -> None:
        """Follow the advice until nothing is in FAILED_TEMP."""
        wanted = ["retry", "rollback", "fail"]
        while (operation := self.tacker.failed) is not None:
            verbs = self.tacker.verbs()
            verb = next((v for v in wanted if v in verbs), "")
            assert verb, f"nothing helps: {operation.text}"
            # Without faults the second one would not help either.
            wanted.remove(verb)
            self._follow(verb)
            if self.tacker.failed is not None:
                assert self._is_hindered(operation), f"no help: {operation.text}"
        assert self.tacker.failed is None, self.tacker.failed
