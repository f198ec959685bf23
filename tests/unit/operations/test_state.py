# SPDX-License-Identifier: Apache-2.0
"""What an operation knows before it has read the inventory."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations.state import ClusterState
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.operations import dependencies, instantiated
from tests.helpers.requests import params


@pytest.mark.parametrize("name", ["cluster", "endpoint", "control_planes"])
def test_without_an_inventory_the_error_names_it(name):
    deps = dependencies(params(), instantiated(), FakeClock())
    state = ClusterState(deps)
    with pytest.raises(errors.ClusterError, match=r"control plane .* hosts\.yaml"):
        getattr(state, name)()
    state.nodes = state.require_inventory()
    assert getattr(state, name)()


@pytest.mark.parametrize("is_operators", [False, True])
def test_a_lost_inventory_may_be_at_the_operators_former_place(is_operators):
    wanted = params().model_copy(update={"operators_server": is_operators})
    site = instantiated()
    site.files.clear()
    state = ClusterState(dependencies(wanted, site, FakeClock()))
    with pytest.raises(errors.ClusterError) as caught:
        state.require_inventory()
    assert ("copied from the former place" in str(caught.value)) is is_operators
