# SPDX-License-Identifier: Apache-2.0
"""Tacker's v1 API (``vnflcm_driver.py``), with our hooks.

A retry begins where the operation has failed, except that of a scale-out, which ends
without a hook or has Heat create VMs once more. A heal writes the size for which the
scale level stands into Heat's template. There is no rollback of heal and modification,
and that of a scale-out has no hook.
"""

import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from oslo_config import cfg
from tacker.tosca import utils as tosca_utils
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.hooks.v1 import database, driver, group_sizes, vim_registry
from tacker_k8s_mgmt.hooks.v1 import stack as openstack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.operations import compare
from tacker_k8s_mgmt.request import reader
from tests.helpers.model.faults import (
    NONE,
    ConductorDied,
    Immediately,
    Ported,
    Trouble,
)
from tests.helpers.model.site import GROUP
from tests.helpers.model.tacker import (
    HeatFailed,
    Kind,
    Operation,
    Stage,
    Tacker,
    Troubles,
)
from tests.helpers.model.v1_objects import (
    ModelHook,
    new_instance,
    server_of,
    vnfc_of,
)

_INITIAL = 2  # workers
_ASPECTS = {GROUP: {"initialNum": _INITIAL, "num": 1, "maxLevel": 20}}
_STAGES = tuple(Stage)


class V1(Tacker):
    """One VNF instance in Tacker's v1 API.

    :ivar template_size: the size of the group in Heat's template, if a heal wrote it.
    """

    def __init__(self, load_balancer: bool = True) -> None:
        super().__init__(load_balancer)
        config.register(cfg.CONF)
        self.instance: Any = new_instance()
        self.template_size: int | None = None
        self._reset()

    def _reset(self) -> None:
        self.template_size = None
        self.instance.instantiated_vnf_info = types.SimpleNamespace(
            additional_params=self.params,
            instance_id="stack",
            flavour_id="simple",
            vnfc_resource_info=[],
            scale_status=[types.SimpleNamespace(aspect_id=GROUP, scale_level=0)],
        )

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the model in the place of Heat and of Tacker's database."""
        limits = {"ready_timeout": 60.0, "poll_interval": 5.0}
        vims = Ported(self.site.vims, "vims", self.site.gate)
        groups = {"scaleGroupDict": _ASPECTS}

        def patch(place: Any, name: str, made: Any) -> Any:
            return mock.patch.object(place, name, made)

        with (
            patch(database, "release", lambda *_: None),
            patch(openstack, "heat_of", lambda *_: self._heat_client()),
            patch(V1Instance, "checkpoint", lambda *_: ""),
            patch(V1Instance, "names_no_vnfc", lambda _: False),
            patch(group_sizes, "_follows_scale", lambda *_: True),
            patch(vim_registry, "VimRegistry", lambda *_: vims),
            patch(vnflcm_utils, "get_vnfd_dict", lambda *_: {}),
            patch(tosca_utils, "get_scale_group", lambda *_: groups),
            patch(compare, "ThreadPoolExecutor", Immediately),
        ):
            for name, value in limits.items():
                cfg.CONF.set_override(name, value, group=config.GROUP)
            try:
                yield
            finally:
                for name in limits:
                    cfg.CONF.clear_override(name, group=config.GROUP)

    def _heat_client(self) -> Any:
        size = {"get_param": "size"} if self.template_size is None else None
        wanted = size or self.template_size
        template = {"resources": {GROUP: {"properties": {"desired_capacity": wanted}}}}
        parameters = types.SimpleNamespace(parameters={"size": _INITIAL})
        stacks = types.SimpleNamespace(
            template=lambda _: template, get=lambda _: parameters
        )
        left = types.SimpleNamespace(id="stack") if self.site.every() else None
        return types.SimpleNamespace(
            stacks=stacks,
            find_stack=lambda name: left,
            delete=lambda _: self.site.erase(),
        )

    # What Tacker lists

    @property
    def _level(self) -> Any:
        return self.instance.instantiated_vnf_info.scale_status[0]

    @property
    def _counted(self) -> int:
        return _INITIAL + int(self._level.scale_level)

    def _listed(self) -> list[Any]:
        listed: list[Any] = self.instance.instantiated_vnf_info.vnfc_resource_info
        return listed

    def vnfcs(self) -> Mapping[str, str]:
        return {one.id: server_of(one) for one in self._listed()}

    def metadata(self) -> Mapping[str, Any]:
        return self.instance.vnf_metadata or {}

    def vim_count(self) -> int:
        return int(self.site.vim is not None)

    def targets(self, operation: Operation) -> frozenset[str]:
        vnfcs = self.vnfcs()
        if operation.kind is Kind.SCALE_IN:
            # A retry chooses again.
            stacks = operation.data["stacks"] = self._leaving_stacks()
            found = self.site.vnfcs()
            return frozenset(server for server, _, stack in found if stack in stacks)
        if operation.kind is Kind.SCALE_OUT:
            before: frozenset[str] = operation.data.get("before", frozenset())
            return self.site.every() - before
        return frozenset(vnfcs[one] for one in operation.vnfcs if one in vnfcs)

    def _leaving_stacks(self) -> tuple[str, ...]:
        """The oldest complete member, which a scale-in deletes."""
        complete = (
            stack
            for server, vdu, stack in self.site.vnfcs()
            if vdu == "workerNode" and server not in self.site.unfinished
        )
        return tuple(complete)[:1]

    def possible(self, operation: Operation) -> frozenset[str]:
        verbs = {"retry", "fail"}
        if operation.kind in (Kind.INSTANTIATE, Kind.SCALE_OUT):
            verbs.add("rollback")
        if operation.kind is Kind.MODIFY:
            verbs.discard("retry")
        if operation.kind is Kind.SCALE_OUT and operation.stage is Stage.HEAT:
            # No hook has run that could advise against it.
            verbs.discard("rollback")
        if operation.kind is Kind.SCALE_OUT and operation.stage is Stage.START:
            # Killed before the first hook has stored how far it is.
            return frozenset({"fail"})
        return frozenset(verbs)

    # How an operation goes

    def _process(self, operation: Operation, troubles: Troubles) -> None:
        level, listed = self._level.scale_level, list(self._listed())
        try:
            self._stages(operation, troubles)
        except ConductorDied:
            if operation.kind in (Kind.SCALE_OUT, Kind.SCALE_IN):
                # Stored when the operation ends.
                self._level.scale_level, self._listed()[:] = level, listed
            if operation.stage is Stage.HEAT and operation.kind is not Kind.INSTANTIATE:
                operation.stage = Stage.START
            raise
        kinds = {Kind.INSTANTIATE: True, Kind.TERMINATE: False}
        self.instantiated = kinds.get(operation.kind, self.instantiated)
        if operation.kind is Kind.TERMINATE:
            self._reset()

    def _stages(self, operation: Operation, troubles: Troubles) -> None:
        first = _STAGES.index(operation.stage)
        for stage in _STAGES[first:]:
            operation.stage = stage
            if stage is Stage.HEAT:
                self._heat(operation, troubles.heat)
            elif self._has_hook(operation.kind, stage):
                trouble = troubles.start if stage is Stage.START else troubles.end
                self._hook(stage.value, operation, trouble)

    @staticmethod
    def _has_hook(kind: Kind, stage: Stage) -> bool:
        without = {Kind.SCALE_OUT: Stage.START, Kind.SCALE_IN: Stage.END}
        return without.get(kind) is not stage

    def _hook(self, which: str, operation: Operation, trouble: Trouble) -> None:
        name = f"{operation.kind.hook}_{which}"
        gate = self.site.gate
        # The hooks of terminate use Tacker's registry outside of a site.
        gate.open(NONE)
        hook = ModelHook(name, self, operation, trouble)
        with mock.patch.object(driver, "V1Hook", return_value=hook):
            getattr(driver.MgmtDriver(), name)(
                None, self.instance, hook.sent.sent, **hook.passed
            )

    def retry(self, troubles: Troubles = Troubles()) -> bool:  # noqa: B008
        """As Tacker does; that of a scale-out whose hook has failed calls none."""
        operation = self.failed
        assert operation is not None
        if operation.kind is Kind.SCALE_OUT and operation.stage is Stage.END:
            self.failed, operation.data["without hook"] = None, True
            return True
        return super().retry(troubles)

    def _undo(self, operation: Operation, troubles: Troubles) -> None:
        site = self.site
        if troubles.heat == "refuses":
            raise HeatFailed
        if operation.kind is Kind.SCALE_OUT:
            before = operation.data.get("before", site.every())
            new = [vm for vm in site.workers if vm.server_id not in before]
            size = self.template_size
            size = len(site.workers) - len(new) if size is None else size
            for vm in new:
                site.delete(vm.server_id)
            if operation.stage is not Stage.START:
                site.resize(size)
            listed = self._listed()
            there = site.every()
            listed[:] = [one for one in listed if server_of(one) in there]
            return
        site.erase()
        operation.data["rolls back"] = True
        self._hook("end", Operation(Kind.TERMINATE, data=operation.data), troubles.end)
        self._reset()

    # Heat

    def _heat(self, operation: Operation, trouble: str) -> None:
        if trouble == "refuses":
            # Before the stack is deleted.
            operation.data["retried"] = operation.kind is Kind.HEAL_ALL
            raise HeatFailed
        kind, site = operation.kind, self.site
        before = site.every()
        if kind is Kind.INSTANTIATE:
            site.create(_INITIAL)
        elif kind is Kind.TERMINATE:
            site.erase()
        elif kind is Kind.HEAL_ALL:
            self._respawn(operation)
        elif kind is Kind.HEAL:
            self._heal(operation, trouble == "unfinished")
        elif kind is Kind.SCALE_IN:
            # A signal counts those that have not failed.
            healthy = {vm.server_id for vm in site.workers} - site.unfinished
            site.resize(max(len(healthy) - 1, 0))
        elif kind is Kind.SCALE_OUT:
            operation.data.setdefault("before", before)
            # No hook is called before.
            site.resize(len(site.workers) + 1, by_hand=True)
            new = site.every() - before
            if trouble == "unfinished":
                site.unfinished |= new
            names = {stack for server, _, stack in site.vnfcs() if server in new}
            operation.data["stacks"] = tuple(sorted(names))
        elif kind is Kind.MODIFY:
            metadata = reader.merged_metadata(self.metadata(), operation.patch)
            self.instance.vnf_metadata = metadata
        if trouble == "dies":
            site.gate.open(NONE)
            raise ConductorDied
        self._note(kind)

    def _respawn(self, operation: Operation) -> None:
        """Delete the stack and create it; a retry does not delete it.

        It updates the stack, if there is one (``OpenStack.instantiate_vnf``), in which
        Heat replaces no VM then.
        """
        if operation.data.get("retried") and self.site.every():
            self.site.resize(self._counted)
        else:
            self.site.replace_all(self._counted)
        self.template_size = None
        self._listed().clear()

    def _note(self, kind: Kind) -> None:
        """Tacker lists what has changed, and counts what it has asked for."""
        failed = bool(self.site.unfinished & self.site.every())
        if kind is Kind.SCALE_OUT and failed:
            raise HeatFailed
        listed, there = self._listed(), list(self.site.vnfcs())
        servers = {server for server, _, _ in there}
        if kind in (Kind.SCALE_OUT, Kind.SCALE_IN, Kind.INSTANTIATE, Kind.HEAL_ALL):
            known = {server_of(one) for one in listed}
            listed[:] = [one for one in listed if server_of(one) in servers]
            listed += [
                vnfc_of(server, vdu, stack)
                for server, vdu, stack in there
                if server not in known
            ]
            listed.sort(key=lambda one: one.id)
        self._level.scale_level += {Kind.SCALE_OUT: 1, Kind.SCALE_IN: -1}.get(kind, 0)

    def _heal(self, operation: Operation, fails: bool) -> None:
        """Give the group the size of the level, and replace the VNFCs' servers.

        Heat chooses what leaves by the states of the group's members; the mark is that
        of a server in one. So a healed VNFC may leave.
        """
        site, vnfcs, before = self.site, self.vnfcs(), self.site.every()
        chosen = {vnfcs[one] for one in operation.vnfcs if one in vnfcs} & before
        self.template_size = self._counted
        site.resize(self._counted)
        site.rebuild(sorted(chosen & site.every()))
        new = site.every() - before
        site.targets |= new
        if fails:
            site.unfinished |= new & site.every()
        present = {stack: server for server, _, stack in site.vnfcs()}
        for one in self._listed():
            if one.id in operation.vnfcs and one.stack in present:
                one.compute_resource.resource_id = present[one.stack]
