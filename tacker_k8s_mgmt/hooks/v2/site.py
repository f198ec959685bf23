"""The site of an operation in the v2 API: what Tacker passes, joined with effects."""

from collections.abc import Sequence
from typing import Any

from tacker_k8s_mgmt.hooks.v2.heat import resources_of
from tacker_k8s_mgmt.hooks.v2.request import Call
from tacker_k8s_mgmt.hooks.v2.vim import Connections
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.heat_stack import StackResource

# The v2 API does not say whose project a request is of.
PROJECT = ""


class V2Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: Connections

    def __init__(
        self,
        call: Call,
        params: InstallParams,
        options: Any,
        state_path: str,
        operation: str,
    ) -> None:
        super().__init__(call.vnf_id, PROJECT, params, options, state_path, operation)
        self._call = call
        self.vims = Connections(call.instance)

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        servers = self._params.wants_compute_hosts
        return self._call.stack, resources_of(self._call, servers)

    def _package_root(self) -> str:
        return self._call.package
