"""A VNF instance as a command of an operator finds it, to be looked at only.

The process is no service of Tacker. It reads the conductor's configuration and database
as the conductor does, and needs no message queue.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# Registers the conductor's options, such as those for Barbican.
import tacker.cmd.conductor  # noqa: F401
from oslo_config import cfg
from tacker import context as tacker_context
from tacker import manager, objects
from tacker.common import exceptions

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.cluster import redact
from tacker_k8s_mgmt.cluster.params import InstallParams
from tacker_k8s_mgmt.cluster.redact import Redactor
from tacker_k8s_mgmt.hooks import requests
from tacker_k8s_mgmt.hooks.keystone import secrets_of
from tacker_k8s_mgmt.hooks.view import SeenSite

_CONDUCTOR = "tacker-conductor"
# Tacker has no constant for the last one.
_OVER = ("COMPLETED", "FAILED", "ROLLED_BACK")


@dataclass(frozen=True)
class Instance:
    """A VNF instance that is a cluster.

    :param operation: its operation that is not over, in words; "" if there is none.
    """

    vnf_id: str
    name: str
    operation: str
    params: InstallParams
    view: SeenSite


@contextmanager
def opened(vnf_id: str, config_files: Sequence[str] = ()) -> Iterator[Instance]:
    """Find a VNF instance.

    :param config_files: Tacker's; none: where the conductor looks for them.
    :raises TackerError: Tacker cannot be asked, or has no such cluster.
    :raises ParamError: its parameters are none that this release takes.
    """
    _configure(config_files)
    try:
        context, instance = _found(vnf_id)
        operation = _operation(context, vnf_id)
    except exceptions.VnfInstanceNotFound:
        raise errors.TackerError(
            detail=f"Tacker's v1 API has no VNF instance {vnf_id}.",
            hint="Those of the v2 API cannot be looked at in this way.",
        ) from None
    except Exception as error:
        # Whatever plugins of Tacker or the driver of its database may raise.
        redacted = Redactor(redact.in_url(cfg.CONF.database.connection or ""))
        raise errors.TackerError(
            detail=f"Tacker's database could not be read: {redacted(_line(error))}.",
            hint="Look at [database] connection in tacker.conf.",
        ) from None
    params = _params(context, instance)
    options = cfg.CONF[config.GROUP]
    state_path = config.state_path(cfg.CONF)
    view = SeenSite(context, instance, params, options, state_path)
    with view:
        name = str(instance.vnf_instance_name or "")
        yield Instance(vnf_id, name, operation, params, view)


def _configure(files: Sequence[str]) -> None:
    named = [word for file in files for word in ("--config-file", file)]
    try:
        cfg.CONF(args=named, project="tacker", prog=_CONDUCTOR)
    except cfg.Error as error:
        raise errors.TackerError(
            detail=f"Tacker's configuration could not be read: {_line(error)}.",
            hint="It takes a user who may read it, such as the conductor's.",
        ) from error
    if not cfg.CONF.config_file:
        raise errors.TackerError(
            detail="There is no tacker.conf where Tacker looks for it.",
            hint="Name it with --config-file.",
        )
    config.register(cfg.CONF)
    # A service waits for its database; who asks this wants to know now.
    cfg.CONF.set_override("max_retries", 0, group="database")


def _line(error: Exception) -> str:
    """The first line: drivers of databases have more to say."""
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")


def _found(vnf_id: str) -> tuple[Any, Any]:
    objects.register_all()
    # First: it sets up access to the database.
    manager.TackerManager.get_service_plugins()
    context = tacker_context.get_admin_context()
    return context, objects.VnfInstance.get_by_id(context, vnf_id)


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
