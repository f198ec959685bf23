# SPDX-License-Identifier: Apache-2.0
"""The MTU of pods: the table of what each plugin needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.errors import ClusterError
from tacker_k8s_mgmt.kubespray import releases, variables
from tacker_k8s_mgmt.model import network_plugins


@pytest.mark.parametrize(
    ("plugin", "encapsulation", "family", "expected"),
    [
        ("calico", None, "ipv4", 1450),
        ("calico", "vxlan", "ipv4", 1450),
        ("calico", "vxlan", "ipv6", 1430),
        ("calico", "ipip", "ipv4", 1480),
        ("calico", "none", "ipv4", 1500),
        ("calico", "none", "ipv6", 1500),
        ("cilium", None, "ipv4", 1450),
        ("cilium", "geneve", "ipv4", 1450),
        ("kube-ovn", None, "ipv4", 1400),
        ("weave", None, "ipv4", 1450),
    ],
)
def test_what_the_encapsulation_needs_is_taken_off(
    plugin, encapsulation, family, expected
):
    assert variables.pod_mtu([1500], plugin, encapsulation, family) == expected


def test_the_smallest_interface_of_all_nodes_counts():
    assert variables.pod_mtu([9000, 1450, 1500]) == 1400


@pytest.mark.parametrize(
    ("mtus", "family", "reason"),
    [
        ([], "ipv4", "is not known"),
        ([1500, 600], "ipv4", "MTU of 600 bytes, which leaves 550 for pods; 576"),
        ([1300], "ipv6", "MTU of 1300 bytes, which leaves 1230 for pods; 1280"),
    ],
)
def test_too_little_is_refused_with_what_is_needed(mtus, family, reason):
    with pytest.raises(ClusterError, match=reason):
        variables.pod_mtu(mtus, address_family=family)


def test_an_mtu_can_be_set_only_where_the_overhead_is_known():
    for name in network_plugins.MTU_VARIABLES:
        assert network_plugins.PLUGINS[name].encapsulations, name


def test_every_plugin_is_one_of_a_known_release():
    known = map(network_plugins.offered, releases.RELEASES)
    assert frozenset().union(*known) == network_plugins.PLUGINS.keys()


cases = [
    (name, one.name)
    for name, plugin in network_plugins.PLUGINS.items()
    for one in plugin.encapsulations
]


@given(st.lists(st.integers(1400, 9000), min_size=1), st.sampled_from(cases))
def test_pods_never_get_more_than_any_interface_carries(mtus, case):
    plugin, encapsulation = case
    found = variables.pod_mtu(mtus, plugin, encapsulation)
    assert found <= min(mtus)
    assert (found == min(mtus)) == (encapsulation == "none")
