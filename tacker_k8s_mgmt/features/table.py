# SPDX-License-Identifier: Apache-2.0
"""The features, in the order of their work; the one way from the core to them."""

from tacker_k8s_mgmt.features.applications.feature import Applications
from tacker_k8s_mgmt.features.exposure.exposures import Exposures
from tacker_k8s_mgmt.features.node_settings.feature import NodeSettingsFeature
from tacker_k8s_mgmt.features.pod_network.feature import PodNetwork
from tacker_k8s_mgmt.features.tenants.feature import Tenants
from tacker_k8s_mgmt.operations.feature import Feature

#: One that is taken out of here is not part of any operation.
FEATURES: tuple[Feature, ...] = (
    NodeSettingsFeature(),
    PodNetwork(),
    Tenants(),
    Applications(),
    Exposures(),
)
