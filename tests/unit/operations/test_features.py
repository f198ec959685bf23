# SPDX-License-Identifier: Apache-2.0
"""The core's operations without one feature or another, and without any."""

from dataclasses import replace

import pytest

from tacker_k8s_mgmt.features.node_settings.feature import NodeSettingsFeature
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.model.nodes import Role
from tacker_k8s_mgmt.operations.feature import Feature
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.nodes import machine
from tests.helpers.fakes.site import FakeSite
from tests.helpers.node_settings import DISK, labels, wants
from tests.helpers.operations import (
    FIVE,
    SIX,
    dependencies,
    heal_all_end,
    heal_all_start,
    heal_end,
    heal_start,
    rebuild,
    replace_all,
    run,
    scale_in,
    scale_out,
)
from tests.helpers.requests import params

WITHOUT = [(), *(tuple(one for one in FEATURES if one is not out) for out in FEATURES)]
WANTED = params(tenants=[{"name": "one"}], cluster={"verify_pod_network": True})


@pytest.mark.parametrize("features", WITHOUT, ids=lambda f: f"{len(f)} features")
def test_a_cluster_lives_without_it(features: tuple[Feature, ...]) -> None:
    site = FakeSite()
    site.features = features
    wants(site, DISK)
    run(Instantiate, site, WANTED)
    is_settings = any(isinstance(one, NodeSettingsFeature) for one in features)
    assert labels(site, FIVE) == ({"disk": "ssd"} if is_settings else {})
    site.workers.append(machine(Role.WORKER, 6))
    scale_out(site, "server-6", wanted=WANTED)
    assert {FIVE, SIX} <= {node.name for node in site.cluster_nodes}
    heal_start(site, "server-6", wanted=WANTED)
    heal_end(site, *rebuild(site, "server-6"), wanted=WANTED)
    assert all(node.ready for node in site.cluster_nodes)
    scale_in(site, "server-6-anew", wanted=WANTED)
    assert SIX not in {node.name for node in site.cluster_nodes}
    heal_all_start(site, wanted=WANTED)
    replace_all(site)
    heal_all_end(site, wanted=WANTED)
    assert all(node.ready for node in site.cluster_nodes)


def test_one_that_is_taken_out_does_nothing() -> None:
    deps = dependencies(WANTED, FakeSite(), FakeClock())

    def names(features: tuple[Feature, ...]) -> set[str]:
        steps = Instantiate(replace(deps, features=features)).steps()
        return {step.name for step in steps}

    core, everything = names(()), names(FEATURES)
    assert core < everything
    for features in WITHOUT[1:]:
        assert core <= names(features) <= everything
