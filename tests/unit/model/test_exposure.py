# SPDX-License-Identifier: Apache-2.0
"""Names of what a load balancer exposes, which stay in its configuration."""

from tacker_k8s_mgmt.model import exposure


def test_the_owner_of_an_applications_ports_is_named_as_on_living_load_balancers():
    assert exposure.of_application("shop") == "app-shop"
