"""``tacker-k8s-mgmt cluster``: a cluster as it is, against what Tacker records."""

import argparse
import json
import logging
import sys
import uuid
import warnings
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.lifecycle.cluster_check import Survey
from tacker_k8s_mgmt.status.facts import Report, Row, Source

NAME = "cluster"
EXAMPLES = {
    "check": (
        f"tacker-k8s-mgmt cluster check {common.EXAMPLE_ID}",
        f"tacker-k8s-mgmt cluster check {common.EXAMPLE_ID} --json",
    ),
}
_AGREE, _DIFFERS, _UNASKED = 0, 1, 2
_EXIT_CODES = "0 they agree, 1 they differ, 2 something could not be asked"

_DESCRIPTION = """\
Show what Heat, the inventory on the Ansible server, the cluster's API, the load
balancer and Tacker, where it keeps the cluster as a VIM, report of each VM, what
differs, and what to do about it. VNF instances of both of Tacker's APIs are supported.

It changes nothing and takes no lock: no operation is kept waiting, and while one works
on the cluster, differences are its work in progress. Hosts whose SSH key no operation
has recorded are not asked. The load balancer is asked by the script of the VNF package,
which is copied into a directory of its own there and removed again.

Run it on a conductor's host as the user of the conductor, or as root: it reads
tacker.conf, Tacker's database, the VNF package and the recorded host keys."""


def add_parser(subparsers: Any) -> None:
    """Add the group to the command line."""
    verbs = common.add_group(
        subparsers, NAME, "compare a cluster with what Tacker records", EXAMPLES
    )
    verb = common.add_verb(
        verbs,
        "check",
        _check,
        "compare Heat, inventory, cluster, load balancer and VIM; changes nothing",
        EXAMPLES["check"],
        _EXIT_CODES,
    )
    verb.description = _DESCRIPTION
    verb.add_argument("vnf", type=uuid.UUID, metavar="VNF_INSTANCE_ID")
    verb.add_argument(
        "--config-file",
        action="append",
        default=[],
        metavar="FILE",
        help="Tacker's configuration; may be given several times (default: where the "
        "conductor looks for it)",
    )
    common.add_json(verb, "the comparison")


def _check(args: argparse.Namespace) -> int:
    _silence_libraries()
    console = Console()
    try:
        with (
            Console(stderr=True).status("Asking …"),
            _lookup().opened(str(args.vnf), args.config_file) as instance,
        ):
            report = Survey(instance.params, instance.vnf_id, instance.view).take()
    except errors.K8sMgmtError as error:
        common.complain(str(error))
        return _UNASKED
    if args.json:
        print(json.dumps(_document(instance, report), indent=2))
    else:
        _print(console, instance, report)
    return _code(report)


def _silence_libraries() -> None:
    """Keep logs and warnings of libraries off the screen: the report has the errors.

    ``python -W`` turns the warnings on again.
    """
    logging.getLogger().addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def _lookup() -> Any:
    # Imported late: Tacker is large, and the other commands run without it.
    try:
        from tacker_k8s_mgmt.hooks import lookup
    except ImportError as error:
        raise errors.TackerError(
            detail=f"Tacker is not installed beside this program: {error}.",
            hint="Use the tacker-k8s-mgmt of the conductor's Python environment.",
        ) from error
    return lookup


def _code(report: Report) -> int:
    if report.failures:
        return _UNASKED
    return _DIFFERS if report.differs else _AGREE


# For programs


def _document(instance: Any, report: Report) -> dict[str, Any]:
    return {
        "vnf_instance_id": instance.vnf_id,
        "vnf_instance_name": instance.name,
        "open_operation": instance.operation or None,
        "agree": _code(report) == _AGREE,
        "not_asked": {source.value: why for source, why in report.failures.items()},
        "rows": [_row_document(row, report) for row in report.rows],
    }


def _row_document(row: Row, report: Report) -> dict[str, Any]:
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


def _print(console: Console, instance: Any, report: Report) -> None:
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
