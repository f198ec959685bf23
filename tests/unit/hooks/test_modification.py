# SPDX-License-Identifier: Apache-2.0
"""Which entries of a modification's metadata concern the cluster."""

import pytest

from tacker_k8s_mgmt.features.applications.feature import Applications
from tacker_k8s_mgmt.features.node_settings.feature import NodeSettingsFeature
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.features.tenants.feature import Tenants
from tacker_k8s_mgmt.operations.modify import concerned

LABEL = "k8s_nodes:worker:label:a"


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (["owner"], []),
        (["k8s_applications"], [Applications]),
        (["k8s_applications_of_mine"], []),
        # An application may need the labels and the namespace of a tenant.
        (
            ["k8s_applications", "k8s_tenants", LABEL],
            [NodeSettingsFeature, Tenants, Applications],
        ),
    ],
)
def test_each_entry_has_its_feature_in_the_order_of_work(entries, expected):
    assert [type(one) for one in concerned(FEATURES, entries)] == expected
