"""``tacker-k8s-mgmt runs``: progress and history of operations, from journals."""

import argparse
import json
import time
import uuid
from itertools import chain
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import journal
from tacker_k8s_mgmt.cli import common
from tacker_k8s_mgmt.cli.render.console import Console, Reporter
from tacker_k8s_mgmt.model.timeline import Operation, Timeline, clock, in_words

_POLL_SECONDS = 0.5
NAME = "runs"
EXAMPLES = {
    "list": ("tacker-k8s-mgmt runs list",),
    "show": (
        f"tacker-k8s-mgmt runs show {common.EXAMPLE_ID}",
        "tacker-k8s-mgmt runs show --json",
        f"tacker-k8s-mgmt runs show {common.EXAMPLE_ID} --html timeline.html",
    ),
    "follow": (
        "tacker-k8s-mgmt runs follow",
        f"tacker-k8s-mgmt runs follow {common.EXAMPLE_ID} --wait 600",
    ),
}


_EXIT_CODES = {
    "list": "0 all is well, 1 nothing is recorded",
    "show": "0 all is well, 1 nothing is recorded of the VNF instance",
    "follow": "0 the operation completed, 1 it failed or nothing came, "
    "130 ended with Ctrl-C",
}


def add_parser(subparsers: Any) -> None:
    """Add the group to the command line."""
    verbs = common.add_group(
        subparsers, NAME, "progress and history of operations", EXAMPLES
    )
    _add(verbs, "list", _list, "VNF instances with their last operation")
    verb = _add(verbs, "show", _show, "all that was recorded of a VNF instance")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the records as they are")
    form.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write the timeline to FILE as one page for a browser",
    )
    verb.add_argument("--force", action="store_true", help="replace an existing FILE")
    verb = _add(verbs, "follow", _follow, "live, until the operation ends")
    verb.add_argument(
        "--wait",
        type=common.seconds,
        metavar="SECONDS",
        help="how long to wait for the first record, and for the next one whenever "
        "nothing comes (default: not at all for the first, then without limit)",
    )


def _add(verbs: Any, name: str, function: common.Function, text: str) -> Any:
    verb = common.add_verb(
        verbs, name, function, text, EXAMPLES[name], _EXIT_CODES[name]
    )
    common.add_directory(verb, "state_path", common.STATE_PATH)
    if name != "list":
        verb.add_argument(
            "vnf",
            nargs="?",
            type=uuid.UUID,
            metavar="VNF_INSTANCE_ID",
            help="default: the one that changed last",
        )
    return verb


def _chosen(args: argparse.Namespace) -> str | None:
    if args.vnf:
        return str(args.vnf)
    return next(iter(journal.instances(args.state_path)), None)


def _nothing(args: argparse.Namespace, vnf_id: str | None) -> int:
    whose = f" of the VNF instance {vnf_id}" if vnf_id else ""
    common.complain(
        f"No operation{whose} is recorded below {args.state_path}; give --state-path "
        "when [k8s_mgmt] state_path or [DEFAULT] state_path is another one."
    )
    return 1


def _list(args: argparse.Namespace) -> int:
    console = Console()
    known = journal.instances(args.state_path)
    if not known:
        return _nothing(args, None)
    for vnf_id in known:
        timeline = Timeline(journal.read(journal.path_of(args.state_path, vnf_id))[0])
        last = timeline.last
        if last is not None:
            at = clock(last.started)
            console.say(f"{vnf_id}  {at}  {last.hook:<20} {_state(last)}")
    return 0


def _state(operation: Operation) -> str:
    if operation.ended is not None:
        return f"{operation.outcome} after {in_words(operation.seconds)}"
    ago = in_words(time.time() - operation.last)
    step = operation.current
    if step is None:
        return f"last sign of life {ago} ago"
    place = f"at step {step.place} {step.name}"
    texts = (place, operation.position, f"last sign of life {ago} ago")
    return ", ".join(filter(None, texts))


def _show(args: argparse.Namespace) -> int:
    vnf_id = _chosen(args)
    if vnf_id is None:
        return _nothing(args, None)
    records, _ = journal.read(journal.path_of(args.state_path, vnf_id))
    if not records:
        return _nothing(args, vnf_id)
    if args.json:
        for record in records:
            print(json.dumps(record))
        return 0
    if args.html:
        return _write_page(args, vnf_id, Timeline(records))
    timeline = Timeline()
    reporter = Reporter(Console(), timeline)
    for record in records:
        event = str(record.get("event"))
        operation = timeline.add(record)
        if event != "progress":
            reporter.report(operation, event)
    if timeline.last and timeline.last.ended is None:
        reporter.say(f"{timeline.last.hook}: {_state(timeline.last)}")
    return 0


def _write_page(args: argparse.Namespace, vnf_id: str, timeline: Timeline) -> int:
    # Imported late: the other commands need no templates.
    from tacker_k8s_mgmt.cli.render import html

    text = html.render(vnf_id, timeline, time.time())
    common.write_new(args.html, text, force=args.force)
    print(f"{args.html}: {len(timeline.operations)} hooks")
    return 0


def _follow(args: argparse.Namespace) -> int:
    began = time.time()
    vnf_id = _chosen(args) or _first_instance(args)
    if vnf_id is None:
        return _nothing(args, None)
    timeline = Timeline()
    path = journal.path_of(args.state_path, vnf_id)
    reporter = Reporter(Console(), timeline)
    with journal.Reader(path) as reader, reporter:
        _catch_up(reader, timeline, reporter)
        if _goes_on(timeline.last, args.wait, began):
            _go_on(args.wait, reader, timeline, reporter)
    last = timeline.last
    if last is None:
        return _nothing(args, vnf_id)
    return common.OK if last.final and not last.failed else common.PROBLEMS


def _first_instance(args: argparse.Namespace) -> str | None:
    """The first VNF instance that is recorded while the command waits."""
    until = time.monotonic() + (args.wait or 0)
    vnf_id = None
    while vnf_id is None and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        vnf_id = _chosen(args)
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
