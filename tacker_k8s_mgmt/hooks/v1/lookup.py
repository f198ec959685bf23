"""A VNF instance of Tacker's v1 API, to be looked at only."""

from typing import Any

from tacker import context as tacker_context
from tacker import manager, objects
from tacker.common import exceptions

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import requests, scale_level
from tacker_k8s_mgmt.hooks.v1.keystone import secrets_of
from tacker_k8s_mgmt.hooks.v1.site import V1Site
from tacker_k8s_mgmt.remote.readonly_site import Instance, NoSuchInstance, SeenSite
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.status.facts import Count

# Tacker has no constant for the last one.
_OVER = ("COMPLETED", "FAILED", "ROLLED_BACK")


class SeenV1Site(SeenSite, V1Site):
    """The site of a VNF instance of the v1 API."""

    def counts(self) -> tuple[Count, ...]:
        """The sizes of the scaling groups, in Heat and by Tacker's scale levels."""
        return scale_level.counts(self._context, self._instance, self.group_sizes())


class Record:
    """What Tacker's database has of a VNF instance.

    :raises NoSuchInstance: there is none.
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
        self._operation = _operation(self._context, vnf_id)

    def opened(self, options: Any, state_path: str) -> Instance:
        """The cluster.

        :raises TackerError: it is none.
        :raises ParamError: its parameters are none that this release takes.
        """
        params = _params(self._context, self._instance)
        view = SeenV1Site(self._context, self._instance, params, options, state_path)
        name = str(self._instance.vnf_instance_name or "")
        return Instance(str(self._instance.id), name, self._operation, params, view)


def _operation(context: Any, vnf_id: str) -> str:
    def only(field: str, operator: str, value: Any) -> dict[str, Any]:
        model = "VnfLcmOpOccs"
        return {"model": model, "field": field, "op": operator, "value": value}

    wanted = [only("vnf_instance_id", "==", vnf_id)]
    wanted.append(only("operation_state", "not_in", _OVER))
    found = objects.VnfLcmOpOccList.get_by_filters(
        context, read_deleted="no", filters={"and": wanted}
    )
    return ", ".join(
        f"{one.operation} {one.id} is {one.operation_state}" for one in found
    )


def _params(context: Any, instance: Any) -> InstallParams:
    info = instance.instantiated_vnf_info
    if info is None or not info.instance_id:
        raise errors.TackerError(
            detail=f"The VNF instance {instance.id} is not instantiated."
        )
    way_out = "Use the release of the driver that took them."
    params = requests.parse(instance, None, way_out, secrets_of(context, instance))
    if params is None:
        raise errors.TackerError(
            detail=f"The VNF instance {instance.id} is no cluster: the request that "
            "instantiated it has no k8s_cluster_installation_param."
        )
    return params
