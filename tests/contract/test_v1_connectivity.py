# SPDX-License-Identifier: Apache-2.0
"""Change of external connectivity as Tacker's v1 API reads and applies a request."""

import copy
import json
import types

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

import yaml
from tacker import context as tacker_context
from tacker import objects
from tacker.common import utils
from tacker.objects import fields
from tacker.vnflcm import vnflcm_driver
from tacker.vnfm.infra_drivers.openstack import openstack, update_template

from tacker_k8s_mgmt.hooks.v1.instance import V1Instance, V1Request
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.topology.connection_points import Attachment

objects.register_all()

BODY = json.loads((parts.samples() / "requests/change-ext-conn.json").read_text())


def request(body):
    """As ``VnfLcmController._change_ext_conn`` makes it."""
    read = utils.convert_camelcase_to_snakecase(copy.deepcopy(body))
    context = tacker_context.get_admin_context()
    return objects.ChangeExtConnRequest.obj_from_primitive(read, context)


def applied(asked):
    """What Tacker makes of the parameter ``nfv`` of the stack."""
    before = {"network": "external", "fixed_ips": []}
    names = ("externalLB_CP1", "masterNode_CP1", "workerNode_CP2")
    ports = {name: dict(before) for name in names}
    found = []
    driver = types.SimpleNamespace(
        _get_fixed_ips_from_ip_addr=(
            lambda address: openstack.OpenStack._get_fixed_ips_from_ip_addr(
                None, address
            )
        ),
        _update_stack_with_user_data=lambda *given: found.append(given[4]),
    )
    updater = types.SimpleNamespace(heatclient=None, template={}, nested_templates={})
    info = types.SimpleNamespace(instance_id="stack")
    openstack.OpenStack._change_ext_conn_vnf_with_userdata(
        driver,
        None,
        updater,
        types.SimpleNamespace(instantiated_vnf_info=info),
        {"attributes": {"stack_param": yaml.safe_dump({"nfv": {"CP": ports}})}},
        None,
        asked,
    )
    return found[0]["nfv"]["CP"]


def test_the_sample_is_read_as_tacker_applies_it():
    asked = request(BODY)
    assert V1Request(asked).attachments() == (
        Attachment("externalLB_CP1", "external-2", frozenset({"10.99.0.78"})),
        Attachment("masterNode_CP1", "external", frozenset({"10.99.0.77"})),
        Attachment("workerNode_CP2", "external-2"),
    )
    assert applied(asked) == {
        attachment.name: {
            "network": attachment.network,
            "fixed_ips": [{"ip_address": ip} for ip in attachment.addresses],
        }
        for attachment in V1Request(asked).attachments()
    }


def test_of_several_addresses_the_first_entry_counts():
    body = copy.deepcopy(BODY)
    (link,) = body["extVirtualLinks"] = body["extVirtualLinks"][:1]
    (protocol,) = link["extCps"][0]["cpConfig"][0]["cpProtocolData"]
    more = {"type": "IPV4", "fixedAddresses": ["10.99.0.79"]}
    protocol["ipOverEthernet"]["ipAddresses"].append(more)
    (found,) = V1Request(request(body)).attachments()
    assert found.addresses == {"10.99.0.78"}
    fixed = applied(request(body))["externalLB_CP1"]["fixed_ips"]
    assert fixed == [{"ip_address": "10.99.0.78"}]


@pytest.mark.parametrize("config", [[], [{"cpProtocolData": []}]])
def test_a_request_without_addresses_is_read(config):
    body = copy.deepcopy(BODY)
    del body["extVirtualLinks"][1:]
    body["extVirtualLinks"][0]["extCps"][0]["cpConfig"] = config
    (found,) = V1Request(request(body)).attachments()
    assert found == Attachment("externalLB_CP1", "external-2")


def test_templates_of_resource_groups_are_left_out_by_tacker():
    """Heat refuses such an update, so the first hook does."""

    def resource(name, kind, physical_id):
        return types.SimpleNamespace(
            resource_name=name, resource_type=kind, physical_resource_id=physical_id
        )

    members = {"workers": {"w": {}}, "masters": {"0": {}}}
    client = types.SimpleNamespace(
        stacks=types.SimpleNamespace(
            template=lambda stack: {"resources": members.get(stack, {})}
        ),
        resource_get_list=lambda stack, nested_depth: [
            resource("worker_instance", "OS::Heat::AutoScalingGroup", "workers"),
            resource("w", "worker.yaml", "w-stack"),
            resource("master_instance", "OS::Heat::ResourceGroup", "masters"),
            resource("0", "master.yaml", "m-stack"),
        ],
    )
    updater = update_template.HOTUpdater(client)
    updater.get_templates_from_stack("top")
    assert list(updater.nested_templates) == ["worker.yaml"]


def test_the_state_of_a_failure_goes_when_a_retry_ends_well():
    """Tacker leaves it, and refuses to scale a VNF instance that has one."""

    def update(context, vnf_instance, task_state):
        vnf_instance.task_state = task_state

    def save():
        instance.saved += 1

    @vnflcm_driver.revert_to_error_task_state
    def change(self, context, vnf_instance):
        raise ValueError

    instance = types.SimpleNamespace(id="i", task_state=None, saved=0, save=save)
    driver = types.SimpleNamespace(_vnf_instance_update=update)
    with pytest.raises(ValueError):  # noqa: PT011  its own, a line above
        change(driver, None, vnf_instance=instance)
    assert instance.task_state == fields.VnfInstanceTaskState.ERROR
    V1Instance(None, instance).clear_error()
    V1Instance(None, instance).clear_error()
    assert (instance.task_state, instance.saved) == (None, 1)
