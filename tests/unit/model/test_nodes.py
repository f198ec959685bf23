# SPDX-License-Identifier: Apache-2.0
import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes, same_server
from tests.helpers.samples import machine

CONTROL_PLANE, WORKER = Role.CONTROL_PLANE, Role.WORKER


def names(nodes):
    return [node.name for node in nodes]


def moved(vm: Machine, **values) -> Machine:
    return dataclasses.replace(vm, **values)


def test_names_have_role_and_cluster_address():
    nodes = name_nodes([machine(WORKER, 7), machine(CONTROL_PLANE, 5)])
    assert names(nodes) == ["control-plane-10-10-0-5", "worker-10-10-0-7"]


def test_control_planes_come_first_and_addresses_count_as_numbers():
    nodes = name_nodes(
        [machine(WORKER, 3)] + [machine(CONTROL_PLANE, n) for n in (100, 9, 20)]
    )
    assert names(nodes) == [
        "control-plane-10-10-0-9",
        "control-plane-10-10-0-20",
        "control-plane-10-10-0-100",
        "worker-10-10-0-3",
    ]


def test_equal_last_octets_are_different_names():
    one, other = (
        Machine(WORKER, f"s{n}", f"10.99.0.{n}", f"10.10.{n}.5") for n in (1, 2)
    )
    assert names(name_nodes([one, other])) == ["worker-10-10-1-5", "worker-10-10-2-5"]


def test_an_ipv6_address_makes_a_valid_name():
    (node,) = name_nodes([Machine(WORKER, "s", "10.99.0.7", "fd00::")])
    assert node.name == "worker-fd00-0000-0000-0000-0000-0000-0000-0000"


def test_etcd_members_are_numbered_in_order_and_workers_are_none():
    nodes = name_nodes(
        [*(machine(CONTROL_PLANE, n) for n in (5, 6, 7)), machine(WORKER, 8)]
    )
    assert [node.etcd_member_name for node in nodes] == ["etcd1", "etcd2", "etcd3", ""]


def test_two_vms_with_one_address_are_refused_by_name():
    one = machine(WORKER, 7)
    with pytest.raises(ClusterError, match=r"server-7 and other .* 10\.10\.0\.7"):
        name_nodes([one, moved(one, server_id="other")])


class TestWithAPreviousInventory:
    def test_nothing_changes_when_nothing_changed(self):
        vms = [machine(CONTROL_PLANE, 9), machine(WORKER, 7)]
        nodes = name_nodes(vms)
        assert name_nodes(reversed(vms), nodes) == nodes

    def test_a_lower_address_does_not_take_the_leading_place(self):
        before = name_nodes([machine(CONTROL_PLANE, n) for n in (7, 8, 9)])
        after = name_nodes([machine(CONTROL_PLANE, n) for n in (1, 7, 8, 9)], before)
        assert after[:3] == before
        assert (after[3].name, after[3].etcd_member_name) == (
            "control-plane-10-10-0-1",
            "etcd4",
        )

    def test_a_rebuilt_vm_on_the_old_port_is_the_same_node(self):
        before = name_nodes([machine(CONTROL_PLANE, 5), machine(WORKER, 7)])
        rebuilt = moved(
            machine(CONTROL_PLANE, 5), server_id="new", ssh_address="10.99.0.77"
        )
        after = name_nodes([rebuilt, machine(WORKER, 7)], before)
        assert after[0] == dataclasses.replace(
            before[0], server_id="new", ssh_address="10.99.0.77"
        )

    def test_a_vm_whose_address_changed_keeps_its_name(self):
        before = name_nodes([machine(WORKER, 7)])
        (after,) = name_nodes([moved(machine(WORKER, 7), address="10.10.0.70")], before)
        assert (after.name, after.address) == ("worker-10-10-0-7", "10.10.0.70")

    def test_a_new_vm_on_an_address_that_moved_gets_a_name_of_its_own(self):
        before = name_nodes([machine(WORKER, 7)])
        vms = [
            moved(machine(WORKER, 7), address="10.10.0.70"),
            moved(machine(WORKER, 7), server_id="new"),
        ]
        assert names(name_nodes(vms, before)) == [
            "worker-10-10-0-7",
            "worker-10-10-0-7-2",
        ]

    def test_the_number_of_a_lost_etcd_member_is_not_used_again(self):
        before = name_nodes([machine(CONTROL_PLANE, n) for n in (5, 6, 7)])
        vms = [machine(CONTROL_PLANE, n) for n in (5, 6, 8)]
        members = [node.etcd_member_name for node in name_nodes(vms, before)]
        assert members == ["etcd1", "etcd2", "etcd4"]

    def test_a_worker_on_a_control_planes_old_address_is_a_worker(self):
        before = name_nodes([machine(CONTROL_PLANE, 5)])
        (node,) = name_nodes([moved(machine(WORKER, 5), server_id="new")], before)
        assert (node.name, node.etcd_member_name) == ("worker-10-10-0-5", "")

    def test_nodes_whose_vm_is_gone_are_gone(self):
        before = name_nodes([machine(WORKER, 7), machine(WORKER, 8)])
        assert names(name_nodes([machine(WORKER, 8)], before)) == ["worker-10-10-0-8"]


LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
machines = st.builds(
    Machine,
    role=st.sampled_from([CONTROL_PLANE, WORKER]),
    server_id=st.integers(0, 20).map("server-{}".format),
    ssh_address=st.just("10.99.0.1"),
    address=st.one_of(
        st.integers(0, 30).map("10.10.0.{}".format), st.ip_addresses().map(str)
    ),
)
groups = st.lists(
    machines, max_size=12, unique_by=(lambda vm: vm.address, lambda vm: vm.server_id)
)


@given(groups, groups)
def test_names_are_unique_labels_whatever_came_before(first, second):
    before = name_nodes(first)
    for nodes, vms in ((before, first), (name_nodes(second, before), second)):
        found = names(nodes)
        members = [node.etcd_member_name for node in nodes if node.etcd_member_name]
        assert all(LABEL.fullmatch(name) for name in found)
        assert len(set(found)) == len(found) == len(vms)
        assert len(set(members)) == len(members)
        assert {(n.role, n.server_id, n.address) for n in nodes} == {
            (vm.role, vm.server_id, vm.address) for vm in vms
        }


@given(groups)
def test_naming_twice_changes_nothing(vms):
    nodes = name_nodes(vms)
    assert name_nodes(vms, nodes) == nodes


_SERVERS = st.one_of(st.ip_addresses(), st.just("Lb.Example"))


@st.composite
def spelled_url(draw, host, port):
    """A URL of a server, in one of its spellings."""
    text = str(host)
    if ":" in text:
        groups = [group.lstrip("0") or "0" for group in host.exploded.split(":")]
        written = (text, host.exploded, ":".join(groups))
        text = f"[{draw(st.sampled_from(written))}]"
    text = draw(st.sampled_from([text, text.upper(), text.lower()]))
    dot = draw(st.sampled_from(["", "."])) if isinstance(host, str) else ""
    shown = draw(st.sampled_from(["", ":443"])) if port == 443 else f":{port}"
    scheme = draw(st.sampled_from(["https://", "HTTPS://", ""]))
    path = draw(st.sampled_from(["", "/", "/api/"]))
    return f"{scheme}{text}{dot}{shown}{path}"


@given(st.data(), _SERVERS, st.sampled_from([443, 6443]))
def test_a_server_is_the_same_in_every_spelling_of_its_url(data, host, port):
    first, second = (data.draw(spelled_url(host, port)) for _ in "12")
    assert same_server(first, second)


@pytest.mark.parametrize(
    "other",
    [
        "https://192.0.2.1",
        "https://192.0.2.11:6443",
        "https://[::c000:201]:6443",
        "https://192.0.2.1:x",
        "http://192.0.2.1",
        "",
    ],
)
def test_another_server_is_another(other):
    assert not same_server("https://192.0.2.1:6443", other)
