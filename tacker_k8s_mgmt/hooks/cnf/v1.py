# SPDX-License-Identifier: Apache-2.0
"""Tacker's v1 API: the class behind the frozen shim of the CNF's driver.

Tacker lists what it makes on a Kubernetes VIM, also for a Helm release, as
``VnfResource`` rows, and keeps their namespace in the VNF instance's metadata
(``kubernetes_driver.py``).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.cnf import driver
from tacker_k8s_mgmt.hooks.cnf.driver import CnfHook
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook
from tacker_k8s_mgmt.model.services import Cnf, Service
from tacker_k8s_mgmt.request.cnf_exposure import ATTRIBUTE

TYPE = "mgmt-drivers-cnf-exposure"
_SERVICE = ",Service"


class CnfHookV1(CnfHook):
    """A call of a hook."""

    advices = driver.V1

    def __init__(self, name: str, hook: V1Hook) -> None:
        super().__init__(name, hook.vnf_id)
        self._hook = hook
        self._instance = hook.instance

    @property
    def vnf_name(self) -> str:
        return self._hook.vnf_name

    @property
    def occurrence(self) -> str:
        return self._hook.occurrence

    @property
    def is_forceful(self) -> bool:
        return self._hook.sent.is_forceful

    @property
    def additional_params(self) -> Mapping[str, Any]:
        if self.name.startswith("instantiate") and self._hook.sent:
            return self._hook.sent.parameters or {}
        return self._instance.parameters or {}

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._hook.metadata

    @property
    def patch(self) -> Mapping[str, Any]:
        return self._hook.patch

    def endpoint(self) -> str:
        return str(self._vim_access()["auth_url"]) if self._instance.has_vim else ""

    @property
    def project(self) -> str:
        return self._instance.project

    def token(self) -> str:
        access = self._vim_access()
        return driver.token(access, access.get("ssl_ca_cert"))

    def _vim_access(self) -> Mapping[str, Any]:
        """The access information of the CNF's VIM, which its project may use.

        :raises VimError: Tacker does not have it.
        """
        try:
            access = self._instance.vim_access()
            return {"auth_url": access["auth_url"], **access}
        except Exception as error:
            # Tacker raises many kinds, whose texts may have the access information.
            raise errors.VimError(
                detail="The VIM that the CNF runs on could not be read from Tacker "
                f"({type(error).__name__}).",
                hint="See that `openstack vim show` shows it.",
            ) from None

    def namespace(self) -> str:
        given = self.additional_params.get("namespace")
        # What an earlier life of the VNF instance has left does not hold any more.
        is_new = self.name == "instantiate_start"
        known = None if is_new else self.metadata.get("namespace")
        return str(known or given or "")

    def cnf(self) -> Cnf:
        """The CNF, by the Services that Tacker lists."""
        rows = self._instance.resources()
        names = frozenset(name for kind, name in rows if kind.endswith(_SERVICE))
        return Cnf(self.vnf_id, self.namespace() or "default", names)

    def package(self) -> str:
        return self._instance.package()

    def manifests(self) -> Sequence[Service] | None:
        is_chart = str(self.additional_params.get("use_helm")).lower() == "true"
        return None if is_chart else super().manifests()

    def begin(self) -> None:
        """Store where a retry begins, and release Tacker's database connection."""
        self._hook.begin()

    def keep(self, params: Any) -> None:
        """Remove an earlier one: Tacker keeps the parameters of the instantiation."""
        if params is not None:
            self.forget()

    def forget(self) -> None:
        """See :meth:`CnfHook.forget`; Tacker stores it."""
        metadata = self._instance.metadata
        self._instance.set_metadata(
            {name: metadata[name] for name in metadata if name != ATTRIBUTE}
        )


def _hook(name: str, keyword: str) -> Callable[..., None]:
    """The method that Tacker calls for a hook.

    :param keyword: argument with the operation's request.
    """

    def method(
        self: Any, context: Any, vnf_instance: Any, request: Any = None, **passed: Any
    ) -> None:
        vnf = passed.get("vnf") if name == "instantiate_end" else None
        request = passed.get(keyword, request)
        hook = V1Hook(name, context, vnf_instance, request, vnf)
        if name.startswith("modify_information"):
            hook.patch = hook.instance.requested_metadata()
        # The rollback of an instantiation calls this one only, without a request.
        rolled_back = name == "terminate_end" and request is None
        acts = "instantiate_rollback_start" if rolled_back else name
        driver.perform(CnfHookV1(acts, hook))

    return method


class CnfMgmtDriver(vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):  # type: ignore[misc]
    """Tacker's v1 management-driver interface for CNFs."""

    def get_type(self) -> str:
        """The name in ``[tacker] vnflcm_mgmt_driver`` and in the VNFD."""
        return TYPE

    def get_name(self) -> str:
        """The same as the type."""
        return TYPE

    def get_description(self) -> str:
        """One line about the driver."""
        return "Exposure of a CNF on the load balancer of its cluster"

    instantiate_start = _hook("instantiate_start", "instantiate_vnf_request")
    instantiate_end = _hook("instantiate_end", "instantiate_vnf_request")
    terminate_start = _hook("terminate_start", "terminate_vnf_request")
    terminate_end = _hook("terminate_end", "terminate_vnf_request")
    scale_start = _hook("scale_start", "scale_vnf_request")
    scale_end = _hook("scale_end", "scale_vnf_request")
    heal_start = _hook("heal_start", "heal_vnf_request")
    heal_end = _hook("heal_end", "heal_vnf_request")
    change_external_connectivity_start = _hook(
        "change_external_connectivity_start", "change_ext_conn_request"
    )
    change_external_connectivity_end = _hook(
        "change_external_connectivity_end", "change_ext_conn_request"
    )
    modify_information_start = _hook("modify_information_start", "modify_vnf_request")
    modify_information_end = _hook("modify_information_end", "modify_vnf_request")
