# SPDX-License-Identifier: Apache-2.0
"""Modification of the VNF instance: what its metadata want of the cluster changes.

What it can change, such as the settings of the nodes, are features. All of those that
it concerns are checked before one changes anything.
"""

from collections.abc import Iterable, Iterator

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations.compare import compare, refuse_unfinished
from tacker_k8s_mgmt.operations.feature import Feature, Work
from tacker_k8s_mgmt.operations.state import ClusterState, OperationContext
from tacker_k8s_mgmt.operations.step import Operation, Step

_CHECK = "check the metadata"


class ModificationRefused(errors.ProblemList):
    """The cluster cannot become what the VNF instance's metadata want.

    :param problems: each names the entry of the metadata.
    """

    message = "The metadata of the VNF instance have {count} problem(s): {listed}."
    default_hint = "Nothing was changed."


def concerned(features: Iterable[Feature], patch: Iterable[str]) -> tuple[Feature, ...]:
    """The features that a request concerns; none if nothing in it is for the cluster.

    :param patch: the names of the entries in its ``metadata``.
    """
    names = tuple(patch)
    return tuple(one for one in features if any(map(one.owns, names)))


class Modify(Operation):
    """The steps of ``modify_information_end``, and of its rollback.

    :param patch: the metadata that the request changes.
    :param checked: whether that is checked; what a rollback wants was in force.
    """

    def __init__(
        self, deps: OperationContext, patch: Iterable[str], *, checked: bool = True
    ) -> None:
        self._state = ClusterState(deps)
        wanted = concerned(deps.features, patch)
        works = zip(deps.features, self._state.works, strict=True)
        self._works = tuple(work for feature, work in works if feature in wanted)
        self._checked = checked

    def start_steps(self) -> tuple[Step, ...]:
        """The steps of ``modify_information_start``: checks that change nothing."""
        return (Step("check-metadata", _CHECK, self._check, reads=True),)

    def steps(self) -> tuple[Step, ...]:
        changes = (step for work in self._works for step in work.changes())
        check = Step("check-metadata", _CHECK, self._check_and_keep, reads=True)
        return (check, *changes)

    def left(self) -> str:
        return " ".join(filter(None, (work.left() for work in self._works)))

    def _check_and_keep(self) -> None:
        self._check()
        # A file that was deleted has new keys trusted: once, not by each modification.
        self._state.site.save_host_keys()

    def _check(self) -> None:
        state = self._state
        # All problems are reported together, with those that the cluster shows.
        members, seen = compare(state, checked=False)
        state.nodes = tuple(n for n in members.nodes if n not in members.joining)
        for work in self._works:
            work.inspect(seen)
        if not self._checked:
            return
        refuse_unfinished(state)
        known = (*state.params.metadata_problems, *_refusals(state.works))
        found = (text for work in self._works for text in work.problems())
        if problems := (*known, *found):
            raise ModificationRefused(problems)


def _refusals(works: Iterable[Work]) -> Iterator[str]:
    """The problems for which features refuse every other operation."""
    for work in works:
        try:
            work.check_metadata()
        except errors.ProblemList as error:
            yield from error.problems
