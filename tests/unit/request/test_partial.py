# SPDX-License-Identifier: Apache-2.0
"""A request with an invalid attribute: the others are checked all the same."""

import pytest
from hypothesis import given

from tacker_k8s_mgmt.request import structure
from tacker_k8s_mgmt.request.installation import ClusterRequest
from tacker_k8s_mgmt.request.structure import InvalidAttribute, valid
from tests.helpers.param_strategies import MARKER, attributes, bodies
from tests.helpers.samples import SIMPLE, changed, problems

# Each conflict with the attributes that it is about.
CONFLICTS = [
    (
        {"cluster.network": {"plugin": "flannel", "mtu": 1400}},
        "cluster.network.mtu: flannel finds out by itself",
        ("cluster.network",),
    ),
    (
        {"tenants": [{"name": "blue"}, {"name": "blue"}]},
        "tenants.1.name: the tenant is given twice",
        ("tenants",),
    ),
    (
        {"applications": [{"name": "shop", "chart": {"path": "a.tgz"}}]},
        "applications: charts need Helm",
        ("applications", "cluster.helm"),
    ),
    (
        {"master_node.pod_cidr": "fd00::/64"},
        "master_node.pod_cidr: must be of the family",
        ("master_node", "address_family"),
    ),
    (
        {"worker_node.private_key_passphrase": "opens-nothing"},
        "worker_node.private_key_passphrase: there is no private_key",
        ("worker_node",),
    ),
    (
        {"kubespray_vars": {"ip": "10.0.0.1"}},
        "kubespray_vars.ip: cannot be set here",
        ("kubespray_vars",),
    ),
]


@pytest.mark.parametrize(("changes", "expected", "about"), CONFLICTS)
def test_a_conflict_is_reported_beside_any_other_problem(changes, expected, about):
    others = [
        name
        for name in attributes()
        if not any(f"{name}.".startswith(f"{own}.") for own in about)
        and not any(f"{own}.".startswith(f"{name}.") for own in about)
        and name != "profile"
    ]
    assert len(others) > 100
    for name in others:
        found = problems(changed({name: object(), **changes}))
        assert len(found) > 1, name
        assert any(text.startswith(expected) for text in found), (name, found)


def test_only_what_is_not_valid_cannot_be_read():
    body = changed({"worker_node.aspects": ["gpu", {"aspect_id": "a"}], "vim_name": 7})
    made, mistakes = structure.build(ClusterRequest, body)
    assert len(mistakes) == 2
    assert made.control_plane.username == "ubuntu"
    assert made.workers.username == "ubuntu"
    assert made.address_family == "ipv4"
    first, second = made.workers.aspects
    assert (second.aspect_id, second.node_labels) == ("a", ())
    for place in ("aspect_id", "node_labels"):
        with pytest.raises(InvalidAttribute):
            getattr(first, place)
    with pytest.raises(InvalidAttribute):
        made.vim_name  # noqa: B018
    with pytest.raises(AttributeError):
        getattr(made, "no_such_attribute")  # noqa: B009


@given(bodies())
def test_what_is_right_is_as_in_a_request_that_is_right(body):
    values = structure.read(ClusterRequest, body).values
    made, mistakes = structure.build(ClusterRequest, values)
    assert MARKER not in repr(made)
    wrong = {mistake.location[0] for mistake in mistakes}
    right = {name: SIMPLE[name] for name in wrong if name in SIMPLE}
    others = {name: value for name, value in values.items() if name not in wrong}
    corrected, left = structure.build(ClusterRequest, {**others, **right})
    assert not left
    for name in structure.attributes(ClusterRequest).keys() - wrong:
        assert valid(made, name) == valid(corrected, name)
