# SPDX-License-Identifier: Apache-2.0
"""Tacker's v2 API: the program behind the shim in a CNF's package, and its calls.

Tacker labels what it makes of manifests with the id of the VNF instance, and names a
Helm release after it (``kubernetes_utils.py``, ``helm.py``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.advice import Advice
from tacker_k8s_mgmt.hooks.cnf import driver, manifests
from tacker_k8s_mgmt.hooks.v2 import hook
from tacker_k8s_mgmt.hooks.v2.call import HookCall
from tacker_k8s_mgmt.hooks.v2.program import Streams
from tacker_k8s_mgmt.model.services import Cnf, Service
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE

_FORCEFUL = "FORCEFUL"
# Before Tacker stores what the request changes.
_MODIFY_START = "modify_information_start"


class CnfHookV2:
    """A call of a hook."""

    def __init__(self, call: HookCall) -> None:
        self.name = call.operation
        self.vnf_id = call.vnf_id
        self._call = call

    @property
    def advice(self) -> Advice:
        """What to send when the hook has failed."""
        return driver.V2[self.name]

    @property
    def is_forceful(self) -> bool:
        """Whether the request is to be carried out whatever fails."""
        return bool(self._call.request.get("terminationType") == _FORCEFUL)

    @property
    def additional_params(self) -> Mapping[str, Any]:
        """``additionalParams`` of the instantiation; later ones have none of ours."""
        return self._call.additional_params

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Those of the VNF instance, as the operation leaves them."""
        kept = self._call.instance.get("metadata") or {}
        if self.name != _MODIFY_START:
            return kept
        return _merged(kept, self.patch)

    @property
    def patch(self) -> Mapping[str, Any]:
        """``metadata`` of a request that modifies the VNF instance."""
        return self._call.patch

    def endpoint(self) -> str:
        """URL of the API that is the CNF's VIM; "" if there is no VIM any more."""
        interface = self._vim.get("interfaceInfo") or {}
        return str(interface.get("endpoint") or "")

    @property
    def project(self) -> str:
        """None: Tacker does not tell it."""
        return ""

    def token(self) -> str:
        """The token with which Tacker uses the CNF's VIM; "" if it uses none."""
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
        """Where Tacker puts the CNF; "" if only its manifests say it."""
        info = self._call.instance.get("instantiatedVnfInfo") or {}
        metadata = info.get("metadata") or {}
        # A failed instantiation has left no information yet.
        given = self._call.additional_params.get("namespace")
        return str(metadata.get("namespace") or given or "")

    def cnf(self) -> Cnf:
        """The CNF, by what Tacker writes into its Services."""
        release = f"vnf{self.vnf_id.replace('-', '')}"
        return Cnf(self.vnf_id, self.namespace() or "default", release=release)

    def manifests(self) -> Sequence[Service] | None:
        """The Services of its manifests; None for a chart or what cannot be read."""
        given = self._call.additional_params
        files = given.get("lcm-kubernetes-def-files")
        if not isinstance(files, Sequence):
            return None
        return manifests.services(self._call.package, files, given.get("namespace"))

    def begin(self) -> None:
        """Nothing: this process has no transaction open."""

    def keep(self, params: Any) -> None:
        """Keep the parameter of the instantiation in the VNF instance's metadata."""
        if params is not None:
            metadata = self._call.instance.get("metadata") or {}
            self._call.instance["metadata"] = {**metadata, ATTRIBUTE: params}

    def forget(self) -> None:
        """Remove what is kept."""
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
