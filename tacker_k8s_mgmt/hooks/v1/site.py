"""The site of an operation in the v1 API: Tacker's objects joined with effects."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacker.vnflcm import utils as vnflcm_utils

from tacker_k8s_mgmt.hooks.v1 import rollback
from tacker_k8s_mgmt.hooks.v1.vim import VimRegistry
from tacker_k8s_mgmt.remote import heat
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology import connection_points, scaling_groups
from tacker_k8s_mgmt.topology.heat_stack import StackResource
from tacker_k8s_mgmt.topology.scaling_groups import GroupSize


class V1Site(Site):
    """Everything that an operation on one VNF instance may touch."""

    vims: VimRegistry

    def __init__(
        self,
        context: Any,
        vnf_instance: Any,
        params: InstallParams,
        options: Any,
        state_path: str,
        operation: str = "an operation",
    ) -> None:
        super().__init__(
            vnf_instance.id,
            vnf_instance.tenant_id,
            params,
            options,
            state_path,
            operation,
        )
        self._context = context
        self._instance = vnf_instance
        self.vims = VimRegistry(context, vnf_instance)

    def _stack(self) -> tuple[str, Sequence[StackResource]]:
        stack_id = self._instance.instantiated_vnf_info.instance_id
        try:
            client = rollback.heat_of(self._context, self._instance)
        except Exception as error:
            # Whatever Keystone's client and Tacker may raise.
            raise heat.unreadable(stack_id, error) from error
        servers = self._params.wants_compute_hosts
        return stack_id, heat.list_resources(client.resources, stack_id, servers)

    def group_sizes(self) -> Mapping[str, GroupSize]:
        """The sizes of the scaling groups in Heat, by the groups' names.

        :raises RemoteError: Heat did not answer as it should.
        """
        return scaling_groups.sizes(self._stack()[1])

    def fixed_groups(self) -> Sequence[str]:
        """See :func:`~tacker_k8s_mgmt.topology.connection_points.left_out`."""
        return connection_points.left_out(self._stack()[1])

    def _package_root(self) -> str:
        return str(
            vnflcm_utils._get_vnf_package_path(self._context, self._instance.vnfd_id)
        )
