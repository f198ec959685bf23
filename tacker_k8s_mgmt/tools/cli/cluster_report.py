# SPDX-License-Identifier: Apache-2.0
"""What the commands share that ask a cluster or compare it with Tacker's records."""

import abc
import argparse
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.hooks.instance_view import FAILED_TEMP
from tacker_k8s_mgmt.model.nodes import Node, name_nodes
from tacker_k8s_mgmt.status import rows
from tacker_k8s_mgmt.status.facts import Answers, Source
from tacker_k8s_mgmt.tools.cli import base, host_records
from tacker_k8s_mgmt.tools.cli.base import NotDone, Outcome, Report, UsageError
from tacker_k8s_mgmt.tools.render.console import Console

if TYPE_CHECKING:
    from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection

_AGREE, _DIFFERS, _UNASKED = 0, 1, 2


class Comparison(Protocol):
    """What was found of a cluster."""

    @property
    def failures(self) -> Mapping[Source, str]:
        """Why a source could not be read."""

    @property
    def differs(self) -> bool: ...


class ClusterReport(Report):
    """A command that compares a cluster with Tacker's records, and changes nothing."""

    exit_codes = "0 no differences, 1 differences, 2 something could not be asked"
    reports_failures = True
    #: Printed when nothing differs.
    verdict: ClassVar[str] = "No differences."

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        host_records.add_config_file(parser)
        base.add_watch(parser)
        return parser

    @abc.abstractmethod
    def compare(self, survey: "ClusterInspection", vnf_id: str) -> Any:
        """Return the comparison."""

    @abc.abstractmethod
    def document(self, report: Any) -> Mapping[str, Any]:
        """Return what is particular to this command, for programs."""

    @abc.abstractmethod
    def show(self, console: Console, report: Any) -> None:
        """Print it for people."""

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        # Imported late: help and completion need none of them.
        from tacker_k8s_mgmt.features.table import FEATURES
        from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection

        vnf_id, files = parsed_args.vnf, parsed_args.config_file
        try:
            with (
                self.status("Asking …"),
                host_records.lookup(files).open_cluster(vnf_id, files) as one,
            ):
                known = one.view, one.metadata, one.heals
                survey = ClusterInspection(
                    one.params, one.vnf_id, *known, features=FEATURES
                )
                report = self.compare(survey, one.vnf_id)
        except errors.K8sMgmtError as error:
            # Exit code 1 is for differences.
            raise UsageError(str(error)) from error
        return Outcome(
            {**_about(one, report), **self.document(report)},
            partial(self._print, one, report),
            self.code(report),
        )

    def code(self, report: Comparison) -> int:
        """Return the exit code."""
        return _code(report)

    def _print(self, instance: Any, report: Comparison) -> None:
        console = Console()
        name = f" ({instance.name})" if instance.name else ""
        console.say(f"VNF instance {instance.vnf_id}{name}", "bold")
        if instance.operation:
            console.say(
                f"Open operation: {instance.operation}. Differences may be its work.",
                "yellow",
            )
        if FAILED_TEMP in instance.operation:
            console.say(
                "It has failed and is not ended: send the verb that its error names "
                "(`openstack vnflcm op show`), before any other operation.",
                "bold red",
            )
        self.show(console, report)
        for source, text in report.failures.items():
            console.say(f"Could not be asked: {source.title}.", "bold red")
            console.say(f"  {text}")
        if self.verdict and _code(report) == _AGREE:
            console.say(self.verdict, "bold green")


def _code(report: Comparison) -> int:
    if report.failures:
        return _UNASKED
    return _DIFFERS if report.differs else _AGREE


def _about(instance: Any, report: Comparison) -> dict[str, Any]:
    return {
        "vnf_instance_id": instance.vnf_id,
        "vnf_instance_name": instance.name,
        "open_operation": instance.operation or None,
        "agree": _code(report) == _AGREE,
        "not_asked": {source.value: why for source, why in report.failures.items()},
    }


Answer = TypeVar("Answer")


def ask(instance: Any, question: Callable[[Node], Answer]) -> tuple[str, Answer]:
    """The URL of the cluster's API, and the answer of a control plane.

    :param instance: the cluster, as ``instances.open_cluster`` gives it.
    :param question: is put to one control plane after the other, until one answers.
    :raises NotDone: none does, or Heat has none.
    """
    machines = instance.view.machines()
    url = rows.endpoint(Answers(machines=machines), instance.params.load_balancer)
    if url is None:
        raise NotDone("Heat has no complete VM that offers the API.")
    failures = []
    for plane in name_nodes(machines.control_planes):
        try:
            return url, question(plane)
        except errors.RemoteError as error:
            failures.append(str(error))
    raise NotDone(" ".join(failures) or "Heat has no complete control plane.")
