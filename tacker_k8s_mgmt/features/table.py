# SPDX-License-Identifier: Apache-2.0
"""The features, in the order of their work; the one way from the core to them."""

from tacker_k8s_mgmt.features.pod_network.feature import PodNetwork
from tacker_k8s_mgmt.operations.applications import Applications
from tacker_k8s_mgmt.operations.exposures import Exposures
from tacker_k8s_mgmt.operations.feature import Feature
from tacker_k8s_mgmt.operations.node_changes import NodeSettings
from tacker_k8s_mgmt.operations.tenants import Tenants

#: One that is taken out of here is not part of any operation.
FEATURES: tuple[Feature, ...] = (
    NodeSettings(),
    PodNetwork(),
    Tenants(),
    Applications(),
    Exposures(),
)
