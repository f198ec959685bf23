# SPDX-License-Identifier: Apache-2.0
"""Tacker's own REST APIs in this process: its routers, controllers, views and tables.

What they would send to a conductor is kept; a conductor there is not.
"""

import types
import uuid
from typing import Any
from urllib.parse import urlsplit

import webob
from oslo_utils import timeutils
from tacker import context as tacker_context
from tacker import manager, objects
from tacker.api.vnflcm.v1 import router as v1_router
from tacker.common import (
    config,  # noqa: F401  registers options
    coordination,
)
from tacker.sol_refactored import objects as v2_objects
from tacker.sol_refactored.common import lcm_op_occ_utils
from tacker.sol_refactored.conductor import conductor_rpc_v2

from tests.contract.v1_instances import create_row

ADDRESS = "http://tacker.example:9890"
CONTEXT = tacker_context.Context("user", "tenant", is_admin=True)
_VIM: dict[str, Any] = {
    "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "vimId": str(uuid.uuid4()),
    "interfaceInfo": {},
    "accessInfo": {},
}
_ACTIVE, _ERROR = "ACTIVE", "ERROR"


class _Lock:
    def acquire(self, blocking: object = True) -> bool:
        return True

    def release(self) -> None:
        """Nothing was locked."""


class Rest:
    """Both APIs, as :class:`tacker_k8s_mgmt.tools.cloud.client.Cloud` reaches them.

    :ivar cast: what a conductor would have got: method and the id of what it is for.
    """

    def __init__(self, monkeypatch: Any) -> None:
        self.cast: list[str] = []
        self._statuses: dict[str, str] = {}
        objects.register_all()
        v2_objects.register_all()
        monkeypatch.setattr(tacker_context.ContextBase, "can", lambda *_, **__: True)
        locks = types.SimpleNamespace(start=lambda: None, get_lock=lambda _: _Lock())
        monkeypatch.setattr(coordination, "COORDINATOR", locks)
        plugins = {"VNFM": self}
        monkeypatch.setattr(
            manager.TackerManager, "get_service_plugins", lambda: plugins
        )
        v1 = v1_router.vnf_lcm_controller.vnf_lcm_rpc.VNFLcmRPCAPI
        for kind in (v1, conductor_rpc_v2.VnfLcmRpcApiV2):
            monkeypatch.setattr(kind, "__init__", lambda *_: None)
            for name in [n for n in vars(kind) if not n.startswith("_")]:
                monkeypatch.setattr(kind, name, self._kept(name))
        monkeypatch.setattr(
            lcm_op_occ_utils, "get_grant_req_and_grant", lambda *_: (None, None)
        )
        # What it looks up of the package and of the VIM.
        v1_controller = v1_router.vnf_lcm_controller.VnfLcmController
        for name in ("_validate_flavour_and_inst_level", "_validate_vim_connection"):
            monkeypatch.setattr(v1_controller, name, lambda *_: {})
        from tacker.sol_refactored.api.router import VnflcmAPIRouterV2

        self._apps = {
            "/vnflcm/v1": v1_router.VnflcmAPIRouter(),
            "/vnflcm/v2": VnflcmAPIRouterV2(),
        }

    def _kept(self, name: str) -> Any:
        return lambda *_, **__: self.cast.append(name)

    # What Tacker's v1 controller asks its plugin.

    def get_vnf(self, _: object, vnf_id: str) -> dict[str, Any]:
        group = '{"scaleGroupDict": {"worker_instance": {"maxLevel": 7, "num": 1, '
        attributes = {"scale_group": group + '"default": 2}}}'}
        status = self._statuses.get(vnf_id, _ACTIVE)
        return {"id": vnf_id, "status": status, "attributes": attributes}

    def update_vnf_fail_status(self, _: object, vnf_id: str, status: str) -> None:
        self._statuses[vnf_id] = status

    # What a cloud has.

    def tacker_address(self) -> str:
        return ADDRESS

    def send(self, method: str, url: str, **more: Any) -> Any:
        split = urlsplit(url)
        root = split.path[: len("/vnflcm/v1")]
        path = split.path.removeprefix(root)
        path += f"?{split.query}" if split.query else ""
        request = webob.Request.blank(
            path,
            method=method,
            headers=more.get("headers"),
            body=more.get("data") or b"",
            base_url=f"{ADDRESS}{root}",
        )
        request.environ["tacker.context"] = CONTEXT
        answer = request.get_response(self._apps[root])
        return types.SimpleNamespace(
            status_code=answer.status_int,
            headers=dict(answer.headers),
            iter_content=lambda _: iter([answer.body]),
            close=lambda: None,
        )

    # Rows.

    def v1_instance(self, name: str, state: str = "INSTANTIATED") -> str:
        """A VNF instance of the v1 API."""
        one = create_row(CONTEXT, name, instantiation_state=state)
        one.vim_connection_info = [
            objects.VimConnectionInfo(
                id="vim", vim_id=str(uuid.uuid4()), vim_type="openstack", access_info={}
            )
        ]
        one.instantiated_vnf_info = objects.InstantiatedVnfInfo(
            context=CONTEXT,
            vnf_instance_id=one.id,
            flavour_id="simple",
            ext_cp_info=[],
            instance_id="stack",
            additional_params={},
            scale_status=[
                objects.ScaleInfo(aspect_id="worker_instance", scale_level=1)
            ],
            vnfc_resource_info=[
                objects.VnfcResourceInfo(
                    id=str(uuid.uuid4()),
                    vdu_id="workerNode",
                    compute_resource=objects.ResourceHandle(resource_id=server),
                )
                for server in ("server-1", "server-2")
            ],
        )
        one.save()
        return str(one.id)

    def v2_instance(
        self, name: str, state: str = "INSTANTIATED", vnf_id: str = ""
    ) -> str:
        """The same of the v2 API."""
        one, two = str(uuid.uuid4()), str(uuid.uuid4())
        levels = {"aspectId": "worker_instance", "scaleLevel": 1}
        info = {
            "flavourId": "simple",
            "vnfState": "STARTED",
            "scaleStatus": [levels],
            "maxScaleLevels": [{**levels, "scaleLevel": 7}],
            "vnfcResourceInfo": [
                {
                    "id": resource,
                    "vduId": "workerNode",
                    "computeResource": {
                        "resourceId": server,
                        "vimConnectionId": "vim",
                        "vimLevelResourceType": "OS::Nova::Server",
                    },
                }
                for resource, server in ((one, "server-1"), (two, "server-2"))
            ],
            "vnfcInfo": [
                {
                    "id": f"workerNode-{server}",
                    "vduId": "workerNode",
                    "vnfcResourceInfoId": resource,
                    "vnfcState": "STARTED",
                }
                for resource, server in ((one, "server-1"), (two, "server-2"))
            ],
        }
        made = v2_objects.VnfInstanceV2.from_dict(
            {
                "id": vnf_id or str(uuid.uuid4()),
                "vnfInstanceName": name,
                "vnfdId": str(uuid.uuid4()),
                "vnfProvider": "us",
                "vnfProductName": "cluster",
                "vnfSoftwareVersion": "1",
                "vnfdVersion": "1",
                "instantiationState": state,
                "instantiatedVnfInfo": info,
                "vimConnectionInfo": {"vim": _VIM},
            }
        )
        made.create(CONTEXT)
        return str(made.id)

    def v1_operation(self, vnf_id: str, kind: str, state: str = "FAILED_TEMP") -> str:
        """An operation of the v1 API; a scale by its type."""
        self._statuses[vnf_id] = _ERROR if state == "FAILED_TEMP" else _ACTIVE
        now = timeutils.utcnow()
        params = _scale(kind, "aspect_id", "number_of_steps")
        one = objects.VnfLcmOpOcc(
            context=CONTEXT,
            id=str(uuid.uuid4()),
            operation_state=state,
            state_entered_time=now,
            start_time=now,
            vnf_instance_id=vnf_id,
            operation="SCALE" if params else kind,
            operation_params=str(params or _PARAMS.get(kind, {})).replace("'", '"'),
            is_automatic_invocation=False,
            is_cancel_pending=False,
            tenant_id="tenant",
            error_point=6,
        )
        one.create()
        one.error = objects.ProblemDetails(
            context=CONTEXT, status=500, detail="heal_start failed"
        )
        one.save()
        return str(one.id)

    def v2_operation(self, vnf_id: str, kind: str, state: str = "FAILED_TEMP") -> str:
        """The same of the v2 API."""
        now = "2026-01-01T00:00:00Z"
        params: dict[str, Any] = _scale(kind, "aspectId", "numberOfSteps")
        more: dict[str, Any] = {
            "INSTANTIATE": {"flavourId": "simple", "vimConnectionInfo": {"vim": _VIM}}
        }
        more["TERMINATE"] = {"terminationType": "GRACEFUL"}
        more["CHANGE_VNFPKG"] = {"vnfdId": str(uuid.uuid4())}
        more["CHANGE_EXT_CONN"] = {"extVirtualLinks": []}
        one = v2_objects.VnfLcmOpOccV2.from_dict(
            {
                "id": str(uuid.uuid4()),
                "operationState": state,
                "stateEnteredTime": now,
                "startTime": now,
                "vnfInstanceId": vnf_id,
                "operation": "SCALE" if params else kind,
                "isAutomaticInvocation": False,
                "isCancelPending": False,
                "operationParams": params or more.get(kind, {}),
                "error": {"status": 500, "detail": "heal_start failed"},
            }
        )
        one.create(CONTEXT)
        return str(one.id)


_PARAMS: dict[str, dict[str, Any]] = {
    "INSTANTIATE": {"flavourId": "simple"},
    "TERMINATE": {"terminationType": "FORCEFUL"},
    "HEAL": {"vnfcInstanceId": []},
    "CHANGE_EXT_CONN": {"extVirtualLinks": []},
}


def _scale(kind: str, aspect: str, steps: str) -> dict[str, Any]:
    if not kind.startswith("SCALE_"):
        return {}
    return {"type": kind, aspect: "worker_instance", steps: 1}
