# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs follow``: an operation live."""

import argparse
import time
from itertools import chain
from typing import Any

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import common, recorded
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.render.console import Console, Reporter
from tacker_k8s_mgmt.model.timeline import Operation, Timeline, in_words

_POLL_SECONDS = 0.5


class RunsFollow(Report):
    """Follow an operation live, until it ends.

    As a document, it is printed when the operation has ended.
    """

    examples = (
        "tacker-k8s-mgmt runs follow",
        f"tacker-k8s-mgmt runs follow {common.EXAMPLE_ID} --wait 600",
    )
    exit_codes = (
        "0 the operation completed, 1 it failed or nothing came, 130 ended with Ctrl-C"
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        recorded.add_arguments(parser)
        parser.add_argument(
            "--wait",
            type=common.seconds,
            metavar="SECONDS",
            help="how long to wait for the first record, and for the next one whenever "
            "nothing comes (default: not at all for the first, then without limit)",
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Show the last operation, and go on with it."""
        args = parsed_args
        began = time.time()
        vnf_id = recorded.chosen(args) or _first_instance(args)
        if vnf_id is None:
            raise recorded.nothing(args.state_path, args.vnf)
        timeline = Timeline()
        path = journal.path_of(args.state_path, vnf_id)
        is_document = bool(args.formatter or args.columns)
        reporter = Reporter(Console(quiet=is_document), timeline)
        with journal.Reader(path) as reader, reporter:
            _catch_up(reader, timeline, reporter)
            if _goes_on(timeline.last, args.wait, began):
                _go_on(args.wait, reader, timeline, reporter)
        last = timeline.last
        if last is None:
            raise recorded.nothing(args.state_path, vnf_id)
        code = common.OK if last.final and not last.failed else common.PROBLEMS
        return Outcome(_document(vnf_id, timeline, last), lambda: None, code)


def _document(vnf_id: str, timeline: Timeline, last: Operation) -> dict[str, Any]:
    return {
        "vnf_instance_id": vnf_id,
        "vnf_instance_name": timeline.vnf_name or None,
        "hook": last.hook,
        "outcome": last.outcome if last.ended is not None else None,
        "is_final": last.final,
        "seconds": last.seconds,
        "error": last.error or None,
    }


def _first_instance(args: argparse.Namespace) -> str | None:
    """The first VNF instance that is recorded while the command waits."""
    until = time.monotonic() + (args.wait or 0)
    vnf_id = None
    while vnf_id is None and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        vnf_id = recorded.chosen(args)
    return vnf_id


def _catch_up(reader: journal.Reader, timeline: Timeline, reporter: Reporter) -> None:
    """Print the hooks of the last operation, over or under way."""
    for record in reader.read():
        timeline.add(record)
    for operation in chain.from_iterable(timeline.occurrences()[-1:]):
        reporter.begin(operation)
        for step in operation.steps:
            reporter.notes(step.notes)
            if step.ended is not None:
                reporter.step(step)
        if operation.ended is not None:
            reporter.end(operation)


def _goes_on(last: Operation | None, wait: float | None, began: float) -> bool:
    """Whether there is more to wait for.

    :param last: the last operation when the command *began*.
    """
    if last is None:
        return wait is not None
    return not last.final or (wait is not None and last.last < began)


def _go_on(
    wait: float | None, reader: journal.Reader, timeline: Timeline, reporter: Reporter
) -> None:
    """Print new records, until the operation ends or none comes for *wait* seconds."""
    latest = time.monotonic()
    over = False
    while not over:
        records = reader.read()
        for record in records:
            operation = timeline.add(record)
            reporter.report(operation, str(record.get("event")))
        if records:
            latest = time.monotonic()
            over = operation.final
        elif wait is not None and time.monotonic() - latest >= wait:
            reporter.say(f"Nothing came for {in_words(wait)}.")
            return
        else:
            time.sleep(_POLL_SECONDS)
