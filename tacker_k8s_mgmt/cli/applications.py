# SPDX-License-Identifier: Apache-2.0
"""Applications on the screen and for programs, as several commands show them."""

from typing import Any

from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.status.application_report import (
    ApplicationsReport,
    ApplicationState,
)


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
            {"what": finding.text, "remedy": finding.remedy} for finding in one.findings
        ],
    }


def show_findings(console: Console, report: ApplicationsReport) -> None:
    """Print what differs, and what to do about it."""
    for one in report.applications:
        for finding in one.findings:
            console.say(f"{one.name}: {finding.text}.", "red")
            console.say(f"  {finding.remedy}")
