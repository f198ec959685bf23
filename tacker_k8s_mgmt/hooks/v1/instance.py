# SPDX-License-Identifier: Apache-2.0
"""A VNF instance and its requests as Tacker's v1 API has them, and what to store there.

Of a request it reads our parameters, VNFCs and connection points.

Checkpoints store what Tacker keeps in memory while a hook runs. Tacker 16's v1 API
writes an operation's error point, the Heat stack's id and the scaling groups to its
database only when the operation ends (``tacker/conductor/conductor_server.py``), and
our hooks may run for an hour before:

* A killed conductor leaves the operation PROCESSING, and ``cancel`` makes it
  FAILED_TEMP with error point 0. Then Tacker refuses ``retry``, and ``rollback`` keeps
  the stack.
* When ``instantiate_end`` has failed, a ``retry`` completes the operation without the
  scaling groups, and Tacker answers every later scale request with an error.
* The error point of an operation that is over stays. A heal uses that of any operation
  of the VNF instance as its own (``openstack.py``, ``heal_vnf``), and may then replace
  no VM at all.

What the cluster's profile stood for at instantiation is kept in the metadata, as the
text of a JSON object: Tacker's v1 API keeps texts there.
"""

import json
from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging
from tacker import manager, objects
from tacker.objects import fields
from tacker.plugins.common import constants

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.instance_view import ENDED
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request import reader
from tacker_k8s_mgmt.request.profile_document import ResolvedProfile
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.topology.connection_points import Attachment


def stored(vnf_instance: Any) -> Any:
    """The additionalParams of the instantiation, as Tacker keeps them."""
    info = vnf_instance.instantiated_vnf_info
    return info.additional_params if info is not None else None


def is_cluster(vnf_instance: Any) -> bool:
    """Whether the VNF instance was instantiated with our parameters, valid or not."""
    try:
        return reader.RequestReader().read(stored(vnf_instance)) is not None
    except errors.ParamError:
        return True


def refuse_control_planes(read: ClusterRequest, request: Any) -> None:
    """See that a scale request is for workers.

    For a scale-out, Tacker calls no hook before Heat has created the VMs.

    :raises UnsupportedOperation: it is for the control plane.
    """
    if request.aspect_id == read.control_plane.aspect_id:
        raise errors.UnsupportedOperation(
            detail=f"The scaling aspect {request.aspect_id} is that of the control "
            "plane (master_node.aspect_id), which cannot be scaled; the cluster was "
            "not touched.",
        )


def servers(vnf_instance: Any, request: Any) -> dict[str, str]:
    """The VNFCs that a heal request names: their ids by the ids of their servers.

    Tacker's v1 API takes the ids of ``vnfcResourceInfo`` (not of ``vnfcInfo``).
    """
    wanted = set(request.vnfc_instance_id or ())
    return {s: vnfc for vnfc, s in vnfcs(vnf_instance).items() if vnfc in wanted}


def refuse_empty_heal(context: Any, vnf_instance: Any) -> None:
    """See that a heal of the whole VNF names no list of VNFCs.

    Tacker takes an empty one for none (``HealVnfRequest`` has it as its default), and
    deletes all VMs. The body of the request is kept with the operation.

    :raises NoVnfcError: it names an empty list.
    """
    under_way = (
        ("operation", "==", "HEAL"),
        ("operation_state", "==", "PROCESSING"),
    )
    rows = database.ask(
        context, lambda own: occurrences(own, vnf_instance.id, *under_way)
    )
    for row in rows:
        body = json.loads(row.operation_params or "{}")
        if isinstance(body, Mapping) and body.get("vnfcInstanceId") == []:
            raise errors.NoVnfcError


def vnfcs(vnf_instance: Any) -> dict[str, str]:
    """The server of each VNFC, by the VNFC's id, which a heal keeps."""
    info = vnf_instance.instantiated_vnf_info
    return {
        vnfc.id: vnfc.compute_resource.resource_id
        for vnfc in (info.vnfc_resource_info if info else None) or ()
    }


def occurrences(context: Any, vnf_id: str, *conditions: tuple[str, str, Any]) -> Any:
    """The operations of a VNF instance.

    :param conditions: field, operator and value of each.
    """
    listed = [
        {"model": "VnfLcmOpOccs", "field": field, "op": operator, "value": value}
        for field, operator, value in (("vnf_instance_id", "==", vnf_id), *conditions)
    ]
    return objects.VnfLcmOpOccList.get_by_filters(
        context, read_deleted="no", filters={"and": listed}
    )


def attachments(request: Any) -> tuple[Attachment, ...]:
    """The connection points that a change of external connectivity names.

    Of several addresses, Tacker uses the first entry of the first configuration
    (``OpenStack._change_ext_conn_vnf_with_userdata``), so the others do not count.
    """
    return tuple(
        Attachment(cp.cpd_id, link.resource_id, frozenset(_fixed_addresses(cp)))
        for link in request.ext_virtual_links
        for cp in link.ext_cps
    )


def _fixed_addresses(cp: Any) -> tuple[str, ...]:
    for config in (cp.cp_config or ())[:1]:
        for protocol in (config.cp_protocol_data or ())[:1]:
            if protocol.ip_over_ethernet:
                entries = (protocol.ip_over_ethernet.ip_addresses or ())[:1]
                return tuple(
                    ip for entry in entries for ip in entry.fixed_addresses or ()
                )
    return ()


KEY = "k8s_mgmt_profile"


def kept(vnf_instance: Any) -> Any:
    """What is kept; None if nothing is, and the text itself if it is no JSON."""
    text = (vnf_instance.vnf_metadata or {}).get(KEY)
    try:
        return None if text is None else untrusted.parse_json(text)
    except (TypeError, ValueError):
        return text


def keep(vnf_instance: Any, expansion: ResolvedProfile | None) -> None:
    """Keep it for the cluster's life; None: keep nothing."""
    before = vnf_instance.vnf_metadata or {}
    # A new dict: Tacker does not notice a change inside the old one.
    after = {name: value for name, value in before.items() if name != KEY}
    if expansion:
        after[KEY] = json.dumps(expansion.kept(), sort_keys=True)
    if before != after:
        vnf_instance.vnf_metadata = after
        database.save(vnf_instance)


LOG = logging.getLogger(__name__)

#: ``retry`` begins with the ``_start`` hook.
START_POINT = fields.ErrorPoint.VNF_CONFIG_START
#: ``retry`` updates the existing stack, and goes on.
STACK_POINT = fields.ErrorPoint.POST_VIM_CONTROL
#: ``retry`` calls the ``_end`` hook, nothing before it; ``rollback`` deletes the VMs.
END_POINT = fields.ErrorPoint.VNF_CONFIG_END

_PROCESSING = fields.LcmOccsOperationState.PROCESSING
# Without a constant in Tacker, as some in operation_states.
_ROLLING_BACK = "ROLLING_BACK"


def save(
    context: Any,
    vnf_instance: Any,
    point: int,
    vnf: Mapping[str, Any] | None = None,
) -> str:
    """Store the error point of a VNF instance's operation in progress.

    The error points of operations that are over are reset. A failure to store is logged
    and does not fail the operation.

    :param point: one of those above.
    :param vnf: what ``instantiate_end`` gets under this name; None for other hooks,
        before which Tacker stores it itself.
    :returns: the id of its operation occurrence; "" if that is not known.
    """
    problem = under_way = ""
    try:
        if vnf is not None:
            database.save(vnf_instance)
            database.ask(context, lambda own: _save_attributes(own, vnf))
        # Last: a retry relies on the rest.
        under_way = database.ask(
            context, lambda own: _save_point(own, vnf_instance.id, point)
        )
    except Exception as exc:
        # Not its text: a database's error quotes the values.
        problem = type(exc).__name__
    if problem:
        # Not above: oslo.log adds the text of the exception being handled.
        LOG.warning(
            "VNF instance %s: how far the operation is could not be stored (%s). If "
            "the conductor is killed now, `retry` will be refused",
            vnf_instance.id,
            problem,
        )
    return under_way


def clear(vnf_instance: Any) -> None:
    """Reset the error state after a retry has succeeded.

    A failed change of external connectivity sets it (``vnflcm_driver.py``,
    ``revert_to_error_task_state``), and Tacker then refuses to scale.
    """
    if vnf_instance.task_state is not None:
        vnf_instance.task_state = None
        database.save(vnf_instance)


def _save_point(context: Any, vnf_id: str, point: int) -> str:
    filters = {
        "field": "vnf_instance_id",
        "model": "VnfLcmOpOccs",
        "value": vnf_id,
        "op": "==",
    }
    occurrences = objects.VnfLcmOpOccList.get_by_filters(
        context, read_deleted="no", filters=filters
    )
    under_way = ""
    for occurrence in occurrences.objects:
        state = occurrence.operation_state
        if state in (_PROCESSING, _ROLLING_BACK):
            under_way = str(occurrence.id)
        wanted = point if state == _PROCESSING else fields.ErrorPoint.INITIAL
        if state in (_PROCESSING, *ENDED) and occurrence.error_point != wanted:
            occurrence.error_point = wanted
            occurrence.save()
    return under_way


def _save_attributes(context: Any, vnf: Mapping[str, Any]) -> None:
    plugin = manager.TackerManager.get_service_plugins()[constants.VNFM]
    with context.session.begin(nested=True):
        for key, value in vnf["attributes"].items():
            plugin._vnf_attribute_update_or_create(context, vnf["id"], key, value)
        context.session.commit()
