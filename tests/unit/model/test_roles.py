# SPDX-License-Identifier: Apache-2.0
"""The table of roles, and the request's structures with their VMs."""

from tacker_k8s_mgmt.model.nodes import ROLES, Role
from tacker_k8s_mgmt.request.reader import ClusterRequest
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


def test_a_group_of_the_inventory_belongs_to_one_role():
    groups = [group for spec in ROLES.values() for group in spec.groups]
    assert len(groups) == len(set(groups))
