# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt app``: the applications of a cluster, listed or one shown.

They appear the same on the screen and for programs wherever commands show them.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt.features.applications import feature
from tacker_k8s_mgmt.features.applications.report import (
    ApplicationsReport,
    ApplicationState,
)
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.tools.cli import base
from tacker_k8s_mgmt.tools.cli.base import Outcome, UsageError
from tacker_k8s_mgmt.tools.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.tools.render.console import Console


def row(one: ApplicationState) -> tuple[str, ...]:
    """Name, namespace, kind, version, revision, state, time of the last change."""
    record = one.record
    if record is None:
        return one.name, "-", "-", "-", "-", "not there", "-"
    version = record.good.version if record.good else ""
    return (
        one.name,
        record.namespace,
        "chart" if record.chart else "manifests",
        version or "-",
        str(record.revision),
        record.state,
        record.updated,
    )


def document(one: ApplicationState) -> dict[str, Any]:
    """The application for programs."""
    record = one.record
    good = record.good if record else None
    return {
        "name": one.name,
        "wanted": one.wanted,
        "namespace": record.namespace if record else None,
        "kind": ("chart" if record.chart else "manifests") if record else None,
        "version": (good.version or None) if good else None,
        "revision": record.revision if record else None,
        "state": record.state if record else None,
        "updated": record.updated if record else None,
        "failure": (record.detail or None) if record else None,
        "differences": [
            {"what": finding.text, "remedy": finding.remedy.text}
            for finding in one.findings
        ],
    }


def show_findings(console: Console, report: ApplicationsReport) -> None:
    """Print what differs, and what to do about it."""
    for one in report.applications:
        for finding in one.findings:
            console.say(f"{one.name}: {finding.text}.", "red")
            console.say(f"  {finding.remedy.text}")


class AppList(ClusterReport):
    """List the applications of a cluster, wanted and actual.

    List the applications that the parameters of the cluster or the metadata of its VNF
    instance want, and those that the cluster has: in which namespace, which version,
    how many changes, and what became of the last one.

    It changes nothing, asks the Ansible server for the inventory and a control plane
    for the objects, and runs where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt app list {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt app list {base.EXAMPLE_ID} --json",
    )

    def compare(self, survey: ClusterInspection, vnf_id: str) -> ApplicationsReport:
        return feature.compare(survey)

    def document(self, report: ApplicationsReport) -> Mapping[str, Any]:
        found = map(document, report.applications)
        return {"applications": list(found)}

    def show(self, console: Console, report: ApplicationsReport) -> None:
        console.table(
            ["NAME", "NAMESPACE", "KIND", "VERSION", "REVISION", "STATE", "UPDATED"],
            [list(map(Text, row(one))) for one in report.applications],
        )
        show_findings(console, report)


class AppShow(ClusterReport):
    """Show an application of a cluster, with its objects.

    Show the objects of an application, what is wrong with each, and why the last change
    of the application failed, if it did.

    It changes nothing and runs where `app list` runs.
    """

    examples = (
        f"tacker-k8s-mgmt app show {base.EXAMPLE_ID} keystone",
        f"tacker-k8s-mgmt app show {base.EXAMPLE_ID} keystone --json",
    )
    _name = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="name of the application")
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        self._name = parsed_args.name
        return super().find(parsed_args)

    def compare(self, survey: ClusterInspection, vnf_id: str) -> ApplicationsReport:
        report = feature.compare(survey)
        one = tuple(app for app in report.applications if app.name == self._name)
        if not one and not report.failures:
            have = ", ".join(app.name for app in report.applications) or "none"
            raise UsageError(f"There is no application {self._name}; there are: {have}")
        return replace(report, applications=one)

    def document(self, report: ApplicationsReport) -> Mapping[str, Any]:
        return {
            "applications": [
                {
                    **document(one),
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
            for title, value in zip(titles, row(one)[1:], strict=True):
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
        show_findings(console, report)
