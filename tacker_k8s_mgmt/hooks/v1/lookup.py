# SPDX-License-Identifier: Apache-2.0
"""Access to a VNF instance of Tacker's v1 API, for commands of an operator."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacker import context as tacker_context
from tacker import manager, objects
from tacker.common import exceptions

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import instance_view
from tacker_k8s_mgmt.hooks.instance_view import ClusterSummary
from tacker_k8s_mgmt.hooks.v1 import group_sizes, vim_registry
from tacker_k8s_mgmt.hooks.v1 import instance as requests
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook, V1Site
from tacker_k8s_mgmt.model.nodes import Count
from tacker_k8s_mgmt.remote.readonly_site import (
    NoSuchInstance,
    OpenCluster,
    ReadOnlySite,
)
from tacker_k8s_mgmt.request.reader import ClusterRequest, names_parameters
from tacker_k8s_mgmt.status.facts import HealCommands

_WAY_OUT = "Use the release of the driver that took them."


class SeenV1Site(ReadOnlySite, V1Site):
    """The site of a VNF instance of the v1 API."""

    def counts(self) -> tuple[Count, ...]:
        """The sizes of the scaling groups, in Heat and by Tacker's scale levels."""
        return group_sizes.counts(self)


def named(name: str) -> list[str]:
    """Ids of the VNF instances of this name."""
    objects.register_all()
    manager.TackerManager.get_service_plugins()
    field = {"model": "VnfInstance", "field": "vnf_instance_name"}
    found = objects.VnfInstanceList.get_by_filters(
        tacker_context.get_admin_context(), {**field, "op": "==", "value": name}
    )
    return [str(one.id) for one in found.objects]


def listed() -> Iterator[ClusterSummary]:
    """The clusters of this API, of all projects."""
    objects.register_all()
    manager.TackerManager.get_service_plugins()
    context = tacker_context.get_admin_context()
    known = vim_registry.all_vims(context)
    for instance in objects.VnfInstanceList.get_all(context):
        operations = sorted(
            requests.occurrences(context, instance.id), key=lambda row: row.start_time
        )
        given = (str(row.operation_params or "") for row in operations)
        if requests.is_cluster(instance) or any(map(names_parameters, given)):
            own = (instance.vnf_metadata or {}).get(vim_registry.METADATA_KEY)
            yield _listed(instance, known.get(str(own), {}), operations[-1:])


def _listed(
    instance: Any, own: Mapping[str, Any], last: Sequence[Any]
) -> ClusterSummary:
    """A cluster in short.

    :param own: its VIM; empty without one.
    :param last: its last operation, or none.
    """
    info = instance.instantiated_vnf_info
    vnfcs = (info.vnfc_resource_info if info else None) or ()
    one = last[0] if last else None
    return ClusterSummary(
        str(instance.id),
        str(instance.vnf_instance_name or ""),
        "v1",
        str(instance.instantiation_state),
        str(own.get("name", "")),
        str(own.get("auth_url", "")),
        Counter(str(vnfc.vdu_id) for vnfc in vnfcs),
        *((one.operation, one.operation_state, one.id) if one else ()),
    )


class V1Record:
    """A VNF instance in Tacker's database.

    :ivar open_operation: its unfinished operations, as text; "" if there is none.
    :raises NoSuchInstance: there is none with this id.
    """

    def __init__(self, vnf_id: str) -> None:
        objects.register_all()
        # First: it sets up access to the database.
        manager.TackerManager.get_service_plugins()
        self._context = tacker_context.get_admin_context()
        try:
            self._instance = objects.VnfInstance.get_by_id(self._context, vnf_id)
        except exceptions.VnfInstanceNotFound as error:
            raise NoSuchInstance(vnf_id) from error
        self.open_operation = _open_operations(self._context, vnf_id)

    def command(self, name: str) -> tuple[V1Hook, ClusterRequest]:
        """What a command works with, in place of a call of a hook.

        :param name: the command's, for the cluster's lock and the journal.
        :raises TackerError: the VNF instance is not a cluster.
        :raises ParamError: this release does not accept its parameters.
        """
        instance = self._instance
        info = instance.instantiated_vnf_info
        if info is None or not info.instance_id:
            raise errors.TackerError(
                detail=f"The VNF instance {instance.id} is not instantiated."
            )
        hook = V1Hook(name, self._context, instance)
        params = hook.parsed(_WAY_OUT)
        if params is None:
            raise errors.TackerError(
                detail=f"The VNF instance {instance.id} is no cluster: the request "
                "that instantiated it has no k8s_cluster_installation_param."
            )
        return hook, params

    def opened(self) -> OpenCluster:
        """The cluster, read-only.

        :raises TackerError, ParamError: see :meth:`command`.
        """
        hook, params = self.command("cluster check")
        view = SeenV1Site(hook, params)
        name = str(self._instance.vnf_instance_name or "")
        vnf_id = str(self._instance.id)
        metadata, operation = hook.metadata, self.open_operation
        heals = HealCommands(vnf_id, "v1", hook.vnfcs())
        return OpenCluster(vnf_id, name, operation, params, view, metadata, heals)


def _open_operations(context: Any, vnf_id: str) -> str:
    is_open = ("operation_state", "not_in", instance_view.ENDED)
    occurrences = requests.occurrences(context, vnf_id, is_open)
    return instance_view.described(
        (row.operation, row.id, row.operation_state) for row in occurrences
    )
