# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import os
import shutil
import subprocess

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import Machine, Role, name_nodes
from tests.helpers.samples import IPV6, KEY, REMOVED, assert_golden, machine, parsed
from tests.helpers.tool_warnings import warnings_in

PROGRAM = shutil.which("ansible-inventory")
NODES = name_nodes(
    [machine(Role.CONTROL_PLANE, 5), machine(Role.WORKER, 7), machine(Role.WORKER, 8)]
)
THREE_CONTROL_PLANES = name_nodes(
    [
        *(machine(Role.CONTROL_PLANE, number) for number in (5, 6, 7)),
        machine(Role.WORKER, 8),
    ]
)
IPV6_NODES = name_nodes(
    [
        Machine(Role.CONTROL_PLANE, "server-5", "2001:db8::5", "fd00::5"),
        Machine(Role.WORKER, "server-8", "10.99.0.8", "fd00::8"),
    ]
)
KEYS = {
    "master_node.private_key": KEY,
    "worker_node.password": REMOVED,
    "worker_node.private_key": "/etc/tacker/k8s-mgmt/keys/worker",
    "worker_node.private_key_passphrase": "key-s3cret",
}
AWKWARD = {
    "master_node.password": "{{ lookup('env', 'HOME') }}: #'\"\\ ü",
    "worker_node.password": "0123",
    "worker_node.username": "yes",
}


class Loader(yaml.SafeLoader):
    """Reads ``!unsafe`` as Ansible does."""


Loader.add_constructor("!unsafe", lambda _, node: node.value)


def hosts(text: str) -> dict:
    return yaml.load(text, Loader=Loader)["all"]["hosts"]  # noqa: S506


@pytest.mark.parametrize(
    ("name", "nodes", "changes"),
    [
        ("inventory-simple.yaml", NODES, {}),
        ("inventory-awkward.yaml", THREE_CONTROL_PLANES, AWKWARD),
        ("inventory-keys.yaml", NODES, KEYS),
        ("inventory-ipv6.yaml", IPV6_NODES, IPV6),
    ],
)
def test_the_text_is_the_golden_one(name, nodes, changes):
    assert_golden(name, inventory.render(nodes, parsed(changes)))


class TestLabels:
    CHANGES = {
        "master_node.compute_host_label": "example.org/host",
        "worker_node.compute_host_label": "CIS-node",
        "worker_node.node_labels": ["kind=plain", "zone=a"],
        "worker_node.node_taints": ["dedicated=video:NoSchedule"],
        "worker_node.aspects": [
            {
                "aspect_id": "gpu",
                "node_labels": ["kind=training"],
                "node_taints": ["dedicated=video:NoSchedule", "gpu=yes:NoSchedule"],
            }
        ],
    }
    MACHINES = (
        dataclasses.replace(machine(Role.CONTROL_PLANE, 5), compute_host="a"),
        dataclasses.replace(machine(Role.WORKER, 7), compute_host="b"),
        dataclasses.replace(machine(Role.WORKER, 8), compute_host="c", aspect_id="gpu"),
    )

    def made(self, machines=MACHINES, previous=()):
        nodes = name_nodes(machines, previous)
        return nodes, inventory.render(nodes, parsed(self.CHANGES))

    def test_each_node_has_those_of_its_role_its_aspect_and_its_compute_host(self):
        plane, plain, training = hosts(self.made()[1]).values()
        assert plane["node_labels"] == {"example.org/host": "a"}
        assert "node_taints" not in plane
        assert plain["node_labels"] == {"kind": "plain", "zone": "a", "CIS-node": "b"}
        assert plain["node_taints"] == ["dedicated=video:NoSchedule"]
        assert training["node_labels"] == {
            "kind": "training",
            "zone": "a",
            "CIS-node": "c",
        }
        assert training["node_taints"] == [
            "dedicated=video:NoSchedule",
            "gpu=yes:NoSchedule",
        ]

    def test_they_are_read_back(self):
        _, text = self.made()
        names = [field.name for field in dataclasses.fields(Machine)]
        assert [
            [getattr(node, name) for name in names] for node in inventory.parse(text)
        ] == [[getattr(vm, name) for name in names] for vm in self.MACHINES]

    def test_a_vm_that_was_built_anew_elsewhere_has_its_new_host(self):
        before, _ = self.made()
        anew = dataclasses.replace(
            self.MACHINES[1], server_id="server-7b", compute_host="d"
        )
        nodes, text = self.made((self.MACHINES[0], anew, self.MACHINES[2]), before)
        assert [node.name for node in nodes] == [node.name for node in before]
        found = hosts(text)["worker-10-10-0-7"]
        assert found["node_labels"]["CIS-node"] == "d"

    def test_a_compute_host_that_nova_no_longer_reports_is_kept(self):
        before, _ = self.made()
        shelved = dataclasses.replace(self.MACHINES[1], compute_host="")
        _, text = self.made((self.MACHINES[0], shelved, self.MACHINES[2]), before)
        assert hosts(text)["worker-10-10-0-7"]["node_labels"]["CIS-node"] == "b"

    def test_a_new_vm_whose_host_is_not_known_is_named(self):
        before, _ = self.made()
        anew = dataclasses.replace(
            self.MACHINES[1], server_id="server-7b", compute_host=""
        )
        with pytest.raises(ClusterError, match=r"server-7b \(worker-10-10-0-7\)"):
            self.made((self.MACHINES[0], anew, self.MACHINES[2]), before)

    def test_compute_hosts_are_left_out_without_a_label_for_them(self):
        text = inventory.render(self.made()[0], parsed())
        assert "node_labels" not in text


@pytest.mark.parametrize(
    ("nodes", "changes"), [(NODES, {}), (NODES, KEYS), (IPV6_NODES, IPV6)]
)
def test_what_was_rendered_is_read_back(nodes, changes):
    assert inventory.parse(inventory.render(nodes, parsed(changes))) == nodes


def test_a_cluster_without_workers_is_read_back():
    assert inventory.parse(inventory.render(NODES[:1], parsed())) == NODES[:1]


def test_the_order_of_the_control_planes_is_kept():
    turned = THREE_CONTROL_PLANES[2::-1]
    text = inventory.render(turned, parsed())
    groups = yaml.load(text, Loader=Loader)["all"]["children"]  # noqa: S506
    names = [node.name for node in turned]
    assert list(groups["kube_control_plane"]["hosts"]) == names
    assert list(groups["etcd"]["hosts"]) == names


@pytest.mark.parametrize("mark", ["{{", "{%", "{#"])
def test_text_that_looks_like_a_template_is_tagged(mark):
    text = inventory.render(NODES, parsed({"worker_node.password": f"a{mark}b"}))
    assert f"ansible_password: !unsafe 'a{mark}b'" in text


@given(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40
    ).filter(str.strip)
    | st.sampled_from(["null", "~", "1e3", "!!x", "{% raw %}", "a: b", "-", "'", '"'])
)
def test_any_password_arrives_as_it_was_given(password):
    changes = {"master_node.password": password, "worker_node.password": password}
    text = inventory.render(NODES, parsed(changes))
    found = {
        (host["ansible_password"], host["ansible_become_password"])
        for host in hosts(text).values()
    }
    assert found == {(password, password)}
    assert inventory.parse(text) == NODES


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("all: [", id="not-yaml"),
        pytest.param("- a\n- b\n", id="a-list"),
        pytest.param("all: {hosts: {}}\n", id="no-groups"),
        pytest.param(
            "all: {hosts: {n: {ip: 1.2.3.4}}, children: {kube_node: {hosts: {}}}}",
            id="no-server-id",
        ),
        pytest.param("all: {hosts: , children: {kube_node: {hosts: }}}", id="nulls"),
    ],
)
def test_an_inventory_that_is_not_ours_is_refused(text):
    with pytest.raises(ClusterError, match=r"hosts\.yaml"):
        inventory.parse(text)


def test_a_broken_inventory_does_not_show_its_passwords():
    broken = inventory.render(NODES, parsed()).replace("kube_node:", "'kube_node:")
    with pytest.raises(ClusterError) as caught:
        inventory.parse(broken)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_neither_key_nor_passphrase_is_in_the_text():
    text = inventory.render(NODES, parsed(KEYS))
    assert "secret1" not in text
    assert "key-s3cret" not in text


class TestLoginsOfALaterOperation:
    BEFORE = inventory.render(NODES[:2], parsed(AWKWARD))
    LATER = {"master_node.password": "cp-new", "worker_node.password": "worker-new"}

    def passwords(self, changes=LATER, nodes=NODES, **how):
        text = inventory.render(nodes, parsed(changes), previous=self.BEFORE, **how)
        return [host.get("ansible_password") for host in hosts(text).values()]

    def test_workers_that_are_there_keep_theirs_and_new_ones_get_the_new(self):
        assert self.passwords() == ["cp-new", "0123", "worker-new"]

    def test_a_worker_can_be_renewed_by_name(self):
        found = self.passwords(renewed={NODES[1].name})
        assert found == ["cp-new", "worker-new", "worker-new"]

    def test_a_rebuilt_worker_gets_the_new_login_under_its_old_name(self):
        rebuilt = dataclasses.replace(NODES[1], server_id="another")
        found = self.passwords(nodes=(NODES[0], rebuilt))
        assert found == ["cp-new", "worker-new"]

    def test_the_kind_of_login_is_kept_too(self):
        found = self.passwords({"worker_node.private_key": KEY})
        assert found == ["cp-s3cret", "0123", None]

    def test_what_looks_like_a_template_stays_tagged(self):
        before = inventory.render(
            NODES[:2], parsed({"worker_node.password": "{{ x }}"})
        )
        text = inventory.render(NODES, parsed(), previous=before)
        assert "ansible_password: !unsafe '{{ x }}'" in text

    def test_a_cluster_that_had_no_workers_gets_some(self):
        none = inventory.render(NODES[:1], parsed())
        text = inventory.render(NODES, parsed(), previous=none)
        assert len(inventory.parse(text)) == 3


@pytest.mark.skipif(not PROGRAM, reason="no ansible-inventory in PATH")
class TestAnsibleReadsIt:
    """What Ansible itself makes of the text."""

    def read(self, directory, nodes, changes):
        path = directory / "hosts.yaml"
        path.write_text(inventory.render(nodes, parsed(changes)), encoding="ascii")
        done = subprocess.run(
            [PROGRAM, "-i", str(path), "--list"],
            capture_output=True,
            check=True,
            env={**os.environ, "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(directory)},
        )
        assert warnings_in(done.stderr.decode()) == []
        return json.loads(done.stdout)

    def test_the_groups_that_every_release_reads_have_their_members(self, tmp_path):
        listed = self.read(tmp_path, THREE_CONTROL_PLANES, {})
        names = [node.name for node in THREE_CONTROL_PLANES]
        assert listed["kube_control_plane"]["hosts"] == names[:3]
        assert listed["etcd"]["hosts"] == names[:3]
        assert listed["kube_node"]["hosts"] == names[3:]
        assert set(listed["k8s_cluster"]["children"]) == {
            *("kube_control_plane", "kube_node", "calico_rr")
        }

    def test_names_and_values_arrive_as_they_were_given(self, tmp_path):
        listed = self.read(tmp_path, THREE_CONTROL_PLANES, AWKWARD)["_meta"]["hostvars"]
        leader, worker = listed["control-plane-10-10-0-5"], listed["worker-10-10-0-8"]
        assert leader["ansible_host"] == "10.99.0.5"
        assert leader["ip"] == leader["access_ip"] == "10.10.0.5"
        assert leader["etcd_member_name"] == "etcd1"
        password = AWKWARD["master_node.password"]
        assert leader["ansible_password"] == {"__ansible_unsafe": password}
        assert (worker["ansible_user"], worker["ansible_password"]) == ("yes", "0123")
        assert "etcd_member_name" not in worker
