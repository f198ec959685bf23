# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs show``: what was recorded of a VNF instance."""

import argparse
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import common, recorded
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.cli.render.console import Console, Reporter
from tacker_k8s_mgmt.model.timeline import Timeline


class RunsShow(Report):
    """Show all that was recorded of a VNF instance."""

    examples = (
        f"tacker-k8s-mgmt runs show {common.EXAMPLE_ID}",
        "tacker-k8s-mgmt runs show --json",
        f"tacker-k8s-mgmt runs show {common.EXAMPLE_ID} --html timeline.html",
    )
    exit_codes = "0 all is well, 1 nothing is recorded of the VNF instance"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        recorded.add_arguments(parser)
        parser.add_argument(
            "--html",
            type=Path,
            metavar="FILE",
            help="write the timeline to FILE as one page for a browser",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace an existing FILE"
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Read it."""
        args = parsed_args
        if args.html and (args.formatter or args.columns):
            raise UsageError("--html writes a page; give no other form of output")
        if args.html:
            common.check_output(args.html, force=args.force)
        vnf_id = recorded.chosen(args)
        if vnf_id is None:
            raise recorded.nothing(args.state_path, args.vnf)
        records, _ = journal.read(journal.path_of(args.state_path, vnf_id))
        if not records:
            raise recorded.nothing(args.state_path, vnf_id)
        document = {
            "vnf_instance_id": vnf_id,
            "vnf_instance_name": Timeline(records).vnf_name or None,
            "records": records,
        }
        if args.html:
            show = partial(_write_page, args, vnf_id, records)
        else:
            show = partial(_print, records)
        return Outcome(document, show)


def _print(records: Sequence[dict[str, Any]]) -> None:
    timeline = Timeline()
    reporter = Reporter(Console(), timeline)
    for record in records:
        event = str(record.get("event"))
        operation = timeline.add(record)
        if event != "progress":
            reporter.report(operation, event)
    if timeline.last and timeline.last.ended is None:
        reporter.say(f"{timeline.last.hook}: {recorded.state(timeline.last)}")


def _write_page(
    args: argparse.Namespace, vnf_id: str, records: Sequence[dict[str, Any]]
) -> None:
    # Imported late: the other forms need no templates.
    from tacker_k8s_mgmt.cli.render import html

    timeline = Timeline(records)
    text = html.render(vnf_id, timeline, time.time())
    common.write_new(args.html, text, force=args.force)
    common.show(f"{args.html}: {len(timeline.operations)} hooks")
