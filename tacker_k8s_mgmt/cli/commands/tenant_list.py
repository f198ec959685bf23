# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt tenant list``: the tenants of a cluster, wanted and actual."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.request.tenants import Tenant
from tacker_k8s_mgmt.status.facts import Row, Source
from tacker_k8s_mgmt.status.tenant_rows import TenantsReport


class TenantList(ClusterReport):
    """List the tenants of a cluster, with their bounds, and what differs.

    List the tenants that the request of the instantiation or the metadata of the VNF
    instance want, with their VIM, Pod Security Standard, quota and isolation, and what
    differs in the cluster or in Tacker. A tenant that is there and not wanted any more
    is listed, too.

    It changes nothing, and runs where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt tenant list {common.EXAMPLE_ID}",
        f"tacker-k8s-mgmt tenant list {common.EXAMPLE_ID} --json",
    )

    def compare(self, survey: Survey, vnf_id: str) -> TenantsReport:
        """Return the tenants."""
        return survey.compare_tenants()

    def document(self, report: TenantsReport) -> Mapping[str, Any]:
        """Return the tenants and the problems of the metadata."""
        wanted = {f"tenant {tenant.name}": tenant for tenant in report.tenants}
        return {
            "problems": list(report.problems),
            "tenants": [_document(row, wanted.get(row.name)) for row in report.rows],
        }

    def show(self, console: Console, report: TenantsReport) -> None:
        """Print a table of them."""
        wanted = {f"tenant {tenant.name}": tenant for tenant in report.tenants}
        console.table(
            ["TENANT", "VIM", "POD SECURITY", "QUOTA", "ISOLATED"],
            [_row(row, wanted.get(row.name)) for row in report.rows],
        )
        for row in report.rows:
            for finding in row.findings:
                console.say(f"{row.name}: {finding.text}.", "red")
                console.say(f"  {finding.remedy}")
        for problem in report.problems:
            console.say(f"{problem}.", "red")


def _name(row: Row) -> str:
    return row.name.removeprefix("tenant ")


def _row(row: Row, tenant: Tenant | None) -> list[Text]:
    style = "bold red" if any(row.findings) else ""
    cells = [_name(row), row.cells[Source.VIM].text or "-"]
    if tenant:
        quota = ", ".join(f"{name} {value}" for name, value in tenant.quota.items())
        isolated = "yes" if tenant.isolated else "no"
        cells += [tenant.pod_security, quota or "-", isolated]
    else:
        cells += ["not wanted any more", "", ""]
    return [Text(cell, style=style) for cell in cells]


def _document(row: Row, tenant: Tenant | None) -> dict[str, Any]:
    return {
        "name": _name(row),
        "wanted": tenant is not None,
        "vim": row.cells[Source.VIM].text or None,
        "pod_security": tenant.pod_security if tenant else None,
        "quota": dict(tenant.quota) if tenant else None,
        "isolated": tenant.isolated if tenant else None,
        "differences": [finding.text for finding in row.findings],
    }
