# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt tenant``: the tenants of a cluster, wanted and actual, and logins.

``tenant access`` writes the login of a tenant, for requests of CNFs.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from tacker_k8s_mgmt.request.tenants import Tenant
from tacker_k8s_mgmt.status.facts import Row, Source
from tacker_k8s_mgmt.tools.cli import base, cluster_report, host_records
from tacker_k8s_mgmt.tools.cli.base import Command, NotDone, UsageError
from tacker_k8s_mgmt.tools.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.tools.cli.commands.cluster_access import connection_info
from tacker_k8s_mgmt.tools.render.console import Console

if TYPE_CHECKING:
    from tacker_k8s_mgmt.features.tenants.feature import TenantsReport
    from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection


class TenantAccess(Command):
    """Write the vimConnectionInfo with a tenant's login, for Tacker's v2 API.

    Write the attribute vimConnectionInfo for requests that instantiate CNFs of a
    tenant through Tacker's v2 API, which keeps no VIMs: address and CA certificate of
    the cluster, and the token of the tenant's account. In the v1 API the tenant's VIM
    is registered in Tacker, and nothing else is needed.

    The token does not expire; it ends with the tenant. Run it where `cluster check`
    runs.
    """

    examples = (
        f"tacker-k8s-mgmt tenant access {base.EXAMPLE_ID} blue",
        f"tacker-k8s-mgmt tenant access {base.EXAMPLE_ID} blue -o blue.json --helm",
    )
    exit_codes = (
        "0 it was written, 1 something could not be asked, 2 wrong input, or the file "
        "exists"
    )
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        parser.add_argument("tenant", metavar="TENANT", help="name of the tenant")
        base.add_private_output(parser, "TENANT.json")
        parser.add_argument(
            "--helm", action="store_true", help="for CNFs from Helm charts"
        )
        host_records.add_config_file(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        # Imported late: help and completion need nothing of it.
        from tacker_k8s_mgmt.features.tenants import feature

        args = parsed_args
        path = args.output or Path(f"{args.tenant}.json")
        base.check_output(path, force=args.force)
        with (
            self.status("Asking …"),
            host_records.lookup(args.config_file).open_cluster(
                args.vnf, args.config_file
            ) as instance,
        ):
            names = [tenant.name for tenant in instance.params.tenants]
            if args.tenant not in names:
                known = ", ".join(names) or "none"
                raise UsageError(f"it has no tenant {args.tenant}; it has {known}")
            view = instance.view
            url, access = cluster_report.ask(
                instance, lambda node: feature.access(view.manifests(node), args.tenant)
            )
        if access is None:
            raise NotDone(
                f"Tenant {args.tenant} has no token in the cluster; modify the VNF "
                "instance again with k8s_tenants in its metadata."
            )
        text = connection_info(args.tenant, url, access, helm=args.helm)
        base.write_new(path, text, force=args.force)
        base.show(f"{path}: {url}, namespace {args.tenant}")


class TenantList(ClusterReport):
    """List the tenants of a cluster, with their bounds, and what differs.

    List the tenants that the request of the instantiation or the metadata of the VNF
    instance want, with their VIM, Pod Security Standard, quota and isolation, and what
    differs in the cluster or in Tacker. A tenant that is there and not wanted any more
    is listed, too.

    It changes nothing, and runs where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt tenant list {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt tenant list {base.EXAMPLE_ID} --json",
    )

    def compare(self, survey: "ClusterInspection", vnf_id: str) -> "TenantsReport":
        from tacker_k8s_mgmt.features.tenants import feature

        return feature.compare(survey)

    def document(self, report: "TenantsReport") -> Mapping[str, Any]:
        """Return the tenants and the problems of the metadata."""
        wanted = {f"tenant {tenant.name}": tenant for tenant in report.tenants}
        return {
            "problems": list(report.problems),
            "tenants": [_document(row, wanted.get(row.name)) for row in report.rows],
        }

    def show(self, console: Console, report: "TenantsReport") -> None:
        wanted = {f"tenant {tenant.name}": tenant for tenant in report.tenants}
        console.table(
            ["TENANT", "VIM", "POD SECURITY", "QUOTA", "ISOLATED"],
            [_row(row, wanted.get(row.name)) for row in report.rows],
        )
        for row in report.rows:
            for finding in row.findings:
                console.say(f"{row.name}: {finding.text}.", "red")
                console.say(f"  {finding.remedy.text}")
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
