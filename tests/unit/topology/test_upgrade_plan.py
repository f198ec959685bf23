# SPDX-License-Identifier: Apache-2.0
"""Version skew: what may follow on what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacker_k8s_mgmt.model.network_plugins import minor, numbers
from tacker_k8s_mgmt.operations.upgrade_plan import (
    ClusterVersion,
    State,
    applied,
    batches,
    kept,
    parse_version,
    plan,
)
from tests.helpers.samples import changed, parsed


def state(servers="1.31.9", kubelets="1.31.9") -> State:
    """``1.31.9 1.31.4`` are two nodes."""
    return State(
        {f"cp-{n}": text for n, text in enumerate(servers.split())},
        {f"node-{n}": text for n, text in enumerate(kubelets.split())},
    )


@pytest.mark.parametrize(
    ("servers", "kubelets", "wanted", "pending"),
    [
        ("1.31.9", "1.31.9", "1.32.8", ("cp-0", "node-0")),
        ("1.31.0", "1.31.0", "1.31.9", ("cp-0", "node-0")),
        ("v1.31.9", "v1.31.9", "v1.32.8", ("cp-0", "node-0")),
        ("1.31.9", "1.31.9", "1.31.9", ()),
        # What an upgrade that stopped half-way has left is finished.
        ("1.32.8 1.31.9", "1.32.8 1.31.9", "1.32.8", ("cp-1", "node-1")),
        ("1.32.8 1.31.9", "1.31.9 1.31.9", "1.32.8", ("cp-1", "node-0", "node-1")),
        ("1.32.8", "1.32.8 1.31.9", "1.32.8", ("node-1",)),
        ("1.31.9", "1.32.8 1.31.9", "1.32.8", ("cp-0", "node-1")),
        # Nodes that were left behind, as far as the policy lets them.
        ("1.32.8", "1.30.1", "1.33.7", ("cp-0", "node-0")),
    ],
)
def test_what_may_be_done_names_the_nodes_that_it_concerns(
    servers, kubelets, wanted, pending
):
    found, reasons = plan(state(servers, kubelets), wanted)
    assert (found, reasons) == (set(pending), ())


@pytest.mark.parametrize(
    ("servers", "kubelets", "wanted", "reason"),
    [
        (
            "1.31.9",
            "1.31.9",
            "1.33.7",
            "from 1.31.9 to 1.33.7 is more than one minor release, and they go one by "
            "one: go to 1.32 first, with a kubespray that installs it",
        ),
        (
            "1.29.1",
            "1.29.1",
            "1.31.9",
            "from 1.29.1 to 1.31.9 is more than one minor release, and they go one by "
            "one: go to 1.30 first, with a kubespray that installs it",
        ),
        (
            "1.32.8 1.32.8",
            "1.32.8",
            "1.31.9",
            "Kubernetes never goes down, and cp-0, cp-1 run 1.32.8 already",
        ),
        (
            "1.32.8",
            "1.29.3",
            "1.33.0",
            "the kubelet of node-0 is 1.29.3; with the API servers at 1.33.0 it may be "
            "3 minor releases older at most: upgrade that node first",
        ),
        (
            "1.33.0 1.31.9",
            "1.31.9",
            "1.33.0",
            "the API servers are 1.31.9 to 1.33.0, more than one minor release apart: "
            "bring the oldest ones up first",
        ),
        (
            "1.31.9",
            "1.32.1",
            "1.32.8",
            "the kubelet of node-0 is 1.32.1, newer than any API server (1.31.9): heal "
            "that node first",
        ),
        ("1.31.9", "", "1.32", "the wanted Kubernetes version must be a whole one"),
        ("", "1.31.9", "1.32.8", "no API server reported its version"),
    ],
)
def test_a_refused_upgrade_has_a_reason(servers, kubelets, wanted, reason):
    _, reasons = plan(state(servers, kubelets), wanted)
    assert any(one.startswith(reason) for one in reasons), reasons


def test_before_1_28_a_kubelet_may_be_two_releases_older():
    assert plan(state("1.27.1", "1.25.0"), "1.28.1")[1] == ()
    assert plan(state("1.26.1", "1.24.0"), "1.27.1")[1] == (
        "the kubelet of node-0 is 1.24.0; with the API servers at 1.27.1 it may be 2 "
        "minor releases older at most: upgrade that node first",
    )


def test_every_reason_comes_at_once():
    _, reasons = plan(state("1.31.9 1.31.9", "1.29.0 1.32.1"), "1.34.1")
    assert len(reasons) == 3


versions = st.builds("1.{}.{}".format, st.integers(24, 36), st.integers(0, 3))


@given(
    st.lists(versions, min_size=1, max_size=3),
    st.lists(versions, max_size=3),
    versions,
)
def test_no_plan_breaks_the_policy(servers, kubelets, wanted):
    given_state = state(" ".join(servers), " ".join(kubelets))
    _, reasons = plan(given_state, wanted)
    if reasons:
        return
    for server in servers:
        assert numbers(wanted) >= numbers(server)
        assert minor(wanted)[1] - minor(server)[1] <= 1
    for kubelet in kubelets:
        assert kubelet == wanted or minor(kubelet) <= max(map(minor, servers))
        assert minor(wanted)[1] - minor(kubelet)[1] <= (
            3 if minor(wanted)[1] > 27 else 2
        )


@pytest.mark.parametrize(
    ("workers", "at_once", "sizes"),
    [
        (1, 5, [1]),
        (2, 5, [1, 1]),
        (9, 5, 9 * [1]),
        (10, 5, 5 * [2]),
        (10, 1, 10 * [1]),
        (50, 5, 10 * [5]),
        (51, 8, [*(6 * [8]), 3]),
    ],
)
def test_a_fifth_of_the_workers_at_most_is_out_at_once(workers, at_once, sizes):
    names = [f"w{n}" for n in range(workers)]
    made = batches(names, workers, at_once)
    assert [len(one) for one in made] == sizes
    assert [name for one in made for name in one] == names


def test_a_few_that_are_left_go_in_batches_of_the_whole():
    assert batches(["w1", "w2", "w3"], 10, 5) == (("w1", "w2"), ("w3",))


class TestRecord:
    RECORD = ClusterVersion("1.34.9", "1.35.4", ("cp-1",), ("w1", "w2"))

    @pytest.mark.parametrize(
        "record", [RECORD, ClusterVersion(), ClusterVersion(version="1.35.4")]
    )
    def test_it_is_read_as_it_was_written(self, record):
        assert parse_version(record.text()) == record

    def test_none_is_an_empty_one(self):
        assert parse_version(None) == ClusterVersion()
        assert parse_version("{}\n") == ClusterVersion()

    def test_its_version_goes_before_that_of_the_parameters(self):
        stored = changed({"cluster": {"kubernetes_version": "1.33.7"}})
        made = applied(self.RECORD, parsed(stored))
        assert made.cluster.kubernetes_version == "1.34.9"
        assert applied(ClusterVersion(), made) is made

    def test_and_before_that_of_the_variables(self):
        stored = {"kubespray_vars": {"kube_version": "1.33.7", "helm_enabled": True}}
        made = applied(self.RECORD, parsed(stored))
        assert made.cluster.kubernetes_version == "1.34.9"
        assert made.kubespray_vars == {"helm_enabled": True}


class TestKept:
    def test_version_and_checkout_take_the_place_of_the_former(self):
        before = {
            "ansible": {"ip_address": "a", "kubespray_root_path": "/old"},
            "cluster": {"helm": True, "kubernetes_version": "1.33.7"},
            "kubespray_vars": {"kube_version": "1.33.7", "other": 1},
            "drain": {"timeout": 60},
        }
        new = {
            "ansible.kubespray_root_path": "/opt/new",
            "ansible.venv_path": "/opt/venv",
            "cluster": {"kubernetes_version": "1.34.9"},
        }
        assert kept(before, parsed(new)) == {
            "ansible": {
                "ip_address": "a",
                "kubespray_root_path": "/opt/new",
                "venv_path": "/opt/venv",
            },
            "cluster": {"helm": True, "kubernetes_version": "1.34.9"},
            "kubespray_vars": {"other": 1},
            "drain": {"timeout": 60},
        }


def test_of_the_operators_ansible_server_nothing_is_kept():
    params = parsed({"cluster": {"kubernetes_version": "1.34.9"}})
    params = params.model_copy(update={"operators_server": True})
    assert kept({"drain": {"timeout": 60}}, params) == {
        "cluster": {"kubernetes_version": "1.34.9"},
        "drain": {"timeout": 60},
    }
