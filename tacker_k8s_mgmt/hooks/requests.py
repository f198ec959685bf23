"""What Tacker's v1 requests say: our parameters, and the VNFCs that are meant."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oslo_log import log

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cluster import params
from tacker_k8s_mgmt.cluster.params import InstallParams

LOG: logging.LoggerAdapter[logging.Logger] = log.getLogger(__name__)


def stored(vnf_instance: Any) -> Any:
    """The additionalParams of the instantiation, as Tacker keeps them."""
    info = vnf_instance.instantiated_vnf_info
    return info.additional_params if info is not None else None


def parse(
    vnf_instance: Any, request: Any, way_out: str | None = None
) -> InstallParams | None:
    """The parameters of an instantiation's request or, without one, as stored.

    :param way_out: what the operator does about wrong parameters at this moment.
    :raises ParamError: with every problem.
    """
    given = getattr(request, "additional_params", None)
    with _told(way_out):
        return _warned(vnf_instance, params.parse(given or stored(vnf_instance)))


def merged(vnf_instance: Any, request: Any, way_out: str) -> InstallParams | None:
    """The stored parameters with what a later request gives in their place.

    :param way_out: as above.
    :raises ParamError: with every problem.
    """
    given = getattr(request, "additional_params", None)
    with _told(way_out):
        return _warned(vnf_instance, params.merged(stored(vnf_instance), given))


@contextmanager
def _told(way_out: str | None) -> Iterator[None]:
    try:
        yield
    except errors.ParamError as exc:
        exc.hint = way_out or exc.hint
        raise


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
