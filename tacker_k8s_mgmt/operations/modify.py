# SPDX-License-Identifier: Apache-2.0
"""Modification of the VNF instance: what its metadata want of the cluster changes.

What a modification can change, such as the settings of the nodes, are its concerns. All
of them are checked before one changes anything.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations.compare import compare
from tacker_k8s_mgmt.operations.state import ClusterState, Dependencies, NodeObjects
from tacker_k8s_mgmt.operations.step import Step

_CHECK = "check what the metadata want"


class ModificationRefused(errors.ProblemList):
    """The cluster cannot become what the VNF instance's metadata want.

    :param problems: each names the entry of the metadata.
    """

    message = "The metadata of the VNF instance have {count} problem(s): {listed}."
    default_hint = "Nothing was changed."


class Concern(Protocol):
    """What a modification can change; made with the state that all concerns share."""

    def look(self, seen: NodeObjects) -> None:
        """Compare what is wanted with the cluster, and change nothing.

        :param seen: the Node objects.
        """

    def problems(self) -> Iterable[str]:
        """Why it cannot be done; each problem names the entry of the metadata."""

    def steps(self) -> Sequence[Step]:
        """The steps in the order of work, for what :meth:`look` has found."""

    def left(self) -> str:
        """What stays behind when a step fails."""


class Modify:
    """The steps of ``modify_information_end``, and of its rollback.

    :param concerns: make what the request changes.
    :param checked: whether that is checked; what a rollback wants was in force.
    """

    def __init__(
        self,
        deps: Dependencies,
        concerns: Iterable[Callable[[ClusterState], Concern]],
        *,
        checked: bool = True,
    ) -> None:
        # All problems are reported together, with those that the cluster shows.
        self._known = (*deps.params.metadata_problems, *deps.settings.problems)
        settings = replace(deps.settings, problems=())
        self._state = ClusterState(replace(deps, settings=settings))
        self._concerns = tuple(make(self._state) for make in concerns)
        self._checked = checked

    def start_steps(self) -> tuple[Step, ...]:
        """The steps of ``modify_information_start``: checks that change nothing."""
        return (Step(_CHECK, self._check),)

    def steps(self) -> tuple[Step, ...]:
        """The steps in the order of work."""
        work = (step for concern in self._concerns for step in concern.steps())
        return (Step(_CHECK, self._check_and_keep), *work)

    def left(self) -> str:
        """What stays behind when a step fails."""
        return " ".join(filter(None, (concern.left() for concern in self._concerns)))

    def _check_and_keep(self) -> None:
        self._check()
        # A file that was deleted has new keys trusted: once, not by each modification.
        self._state.site.save_host_keys()

    def _check(self) -> None:
        state = self._state
        members, seen = compare(state)
        state.nodes = tuple(n for n in members.nodes if n not in members.joining)
        for concern in self._concerns:
            concern.look(seen)
        if not self._checked:
            return
        found = (text for concern in self._concerns for text in concern.problems())
        if problems := (*self._known, *found):
            raise ModificationRefused(problems)
