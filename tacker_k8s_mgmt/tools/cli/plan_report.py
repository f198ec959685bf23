# SPDX-License-Identifier: Apache-2.0
"""What an operation would do to a cluster, made and shown; nothing is changed."""

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.plan import CHECKED, REFUSED, TO_DO, PlannedStep
from tacker_k8s_mgmt.model.timeline import in_words
from tacker_k8s_mgmt.tools.cli import base, host_records
from tacker_k8s_mgmt.tools.cli.base import Outcome, UsageError

if TYPE_CHECKING:
    from tacker_k8s_mgmt.hooks.planning import ClusterPlan

EXIT_CODES = (
    "0 the operation would be done, 1 it would be refused, or fail as things are, "
    "2 wrong input, or the cluster could not be found"
)
_WIDTH = 80  # columns
_TITLES = {
    "SCALE_IN": "Scale-in",
    "SCALE_OUT": "Scale-out",
    "scale": "Scale",
    "heal": "Heal",
    "modify": "Modification",
    "change_vnfpkg": "Change of the package",
}
_MARKS = {CHECKED: "checked", TO_DO: "to do", REFUSED: "refused"}


def change_of_package(args: argparse.Namespace) -> Mapping[str, Any]:
    """The body of a request for the package that a command line names.

    :raises UsageError: Tacker has no such cluster, or no such operation.
    """
    version, files = args.kubernetes_version, args.config_file
    try:
        lookup = host_records.lookup(files)
        found: Mapping[str, Any] = lookup.change_of_package(
            args.vnf, args.package, version, files
        )
    except errors.K8sMgmtError as error:
        raise UsageError(str(error)) from error
    return found


def make(vnf: str, operation: str, body: Mapping[str, Any], files: Any) -> Outcome:
    """Make the plan of an operation.

    :param vnf: the VNF instance's id or name.
    :param operation: as the path of its request ends; ``modify`` for a PATCH.
    :param body: of the request.
    :param files: Tacker's configuration, as ``--config-file`` names it.
    :raises UsageError: it cannot be made.
    """
    try:
        found = host_records.lookup(files).plan(vnf, operation, body, files)
    except errors.K8sMgmtError as error:
        # Exit code 1 is for what the operation would run into.
        raise UsageError(str(error)) from error
    report = _Report(operation, found, str(body.get("type", "")))
    code = base.PROBLEMS if report.fails else base.OK
    return Outcome(report.document(), report.show, code)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the options for the form of a plan, to a command that has others, too."""
    parser.add_argument(
        "-f",
        "--format",
        dest="formatter",
        choices=("json",),
        help="with --plan: a document for programs",
    )
    parser.add_argument(
        "--json",
        dest="formatter",
        action="store_const",
        const="json",
        help="the same as -f json",
    )


class _Report:
    """A plan with the durations of former operations."""

    def __init__(self, operation: str, found: "ClusterPlan", direction: str) -> None:
        self._operation, self._found, self._plan = operation, found, found.plan
        self._title = _TITLES.get(direction) or _TITLES[operation]
        timeline = host_records.timeline(found.state_path, found.vnf_id)
        self._seconds = timeline.durations()

    @property
    def fails(self) -> bool:
        """Whether the operation would not be done, as things are."""
        return bool(self._plan.refusal or self._plan.held)

    def document(self) -> dict[str, Any]:
        """Return it for programs."""
        plan, found = self._plan, self._found
        return {
            "vnf_instance_id": found.vnf_id,
            "vnf_instance_name": found.name,
            "api": found.api,
            "operation": self._operation,
            "fails": self.fails,
            "refusal": asdict(plan.refusal) if plan.refusal else None,
            "nodes": [asdict(one) for one in plan.nodes],
            "pods": [asdict(one) for one in plan.pods],
            "differences": [asdict(one) for one in plan.differences],
            "steps": [self._step(step) for step in plan.steps],
            "notes": list(plan.notes),
        }

    def _step(self, step: PlannedStep) -> dict[str, Any]:
        names = ("hook", "kind", "name", "outcome")
        own = {name: getattr(step, name) for name in names}
        return {**own, "former_seconds": self._former(step)}

    def _former(self, step: PlannedStep) -> float | None:
        return self._seconds.get((step.hook, step.kind))

    def show(self) -> None:
        """Print it for people."""
        for line in self._lines():
            base.show(line)

    def _lines(self) -> Iterator[str]:
        found, plan = self._found, self._plan
        name = found.name or found.vnf_id
        yield f"{self._title} of {name} ({found.api}): a plan, nothing is changed."
        yield from _listed("Nodes", self._nodes())
        yield from _listed("Pods that have to move", self._pods())
        yield from _listed("What changes", self._differences())
        yield from _listed("Steps", self._steps())
        yield from (line for note in plan.notes for line in _wrapped(note))
        yield from self._verdict()

    def _nodes(self) -> Iterator[str]:
        nodes = self._plan.nodes
        width = max((len(one.node) for one in nodes), default=0)
        for one in nodes:
            why = f": {one.why}" if one.why else ""
            yield f"{one.node:<{width}}  {one.change}{why}"

    def _pods(self) -> Iterator[str]:
        for pod in self._plan.pods:
            notes = []
            if pod.kept_by:
                end = "" if pod.blocks else ", and ends with the node"
                notes.append(f"may not leave now: {'; '.join(pod.kept_by)}{end}")
            if pod.lost:
                notes.append("no controller creates it again")
            if pod.stranded:
                notes.append("no other node accepts it now")
            yield f"{pod.pod} from {pod.node}{''.join(f'; {one}' for one in notes)}"

    def _differences(self) -> Iterator[str]:
        for one in self._plan.differences:
            former, wanted = (
                "none" if value is None else value for value in (one.former, one.wanted)
            )
            yield f"{one.what}: {former} -> {wanted}"

    def _steps(self) -> Iterator[str]:
        for step in self._plan.steps:
            mark = _MARKS.get(step.outcome, "not needed")
            seconds = self._former(step) if step.outcome == TO_DO else None
            took = f" ({in_words(seconds)} formerly)" if seconds else ""
            yield f"{mark:<10}  {step.name}{took}"

    def _verdict(self) -> Iterator[str]:
        plan = self._plan
        if plan.refusal:
            where = f" at the step `{plan.refusal.step}`" if plan.refusal.step else ""
            yield f"The operation would be refused{where}:"
            yield from _wrapped(plan.refusal.text, "  ")
        elif plan.held:
            yield from _wrapped(
                f"As things are the operation would fail: {len(plan.held)} of the pods "
                "may not leave. It waits for that until drain.timeout, and takes the "
                "nodes back into service then."
            )
        elif not plan.steps:
            yield "The operation would be done; the driver has no work in it."
        else:
            total = self._total()
            yield "The operation would be done." + (
                f" Its steps took {in_words(total)} formerly." if total else ""
            )

    def _total(self) -> float:
        due = (step for step in self._plan.steps if step.outcome == TO_DO)
        return sum(self._former(step) or 0 for step in due)


def _listed(title: str, items: Iterator[str]) -> Iterator[str]:
    lines = [line for item in items for line in _wrapped(item, "  ")]
    if lines:
        yield f"{title}:"
        yield from lines


def _wrapped(text: str, indent: str = "") -> Sequence[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
