# SPDX-License-Identifier: Apache-2.0
"""A package and its requests as Tacker takes them."""

import copy
import types
from pathlib import Path

import yaml
from tacker import context as tacker_context
from tacker import objects
from tacker.common import utils
from tacker.vnflcm import vnflcm_driver
from tacker.vnfm.infra_drivers.openstack import openstack

from tacker_k8s_mgmt.tools.csar import parts

PACKAGE = "9c9c9c9c-0000-4000-8000-000000000001"
VNF = "9c9c9c9c-0000-4000-8000-000000000002"


def request(body):
    """A request body as Tacker's API hands it on."""
    snake = utils.convert_camelcase_to_snakecase(copy.deepcopy(body))
    return objects.InstantiateVnfRequest.obj_from_primitive(snake, None)


class Heat:
    """Takes the place of Tacker's Heat client and keeps what would be sent."""

    def __init__(self):
        self.created = None

    def find_stack(self, **_):
        return None

    def create(self, fields):
        self.created = fields
        return {"stack": {"id": "stack"}}


def instantiate(tacker, monkeypatch, body, **vnf):
    """What Tacker's OpenStack driver sends to Heat for an instantiation."""
    heat = Heat()
    monkeypatch.setattr(openstack.hc, "HeatClient", lambda *_, **__: heat)
    text = yaml.dump(tacker.flavours[0]["tpl_dict"])
    vnf_dict = {
        "id": VNF,
        "attributes": {},
        "vnfd": {"attributes": {f"vnfd_{body['flavourId']}": text}},
        **vnf,
    }
    openstack.OpenStack().create(
        None,
        tacker_context.get_admin_context_without_session(),
        vnf_dict,
        {},
        vnf_package_path=str(tacker.path),
        inst_req_info=request(body),
        grant_info={},
        vnf_instance=types.SimpleNamespace(id=VNF, vnfd_id="vnfd"),
    )
    return heat.created, vnf_dict


def hashing_driver():
    """Tacker's driver of operations with our management driver's hash."""
    driver = object.__new__(vnflcm_driver.VnfLcmDriver)
    installed = Path(parts.__file__).parents[2] / "kubespray_mgmt.py"
    driver._mgmt_driver_hash = {parts.DRIVER: driver._get_file_hash(installed)}
    return driver
