# SPDX-License-Identifier: Apache-2.0
"""What the site reads of a VM."""

import pytest

from tacker_k8s_mgmt.remote import vm_identity


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        ('[{},{"ifname":"eth0","mtu":1450,"addr_info":[]}]', 1450),
        ("[{}]", 0),
        ("", 0),
        ("sh: ip: not found", 0),
    ],
)
def test_the_mtu_of_a_nodes_interface(links, expected):
    assert vm_identity.nic_mtu(links) == expected
