# SPDX-License-Identifier: Apache-2.0
"""One call of a hook of Tacker's v1 API: its parameters, and its site."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.hook import Hook
from tacker_k8s_mgmt.hooks.secret_sources import Secrets
from tacker_k8s_mgmt.hooks.v1 import database, heal_update, stack
from tacker_k8s_mgmt.hooks.v1.instance import (
    END_POINT,
    START_POINT,
    V1Instance,
    V1Request,
)
from tacker_k8s_mgmt.hooks.v1.vim_registry import VimRegistry
from tacker_k8s_mgmt.remote import heat
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile
from tacker_k8s_mgmt.request.reader import (
    ClusterRequest,
    RequestReader,
    merged_metadata,
)
from tacker_k8s_mgmt.request.secrets import Resolver
from tacker_k8s_mgmt.topology import connection_points
from tacker_k8s_mgmt.topology.stack_resources import StackResource

LOG = logging.getLogger(__name__)


class V1Hook(Hook):
    """One call of a hook, with what Tacker's v1 API passes.

    :param vnf_instance: Tacker's object.
    :param request: Tacker's object of it; None for the rollback of an instantiation.
    :param vnf: what Tacker passes under this name and has not stored yet.
    """

    def __init__(
        self,
        name: str,
        context: Any,
        vnf_instance: Any,
        request: Any = None,
        vnf: Mapping[str, Any] | None = None,
    ) -> None:
        self.instance = V1Instance(context, vnf_instance)
        self.sent = V1Request(request)
        self._vnf = vnf
        self._occurrence: str | None = None
        super().__init__(name, self.instance.vnf_id, cfg.CONF)

    def parameters(self) -> tuple[Any, Any]:
        stored, later = self.instance.parameters, self.sent.parameters
        return (later or stored, None) if self.instantiates else (stored, later)

    def accepts_stored(self) -> bool:
        """Whether the stored parameters are right by themselves."""
        try:
            RequestReader(
                find_profile=self.profile_source(server_only=True),
                find_server=self.operators_server,
            ).read(self.instance.parameters)
        except errors.ParamError:
            return False
        return True

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See :attr:`Hook.metadata`; those of a request are not stored yet."""
        return merged_metadata(self.instance.metadata, self.patch)

    @property
    def vnfcs(self) -> Mapping[str, str]:
        return self.instance.vnfcs

    def kept_profile(self) -> Any:
        return self.instance.profile

    def keep_profile(self, profile: ResolvedProfile | None) -> None:
        self.instance.keep_profile(profile)

    def forget(self) -> None:
        self.instance.forget_login_vim()
        self.instance.keep_profile(None)

    def package(self) -> str:
        return self.instance.package()

    def resolver(self) -> Resolver:
        login = partial(stack.login, self.instance)
        return Secrets(login, self.options, self.instance.project)

    def begin(self) -> None:
        """Store where a retry begins, and release Tacker's database connection."""
        if self._occurrence is None:
            point = START_POINT if self.name.endswith("_start") else END_POINT
            self._occurrence = self.instance.checkpoint(point, self._vnf) or ""
        database.release(self.instance.context)

    @property
    def vnf_name(self) -> str:
        return self.instance.name

    @property
    def occurrence(self) -> str:
        return self._occurrence or ""

    def scale(self) -> tuple[str, str, int | None] | None:
        return self.sent.scale if self.sent else None

    def healed_vdus(self) -> Sequence[str]:
        vnfcs = self.sent.vnfcs if self.sent else ()
        every, others = self.instance.vdus(), self.instance.vdus(without=vnfcs)
        return tuple((every - others).elements())

    def site(self, request: ClusterRequest) -> "V1Site":
        return V1Site(self, request)


class V1Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: VimRegistry

    def __init__(self, hook: V1Hook, params: ClusterRequest) -> None:
        self._instance = hook.instance
        owner = self._instance.vnf_id, self._instance.project
        super().__init__(*owner, params, hook.options, hook.state_path, hook.name)
        self.note = hook.note
        self.vims = VimRegistry(self._instance)

    @cached_property
    def _heat(self) -> stack.Heat:
        return stack.heat_of(self._instance)

    def expect_stack(self) -> None:
        try:
            # Its login is in Tacker's database, whose session is not for other threads.
            _ = self._heat
        except Exception as error:
            LOG.info("The stack is listed later: %s", error)
        else:
            super().expect_stack()

    def _list_stack(self) -> tuple[str, Sequence[StackResource]]:
        stack_id = self._instance.stack_id
        try:
            resources = self._heat.resources
        except Exception as error:
            # Keystone's client and Tacker raise many kinds.
            raise heat.unreadable(stack_id, error) from error
        servers = self._params.wants_compute_hosts
        return stack_id, heat.list_resources(resources, stack_id, servers)

    def changes_of_heal(self, request: V1Request) -> Mapping[str, Sequence[str]]:
        """See :func:`~tacker_k8s_mgmt.hooks.v1.heal_update.changes`."""
        resources = self._stack()[1]
        return heal_update.changes(self._instance, request, resources, self._heat)

    def fixed_groups(self) -> Sequence[str]:
        """See :func:`~tacker_k8s_mgmt.topology.connection_points.left_out`."""
        return connection_points.left_out(self._stack()[1])

    def _package_root(self) -> str:
        return self._instance.package()
