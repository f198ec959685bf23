# SPDX-License-Identifier: Apache-2.0
"""One call of a hook of Tacker's v1 API: its parameters, and its site."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg
from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt.hooks.hook import Hook, named, scale_details
from tacker_k8s_mgmt.hooks.secret_sources import Secrets
from tacker_k8s_mgmt.hooks.v1 import database, heal_update, instance, stack
from tacker_k8s_mgmt.hooks.v1.vim_registry import VimRegistry
from tacker_k8s_mgmt.remote import heat
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.reader import ClusterRequest, merged_metadata
from tacker_k8s_mgmt.request.secrets import Resolver
from tacker_k8s_mgmt.topology import connection_points, scaling_groups
from tacker_k8s_mgmt.topology.heat_stack import StackResource
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize


class V1Hook(Hook["V1Site"]):
    """One call of a hook, with what Tacker's v1 API passes.

    :param request: None for the rollback of an instantiation.
    :param stacks: ids of the stacks of the group members that are scaled.
    :param vnf: what Tacker passes under this name and has not stored yet.
    """

    def __init__(
        self,
        name: str,
        context: Any,
        vnf_instance: Any,
        request: Any = None,
        stacks: Collection[str] = (),
        vnf: Any = None,
    ) -> None:
        super().__init__(name, vnf_instance.id, cfg.CONF)
        self.context = context
        self.instance = vnf_instance
        self.request = request
        self.stacks = stacks
        self._vnf = vnf
        self._occurrence = ""

    def parsed(self, advice: str) -> ClusterRequest | None:
        """The parameters of an instantiation's request or, without one, as stored."""
        given = self._requested() or instance.stored(self.instance)
        parse = partial(self.reader(self._secrets()).read, given)
        params = self._read(parse, advice)
        if params and self.name.startswith("instantiate_"):
            instance.keep(self.instance, params.expansion)
        return params

    def merged(
        self,
        advice: str,
        needed: Collection[str] | None = None,
        resolver: Resolver | None = None,
        retried: bool = True,
    ) -> ClusterRequest | None:
        """The stored parameters, updated by those of a later request.

        :param needed: the structures whose secrets are needed, None for all.
        :param resolver: replaces the one that reads files and asks Barbican.
        :param retried: whether Tacker calls the hook again at a retry.
        """
        reader = self.reader(resolver or self._secrets(), needed)
        stored = instance.stored(self.instance)
        parse = partial(reader.update, stored, self._requested())
        return self._read(parse, advice, retried)

    def kept_profile(self) -> Any:
        """See :meth:`Hook.kept_profile`."""
        return instance.kept(self.instance)

    def package(self) -> str:
        """See :meth:`Hook.package`."""
        vnfd_id = self.instance.vnfd_id
        return str(vnflcm_utils._get_vnf_package_path(self.context, vnfd_id))

    def begin(self) -> None:
        """Store where a retry begins, and release Tacker's database connection."""
        begins = self.name.endswith("_start")
        point = instance.START_POINT if begins else instance.END_POINT
        found = instance.save(self.context, self.instance, point, self._vnf)
        self._occurrence = found or ""
        database.release(self.context)

    def details(self) -> Mapping[str, Any]:
        """See :meth:`Hook.details`."""
        name = getattr(self.instance, "vnf_instance_name", "")
        details = named(name, self._occurrence)
        scale = self.request
        # Work for a CNF that is scaled has no request of the cluster.
        if scale is None or not self.name.startswith("scale_"):
            return details
        size = (scale.type, scale.aspect_id, scale.number_of_steps)
        return {**details, **scale_details(*size)}

    @property
    def metadata(self) -> Mapping[str, Any]:
        """See :attr:`Hook.metadata`; those of a request are not stored yet."""
        return merged_metadata(self.instance.vnf_metadata or {}, self.patch)

    def vnfcs(self) -> Mapping[str, str]:
        """See :meth:`Hook.vnfcs`."""
        return instance.vnfcs(self.instance)

    def site(self, params: ClusterRequest) -> "V1Site":
        """What an operation on this VNF instance may touch."""
        return V1Site(self, params)

    def _requested(self) -> Any:
        return getattr(self.request, "additional_params", None)

    def _secrets(self) -> Secrets:
        login = partial(stack.login, self.context, self.instance)
        return Secrets(login, self.options, self.instance.tenant_id)


class V1Site(Site):
    """Everything that an operation on one VNF instance may touch.

    :ivar context: of the request.
    :ivar instance: Tacker's VNF instance.
    """

    vims: VimRegistry

    def __init__(self, hook: V1Hook, params: ClusterRequest) -> None:
        self.context, self.instance = hook.context, hook.instance
        owner = self.instance.id, self.instance.tenant_id
        super().__init__(*owner, params, hook.options, hook.state_path, hook.name)
        self.note = hook.note
        self.vims = VimRegistry(self.context, self.instance)
        self._hook = hook

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        stack_id = self.instance.instantiated_vnf_info.instance_id
        try:
            client = stack.heat_of(self.context, self.instance)
        except Exception as error:
            # Keystone's client and Tacker raise many kinds.
            raise heat.unreadable(stack_id, error) from error
        servers = self._params.wants_compute_hosts
        return stack_id, heat.list_resources(client.resources, stack_id, servers)

    def group_sizes(self) -> Mapping[str, GroupSize]:
        """The sizes of the scaling groups in Heat, by the groups' names.

        :raises RemoteError: Heat did not answer as it should.
        """
        return scaling_groups.sizes(self._stack()[1])

    def refuse_hopeless_heal(self, request: Any) -> None:
        """See :func:`~tacker_k8s_mgmt.hooks.v1.heal_update.refuse_hopeless`.

        :raises RemoteError: Heat did not answer as it should.
        """
        stack_id, resources = self._stack()
        try:
            client = stack.heat_of(self.context, self.instance)
            status = str(client.stacks.get(stack_id).stack_status)
        except Exception as error:
            raise heat.unreadable(stack_id, error) from error
        heal_update.refuse_hopeless(self.instance, status, resources, request)

    def changes_of_heal(self, request: Any) -> Mapping[str, Sequence[str]]:
        """See :func:`~tacker_k8s_mgmt.hooks.v1.heal_update.changes`."""
        return heal_update.changes(self.context, self.instance, request)

    def fixed_groups(self) -> Sequence[str]:
        """See :func:`~tacker_k8s_mgmt.topology.connection_points.left_out`."""
        return connection_points.left_out(self._stack()[1])

    def _package_root(self) -> str:
        return self._hook.package()
