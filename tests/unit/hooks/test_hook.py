# SPDX-License-Identifier: Apache-2.0
"""How a hook reads its request, opens the cluster and runs an operation."""

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.hooks import hook
from tacker_k8s_mgmt.hooks.advice import FAIL, RETRY, Advice
from tacker_k8s_mgmt.operations.feature import Feature
from tacker_k8s_mgmt.operations.step import Operation, Step, Steps
from tests.helpers.requests import VNF, additional_params, params
from tests.unit.hooks.plain_hook import PlainHook

ADVICE = Advice((RETRY,), "Send it again.", refused=Advice((FAIL,), "Send another."))
WRONG = Advice((FAIL,), "Wrong.")


@pytest.fixture
def call(tmp_path):
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.set_override("state_path", str(tmp_path), config.GROUP)
    return PlainHook(conf)


def cluster(call, advice=ADVICE, **more):
    return call.cluster(wrong=WRONG, advice=advice, **more)


def recorded(call):
    records, _ = journal.read(journal.path_of(call.state_path, VNF))
    return records


def fails(error, step="work"):
    def act():
        raise error

    return Steps(Step("step", step, act), left=lambda: "Something is left.")


def test_the_order_of_work(call):
    with cluster(call) as opened:
        assert (opened.params, opened.vnf_id, opened.site) == (
            params(),
            VNF,
            "the site",
        )
        call.run(Steps(Step("work", "work", lambda: call.done.append("work"))))
    assert call.done == ["read", "open", "begin", "work", "close"]
    assert {(one["hook"], one["api"]) for one in recorded(call)} == {
        ("scale_start", "v0")
    }


@pytest.mark.parametrize("needed", [False, True])
def test_the_logins_of_the_vms_are_read_for_a_feature_only(call, monkeypatch, needed):
    one = Feature()
    one.terminates_on_nodes = lambda _: needed
    monkeypatch.setattr(hook, "FEATURES", (Feature(), one))
    without = params()
    assert (call.with_logins(without, WRONG) is without) != needed
    assert call.done == (["read"] if needed else [])
    call.stored = additional_params(vim_name=5)
    assert call.with_logins(without, WRONG) is without


def test_of_a_vnf_that_is_not_ours_there_is_no_cluster(call):
    call.stored = {}
    with cluster(call) as opened:
        assert opened is None
    assert call.done == ["read"]


def test_wrong_parameters_say_what_to_send_once_and_touch_nothing(call):
    call.stored = additional_params(vim_name=5)
    with pytest.raises(errors.ParamError) as caught, cluster(call):
        raise AssertionError
    assert str(caught.value).endswith(" Wrong.")
    assert "Send it again" not in str(caught.value)
    assert call.done == ["read"]


@pytest.mark.parametrize(
    ("error", "sent", "verb"),
    [
        (
            errors.ClusterError(detail="No.", hint="Fix it."),
            "Send it again.",
            "retry",
        ),
        (
            errors.UnsupportedOperation(detail="No.", hint="Fix it."),
            "Send another.",
            "fail",
        ),
    ],
)
def test_failed_step_says_what_is_left_and_what_to_send(call, error, sent, verb):
    with pytest.raises(errors.StepFailed) as caught, cluster(call):
        call.run(fails(error))
    assert str(caught.value).endswith(
        f"(work) failed: No. Fix it. Something is left. {sent}"
    )
    assert recorded(call)[-1]["verbs"] == [verb]


def test_operation_may_have_an_advice_of_its_own(call):
    def waiting(error):
        return Advice((), f"Wait after {type(error).__name__}.")

    expected = r"conductor's log\. Wait after KeyError\.$"
    with pytest.raises(errors.StepFailed, match=expected), cluster(call):
        call.run(Steps(*fails(KeyError("x")).steps()), advice=waiting)


def test_error_outside_of_a_step_says_what_to_send_too(call):
    with pytest.raises(errors.RemoteError) as caught, cluster(call):
        raise errors.RemoteError(detail="Heat does not answer.")
    assert str(caught.value) == "Heat does not answer. Send it again."


@pytest.mark.parametrize("following", ["", "scale_end"])
def test_hook_that_comes_next_is_in_the_journal(call, following):
    with cluster(call):
        call.run(Steps(), followed_by=following)
    assert recorded(call)[-1]["followed_by"] == following


def test_secrets_are_kept_out_of_the_error(call):
    (secret, *_) = params().secrets()
    error = errors.ClusterError(detail=f"It is {secret}.")
    with pytest.raises(errors.StepFailed) as caught, cluster(call):
        call.run(fails(error))
    assert secret not in str(caught.value)


def test_steps_of_an_operation_may_grow_while_they_are_taken(call):
    class Growing(Operation):
        def steps(self):
            more = Step("second", "second", lambda: call.done.append("second"))
            found = [Step("first", "first", lambda: found.append(more))]
            return found

    with cluster(call):
        call.run(Growing())
    assert "second" in call.done


@pytest.mark.parametrize(
    ("name", "patch", "subject"),
    [
        ("modify_information_start", {"b": 1, "a\n": None}, "a, b"),
        ("modify_information_end", dict.fromkeys("abcde"), "a, b, c and 2 more"),
        ("modify_information_start", {"x" * 130: 1}, f"{'x' * 120}..."),
        ("modify_information_start", {}, None),
        ("heal_start", {}, "2 workerNode, lb"),
        # Of a CNF, which has VNFCs of its own.
        ("heal_end of CNF x", {}, None),
        ("terminate_start", {}, None),
    ],
)
def test_what_an_operation_is_about(call, monkeypatch, name, patch, subject):
    monkeypatch.setattr(call, "name", name)
    monkeypatch.setattr(call, "patch", patch)
    monkeypatch.setattr(call, "healed_vdus", lambda: ("workerNode", "lb", "workerNode"))
    assert call._details({}).get("subject") == subject
