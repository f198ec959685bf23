# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster labels``: the settings of nodes, wanted and actual."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.cluster_report import ClusterReport
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.status.settings_report import SettingRow, SettingsReport


class ClusterLabels(ClusterReport):
    """List labels, taints, annotations and maintenance, wanted and actual.

    List the settings of the nodes that requests to modify the VNF instance have stored
    in its metadata: labels, annotations, taints and maintenance, with the value that
    each Node object has. What a former request has set and no entry wants any more is
    listed, too.

    It changes nothing, asks the Ansible server for the inventory and a control plane
    for the Node objects, and runs where `cluster check` runs.
    """

    examples = (
        f"tacker-k8s-mgmt cluster labels {common.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster labels {common.EXAMPLE_ID} --json",
    )

    def compare(self, survey: Survey, vnf_id: str) -> SettingsReport:
        """Return the settings of all nodes."""
        return survey.compare_settings()

    def document(self, report: SettingsReport) -> Mapping[str, Any]:
        """Return the settings and the problems of the metadata."""
        return {
            "problems": list(report.problems),
            "settings": [
                {
                    "node": row.node or None,
                    "setting": row.setting,
                    "wanted": row.wanted,
                    "actual": row.actual,
                    "entry": row.entry or None,
                }
                for row in report.rows
            ],
        }

    def show(self, console: Console, report: SettingsReport) -> None:
        """Print a table of them."""
        console.table(
            ["NODE", "SETTING", "WANTED", "ACTUAL", "ENTRY OF METADATA"],
            [_row(row) for row in report.rows],
        )
        for problem in report.problems:
            console.say(f"{problem}.", "red")


def _row(row: SettingRow) -> list[Text]:
    values = (
        "-" if value is None else value or '""' for value in (row.wanted, row.actual)
    )
    style = "bold red" if row.differs else ""
    texts = (row.node or "none", row.setting, *values, row.entry or "none any more")
    return [Text(text, style=style) for text in texts]
