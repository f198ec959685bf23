# SPDX-License-Identifier: Apache-2.0
"""The contents of Tacker's v1 requests: our parameters, VNFCs, connection points."""

import json
from collections.abc import Mapping
from typing import Any

from tacker import objects

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database
from tacker_k8s_mgmt.request import params
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.topology.connection_points import Attachment


def stored(vnf_instance: Any) -> Any:
    """The additionalParams of the instantiation, as Tacker keeps them."""
    info = vnf_instance.instantiated_vnf_info
    return info.additional_params if info is not None else None


def is_cluster(vnf_instance: Any) -> bool:
    """Whether the VNF instance was instantiated with our parameters, valid or not."""
    try:
        return params.parse(stored(vnf_instance)) is not None
    except errors.ParamError:
        return True


def refuse_control_planes(read: InstallParams, request: Any) -> None:
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
