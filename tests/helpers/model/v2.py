# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 API (``vnflcm_driver_v2.py``), with our hooks.

A retry runs both hooks again, with the VNF instance as it was before the operation.
Changes of the instance are stored when the operation has succeeded. What the hooks
pass on between them is stored by a failed hook, and not by a killed one.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from oslo_config import cfg

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.hooks.v2 import driver, stack
from tacker_k8s_mgmt.hooks.v2.call import HookCall, cluster_vim_id
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.hooks.v2.hook import V2Hook
from tacker_k8s_mgmt.operations import compare
from tests.helpers.model.faults import NONE, ConductorDied, Immediately, Trouble
from tests.helpers.model.site import GROUP
from tests.helpers.model.tacker import (
    HeatFailed,
    Kind,
    Operation,
    Stage,
    Tacker,
    Troubles,
)
from tests.helpers.requests import VNF

_INITIAL = 2  # workers
_ROLLBACKS = (Kind.INSTANTIATE, Kind.SCALE_OUT, Kind.MODIFY)
_VIM = {
    "vimId": "openstack",
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "interfaceInfo": {"endpoint": "http://192.0.2.1/identity"},
    "accessInfo": {"username": "nfv", "password": "v1m-secret"},
}


def _conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.register_opt(cfg.StrOpt("state_path", default="/nowhere"))
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("ready_timeout", 60.0, group=config.GROUP)
    conf.set_override("poll_interval", 5.0, group=config.GROUP)
    return conf


CONF = _conf()


class ModelV2Hook(V2Hook):
    """A call of a hook on the model's site."""

    def __init__(self, call: HookCall, tacker: "V2", trouble: Trouble) -> None:
        super().__init__(call, CONF)
        self.clock = tacker.clock
        self._journal = tacker.journal
        self._tacker, self._trouble = tacker, trouble

    def site(self, params: Any) -> AbstractContextManager[Any]:  # type: ignore[override]
        return self._tacker.opened(self._trouble, vims=self.vims())

    def vims(self) -> VimEntry:
        """The cluster's VIM, in the VNF instance."""
        return VimEntry(self.call.instance)


class V2(Tacker):
    """One VNF instance in Tacker's v2 API."""

    def __init__(self, load_balancer: bool = True) -> None:
        super().__init__(load_balancer)
        self.instance: dict[str, Any] = {
            "id": VNF,
            "vimConnectionInfo": {"vim1": _VIM},
        }

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Put the model in the place of Heat and of Tacker's database."""

        def resources(call: HookCall) -> Any:
            site = self.site
            return site.gate.through("site", "resources", site.resources)

        with (
            mock.patch.object(stack, "resources_of", resources),
            mock.patch.object(compare, "ThreadPoolExecutor", Immediately),
            mock.patch.object(driver, "_former_requests", self._requests),
        ):
            yield

    def _requests(self, _vnf_id: str) -> Any:
        return [self.params]

    # What Tacker lists

    def _listed(self) -> list[Mapping[str, Any]]:
        info = self.instance.get("instantiatedVnfInfo") or {}
        return list(info.get("vnfcResourceInfo") or ())

    def vnfcs(self) -> Mapping[str, str]:
        call = HookCall("", {}, self.instance, {}, "")
        return {vnfc: server for vnfc, server, _ in call.vnfcs()}

    def metadata(self) -> Mapping[str, Any]:
        return self.instance.get("metadata") or {}

    def vim_count(self) -> int:
        infos = (self.instance.get("vimConnectionInfo") or {}).values()
        ours = cluster_vim_id(VNF)
        return sum(info.get("vimId") == ours for info in infos)

    def targets(self, operation: Operation) -> frozenset[str]:
        if operation.kind is Kind.HEAL:
            return frozenset(self._healed(operation))
        if operation.kind is Kind.SCALE_IN:
            return frozenset(self._in_places(self._removed(operation)))
        if operation.kind is Kind.SCALE_OUT:
            return self.site.every() - {one["id"] for one in self._listed()}
        return frozenset()

    def _healed(self, operation: Operation) -> Iterator[str]:
        """The servers that are in the places of the healed VNFCs now."""
        chosen = [self.vnfcs().get(vnfc) for vnfc in operation.vnfcs]
        return self._in_places([server for server in chosen if server])

    def _in_places(self, servers: list[str]) -> Iterator[str]:
        """These listed servers, and those that Heat has in their places."""
        yield from servers
        places = [
            one["metadata"]["stack_id"].rpartition("/")[2]
            for one in self._listed()
            if one["computeResource"]["resourceId"] in servers
        ]
        for server, _, place in self.site.vnfcs():
            if place in places:
                yield server

    def _removed(self, operation: Operation) -> list[str]:
        grant = operation.data.setdefault("grant", self._grant(operation.kind))
        return [one["resource"]["resourceId"] for one in grant["removeResources"]]

    def possible(self, operation: Operation) -> frozenset[str]:
        verbs = {"retry", "fail"}
        return frozenset(
            verbs | {"rollback"} if operation.kind in _ROLLBACKS else verbs
        )

    # How an operation goes

    def _process(self, operation: Operation, troubles: Troubles) -> None:
        operation.data.setdefault("grant", self._grant(operation.kind))
        instance = copy.deepcopy(self.instance)
        operation.stage = Stage.START
        self._hook("start", operation, instance, troubles.start)
        operation.stage = Stage.HEAT
        self._heat(operation, instance, troubles.heat)
        operation.stage = Stage.END
        self._hook("end", operation, instance, troubles.end)
        self.instance = instance
        kinds = {Kind.INSTANTIATE: True, Kind.TERMINATE: False}
        self.instantiated = kinds.get(operation.kind, self.instantiated)

    def _undo(self, operation: Operation, troubles: Troubles) -> None:
        instance = copy.deepcopy(self.instance)
        self._hook("rollback_start", operation, instance, troubles.start)
        if troubles.heat == "refuses":
            raise HeatFailed
        if operation.kind is Kind.INSTANTIATE:
            self.site.erase()
        elif operation.kind is Kind.SCALE_OUT:
            known = {one["id"] for one in self._listed()}
            for vm in list(self.site.workers):
                if vm.server_id not in known:
                    self.site.delete(vm.server_id)
        self._hook("rollback_end", operation, instance, troubles.end)
        if operation.kind is Kind.INSTANTIATE:
            self.instance = instance

    def _grant(self, kind: Kind) -> dict[str, Any]:
        if kind is Kind.SCALE_OUT:
            added = {"type": "COMPUTE", "resourceTemplateId": "workerNode"}
            return {"addResources": [added]}
        if kind is not Kind.SCALE_IN:
            return {}
        # Tacker takes the first that it lists, which are the latest.
        workers = [one for one in self._listed() if one["vduId"] == "workerNode"]
        server = workers[0]["computeResource"]["resourceId"]
        removed = {"type": "COMPUTE", "resource": {"resourceId": server}}
        return {"removeResources": [removed]}

    def _hook(
        self,
        which: str,
        operation: Operation,
        instance: dict[str, Any],
        trouble: Trouble,
    ) -> None:
        name = f"{operation.kind.hook}_{which}"
        between = copy.deepcopy(operation.data.get("between") or {})
        call = HookCall(
            operation=name,
            request=self._request(operation),
            instance=instance,
            grant_request=operation.data["grant"],
            package="/nowhere",
            between=between,
        )
        self.site.gate.open(NONE)
        VimEntry(instance).settle()
        if which == "start":
            call.note_places()
        elif which == "end":
            call.follow_places()
        try:
            if name not in driver.NOTHING:
                getattr(driver.V2Driver(ModelV2Hook(call, self, trouble)), name)()
        except Exception:
            operation.data["between"] = call.between
            raise
        operation.data["between"] = call.between

    def _request(self, operation: Operation) -> dict[str, Any]:
        kind = operation.kind
        if kind is Kind.MODIFY:
            return {"metadata": dict(operation.patch)}
        request: dict[str, Any] = {"additionalParams": self.params}
        if kind in (Kind.SCALE_OUT, Kind.SCALE_IN):
            request |= {"type": kind.name, "aspectId": GROUP, "numberOfSteps": 1}
        elif kind is Kind.TERMINATE:
            request["terminationType"] = "GRACEFUL"
        elif kind is Kind.HEAL:
            request["vnfcInstanceId"] = list(operation.vnfcs)
        elif operation.everything:
            request["additionalParams"] = {**self.params, "all": True}
        return request

    # Heat

    def _heat(
        self, operation: Operation, instance: dict[str, Any], trouble: str
    ) -> None:
        if trouble == "refuses":
            raise HeatFailed
        kind, site = operation.kind, self.site
        if kind is Kind.INSTANTIATE:
            site.create(max(_INITIAL, len(site.workers)))
        elif kind is Kind.TERMINATE:
            site.erase()
        elif kind is Kind.HEAL_ALL:
            self._replace_all(operation, trouble == "unfinished")
        elif kind is Kind.HEAL:
            self._rebuild(operation, trouble == "unfinished")
        elif kind is Kind.SCALE_IN:
            size = self._counted() - 1
            for server in set(self._in_places(self._removed(operation))):
                site.delete(server)
            site.resize(size)
        elif kind is Kind.SCALE_OUT:
            site.resize(self._counted() + 1)
            if trouble == "unfinished":
                site.unfinished.add(site.workers[-1].server_id)
        elif kind is Kind.MODIFY:
            self._merge(instance, operation.patch)
        self._after_heat(kind, instance, trouble)

    def _after_heat(self, kind: Kind, instance: dict[str, Any], trouble: str) -> None:
        if trouble == "dies":
            self._die()
        if trouble == "unfinished" and self.site.unfinished:
            raise HeatFailed
        if kind is Kind.TERMINATE:
            instance.pop("instantiatedVnfInfo", None)
        elif kind is not Kind.MODIFY:
            self._list(instance)

    def _die(self) -> None:
        self.site.gate.open(NONE)
        raise ConductorDied

    def _rebuild(self, operation: Operation, fails: bool) -> None:
        # A retry replaces what is in the VNFC's place by then.
        there = self.site.every()
        healed = [s for s in dict.fromkeys(self._healed(operation)) if s in there]
        # What is marked in Heat, any update of the stack replaces.
        self.site.rebuild((self.site.unfinished & there).difference(healed))
        self.site.rebuild(healed, fails)

    def _replace_all(self, operation: Operation, fails: bool) -> None:
        """Replace what is in the places of the listed servers; or the whole stack."""
        if operation.everything:
            # With the size that the group has in its parameters.
            self.site.replace_all(len(self.site.workers))
        else:
            listed = [one["computeResource"]["resourceId"] for one in self._listed()]
            there = self.site.every()
            servers = dict.fromkeys(self._in_places(listed))
            self.site.rebuild([s for s in servers if s in there], fails)
            self.site.forget_cluster()

    def _counted(self) -> int:
        return sum(one["vduId"] == "workerNode" for one in self._listed())

    @staticmethod
    def _merge(instance: dict[str, Any], patch: Mapping[str, Any]) -> None:
        metadata = {**(instance.get("metadata") or {}), **patch}
        instance["metadata"] = {k: v for k, v in metadata.items() if v is not None}

    def _list(self, instance: dict[str, Any]) -> None:
        """Tacker lists what is in the stack."""
        found = list(reversed(list(self.site.vnfcs())))
        instance["instantiatedVnfInfo"] = {
            "flavourId": "simple",
            "metadata": {"stack_id": "top"},
            "vnfcResourceInfo": [
                {
                    "id": server,
                    "vduId": vdu,
                    "computeResource": {"resourceId": server},
                    "metadata": {
                        "stack_id": f"vnf-1-{vdu}/{stack}",
                        **({} if vdu == "externalLB" else {"parent_stack_id": vdu}),
                    },
                }
                for server, vdu, stack in found
            ],
            "vnfcInfo": [
                {"id": f"{vdu}-{server}", "vduId": vdu, "vnfcResourceInfoId": server}
                for server, vdu, _ in found
            ],
        }
