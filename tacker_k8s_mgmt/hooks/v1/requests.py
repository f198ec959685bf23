"""What Tacker's v1 requests say: our parameters, and the VNFCs that are meant."""

import logging
from collections.abc import Collection
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.request import params
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import Resolver
from tacker_k8s_mgmt.topology.connection_points import Attachment

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


def stored(vnf_instance: Any) -> Any:
    """The additionalParams of the instantiation, as Tacker keeps them."""
    info = vnf_instance.instantiated_vnf_info
    return info.additional_params if info is not None else None


def parse(
    vnf_instance: Any,
    request: Any,
    way_out: str | None = None,
    resolver: Resolver | None = None,
) -> InstallParams | None:
    """The parameters of an instantiation's request or, without one, as stored.

    :param way_out: what the operator does about wrong parameters at this moment.
    :param resolver: tells secrets that are given by reference; None: they stay unknown.
    :raises ParamError: with every problem.
    """
    given = getattr(request, "additional_params", None) or stored(vnf_instance)
    with hints.told(way_out):
        return _warned(vnf_instance, params.parse(given, resolver))


def merged(
    vnf_instance: Any,
    request: Any,
    way_out: str | None,
    resolver: Resolver,
    needed: Collection[str] | None = None,
    *,
    retried: bool = True,
) -> InstallParams | None:
    """The stored parameters with what a later request gives in their place.

    :param way_out: as above, and so is *resolver*.
    :param needed: the structures whose secrets are needed, None for all.
    :param retried: whether Tacker calls the hook again at a retry.
    :raises ParamError: with every problem.
    """
    given, before = getattr(request, "additional_params", None), stored(vnf_instance)
    with hints.told(way_out, retried):
        read = params.merged(before, given, resolver, needed=needed)
        return _warned(vnf_instance, read)


def refuse_planes(read: InstallParams, request: Any) -> None:
    """See that a scale request is for workers.

    Of a scale-out, Tacker calls no hook before Heat has made the VMs.

    :raises UnsupportedOperation: it is for the control plane.
    """
    if request.aspect_id == read.control_plane.aspect_id:
        raise errors.UnsupportedOperation(
            detail=f"The scaling aspect {request.aspect_id} is that of the control "
            "plane (master_node.aspect_id), which cannot be scaled; the cluster was "
            "not touched.",
        )


def _warned(vnf_instance: Any, read: InstallParams | None) -> InstallParams | None:
    for warning in read.warnings if read else ():
        LOG.warning("VNF instance %s: %s", vnf_instance.id, warning)
    return read


def is_cluster(vnf_instance: Any) -> bool:
    """Whether the VNF instance was instantiated with our parameters, good or bad."""
    try:
        return parse(vnf_instance, None) is not None
    except errors.ParamError:
        return True


def servers(vnf_instance: Any, request: Any) -> dict[str, str]:
    """The VNFCs that a heal request names: their ids by the ids of their servers.

    Tacker's v1 API takes the ids of ``vnfcResourceInfo`` (not of ``vnfcInfo``).
    """
    wanted = set(request.vnfc_instance_id or ())
    return {
        vnfc.compute_resource.resource_id: vnfc.id
        for vnfc in vnf_instance.instantiated_vnf_info.vnfc_resource_info
        if vnfc.id in wanted
    }


def attachments(request: Any) -> tuple[Attachment, ...]:
    """The connection points that a change of external connectivity names.

    Of several addresses Tacker takes the first entry of the first configuration
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
                return tuple(ip for one in entries for ip in one.fixed_addresses or ())
    return ()
