# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 API: the program behind the shim in a CNF's package, and its calls.

Tacker labels what it makes of manifests with the id of the VNF instance, and names a
Helm release after it (``kubernetes_utils.py``, ``helm.py``).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.cnf import driver
from tacker_k8s_mgmt.hooks.cnf.driver import CnfHook
from tacker_k8s_mgmt.hooks.v2 import hook
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.program import Streams
from tacker_k8s_mgmt.model.services import Cnf
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE

_FORCEFUL = "FORCEFUL"
# Before Tacker stores what the request changes.
_MODIFY_START = "modify_information_start"


class CnfHookV2(CnfHook):
    """A call of a hook."""

    advices = driver.V2

    def __init__(self, call: HookCall) -> None:
        super().__init__(call.operation, call.vnf_id)
        self._call = call

    @property
    def vnf_name(self) -> str:
        return self._call.vnf_name

    @property
    def occurrence(self) -> str:
        return self._call.occurrence

    @property
    def is_forceful(self) -> bool:
        return bool(self._call.request.get("terminationType") == _FORCEFUL)

    @property
    def additional_params(self) -> Mapping[str, Any]:
        return self._call.additional_params

    @property
    def metadata(self) -> Mapping[str, Any]:
        kept = self._call.instance.get("metadata") or {}
        return _merged(kept, self.patch) if self.name == _MODIFY_START else kept

    @property
    def patch(self) -> Mapping[str, Any]:
        return self._call.patch

    def endpoint(self) -> str:
        interface = self._vim.get("interfaceInfo") or {}
        return str(interface.get("endpoint") or "")

    def token(self) -> str:
        interface = self._vim.get("interfaceInfo") or {}
        access = self._vim.get("accessInfo") or {}
        return driver.token(access, interface.get("ssl_ca_cert"))

    @property
    def _vim(self) -> Mapping[str, Any]:
        """The CNF's VIM, as the operation leaves it."""
        call = self._call
        if self.name == _MODIFY_START:
            kept = call.instance.get("vimConnectionInfo") or {}
            patch = call.request.get("vimConnectionInfo") or {}
            infos = _merged(kept, patch)
            call = replace(call, instance={**call.instance, "vimConnectionInfo": infos})
        return call.vim

    def namespace(self) -> str:
        info = self._call.instance.get("instantiatedVnfInfo") or {}
        metadata = info.get("metadata") or {}
        # A failed instantiation has left no information yet.
        given = self._call.additional_params.get("namespace")
        return str(metadata.get("namespace") or given or "")

    def cnf(self) -> Cnf:
        """The CNF, by what Tacker writes into its Services."""
        release = f"vnf{self.vnf_id.replace('-', '')}"
        return Cnf(self.vnf_id, self.namespace() or "default", release=release)

    def package(self) -> str:
        return self._call.package

    def begin(self) -> None:
        """Nothing: this process has no transaction open."""

    def keep(self, params: Any) -> None:
        """Keep the parameter of the instantiation in the VNF instance's metadata."""
        if params is not None:
            metadata = self._call.instance.get("metadata") or {}
            self._call.instance["metadata"] = {**metadata, ATTRIBUTE: params}

    def forget(self) -> None:
        metadata = dict(self._call.instance.get("metadata") or {})
        if metadata.pop(ATTRIBUTE, None) is not None:
            self._call.instance["metadata"] = metadata


def _merged(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The value after a JSON merge patch (RFC 7396), by which Tacker modifies it."""
    result = dict(value)
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        elif isinstance(change, Mapping):
            former = result.get(name)
            result[name] = _merged(
                former if isinstance(former, Mapping) else {}, change
            )
        else:
            result[name] = change
    return result


def perform(call: HookCall, streams: Streams) -> None:
    """Run a hook; *call* is changed in place.

    :raises K8sMgmtError: with what is wrong, for the operator.
    """
    hook.begin(streams)
    if call.operation not in driver.HOOKS:
        raise errors.UnsupportedOperation(
            detail=f"This release has no hook {call.operation}.",
            hint="Take it out of the VNFD, or upgrade tacker-k8s-mgmt.",
        )
    instantiated = call.instance.get("instantiationState") == "INSTANTIATED"
    if instantiated or not call.operation.startswith("modify_information"):
        driver.perform(CnfHookV2(call))
