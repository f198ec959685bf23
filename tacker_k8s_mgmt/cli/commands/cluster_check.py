"""``tacker-k8s-mgmt cluster check``: a cluster as it is, against Tacker's records."""

import argparse
import uuid
from functools import partial
from typing import Any

from oslo_config import cfg
from rich.text import Text

from tacker_k8s_mgmt import config, errors
from tacker_k8s_mgmt.cli import common, tacker_records
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.status.facts import Report as Comparison
from tacker_k8s_mgmt.status.facts import Row, Source

_AGREE, _DIFFERS, _UNASKED = 0, 1, 2


class ClusterCheck(Report):
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
    exit_codes = "0 they agree, 1 they differ, 2 something could not be asked"
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", type=uuid.UUID, metavar="VNF_INSTANCE_ID")
        tacker_records.add_config_file(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Ask all of them."""
        vnf_id, files = str(parsed_args.vnf), parsed_args.config_file
        try:
            with (
                self.status("Asking …"),
                tacker_records.lookup().opened(vnf_id, files) as instance,
            ):
                report = Survey(instance.params, instance.vnf_id, instance.view).take()
        except errors.K8sMgmtError as error:
            # Exit code 1 is for differences.
            raise UsageError(str(error)) from error
        _write_metrics(instance.vnf_id, report)
        return Outcome(
            _document(instance, report),
            partial(_print, instance, report),
            _code(report),
        )


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
        common.complain(f"The metrics in {directory} cannot be written: {error}")


def _code(report: Comparison) -> int:
    if report.failures:
        return _UNASKED
    return _DIFFERS if report.differs else _AGREE


# For programs


def _document(instance: Any, report: Comparison) -> dict[str, Any]:
    return {
        "vnf_instance_id": instance.vnf_id,
        "vnf_instance_name": instance.name,
        "open_operation": instance.operation or None,
        "agree": _code(report) == _AGREE,
        "not_asked": {source.value: why for source, why in report.failures.items()},
        "rows": [_row_document(row, report) for row in report.rows],
    }


def _row_document(row: Row, report: Comparison) -> dict[str, Any]:
    return {
        "name": row.name,
        "role": row.role.value,
        "server_id": row.server_id,
        "address": row.address,
        **{source.value: row.cells[source].text for source in report.sources},
        "differences": [
            {"what": finding.text, "remedy": finding.remedy} for finding in row.findings
        ],
    }


# For people


def _print(instance: Any, report: Comparison) -> None:
    console = Console()
    name = f" ({instance.name})" if instance.name else ""
    console.say(f"VNF instance {instance.vnf_id}{name}", "bold")
    if instance.operation:
        console.say(
            f"Open operation: {instance.operation}. Differences may be its work.",
            "yellow",
        )
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
    for source, text in report.failures.items():
        console.say(f"Could not be asked: {source.title}.", "bold red")
        console.say(f"  {text}")
    if _code(report) == _AGREE:
        console.say("They agree.", "bold green")


def _cell(row: Row, source: Source) -> Text:
    cell = row.cells[source]
    return Text(cell.text, style="bold red" if cell.findings else "")
