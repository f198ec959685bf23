# SPDX-License-Identifier: Apache-2.0
"""Objects of Tacker's v1 API: VNF instances, requests, and calls of hooks."""

import types
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tests.helpers.model.faults import Trouble
from tests.helpers.model.site import GROUP
from tests.helpers.model.tacker import Kind, Operation
from tests.helpers.requests import VNF

if TYPE_CHECKING:
    from tests.helpers.model.v1 import V1


class _Instance(types.SimpleNamespace):
    """Tacker's VNF instance; what is set in it is stored."""

    def save(self) -> None:
        pass


class _ModelInstance(V1Instance):
    """The VNF instance, with what Tacker's database has beside it."""

    def __init__(self, context: None, record: Any, patch: Mapping[str, Any]) -> None:
        super().__init__(context, record)
        self._patch = patch

    def package(self) -> str:
        return "/nowhere"

    def requested_metadata(self) -> Mapping[str, Any]:
        return self._patch


class ModelHook(V1Hook):
    """A call of a hook on the model's site."""

    def __init__(
        self, name: str, tacker: "V1", operation: Operation, trouble: Trouble
    ) -> None:
        super().__init__(name, None, tacker.instance, _request(tacker, operation))
        #: What Tacker passes to the hooks of a scale.
        self.passed = {"scale_out_id_list": operation.data.get("stacks", ())}
        self.clock = tacker.clock
        self._journal = tacker.journal
        self._tacker, self._trouble = tacker, trouble
        self.instance = _ModelInstance(None, tacker.instance, operation.patch)

    def begin(self) -> None:
        """Tacker's database has nothing of this."""

    def site(self, params: Any) -> AbstractContextManager[Any]:  # type: ignore[override]
        return self._tacker.opened(self._trouble)


def new_instance() -> Any:
    """A VNF instance that is not instantiated."""
    return _Instance(
        id=VNF,
        tenant_id="tenant",
        vnfd_id="vnfd",
        vnf_metadata={},
        vim_connection_info=[],
        task_state=None,
        instantiated_vnf_info=None,
    )


def _request(tacker: "V1", operation: Operation) -> Any:
    """Tacker's object of the request; None for a rollback."""
    if operation.data.get("rolls back"):
        return None
    kind = operation.kind
    return types.SimpleNamespace(
        additional_params=tacker.params if kind is Kind.INSTANTIATE else {},
        aspect_id=GROUP,
        type=kind.name,
        number_of_steps=1,
        vnfc_instance_id=list(operation.vnfcs),
        termination_type="GRACEFUL",
        ext_virtual_links=[],
    )


def server_of(vnfc: Any) -> str:
    return str(vnfc.compute_resource.resource_id)


def vnfc_of(server: str, vdu: str, stack: str) -> Any:
    return types.SimpleNamespace(
        id=f"vnfc-{server}",
        vdu_id=vdu,
        compute_resource=types.SimpleNamespace(resource_id=server),
        stack=stack,
        metadata={"stack_id": stack},
    )
