# SPDX-License-Identifier: Apache-2.0
"""The table of roles, and the request's structures with their VMs."""

import pytest

from tacker_k8s_mgmt.model.nodes import ROLES, Role, RoleSpec
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.tools.cloud.demand import role_of
from tests.helpers.requests import BALANCER, params


def test_each_role_has_a_row_and_a_structure_of_the_request():
    structures = {field.alias for field in ClusterRequest.model_fields.values()}
    assert set(ROLES) == set(Role)
    assert {spec.parameter for spec in ROLES.values()} <= structures


def test_the_request_has_the_vms_of_each_role():
    wanted = params(external_lb_param=BALANCER)
    assert list(wanted.vms) == list(ROLES)
    for role, spec in ROLES.items():
        assert (role in wanted.node_groups) == bool(spec.groups)
        assert wanted.account(role).attribute == spec.parameter


@pytest.mark.parametrize(
    ("vdu", "role"),
    [
        ("masterNode", Role.CONTROL_PLANE),
        ("control_plane_node", Role.CONTROL_PLANE),
        ("workerNode", Role.WORKER),
        ("gpu-nodes", Role.WORKER),
        ("externalLB", Role.LOAD_BALANCER),
        ("control-plane-balancer", Role.LOAD_BALANCER),
        ("storage", None),
    ],
)
def test_the_name_of_a_vdu_tells_its_role(vdu, role):
    assert role_of(vdu) is role


def test_each_role_has_words_for_the_names_of_its_vdus():
    assert {role_of(spec.vdu.split("|")[0]) for spec in ROLES.values()} == set(ROLES)


@pytest.mark.parametrize("role", ROLES)
def test_scale_joins_the_nodes_that_its_plays_are_for(role):
    assert ROLES[role].joins_by_scale == (role is Role.WORKER)
    assert not RoleSpec("x", "x", ("calico_rr",)).joins_by_scale


def test_a_group_of_the_inventory_belongs_to_one_role():
    groups = [group for spec in ROLES.values() for group in spec.groups]
    assert len(groups) == len(set(groups))
