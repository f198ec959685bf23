# SPDX-License-Identifier: Apache-2.0
"""External connection points: asked for, present, inside the cluster."""

import ipaddress
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.topology.connection_points import (
    Attachment,
    attachments,
    changing,
    entry_point,
    inner_points,
    left_out,
    shared_addresses,
    unmet,
)
from tacker_k8s_mgmt.topology.stack_resources import StackResource
from tests.helpers.samples import REMOVED, parsed


def port(name, network="net", *addresses):
    fixed = [{"subnet_id": "s", "ip_address": address} for address in addresses]
    attributes = {"network_id": network, "fixed_ips": fixed}
    kind = "OS::Neutron::Port"
    return StackResource("s", name, kind, name, "CREATE_COMPLETE", "", attributes)


def attached(name, network="net", *addresses):
    return Attachment(name, network, frozenset(addresses))


def test_ports_of_a_stack_and_nothing_else():
    server = StackResource("s", "vm", "OS::Nova::Server", "1", "CREATE_COMPLETE")
    found = attachments([port("cp", "net", "192.0.2.1", "2001:db8::1"), server])
    assert found == (attached("cp", "net", "192.0.2.1", "2001:db8::1"),)


PRESENT = (
    attached("one", "net", "192.0.2.1", "2001:db8::1"),
    attached("two", "net", "192.0.2.2"),
    attached("two", "net", "192.0.2.3"),
)


def test_what_is_asked_for_as_it_is_does_not_change():
    asked = [attached("one", "net", "192.0.2.1"), attached("two"), attached("none")]
    assert changing(asked, PRESENT) == frozenset()


def test_another_network_or_address_is_a_change():
    asked = [attached("one", "net", "192.0.2.9"), attached("two", "other")]
    assert changing(asked, PRESENT) == {"one", "two"}


def test_one_address_for_two_ports_is_a_change():
    assert changing([attached("two", "net", "192.0.2.2")], PRESENT) == {"two"}


def test_points_inside_the_cluster_are_named_by_their_attributes():
    assert inner_points(parsed(), ()) == {
        "masterNode_CP2": "master_node.nic_cp_name",
        "workerNode_CP1": "worker_node.nic_cp_name",
        "externalLB_CP2": "external_lb_param.nic_cp_name",
    }


def test_the_only_port_of_a_load_balancer_is_inside_too():
    points = inner_points(parsed({"external_lb_param.nic_cp_name": REMOVED}), ())
    assert points["externalLB_CP1"] == "external_lb_param.ssh_cp_name"


def test_a_floating_ip_stands_for_the_port_behind_it():
    behind = {"floating_ip_address": "203.0.113.7", "port_id": "behind"}
    kind, done = "OS::Neutron::FloatingIP", "CREATE_COMPLETE"
    stack = [
        port("behind", "net", "192.0.2.1"),
        port("other", "net", "192.0.2.2"),
        StackResource("s", "fip", kind, "1", done, "", behind),
    ]
    present = attachments(stack)
    assert [one.floating_ips for one in present] == [{"fip"}, frozenset()]
    without_nic = {f"{group}.nic_cp_name": REMOVED for group in GROUPS}
    named = {f"{one}.ssh_cp_name": "fip" for one in GROUPS}
    params = parsed(without_nic | named)
    assert set(inner_points(params, present)) == {"behind", "masterNode_CP2"}
    asked = [attached("behind", "net", "192.0.2.9"), attached("other", "net", "::2")]
    assert shared_addresses(asked, present, params) == ("behind",)


def test_the_entry_is_the_load_balancer_or_the_control_plane():
    assert entry_point(parsed()) == "externalLB_CP1"
    assert entry_point(parsed({"external_lb_param": REMOVED})) == "masterNode_CP1"


def test_members_of_a_group_cannot_share_an_address():
    asked = [
        attached("workerNode_CP2", "net", "192.0.2.7"),
        attached("masterNode_CP1", "net", "192.0.2.8"),
        attached("externalLB_CP1"),
    ]
    assert shared_addresses(asked, (), parsed()) == ("workerNode_CP2",)


GROUPS = ("worker_node", "external_lb_param")
NETWORK = "0f1d2c3b-4a59-4687-9788-a9bacbdcedfe"


def test_a_request_is_compared_as_far_as_heat_reports():
    present = (attached("one", NETWORK, "192.0.2.1"), attached("two", NETWORK))
    other = NETWORK.replace("0", "1")
    assert (
        unmet([attached("one", "public"), attached("two", NETWORK)], present) == set()
    )
    assert unmet([attached("one", other)], present) == {"one"}
    assert unmet([attached("one", "public", "192.0.2.9")], present) == {"one"}
    assert unmet([attached("two", "other")], [attached("two")]) == {"two"}


def test_groups_whose_template_tacker_leaves_out():
    kinds = ("OS::Heat::ResourceGroup", "OS::Heat::AutoScalingGroup")
    groups = [StackResource("s", kind, kind, "1", "CREATE_COMPLETE") for kind in kinds]
    assert left_out([*groups, port("cp")]) == ("OS::Heat::ResourceGroup",)


def spelled(address):
    """The spellings of an address: groups in full, capitals, shortened."""
    if address.version == 4:
        return st.just(str(address))
    groups = [group.lstrip("0") or "0" for group in address.exploded.split(":")]
    written = (str(address), address.exploded, ":".join(groups))
    return st.sampled_from([*written, *(text.upper() for text in written)])


@given(st.data(), st.ip_addresses(), st.uuids())
def test_every_spelling_of_what_is_present_is_no_change(data, address, network):
    text = data.draw(st.sampled_from([str(network), str(network).upper()]))
    asked = [attached("cp", text, data.draw(spelled(address)))]
    present = (attached("cp", str(network), str(address)),)
    assert changing(asked, present) == unmet(asked, present) == frozenset()


@given(st.data(), st.lists(st.ip_addresses(), min_size=2, max_size=2, unique=True))
def test_no_spelling_makes_two_addresses_one(data, pair):
    asked, present = (
        [attached("cp", "net", data.draw(spelled(address)))] for address in pair
    )
    assert changing(asked, present) == unmet(asked, present) == {"cp"}


def test_a_name_is_no_id_however_it_looks():
    name = uuid.UUID(NETWORK).hex
    assert unmet([attached("one", name)], [attached("one", "named")]) == {"one"}
    assert attached("one", "Public").network == "Public"


@pytest.mark.parametrize("text", ["fe80::1%eth0", "10.0.0.256", "host", "010.0.0.1"])
def test_what_neutron_takes_for_no_address_is_named(text):
    asked = attached("one", "net", text, str(ipaddress.ip_address("2001:db8::1")))
    assert asked.wrong_addresses == (text,)
