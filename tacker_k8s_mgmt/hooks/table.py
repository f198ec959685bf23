"""What a hook does, as an entry of its API's table, and the one way to do it.

Each API has a table: ``v1/driver.py`` and ``v2/driver.py``. A hook that is like no
other is a function there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from tacker_k8s_mgmt.hooks import hints
from tacker_k8s_mgmt.hooks.context import Hook
from tacker_k8s_mgmt.lifecycle.runner import Step
from tacker_k8s_mgmt.lifecycle.state import Dependencies
from tacker_k8s_mgmt.request.params import InstallParams

Advise = Callable[[Exception], str]
H = TypeVar("H", bound=Hook[Any])
S = TypeVar("S")


class Operation(Protocol):
    """An operation of the lifecycle."""

    def steps(self) -> Sequence[Step]: ...

    def left(self) -> str: ...


@dataclass(frozen=True)
class Plan:
    """What one call of a hook does.

    :param left: says what stays behind when a step fails.
    :param advice: what to send then, where the hook's own advice does not fit.
    :param after: is called when every step went well.
    """

    steps: Sequence[Step]
    left: Callable[[], str] = lambda: ""
    advice: Advise | None = None
    after: Callable[[], None] = lambda: None

    @classmethod
    def of(
        cls,
        operation: Operation,
        advice: Advise | None = None,
        after: Callable[[], None] = lambda: None,
    ) -> "Plan":
        """The steps of an operation; the list, which may grow while they are taken."""
        return cls(operation.steps(), operation.left, advice, after)


@dataclass(frozen=True)
class Entry(Generic[H, S]):
    """One hook of an API.

    :param read: reads the parameters, with what to send when they are wrong; returns
        None when there is nothing to do.
    :param wrong: what to send when the parameters are wrong.
    :param plan: the operation, for the VNFCs that the call names.
    :param advice: what to send when the hook fails otherwise.
    :param checkpoint: where Tacker's retry begins if the conductor is killed meanwhile,
        in an API that does not know it by itself.
    """

    read: Callable[[H, str], InstallParams | None]
    wrong: str
    plan: Callable[[H, Dependencies, S], Plan]
    advice: Advise = hints.GOES_ON
    checkpoint: int | None = None

    def __call__(self, hook: H) -> None:
        """Do what the hook has to do.

        :raises K8sMgmtError: says what to mend and what to send.
        """
        with hints.attached(self.advice):
            params = self.read(hook, self.wrong)
            if params is None:
                return
            hook.begin(self.checkpoint)
            with hook.site(params) as site:
                plan = self.plan(hook, hook.dependencies(params, site), site)
                advice = plan.advice or self.advice
                hook.run(plan.steps, params.secrets(), advice, plan.left)
                plan.after()
