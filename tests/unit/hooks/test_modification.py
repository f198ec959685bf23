# SPDX-License-Identifier: Apache-2.0
"""Which entries of a modification's metadata concern the cluster."""

import pytest

from tacker_k8s_mgmt.hooks import hook
from tacker_k8s_mgmt.operations.applications import ApplicationChanges
from tacker_k8s_mgmt.operations.node_changes import NodeChanges
from tacker_k8s_mgmt.operations.tenants import TenantChanges

LABEL = "k8s_nodes:worker:label:a"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["owner"], ()),
        (["k8s_applications"], (ApplicationChanges,)),
        (["k8s_applications_of_mine"], ()),
        # An application may need the labels and the namespace of a tenant.
        (
            ["k8s_applications", "k8s_tenants", LABEL],
            (NodeChanges, TenantChanges, ApplicationChanges),
        ),
    ],
)
def test_each_entry_has_its_concern_in_the_order_of_work(entries, expected):
    assert hook.concerns(dict.fromkeys(entries)) == expected
