# SPDX-License-Identifier: Apache-2.0
"""How a history continues after each operation, and how it ends."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine

from tests.helpers.model import invariants
from tests.helpers.model.invariants import Tampered
from tests.helpers.model.tacker import CALM, Kind, Operation, Tacker, Troubles


class Course(RuleBasedStateMachine):
    """The course of a history: what is checked after each operation, and its end.

    :cvar api: makes Tacker, with a load balancer or without.
    :ivar broken: a whole heal that had replaced the VMs, or a termination, was given
        up, so that only another one can follow.
    """

    api: Any

    def __init__(self) -> None:
        super().__init__()
        self.broken = False
        self.tampered = Tampered()
        self.tacker: Tacker
        self._place: AbstractContextManager[None] | None = None
        self._before: tuple[Any, Any] = (frozenset(), frozenset())

    def open(self, load_balancer: bool) -> None:
        """Put the model in place."""
        self.tacker = self.api(load_balancer)
        self._place = self.tacker.in_place()
        self._place.__enter__()

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
            # What has left the inventory returns under whichever address is first.
            tacker.site.more.clear()
            heals_all = operation.kind is Kind.HEAL_ALL
            if operation.kind is Kind.TERMINATE or (heals_all and self._is_lost()):
                self.broken = True
        else:
            done = tacker.rollback(troubles)
            self._check(operation, self._undone(operation) if done else ())

    def _is_lost(self) -> bool:
        """Whether the VMs of a cluster's control planes were replaced."""
        full = self.tacker.site.full_members()
        planes = self.tacker.site.control_planes
        return not any(vm.server_id in full for vm in planes)

    def _undone(self, operation: Operation) -> Iterator[str]:
        # What cannot be removed is logged, and keeps no VNF instance.
        if operation.kind is Kind.INSTANTIATE and not self.tacker.fired:
            yield from invariants.left_behind(self.tacker)

    def _ended(self, operation: Operation, done: bool) -> None:
        tacker, kind = self.tacker, operation.kind
        note(f"{kind.name} {'has succeeded' if done else operation.text}")
        if not done:
            self._check(operation, self._unexpected(operation))
            return
        if operation.data.get("without hook"):
            return
        self._trust(operation)
        self._fill()
        found = invariants.after_success(tacker, operation, self.tampered)
        self._check(operation, found)

    def _trust(self, operation: Operation) -> None:
        """What an operation that has succeeded has fixed."""
        kind, tampered, site = operation.kind, self.tampered, self.tacker.site
        if kind in (Kind.HEAL_ALL, Kind.INSTANTIATE, Kind.TERMINATE):
            self.tampered, self.broken = Tampered(), False
        elif kind in invariants.JOINING:
            tampered.nodes.clear()
            tampered.routes &= {name for name in tampered.routes if self._lacks(name)}
        if operation.patch and any(
            ":maintenance" in entry for entry in operation.patch
        ):
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

    def _check(self, operation: Operation, found: Iterable[str]) -> None:
        tacker = self.tacker
        problems = [*tacker.violations, *found]
        site, heals_all = tacker.site, operation.kind is Kind.HEAL_ALL
        if not site.free or heals_all:
            problems += invariants.nothing_lost(site, self.tampered)
        if heals_all and site.begun & site.every() and not tacker.vim_count():
            problems.append("the cluster is there, and its VIM is gone")
        assert not problems, f"{operation.kind.name}: {problems}"

    def _mend(self) -> None:
        site = self.tacker.site
        site.dead &= site.deleted
        site.blocked.clear()
        site.finish(by_hand=True)

    def teardown(self) -> None:
        """Fix everything, and bring the history to an end."""
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
            self._send(Operation(Kind.HEAL_ALL, everything=True))
        else:
            deleted = self._deleted()
            self._send(Operation(Kind.HEAL, tuple({workers[0], *deleted})))
        assert tacker.failed is None, tacker.failed
        self._send(Operation(Kind.TERMINATE))
        assert tacker.failed is None, tacker.failed

    def _deleted(self) -> list[str]:
        """VNFCs of the servers that were deleted in Nova; others go by hand."""
        site, listed = self.tacker.site, self.tacker.vnfcs()
        for server in site.deleted - set(listed.values()):
            site.delete(server, by_hand=True)
        return [vnfc for vnfc, server in listed.items() if server in site.deleted]

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
