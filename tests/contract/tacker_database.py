# SPDX-License-Identifier: Apache-2.0
"""Makes a database of Tacker's with VNF instances in it, and prints their ids.

A program of its own: access to a database is set up once in a process.
"""

import json
import sys
import uuid
from datetime import datetime
from typing import Any

import tacker.cmd.conductor  # noqa: F401
from oslo_config import cfg
from oslo_utils import timeutils
from pydantic import SecretStr
from tacker import context as tacker_context
from tacker import objects
from tacker.db import api, model_base
from tacker.db.migration.models import head  # noqa: F401
from tacker.db.nfvo import nfvo_db
from tacker.sol_refactored import objects as v2_objects

from tacker_k8s_mgmt.hooks.v1.instance import VIM_KEY
from tacker_k8s_mgmt.hooks.v2 import lookup as v2_lookup
from tacker_k8s_mgmt.hooks.v2.connections import VimEntry
from tacker_k8s_mgmt.model.vim import VimSpec
from tacker_k8s_mgmt.request import reader as parameters
from tests.contract.v1_instances import create_row

Params = dict[str, Any] | None
_ATTRIBUTE = "k8s_cluster_installation_param"


def _instance(
    context: Any, params: Params, stack: str | None = "stack", name: str = "cluster"
) -> str:
    one = create_row(context, name)
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


def _operation(context: Any, vnf_id: str, state: str, kind: str = "HEAL") -> str:
    now = timeutils.utcnow()
    one = objects.VnfLcmOpOcc(
        context=context,
        id=str(uuid.uuid4()),
        operation_state=state,
        state_entered_time=now,
        start_time=now,
        vnf_instance_id=vnf_id,
        operation=kind,
        operation_params="{}",
        is_automatic_invocation=False,
        is_cancel_pending=False,
        tenant_id="tenant",
        error_point=0,
    )
    one.create()
    return str(one.id)


def _v2_instance(
    context: Any,
    params: Params,
    state: str = "INSTANTIATED",
    name: str = "v2 cluster",
) -> str:
    kept = parameters.without_secrets(params or {})
    metadata = {"k8s_mgmt": {"version": 1, "parameters": kept.get(_ATTRIBUTE)}}
    vim: dict[str, Any] = {
        "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
        "vimId": str(uuid.uuid4()),
    }
    # Nobody listens there.
    vim["interfaceInfo"] = {"endpoint": "http://127.0.0.1:1/v3"}
    vim["accessInfo"] = {"username": "u", "password": "vim-secret", "project": "p"}
    vim["accessInfo"] |= {"projectDomain": "d", "userDomain": "d", "region": "r"}
    one = v2_objects.VnfInstanceV2.from_dict(
        {
            "id": str(uuid.uuid4()),
            "vnfInstanceName": name,
            "vnfdId": str(uuid.uuid4()),
            "vnfProvider": "us",
            "vnfProductName": "cluster",
            "vnfSoftwareVersion": "1",
            "vnfdVersion": "1",
            "instantiationState": state,
            "vimConnectionInfo": {"openstack": vim},
            "metadata": metadata if kept else {},
        }
    )
    one.create(context)
    return str(one.id)


def _v2_operation(
    context: Any, vnf_id: str, kind: str, state: str, params: Params, minute: int = 0
) -> str:
    now = f"2026-01-01T00:{minute:02}:00Z"
    request = {"flavourId": "simple"} if kind == "INSTANTIATE" else {}
    one = v2_objects.VnfLcmOpOccV2.from_dict(
        {
            "id": str(uuid.uuid4()),
            "operationState": state,
            "stateEnteredTime": now,
            "startTime": now,
            "vnfInstanceId": vnf_id,
            "operation": kind,
            "isAutomaticInvocation": False,
            "isCancelPending": False,
            "operationParams": {**request, "additionalParams": params or {}},
        }
    )
    one.create(context)
    return str(one.id)


def _login(password: str) -> dict[str, Any]:
    return {_ATTRIBUTE: {"ansible": {"username": "ansible", "password": password}}}


def _v2_instances(context: Any, params: Params) -> dict[str, str]:
    made = {
        "v2 cluster": _v2_instance(context, params),
        "v2 dormant": _v2_instance(context, None),
        "v2 terminated": _v2_instance(context, params, "NOT_INSTANTIATED"),
        "v2 forgotten": _v2_instance(context, params),
    }
    occurrences = (
        ("INSTANTIATE", "COMPLETED", params),
        ("HEAL", "COMPLETED", _login("changed-secret")),
        ("HEAL", "ROLLED_BACK", _login("other-secret")),
        ("HEAL", "FAILED_TEMP", _login("later-secret")),
    )
    for minute, (kind, state, given) in enumerate(occurrences):
        made["v2 operation"] = _v2_operation(
            context, made["v2 cluster"], kind, state, given, minute
        )
    later = ("MODIFY_INFO", "COMPLETED", None, len(occurrences))
    _v2_operation(context, made["v2 cluster"], *later)
    made["v2 idle"] = _v2_instance(context, params, name="v2 idle")
    _v2_operation(context, made["v2 idle"], "INSTANTIATE", "COMPLETED", params)
    return made


def _vims(context: Any, params: Params) -> dict[str, str]:
    """A cluster of each API that is a VIM."""
    first, second = _instance(context, params), _v2_instance(context, params)
    vim_id = str(uuid.uuid4())
    with context.session.begin(nested=True):
        context.session.add(
            nfvo_db.Vim(
                id=vim_id,
                type="kubernetes",
                tenant_id="tenant",
                name="vim",
                description=f"Kubernetes cluster of VNF instance {first}",
                placement_attr={"regions": ["default"]},
                is_default=False,
                # That is, never.
                deleted_at=datetime.min,
                extra={},
            )
        )
        login = {"auth_cred": {}, "vim_project": {}, "password": ""}
        context.session.add(
            nfvo_db.VimAuth(
                id=str(uuid.uuid4()),
                vim_id=vim_id,
                auth_url="https://one.example:6443",
                **login,
            )
        )
    context.session.commit()
    one = objects.VnfInstance.get_by_id(context, first)
    one.vnf_metadata = {VIM_KEY: vim_id}
    one.instantiated_vnf_info.vnfc_resource_info = [
        objects.VnfcResourceInfo(
            id=str(uuid.uuid4()),
            vdu_id=vdu,
            compute_resource=objects.ResourceHandle(resource_id=str(uuid.uuid4())),
        )
        for vdu in ("masterNode", "workerNode", "workerNode")
    ]
    one.save()
    two = v2_objects.VnfInstanceV2.get_by_id(context, second)
    instance = two.to_dict()
    spec = VimSpec("two", "https://two.example:6443", SecretStr("t0ken"), "CA")
    VimEntry(instance, v2_lookup._state_path()).register(spec)
    changed = v2_objects.VnfInstanceV2.from_dict(instance)
    two.vimConnectionInfo = changed.vimConnectionInfo
    two.update(context)
    return {"vim": first, "v2 vim": second}


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
        "idle": _instance(context, params, name="idle"),
        "dormant": _instance(context, {"other": 1}),
        "terminated": _instance(context, params, stack=None),
        "broken": _instance(context, {_ATTRIBUTE: {}}),
    }
    for state in ("COMPLETED", "FAILED", "ROLLED_BACK"):
        _operation(context, made["cluster"], state)
    made["operation"] = _operation(context, made["cluster"], "FAILED_TEMP")
    _operation(context, made["cluster"], "COMPLETED", "MODIFY_INFO")
    _operation(context, made["dormant"], "PROCESSING")
    v2_objects.register_all()
    made |= _v2_instances(context, params)
    made |= _vims(context, params)
    print(json.dumps(made))


if __name__ == "__main__":
    main(*sys.argv[1:])
