# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt app show``: one application of a cluster."""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt.cli import applications, common
from tacker_k8s_mgmt.cli.base import Outcome
from tacker_k8s_mgmt.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.status.application_report import ApplicationsReport


class AppShow(ClusterReport):
    """Show an application of a cluster, with its objects.

    Show the objects of an application, what is wrong with each, and why the last change
    of the application failed, if it did.

    It changes nothing and runs where `app list` runs.
    """

    examples = (
        f"tacker-k8s-mgmt app show {common.EXAMPLE_ID} keystone",
        f"tacker-k8s-mgmt app show {common.EXAMPLE_ID} keystone --json",
    )
    _name = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="name of the application")
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Ask what has to be asked."""
        self._name = parsed_args.name
        return super().find(parsed_args)

    def compare(self, survey: Survey, vnf_id: str) -> ApplicationsReport:
        """Return this application only."""
        report = survey.applications()
        one = tuple(app for app in report.applications if app.name == self._name)
        if not one and not report.failures:
            have = ", ".join(app.name for app in report.applications) or "none"
            raise UsageError(f"There is no application {self._name}; there are: {have}")
        return replace(report, applications=one)

    def document(self, report: ApplicationsReport) -> Mapping[str, Any]:
        """Return the application with its objects."""
        return {
            "applications": [
                {
                    **applications.document(one),
                    "objects": [
                        {"name": item.title, "problem": item.problem or None}
                        for item in one.objects
                    ],
                }
                for one in report.applications
            ]
        }

    def show(self, console: Console, report: ApplicationsReport) -> None:
        """Print the application, and a table of its objects."""
        for one in report.applications:
            record = one.record
            titles = ("namespace", "kind", "version", "revision", "state", "updated")
            for title, value in zip(titles, applications.row(one)[1:], strict=True):
                console.say(f"{title}: {value}")
            if record and record.detail:
                console.say(f"The last failure: {record.detail}", "yellow")
            console.table(
                ["OBJECT", "PROBLEM"],
                [
                    [
                        Text(item.title),
                        Text(item.problem or "-", "red" if item.problem else ""),
                    ]
                    for item in one.objects
                ],
            )
        applications.show_findings(console, report)
