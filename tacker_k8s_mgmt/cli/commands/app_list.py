# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt app list``: the applications of a cluster."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt.cli import applications, common
from tacker_k8s_mgmt.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.status.application_report import ApplicationsReport


class AppList(ClusterReport):
    """List the applications of a cluster, wanted and actual.

    List the applications that the parameters of the cluster or the metadata of its VNF
    instance want, and those that the cluster has: in which namespace, which version,
    how many changes, and what became of the last one.

    It changes nothing, asks the Ansible server for the inventory and a control plane
    for the objects, and runs where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt app list {common.EXAMPLE_ID}",
        f"tacker-k8s-mgmt app list {common.EXAMPLE_ID} --json",
    )

    def compare(self, survey: Survey, vnf_id: str) -> ApplicationsReport:
        """Return the applications."""
        return survey.applications()

    def document(self, report: ApplicationsReport) -> Mapping[str, Any]:
        """Return the applications with their differences."""
        found = map(applications.document, report.applications)
        return {"applications": list(found)}

    def show(self, console: Console, report: ApplicationsReport) -> None:
        """Print a table of them, and the differences."""
        console.table(
            ["NAME", "NAMESPACE", "KIND", "VERSION", "REVISION", "STATE", "UPDATED"],
            [list(map(Text, applications.row(one))) for one in report.applications],
        )
        applications.show_findings(console, report)
