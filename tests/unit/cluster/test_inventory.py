import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.cluster import inventory
from tacker_k8s_mgmt.cluster.nodes import Machine, Role, name_nodes
from tacker_k8s_mgmt.errors import ClusterError
from tests.unit.cluster.samples import assert_golden, machine, parsed

NODES = name_nodes(
    [machine(Role.CONTROL_PLANE, 5), machine(Role.WORKER, 7), machine(Role.WORKER, 8)]
)
THREE_CONTROL_PLANES = name_nodes(
    [
        *(machine(Role.CONTROL_PLANE, number) for number in (5, 6, 7)),
        Machine(Role.WORKER, "server-8", "2001:db8::8", "fd00::8"),
    ]
)
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
    ],
)
def test_the_text_is_the_golden_one(name, nodes, changes):
    assert_golden(name, inventory.render(nodes, parsed(changes)))


def test_what_was_rendered_is_read_back():
    assert inventory.parse(inventory.render(NODES, parsed())) == NODES


def test_a_cluster_without_workers_is_read_back():
    assert inventory.parse(inventory.render(NODES[:1], parsed())) == NODES[:1]


def test_the_order_of_the_control_planes_is_kept():
    turned = THREE_CONTROL_PLANES[2::-1]
    text = inventory.render(turned, parsed())
    groups = yaml.load(text, Loader=Loader)["all"]["children"]  # noqa: S506
    names = [node.name for node in turned]
    assert list(groups["kube_control_plane"]["hosts"]) == names
    assert list(groups["etcd"]["hosts"]) == names


def test_the_text_is_ascii_so_that_no_locale_can_spoil_it():
    assert inventory.render(NODES, parsed(AWKWARD)).isascii()


@pytest.mark.parametrize("mark", ["{{", "{%", "{#"])
def test_text_that_looks_like_a_template_is_tagged(mark):
    text = inventory.render(NODES, parsed({"worker_node.password": f"a{mark}b"}))
    assert f"ansible_password: !unsafe 'a{mark}b'" in text


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40)
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
def test_an_inventory_of_somebody_else_is_refused(text):
    with pytest.raises(ClusterError, match=r"hosts\.yaml"):
        inventory.parse(text)


def test_a_broken_inventory_does_not_show_its_passwords():
    broken = inventory.render(NODES, parsed()).replace("kube_node:", "'kube_node:")
    with pytest.raises(ClusterError) as caught:
        inventory.parse(broken)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__context__ is None
