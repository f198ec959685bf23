# SPDX-License-Identifier: Apache-2.0
"""Access to a VNF instance of Tacker's v1 API, for commands of an operator."""

from collections.abc import Iterator, Mapping
from typing import Any

from tacker import context as tacker_context
from tacker import manager, objects
from tacker.common import exceptions

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import instance_view
from tacker_k8s_mgmt.hooks.advice import Advice
from tacker_k8s_mgmt.hooks.instance_view import ClusterSummary
from tacker_k8s_mgmt.hooks.v1 import database, group_sizes, instance, vim_registry
from tacker_k8s_mgmt.hooks.v1.hook import V1Hook, V1Site
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance
from tacker_k8s_mgmt.model.nodes import Count
from tacker_k8s_mgmt.model.plan import Plan
from tacker_k8s_mgmt.remote.readonly_site import NoSuchInstance, ReadOnlySite
from tacker_k8s_mgmt.request.reader import ClusterRequest, names_parameters

_WAY_OUT = Advice((), "Use the release of the driver that took them.")


class SeenV1Site(ReadOnlySite, V1Site):
    """The site of a VNF instance of the v1 API."""

    def counts(self) -> tuple[Count, ...]:
        """The sizes of the scaling groups, in Heat and by Tacker's scale levels."""
        return group_sizes.counts(self._instance, self.group_sizes())


def _administrator() -> Any:
    """An administrator's context, with access to Tacker's database."""
    objects.register_all()
    manager.TackerManager.get_service_plugins()
    return tacker_context.get_admin_context()


def named(name: str) -> list[str]:
    """Ids of the VNF instances of this name."""
    return instance.ids_of_name(_administrator(), name)


def listed() -> Iterator[ClusterSummary]:
    """The clusters of this API, of all projects."""
    context = _administrator()
    vims = vim_registry.all_vims(context)
    for one in instance.every(context):
        history = one.history()
        requests = (request for *_, request in history)
        if one.is_cluster or any(map(names_parameters, requests)):
            last = instance_view.to_show(history, lambda row: row[1]) or ("", "", "")
            yield _listed(one, vims.get(one.vim_id, {}), last[:3])


def _listed(
    one: V1Instance, vim: Mapping[str, Any], last: tuple[str, str, str]
) -> ClusterSummary:
    """A cluster in short.

    :param vim: its own; empty without one.
    :param last: kind, state and id of its operation to show.
    """
    name, url = str(vim.get("name", "")), str(vim.get("auth_url", ""))
    vnf = (one.vnf_id, one.name, "v1", one.state)
    return ClusterSummary(*vnf, name, url, one.vdus(), *last)


def operation_state(context: Any, occurrence: str) -> str:
    """The state of an LCM operation occurrence; "" if this API has none of this id."""
    objects.register_all()
    try:
        found = objects.VnfLcmOpOcc.get_by_id(context, occurrence)
    except exceptions.NotFound:
        return ""
    return str(found.operation_state)


class Command(V1Hook):
    """A command, in place of a call of a hook."""

    # It may be named after a hook of a CNF.
    instantiates = False

    def begin(self) -> None:
        """Release Tacker's database connection; no operation of Tacker begins."""
        database.release(self.instance.context)


class V1Record:
    """A VNF instance in Tacker's database.

    :ivar open_operation: its unfinished operations, as text; "" if there is none.
    :ivar under_way: the id of the one that Tacker works on; "" if there is none.
    :raises NoSuchInstance: there is none with this id.
    """

    view = SeenV1Site

    def __init__(self, vnf_id: str) -> None:
        try:
            self._instance = instance.find(_administrator(), vnf_id)
        except exceptions.VnfInstanceNotFound as error:
            raise NoSuchInstance(vnf_id) from error
        unfinished = self._instance.open_operations()
        self.open_operation = instance_view.described(unfinished)
        self.under_way = instance_view.under_way(unfinished)

    def command(self, name: str) -> tuple[V1Hook, ClusterRequest]:
        """What a command works with, in place of a call of a hook.

        :param name: the command's, for the cluster's lock and the journal.
        :raises TackerError: the VNF instance is not a cluster.
        :raises ParamError: this release does not accept its parameters.
        """
        one = self._instance
        if not one.stack_id:
            raise errors.TackerError(
                detail=f"The VNF instance {one.vnf_id} is not instantiated."
            )
        hook = Command(name, one.context, one.record)
        request = hook.request(wrong=_WAY_OUT)
        if request is None:
            raise errors.TackerError(
                detail=f"The VNF instance {one.vnf_id} is no cluster: the request "
                "that instantiated it has no k8s_cluster_installation_param."
            )
        return hook, request

    def plan(self, operation: str, body: Mapping[str, Any]) -> Plan:
        """The plan of an operation; see :func:`.planning.plan`."""
        from tacker_k8s_mgmt.hooks.v1 import planning

        return planning.plan(self._instance, operation, body)
