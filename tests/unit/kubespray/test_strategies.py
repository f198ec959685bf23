# SPDX-License-Identifier: Apache-2.0
"""What is said of the strategy of playbook runs."""

import pytest

from tacker_k8s_mgmt.kubespray import checkout, releases, strategies
from tacker_k8s_mgmt.model.network_plugins import minor

PINNED = max(strategies.MITOGEN)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (("linear", "2.18.1", PINNED), "linear"),
        (("configured", "2.18.1", PINNED), "linear"),
        (
            ("configured", "2.18.1", PINNED, "free"),
            "free, as the configuration of the Ansible server has it",
        ),
        (("auto", "2.18.1", PINNED), f"k8s_linear with mitogen {PINNED}"),
        (("mitogen_linear", "2.15.9", PINNED), f"k8s_linear with mitogen {PINNED}"),
        (("k8s_linear", "2.18.1", PINNED), "k8s_linear"),
        (
            ("auto", "2.18.1"),
            "k8s_linear, without mitogen, which is not installed",
        ),
        (
            ("auto", "2.18.1", "0.3.2"),
            "k8s_linear, without mitogen: mitogen 0.3.2 is not known to work with "
            "ansible-core 2.18.1",
        ),
        (
            ("k8s_linear", "2.19.0", PINNED),
            "linear: k8s_linear is not tested with ansible-core 2.19.0",
        ),
        (
            ("auto", None),
            "linear: k8s_linear is not tested with ansible-core of this server",
        ),
        (
            ("auto", "2.18.1", PINNED, "free"),
            "free, as the configuration of the Ansible server has it",
        ),
        (("k8s_linear", "2.18.1", PINNED, "free"), "k8s_linear"),
    ],
)
def test_the_strategy_in_words(found, said):
    assert strategies.chosen(*found) == said


def test_every_release_has_a_tested_ansible():
    for release in releases.RELEASES.values():
        first, _ = release.ansible
        assert minor(first) in strategies.CORES


def test_mitogen_is_tested_with_tested_ansible_only():
    for cores in strategies.MITOGEN.values():
        assert set(cores) <= set(strategies.CORES)


def test_what_the_server_reports():
    text = "ansible 2.18.1\nmitogen 0.3.54\nmissing netaddr\nstrategy free\n"
    assert checkout.reported(text, "mitogen") == "0.3.54"
    assert checkout.reported(text, "strategy") == "free"
    assert checkout.reported("mitogen {{ x }}\n", "mitogen") == ""
