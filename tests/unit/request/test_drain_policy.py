# SPDX-License-Identifier: Apache-2.0
"""What the options of the parameter ``drain`` decide."""

import pytest

from tacker_k8s_mgmt.model.pods import Budget, DrainOutcome, Pod
from tacker_k8s_mgmt.request.drain_policy import DrainAttempt, DrainPolicy

WEB = {"app": "web"}
BUDGET = Budget("default", "web", {"matchLabels": WEB})


def web(name="web-1", **fields):
    return Pod("default", name, WEB, **fields)


@pytest.mark.parametrize(
    ("fields", "moves"),
    [
        ({"controller": "ReplicaSet"}, True),
        ({"controller": "StatefulSet"}, True),
        ({"controller": "Job"}, True),
        ({}, True),
        ({"phase": "Pending", "ready": False}, True),
        ({"ready": False}, True),
        ({"terminating": True}, True),
        ({"local_storage": True}, True),
        ({"controller": "DaemonSet"}, False),
        ({"mirror": True}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Failed"}, False),
    ],
    ids=str,
)
def test_movable(fields, moves):
    assert bool(DrainPolicy().evictable([web(**fields)])) is moves


class TestAttempts:
    """Of each node in turn, until it is empty."""

    LEFT = (DrainOutcome("w1", 1, (web("a"), web("b")), error="timeout"),)
    THEN = (*LEFT, DrainOutcome("w1", 2, (web("a"),), error="timeout"))

    def test_the_options_are_kubectls(self):
        policy = DrainPolicy(timeout=20, grace_period=7, delete_emptydir_data=False)
        assert policy.attempt((), reports=True) == DrainAttempt(
            (
                "--ignore-daemonsets",
                "--force",
                "--delete-emptydir-data=false",
                "--grace-period=7",
                "--disable-eviction=false",
            )
        )

    def test_emptydir_data_is_lost_with_force_anyway(self):
        policy = DrainPolicy(delete_emptydir_data=False, on_failure="force")
        attempt = policy.attempt((), reports=True)
        assert "--delete-emptydir-data=true" in attempt.options
        assert "--disable-eviction=false" in attempt.options

    def test_a_silent_kubelet_is_not_waited_for(self):
        attempt = DrainPolicy().attempt((), reports=False)
        assert attempt.options[-1] == "--skip-wait-for-delete-timeout=1"

    def test_one_that_failed_is_the_last(self):
        assert DrainPolicy().attempt(self.LEFT, reports=True) is None

    def test_force_deletes_then(self):
        policy = DrainPolicy(on_failure="force", delete_emptydir_data=False)
        attempt = policy.attempt(self.LEFT, reports=True)
        assert "--disable-eviction=true" in attempt.options
        assert "--delete-emptydir-data=true" in attempt.options

    def test_force_deletes_what_is_still_left_at_once(self):
        policy = DrainPolicy(on_failure="force")
        attempt = policy.attempt(self.THEN, reports=True)
        assert (attempt.options, attempt.pods) == ((), (web("a"),))

    def test_force_ends_too(self):
        policy = DrainPolicy(on_failure="force")
        assert policy.attempt((*self.THEN, self.THEN[-1]), reports=False) is None


SECOND = Budget("default", "second", {"matchLabels": WEB})


@pytest.mark.parametrize(
    ("pods", "budgets", "policy", "gives_up"),
    [
        pytest.param([], [], {}, False, id="unknown"),
        pytest.param([web()], [], {}, False, id="an-error"),
        pytest.param([web()], [BUDGET], {}, False, id="budget"),
        pytest.param([web()], [BUDGET, SECOND], {}, True, id="two-budgets"),
        pytest.param(
            [web(), Pod("default", "db-1", {})],
            [BUDGET, SECOND],
            {},
            False,
            id="another-pod-may-still-go",
        ),
        pytest.param(
            [web()],
            [BUDGET, SECOND],
            {"on_failure": "force"},
            False,
            id="two-budgets-until-force",
        ),
        pytest.param([web(local_storage=True)], [], {}, False, id="local-storage"),
        pytest.param(
            [web("a"), web("b", local_storage=True)],
            [],
            {"delete_emptydir_data": False},
            True,
            id="local-storage-that-stays",
        ),
    ],
)
def test_what_cannot_pass_ends_the_drain_early(pods, budgets, policy, gives_up):
    outcome = DrainOutcome("w1", 1, tuple(pods), tuple(budgets), "error")
    assert DrainPolicy(**policy).gives_up(outcome) is gives_up


FORCE = (
    " With drain.on_failure force, pods that are left at the time limit are deleted."
)

RELAX = (
    "Relax the budget, add replicas that run elsewhere, or heal workers that are not "
    "Ready."
)


@pytest.mark.parametrize(
    ("pods", "budgets", "policy", "text"),
    [
        pytest.param([web()], [BUDGET], {}, f"{RELAX}{FORCE}", id="budget"),
        pytest.param([web()], [BUDGET], {"on_failure": "force"}, RELAX, id="forced"),
        pytest.param(
            [web(terminating=True)],
            [BUDGET],
            {},
            "See why pods do not end (a finalizer, a long grace period)." + FORCE,
            id="does-not-end",
        ),
        pytest.param(
            [web(local_storage=True)],
            [],
            {"delete_emptydir_data": False},
            "Allow drain.delete_emptydir_data if the data may be lost." + FORCE,
            id="local-storage",
        ),
        pytest.param(
            [web(local_storage=True)], [], {}, f"Fix the cause.{FORCE}", id="unknown"
        ),
    ],
)
def test_advice(pods, budgets, policy, text):
    failed = DrainOutcome("w1", 300.4, tuple(pods), tuple(budgets), "timeout")
    assert DrainPolicy(**policy).advice([DrainOutcome("w0", 1), failed]) == text


class TestKubespray:
    """The nodes that kubespray drains itself."""

    def test_the_policy_becomes_its_variables(self):
        built = DrainPolicy(timeout=90, grace_period=30).upgrade_variables()
        assert built["drain_timeout"] == "90s"
        assert built["drain_grace_period"] == 30
        assert built["drain_fallback_enabled"] is False

    def test_the_fallback_comes_after_the_time_limit(self):
        built = DrainPolicy(timeout=90, on_failure="force").upgrade_variables()
        assert built["drain_retries"] * built["drain_retry_delay_seconds"] >= 90

    @pytest.mark.parametrize(
        "policy", [{"on_failure": "force"}, {"disable_eviction": True}]
    )
    def test_force_is_its_fallback(self, policy):
        built = DrainPolicy(**policy).upgrade_variables()
        assert built["drain_fallback_enabled"] is True

    def test_of_a_removal_it_bounds_the_drain_that_may_fail(self):
        policy = DrainPolicy(timeout=60, grace_period=20)
        built = policy.removal_variables(ungraceful=True)
        assert built == {"drain_timeout": "60s", "drain_grace_period": 20}

    def test_the_wait_for_volumes_of_a_removal_keeps_kubesprays_time(self):
        # drain_grace_period is the pause between its probes; -1 would end it soon.
        built = DrainPolicy(timeout=60).removal_variables(ungraceful=False)
        assert built == {"drain_timeout": "60s"}
