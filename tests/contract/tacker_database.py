"""Makes a database of Tacker's with VNF instances in it, and prints their ids.

A program of its own: access to a database is set up once in a process.
"""

import json
import sys
import uuid
from typing import Any

import tacker.cmd.conductor  # noqa: F401
from oslo_config import cfg
from oslo_utils import timeutils
from tacker import context as tacker_context
from tacker import objects
from tacker.db import api, model_base
from tacker.db.migration.models import head  # noqa: F401

Params = dict[str, Any] | None


def _instance(context: Any, params: Params, stack: str | None = "stack") -> str:
    one = objects.VnfInstance(
        context=context,
        vnf_instance_name="cluster",
        instantiation_state="INSTANTIATED",
        vnfd_id=str(uuid.uuid4()),
        vnf_provider="us",
        vnf_product_name="cluster",
        vnf_software_version="1",
        vnfd_version="1",
        vnf_pkg_id=str(uuid.uuid4()),
        tenant_id="tenant",
        vnf_metadata={},
        vim_connection_info=[],
    )
    one.create()
    one.instantiated_vnf_info = objects.InstantiatedVnfInfo(
        context=context,
        vnf_instance_id=one.id,
        flavour_id="simple",
        ext_cp_info=[],
        instance_id=stack,
        additional_params=params or {},
    )
    one.save()
    return str(one.id)


def _operation(context: Any, vnf_id: str, state: str) -> str:
    now = timeutils.utcnow()
    one = objects.VnfLcmOpOcc(
        context=context,
        id=str(uuid.uuid4()),
        operation_state=state,
        state_entered_time=now,
        start_time=now,
        vnf_instance_id=vnf_id,
        operation="HEAL",
        operation_params="{}",
        is_automatic_invocation=False,
        is_cancel_pending=False,
        tenant_id="tenant",
        error_point=0,
    )
    one.create()
    return str(one.id)


def main(config_file: str, params_file: str) -> None:
    """Make tables and rows."""
    cfg.CONF(["--config-file", config_file], project="tacker")
    objects.register_all()
    model_base.BASE.metadata.create_all(api.get_engine())
    with open(params_file, encoding="utf-8") as file:
        params = json.load(file)
    context = tacker_context.get_admin_context()
    made = {
        "cluster": _instance(context, params),
        "dormant": _instance(context, {"other": 1}),
        "terminated": _instance(context, params, stack=None),
        "broken": _instance(context, {"k8s_cluster_installation_param": {}}),
    }
    for state in ("COMPLETED", "FAILED", "ROLLED_BACK"):
        _operation(context, made["cluster"], state)
    made["operation"] = _operation(context, made["cluster"], "FAILED_TEMP")
    _operation(context, made["dormant"], "PROCESSING")
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
