# SPDX-License-Identifier: Apache-2.0
"""Hooks as entries of their API's table, and the one way to run an entry.

The tables are in ``v1/driver.py`` and ``v2/driver.py``, where a hook that does not fit
this pattern is a function.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, Protocol, TypeVar

from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.context import Hook
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.request.params import InstallParams

AdviceFor = Callable[[Exception], str]
H = TypeVar("H", bound=Hook[Any])
S = TypeVar("S")


class Operation(Protocol):
    """An operation of the lifecycle."""

    def steps(self) -> Sequence[Step]: ...

    def left(self) -> str: ...


@dataclass(frozen=True)
class Plan:
    """What one call of a hook does.

    :param left: returns what a failed step leaves behind.
    :param advice: what to send then, in place of the hook's own advice.
    :param after: is called when all steps have succeeded.
    :param is_last: whether the hook that usually follows has nothing to do this time.
    """

    steps: Sequence[Step]
    left: Callable[[], str] = lambda: ""
    advice: AdviceFor | None = None
    after: Callable[[], object] = lambda: None
    is_last: bool = False

    @classmethod
    def of(
        cls,
        operation: Operation,
        advice: AdviceFor | None = None,
        after: Callable[[], object] = lambda: None,
    ) -> "Plan":
        """The plan of an operation, whose list of steps may grow while it runs."""
        return cls(operation.steps(), operation.left, advice, after)


@dataclass(frozen=True)
class Entry(Generic[H, S]):
    """One hook of an API.

    :param read: reads the parameters, given *param_advice*; returns None when there is
        nothing to do.
    :param plan: returns what this call does.
    :param param_advice: what to send when the parameters are wrong.
    :param advice: what to send when the hook fails otherwise.
    :param followed_by: the hook of the same operation whose work comes next; "" if
        there is none, or none with an entry.
    """

    read: Callable[[H, str], InstallParams | None]
    plan: Callable[[H, Dependencies, S], Plan]
    _: KW_ONLY
    param_advice: str
    advice: AdviceFor = hints.RESUME
    followed_by: str = ""

    def __call__(self, hook: H) -> None:
        """Run the hook.

        :raises K8sMgmtError: with what to correct and what to send.
        """
        with hints.attached(self.advice):
            params = self.read(hook, self.param_advice)
            if params is None:
                return
            hook.begin()
            with hook.site(params) as site:
                plan = self.plan(hook, hook.dependencies(params, site), site)
                advice = plan.advice or self.advice
                followed_by = "" if plan.is_last else self.followed_by
                secrets = params.secrets()
                hook.run(plan.steps, secrets, advice, plan.left, followed_by)
                plan.after()
