# SPDX-License-Identifier: Apache-2.0
"""How an entry of a table of hooks is done, whichever API it is of."""

import contextlib

import pytest
from oslo_config import cfg

from tacker_k8s_mgmt import config, errors, journal
from tacker_k8s_mgmt.hooks.advice import Advice
from tacker_k8s_mgmt.hooks.hook import Entry, Hook, Plan
from tacker_k8s_mgmt.operations.step import Step
from tests.helpers.requests import VNF, params

ADVICE = Advice("Send it again.", refused="Send another.")


class Call(Hook):
    """A call of a hook that notes what is done."""

    def __init__(self, conf):
        super().__init__("scale_start", VNF, conf, api="v0")
        self.done = []

    def kept_profile(self):
        return None

    def package(self):
        raise AssertionError

    def begin(self):
        self.done.append("begin")

    @contextlib.contextmanager
    def site(self, given):
        self.done.append("open")
        yield "the site"
        self.done.append("close")

    def read(self, advice):
        self.done.append("read")
        return params()

    def plan(self, deps, site):
        assert (deps.params, deps.vnf_id, deps.site) == (params(), VNF, site)
        return Plan(
            [Step("work", "work", lambda: self.done.append(f"work on {site}"))],
            after=lambda: self.done.append("after"),
        )


@pytest.fixture
def call(tmp_path):
    conf = cfg.ConfigOpts()
    config.register(conf)
    conf.set_override("state_path", str(tmp_path), config.GROUP)
    return Call(conf)


def entry(read=Call.read, plan=Call.plan, **more):
    return Entry(read, plan, param_advice="Wrong.", advice=ADVICE, **more)


def fails(error, step="work"):
    def act():
        raise error

    return Plan([Step("step", step, act)], lambda: "Something is left.")


def test_the_order_of_work(call):
    entry()(call)
    assert call.done == [
        "read",
        "begin",
        "open",
        "work on the site",
        "after",
        "close",
    ]
    records, _ = journal.read(journal.path_of(call.state_path, VNF))
    assert {(record["hook"], record["api"]) for record in records} == {
        ("scale_start", "v0")
    }


def test_without_parameters_nothing_is_begun(call):
    entry(read=lambda hook, advice: None)(call)
    assert call.done == []


def test_wrong_parameters_say_what_to_send_once_and_touch_nothing(call):
    def parse():
        raise errors.ParamError(["x is missing"])

    def read(hook, advice):
        return hook._read(parse, advice)

    with pytest.raises(errors.ParamError) as caught:
        entry(read=read)(call)
    assert str(caught.value).endswith("(1) x is missing. Wrong.")
    assert call.done == []


@pytest.mark.parametrize(
    ("error", "sent"),
    [
        (errors.ClusterError(detail="No.", hint="Mend it."), "Send it again."),
        (errors.UnsupportedOperation(detail="No.", hint="Mend it."), "Send another."),
    ],
)
def test_failed_step_says_what_is_left_and_what_to_send(call, error, sent):
    with pytest.raises(errors.StepFailed) as caught:
        entry(plan=lambda *_: fails(error))(call)
    assert str(caught.value).endswith(
        f"(work) failed: No. Mend it. Something is left. {sent}"
    )
    assert "after" not in call.done


def test_plan_may_have_an_advice_of_its_own(call):
    plan = Plan(fails(KeyError("x")).steps, advice=Advice("Wait."))
    with pytest.raises(errors.StepFailed, match=r"conductor's log\. Wait\.$"):
        entry(plan=lambda *_: plan)(call)


def test_error_before_the_first_step_says_what_to_send_too(call):
    def plan(*_):
        raise errors.RemoteError(detail="Heat does not answer.")

    with pytest.raises(errors.RemoteError) as caught:
        entry(plan=plan)(call)
    assert str(caught.value) == "Heat does not answer. Send it again."


@pytest.mark.parametrize("is_last", [False, True])
def test_hook_that_comes_next_is_in_the_journal(call, is_last):
    plan = Plan((), is_last=is_last)
    entry(plan=lambda *_: plan, followed_by="scale_end")(call)
    records, _ = journal.read(journal.path_of(call.state_path, VNF))
    assert records[-1]["followed_by"] == ("" if is_last else "scale_end")


def test_secrets_are_kept_out_of_the_error(call):
    (secret, *_) = params().secrets()
    error = errors.ClusterError(detail=f"It is {secret}.")
    with pytest.raises(errors.StepFailed) as caught:
        entry(plan=lambda *_: fails(error))(call)
    assert secret not in str(caught.value)


def test_steps_of_an_operation_may_grow_while_they_are_taken(call):
    class Growing:
        def steps(self):
            more = Step("second", "second", lambda: call.done.append("second"))
            found = [Step("first", "first", lambda: found.append(more))]
            return found

        def left(self):
            return "Nothing."

    entry(plan=lambda *_: Plan.of(Growing()))(call)
    assert "second" in call.done
