# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster check``: a cluster as it is, against Tacker's records."""

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
from rich.text import Text

from tacker_k8s_mgmt import config, files
from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.status.facts import Report as Comparison
from tacker_k8s_mgmt.status.facts import Row, Source


class ClusterCheck(ClusterReport):
    """Compare Heat, inventory, cluster, load balancer and VIM; changes nothing.

    Show what Heat, the inventory on the Ansible server, the cluster's API, the load
    balancer and Tacker, where it keeps the cluster as a VIM, report of each VM, what
    differs, and what to do about it. VNF instances of both of Tacker's APIs are
    supported.

    It changes nothing and takes no lock: no operation is kept waiting, and while one
    works on the cluster, differences are its work in progress. Hosts whose SSH key no
    operation has recorded are not asked. The load balancer is asked by the script of
    the VNF package, which is copied into a directory of its own there and removed
    again.

    Run it on a conductor's host as the user of the conductor, or as root: it reads
    tacker.conf, Tacker's database, the VNF package and the recorded host keys. Where
    [k8s_mgmt] metrics_directory is set, the numbers of differences are written there.
    """

    examples = (
        f"tacker-k8s-mgmt cluster check {common.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster check {common.EXAMPLE_ID} --json",
    )

    def compare(self, survey: Survey, vnf_id: str) -> Comparison:
        """Return the rows of all VMs."""
        report = survey.take()
        _write_metrics(vnf_id, report)
        return report

    def document(self, report: Comparison) -> Mapping[str, Any]:
        """Return the rows with their differences."""
        return {"rows": [_row_document(row, report) for row in report.rows]}

    def show(self, console: Console, report: Comparison) -> None:
        """Print a table of the rows, and the differences."""
        console.table(
            ["VM", *(source.title.upper() for source in report.sources)],
            [
                [Text(row.name), *(_cell(row, source) for source in report.sources)]
                for row in report.rows
            ],
        )
        for row in report.rows:
            for finding in row.findings:
                console.say(f"{row.name}: {finding.text}.", "red")
                console.say(f"  {finding.remedy}")
                for command in report.commands(row, finding):
                    console.say(f"    {command}", "bold")


def _write_metrics(vnf_id: str, report: Comparison) -> None:
    config.register(cfg.CONF)
    directory = cfg.CONF[config.GROUP].metrics_directory
    if not directory:
        return
    # Imported late, as most sites have no use for it.
    from tacker_k8s_mgmt.metrics import textfile

    differences = {
        source.value: sum(len(row.cells[source].findings) for row in report.rows)
        for source in report.sources
    }
    unread = [source.value for source in report.failures]
    place = config.state_path(cfg.CONF), directory
    try:
        textfile.write_check(*place, vnf_id, differences, unread)
    except OSError as error:
        why = files.reason(error)
        common.complain(f"The metrics in {directory} cannot be written: {why}")


def _row_document(row: Row, report: Comparison) -> dict[str, Any]:
    return {
        "name": row.name,
        "role": row.role.value,
        "server_id": row.server_id,
        "address": row.address,
        **{source.value: row.cells[source].text for source in report.sources},
        "differences": [
            {
                "what": finding.text,
                "remedy": finding.remedy,
                "commands": list(report.commands(row, finding)),
            }
            for finding in row.findings
        ],
    }


def _cell(row: Row, source: Source) -> Text:
    cell = row.cells[source]
    return Text(cell.text, style="bold red" if cell.findings else "")
