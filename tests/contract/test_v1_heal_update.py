# SPDX-License-Identifier: Apache-2.0
"""Heals after a change of the instance's package or of its stack in Heat.

With Tacker's own code of a heal.
"""

import copy
import json
import shutil
import types
from dataclasses import replace
from unittest import mock

import pytest
import yaml

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tacker import context as tacker_context
from tacker import manager, objects
from tacker.common import exceptions
from tacker.objects import fields
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.infra_drivers.openstack import openstack as infra
from tacker.vnfm.lcm_user_data import utils as user_data_utils

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.v1 import database, heal_update
from tacker_k8s_mgmt.hooks.v1 import stack as openstack
from tacker_k8s_mgmt.hooks.v1.instance import V1Instance, V1Request
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.contract.v1_instances import DEFINITIONS
from tests.helpers.fakes.site import FakeSite

objects.register_all()

WORKER = "workerNode"
STACK, GROUP, MEMBER = "stack", "group-stack", "member-stack"
TYPES = {
    "lcm-operation-user-data": "./UserData/k8s_cluster_user_data.py",
    "lcm-operation-user-data-class": "KubernetesClusterUserData",
}


def vnfd():
    return yaml.safe_load((parts.samples() / DEFINITIONS).read_text())


def with_image(name, vdu=WORKER):
    """The VNFD of a package that is built of another image for a VDU."""
    found = vnfd()
    node = found["topology_template"]["node_templates"][vdu]
    node["properties"]["sw_image_data"]["name"] = name
    return found


def with_flavor(name):
    found = vnfd()
    node = found["topology_template"]["node_templates"][WORKER]
    compute = node["capabilities"]["virtual_compute"]["properties"]
    compute["requested_additional_capabilities"]["properties"][
        "requested_additional_capability_name"
    ] = name
    return found


class World:
    """A VNF instance of the sample package, in Tacker and in Heat.

    :ivar vnfd: of the package that the instance has now.
    :ivar sent: the updates of the stack that Tacker has sent.
    :ivar status: of the stack.
    """

    status = "UPDATE_COMPLETE"

    def __init__(self, package):
        self.package = package
        shutil.copytree(parts.samples() / "hot/simple", package / "BaseHOT/simple")
        shutil.copytree(parts.samples() / "vnfd/simple/UserData", package / "UserData")
        self.vnfd, self.sent = vnfd(), []
        top, nested = vnflcm_utils.get_base_nest_hot_dict(None, "simple", "vnfd")
        self.parameters = {
            "nfv": {
                "VDU": {
                    vdu: {"flavor": flavors[vdu], "image": images[vdu]}
                    for flavors, images in [
                        (
                            user_data_utils.create_vdu_flavor_capability_name_dict(
                                vnfd()
                            ),
                            user_data_utils.create_sw_image_dict(vnfd()),
                        )
                    ]
                    for vdu in images
                },
                "CP": {},
            }
        }
        # As Heat returns them: the template as JSON, the parameter as a text.
        self.template = json.loads(json.dumps(top, default=str))
        self.files = {name: yaml.safe_dump(nested[name]) for name in nested}
        self.instance = self._instance()

    def _instance(self):
        def vnfc(vdu, number):
            return types.SimpleNamespace(
                id=f"{vdu}-{number}",
                vdu_id=vdu,
                storage_resource_ids=[],
                compute_resource=types.SimpleNamespace(resource_id=f"s-{vdu}-{number}"),
                metadata={"stack_id": STACK if vdu == "externalLB" else MEMBER},
            )

        info = types.SimpleNamespace(
            flavour_id="simple",
            instance_id=STACK,
            additional_params=dict(TYPES),
            vnfc_resource_info=[
                vnfc("masterNode", 1),
                vnfc(WORKER, 1),
                vnfc(WORKER, 2),
                vnfc("externalLB", 1),
            ],
            virtual_storage_resource_info=[],
            scale_status=[
                types.SimpleNamespace(aspect_id="worker_instance", scale_level=0)
            ],
        )
        return types.SimpleNamespace(
            id="vnf", vnfd_id="vnfd", instantiated_vnf_info=info
        )

    def vnf(self, *_):
        attributes = {"stack_param": str(self.parameters)}
        described = {"attributes": {"vnfd_simple": yaml.safe_dump(self.vnfd)}}
        return {"vnfd_id": "vnfd", "vnfd": described, "attributes": attributes}

    def heat(self, *_, **__):
        parameters = {"nfv": json.dumps(self.parameters["nfv"])}
        stack = types.SimpleNamespace(
            stack_name="vnf", parameters=parameters, stack_status=self.status
        )
        client = mock.MagicMock()
        client.get.return_value = client.stacks.get.return_value = stack
        client.stacks.files.side_effect = lambda _: dict(self.files)
        client.stacks.template.side_effect = lambda _: copy.deepcopy(self.template)
        client.update.side_effect = lambda **fields: self.sent.append(fields)
        return client


def request(*vnfcs):
    return types.SimpleNamespace(
        vnfc_instance_id=list(vnfcs), cause=None, additional_params={}
    )


@pytest.fixture
def world(monkeypatch, tmp_path):
    monkeypatch.setattr(vnflcm_utils, "_get_vnf_package_path", lambda *_: str(tmp_path))
    made = World(tmp_path)
    plugin = types.SimpleNamespace(get_vnf=made.vnf)
    monkeypatch.setattr(
        manager.TackerManager, "get_service_plugins", lambda: {"VNFM": plugin}
    )
    monkeypatch.setattr(vnflcm_utils, "get_vnfd_dict", lambda *_: made.vnfd)
    monkeypatch.setattr(openstack, "heat_of", made.heat)
    monkeypatch.setattr(database, "ask", lambda context, question: question(context))
    monkeypatch.setattr(infra.hc, "HeatClient", made.heat)
    point = types.SimpleNamespace(error_point=fields.ErrorPoint.INITIAL)
    monkeypatch.setattr(
        infra.objects.VnfLcmOpOcc, "get_by_vnf_instance_id", lambda *_: point
    )
    return made


def healed(world, *vnfcs):
    """What Tacker's heal sends to Heat."""
    driver = object.__new__(infra.OpenStack)
    vim = types.SimpleNamespace(access_info={})
    driver._get_stack_resources = lambda *_: {}
    driver.heal_vnf(
        tacker_context.get_admin_context(), world.instance, vim, request(*vnfcs)
    )
    return world.sent.pop()


def changes(world, *vnfcs, found=None):
    found = resources() if found is None else found
    own = V1Instance(None, world.instance), V1Request(request(*vnfcs))
    return heal_update.changes(*own, found, world.heat())


def test_tacker_gives_heat_the_image_of_the_package_that_the_instance_has_now(world):
    """The parameter is that of all workers."""
    assert healed(world, "workerNode-1")["parameters"] == world.parameters
    world.vnfd = with_image("other-image")
    sent = healed(world, "workerNode-1")["parameters"]["nfv"]["VDU"]
    assert sent[WORKER]["image"] == "other-image"
    assert sent["masterNode"] == world.parameters["nfv"]["VDU"]["masterNode"]


def test_of_the_package_that_it_was_built_of_nothing_changes(world):
    assert changes(world, "workerNode-1") == {}
    assert changes(world, "masterNode-1", "externalLB-1") == {}


@pytest.mark.parametrize(
    ("described", "name"),
    [(with_image("other"), "image"), (with_flavor("other"), "flavor")],
)
def test_another_image_or_flavour_is_told(world, described, name):
    world.vnfd = described
    former = world.parameters["nfv"]["VDU"][WORKER][name]
    text = f"{name} is {former} in Heat and other in the package"
    assert changes(world, "workerNode-1") == {WORKER: [text]}


def test_of_a_vdu_without_other_vms_it_may_change(world):
    world.vnfd = with_image("other")
    assert changes(world, "workerNode-1", "workerNode-2") == {}
    assert changes(world, "externalLB-1") == {}


def test_another_server_in_the_templates_is_told_for_every_vdu(world):
    """Tacker replaces all templates, whichever VNFC it heals."""
    for name, resource in (
        ("BaseHOT/simple/nested/base_hot_nested_worker.yaml", WORKER),
        ("BaseHOT/simple/base_hot_top.yaml", "externalLB"),
    ):
        path = world.package / name
        template = yaml.safe_load(path.read_text())
        template["resources"][resource]["properties"]["config_drive"] = True
        path.write_text(yaml.safe_dump(template))
    text = "its server in the Base HOT is not as in Heat's template"
    expected = {"externalLB": [text], WORKER: [text]}
    assert changes(world, "masterNode-1") == expected
    assert healed(world, "masterNode-1")["files"]["base_hot_nested_worker.yaml"]


def test_an_id_in_place_of_a_name_is_no_change(world):
    """The orchestrator's grant had the id of the image; Heat resolves both."""
    values = world.parameters["nfv"]["VDU"][WORKER]
    values["image"] = "5a2f3c1e-0a6b-4f4e-9b6c-3f1f7f3f0d11"
    assert changes(world, "workerNode-1") == {}


def test_what_cannot_be_found_out_is_an_error(world):
    world.instance.instantiated_vnf_info.flavour_id = "other"
    with pytest.raises(errors.TackerError, match="cannot be found out"):
        changes(world, "workerNode-1")


def test_heal_is_refused_before_anything():
    site = FakeSite()
    heal_update.step(site, V1Request(request("a"))).act()
    site.heal_changes = {WORKER: ["image is a in Heat and b in the package"]}
    with pytest.raises(errors.UnsupportedOperation) as caught:
        heal_update.step(site, V1Request(request("a"))).act()
    text = str(caught.value)
    assert "workerNode: image is a in Heat and b in the package" in text
    assert "vnfPkgId" in text


def resources(server="CREATE_COMPLETE"):
    """A group with one member, in which there is one server, and another server."""
    group, done = "OS::Heat::AutoScalingGroup", "CREATE_COMPLETE"
    return [
        StackResource(STACK, "workers", group, "1", done, GROUP),
        StackResource(GROUP, "ab1", "worker.yaml", "2", done, MEMBER),
        StackResource(MEMBER, WORKER, "OS::Nova::Server", "s-workerNode-1", server),
        StackResource(STACK, "externalLB", "OS::Nova::Server", "s-externalLB-1", done),
    ]


def tacker_ends(world, *vnfcs, found):
    """Whether Tacker ends a heal after which Heat has these resources."""
    driver = object.__new__(infra.OpenStack)
    stacks = {one.stack_id: {} for one in found}
    for one in found:
        named = {"physical_resource_id": one.physical_id, "resource_type": one.type}
        stacks[one.stack_id][one.name] = named
    driver._get_stack_resources = lambda *_: stacks
    driver._update_vnfc_resource_info = lambda *_, **__: None
    vim = types.SimpleNamespace(access_info={})
    try:
        driver.heal_vnf(
            tacker_context.get_admin_context(), world.instance, vim, request(*vnfcs)
        )
        driver.post_heal_vnf(None, world.instance, vim, request(*vnfcs))
    except exceptions.VnfHealFailed:
        return False
    return True


def refused(world, *vnfcs, found=None):
    """Why a heal is refused before anything; "" if it is not."""
    try:
        changes(world, *vnfcs, found=found)
    except errors.UnsupportedOperation as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "status",
    [
        *("CREATE_COMPLETE", "UPDATE_COMPLETE", "CHECK_COMPLETE", "CHECK_FAILED"),
        *("UPDATE_FAILED", "CREATE_FAILED", "UPDATE_IN_PROGRESS", "ROLLBACK_COMPLETE"),
    ],
)
def test_stacks_in_which_tacker_heals_nothing(world, status):
    world.status = status
    text = refused(world, "externalLB-1")
    assert tacker_ends(world, "externalLB-1", found=resources()) == (not text)
    if text:
        assert f"The stack {STACK} is {status} in Heat." in text
        assert f"`openstack stack update --existing --wait {STACK}`" in text


def test_vnfcs_whose_stack_heat_has_built_again(world):
    after = [replace(one, stack_id=f"{one.stack_id}-2") for one in resources()[2:3]]
    found = [replace(resources()[1], nested_stack_id=f"{MEMBER}-2"), *after]
    assert not tacker_ends(world, "workerNode-1", found=found)
    assert f"Heat no longer has the stack {MEMBER}" in refused(
        world, "workerNode-1", found=found
    )


def test_vms_that_are_broken_by_themselves_are_healed(world):
    """Heat builds the server again in the stack in which it is."""
    found = resources(server="CHECK_FAILED")
    for vnfc in ("workerNode-1", "externalLB-1"):
        assert tacker_ends(world, vnfc, found=found)
        assert not refused(world, vnfc, found=found)
