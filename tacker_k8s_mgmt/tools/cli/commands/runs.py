# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs``: the operations that this host has recorded.

``runs follow``
    shows an operation live.
``runs list``
    lists VNF instances with their last operation.
``runs metrics``
    writes the metrics for Prometheus, once.
``runs pages``
    writes all operations as pages for a browser, or serves them.
``runs show``
    shows what was recorded of a VNF instance.
"""

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacker_k8s_mgmt import errors, files, journal
from tacker_k8s_mgmt.hooks.instance_view import FAILED_TEMP
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.timeline import Operation, Timeline, in_words
from tacker_k8s_mgmt.tools.cli import base, host_records
from tacker_k8s_mgmt.tools.cli.base import (
    Command,
    Lister,
    Outcome,
    Report,
    Time,
    UsageError,
)
from tacker_k8s_mgmt.tools.tacker import records

if TYPE_CHECKING:
    from tacker_k8s_mgmt.tools.render.console import Reporter

_POLL_SECONDS = 0.5
_TACKER_SECONDS = 1.0
_FAILED = (FAILED_TEMP, records.FAILED)


class RunsFollow(Report):
    """Follow an operation live, until it ends.

    One that Tacker has begun is waited for, and it ends when Tacker's LCM operation
    occurrence has ended; Tacker's database says both. With --state-path and no
    --config-file it ends after the last recorded hook. As a document, it is printed
    then.
    """

    examples = (
        "tacker-k8s-mgmt runs follow",
        f"tacker-k8s-mgmt runs follow {base.EXAMPLE_ID} --wait 600",
    )
    exit_codes = (
        "0 the operation completed, 1 it failed or nothing came, 130 ended with Ctrl-C"
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_records.add_arguments(parser)
        parser.add_argument(
            "--wait",
            type=base.seconds,
            metavar="SECONDS",
            help="how long to wait for the first record, and for the next one whenever "
            "nothing comes (default: not at all for the first, then without limit)",
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        args = parsed_args
        began = time.time()
        # The journals of another directory need not be of this Tacker.
        asks_tacker = bool(args.config_file or not args.state_path)
        vnf_id = host_records.chosen(args) or _first_instance(args)
        if vnf_id is None:
            raise host_records.nothing(args.state_path, args.vnf)
        timeline = Timeline()
        path = journal.path_of(args.state_path, vnf_id)
        is_document = bool(args.formatter or args.columns)
        # Imported late: rich takes as long as the rest of `runs list`.
        from tacker_k8s_mgmt.tools.render.console import Console, Reporter

        reporter = Reporter(Console(quiet=is_document), timeline)
        with journal.JournalReader(path) as reader, reporter:
            _catch_up(reader, timeline, reporter)
            begun = _begun(vnf_id, args, timeline.last) if asks_tacker else ""
            if begun or _goes_on(timeline.last, args.wait, began):
                is_over = partial(_is_over, begun, args)
                _go_on(args.wait, reader, timeline, reporter, is_over)
            last = timeline.last
            if last is None:
                raise host_records.nothing(args.state_path, vnf_id)
            state, occurrence = "", begun or last.occurrence
            if asks_tacker and occurrence and last.final:
                state = _tackers_end(occurrence, args, reporter)
        failed = state in _FAILED if state else last.failed
        code = base.OK if last.final and not failed else base.PROBLEMS
        return Outcome(_document(vnf_id, timeline, last, state), lambda: None, code)


def _begun(vnf_id: str, args: argparse.Namespace, last: Operation | None) -> str:
    """The LCM operation occurrence that Tacker has begun and nothing is recorded of.

    :param last: the last hook that is recorded.
    :returns: its id; "" if there is none, or Tacker does not tell.
    """
    if last is not None and not last.final:
        return ""
    try:
        instances = host_records.lookup(args.config_file)
        found = str(instances.under_way(vnf_id, args.config_file))
    except (errors.K8sMgmtError, UsageError):
        return ""
    return found if last is None or found != last.occurrence else ""


def _is_over(occurrence: str, args: argparse.Namespace) -> bool:
    """Whether an operation of which nothing was recorded has ended; "" has not."""
    # Imported late, as below.
    from tacker_k8s_mgmt.tools.tacker import waiting

    if not occurrence:
        return False
    try:
        instances = host_records.lookup(args.config_file)
        state = str(instances.operation_state(occurrence, args.config_file))
    except errors.K8sMgmtError:
        # It may answer again; --wait is the limit.
        return False
    return not state or state in waiting.ENDED


def _tackers_end(
    occurrence: str, args: argparse.Namespace, reporter: "Reporter"
) -> str:
    """Wait until Tacker has ended an operation, and print its state.

    :param occurrence: the id of its LCM operation occurrence.
    :returns: the state; "" if it cannot be read, or nothing came for ``--wait``.
    """
    # Imported late: the other commands do without the client of an API.
    from tacker_k8s_mgmt.tools.tacker import waiting

    latest = time.monotonic()
    try:
        instances = host_records.lookup(args.config_file)
        while True:
            state = str(instances.operation_state(occurrence, args.config_file))
            if not state or state in waiting.ENDED:
                break
            if args.wait is not None and time.monotonic() - latest >= args.wait:
                reporter.say(f"Tacker has not ended it for {in_words(args.wait)}.")
                return ""
            time.sleep(_TACKER_SECONDS)
    except (errors.K8sMgmtError, UsageError) as error:
        reporter.say(f"How Tacker has ended it is not known: {error}", "yellow")
        return ""
    if state:
        style = "bold red" if state in _FAILED else "bold green"
        reporter.say(f"LCM operation occurrence {occurrence}: {state}", style)
    return state


def _document(
    vnf_id: str, timeline: Timeline, last: Operation, state: str
) -> dict[str, Any]:
    return {
        "vnf_instance_id": vnf_id,
        "vnf_instance_name": timeline.vnf_name or None,
        "hook": last.hook,
        "outcome": last.outcome if last.ended is not None else None,
        "is_final": last.final,
        "operation_state": state or None,
        "seconds": last.seconds,
        "error": last.error or None,
    }


def _first_instance(args: argparse.Namespace) -> str | None:
    """The first VNF instance that is recorded while the command waits."""
    until = time.monotonic() + (args.wait or 0)
    vnf_id = None
    while vnf_id is None and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        vnf_id = host_records.chosen(args)
    return vnf_id


def _catch_up(
    reader: journal.JournalReader, timeline: Timeline, reporter: "Reporter"
) -> None:
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
    wait: float | None,
    reader: journal.JournalReader,
    timeline: Timeline,
    reporter: "Reporter",
    is_over: Callable[[], bool],
) -> None:
    """Print new records, until the operation ends or none comes for *wait* seconds.

    :param is_over: whether it has ended; asked until its first record comes.
    """
    latest = time.monotonic()
    recorded = over = False
    while not over:
        # Before its records are read: they are written before it ends.
        over = not recorded and is_over()
        records = reader.read()
        for record in records:
            operation = timeline.add(record)
            reporter.report(operation, str(record.get("event")))
        if records:
            latest, recorded = time.monotonic(), True
            over = operation.final
        elif wait is not None and time.monotonic() - latest >= wait:
            reporter.say(f"Nothing came for {in_words(wait)}.")
            return
        elif not over:
            time.sleep(_POLL_SECONDS)


_COLUMNS = (
    "VNF Instance ID",
    "VNF Name",
    "Operation ID",
    "Hook",
    "Started",
    "Outcome",
    "State",
)


class RunsList(Lister):
    """List VNF instances with their last operation.

    Those whose operation has failed come first, each with the verbs that Tacker takes
    for it.
    """

    examples = ("tacker-k8s-mgmt runs list", "tacker-k8s-mgmt runs list --long")
    main_columns = ("VNF Name", "Hook", "Started", "State")
    exit_codes = "0 no problem, 1 nothing is recorded"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_records.add_state_path(parser)
        base.add_watch(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[Sequence[Any]]]:
        """Return a row for each, the one that changed last first."""
        path = host_records.state_path(parsed_args)
        known = journal.instances(path)
        if not known:
            why = host_records.nothing(path)
            if parsed_args.formatter == base.TABLE:
                raise why
            # A program gets its document, without a row.
            base.complain(str(why))
            self._code = base.PROBLEMS
        return _COLUMNS, _rows(path, known)


def _rows(state_path: str, known: Sequence[str]) -> Iterator[Sequence[Any]]:
    timelines = [(one, host_records.timeline(state_path, one)) for one in known]
    recorded = [(*one, one[1].last) for one in timelines]
    for vnf_id, timeline, last in sorted(recorded, key=_is_no_failure):
        if last:
            yield (
                *(vnf_id, base.Name((timeline.vnf_name, vnf_id))),
                *(last.occurrence, last.hook_name),
                *(
                    Time(last.started),
                    last.outcome or "unfinished",
                    host_records.state(last),
                ),
            )


def _is_no_failure(row: tuple[str, Timeline, Operation | None]) -> bool:
    """Sorts those first whose last operation waits for a verb."""
    last = row[2]
    return last is None or not last.failed


class RunsMetrics(Command):
    """Write the metrics of all operations for Prometheus.

    They are written to [k8s_mgmt] metrics_directory, or printed where that is not set,
    with what the journals have had since the last time. The end of each hook does the
    same where it is set; run by cron, this command also shows an operation that is
    under way, or that a conductor left when it was killed. Run it as the user of the
    conductor, or as root.
    """

    examples = ("tacker-k8s-mgmt runs metrics", "tacker-k8s-mgmt runs metrics --print")
    exit_codes = "0 no problem, 1 something cannot be read or written"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_records.add_state_path(parser)
        host_records.add_directory(parser, "metrics_directory")
        parser.add_argument(
            "--print", action="store_true", help="print them, and write no file"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        # Imported late: the other commands do without Prometheus' client.
        from tacker_k8s_mgmt import metrics

        args = parsed_args
        host_records.complete(args, "state_path", "metrics_directory")
        if args.print or not args.metrics_directory:
            base.show(metrics.text(args.state_path), end="")
        else:
            base.show(metrics.write(args.state_path, args.metrics_directory))


class RunsPages(Command):
    """Write an index page of all operations, and the timeline of each VNF instance.

    The index has the operations that failed last first, with what to do next, then all
    of them, the newest first. The pages load nothing else and are for their owner only.
    With --serve nothing is written: a browser on this host gets them as they are now,
    and reloads them by itself while an operation is under way. Ctrl-C ends it.
    """

    examples = (
        "tacker-k8s-mgmt runs pages timelines",
        "tacker-k8s-mgmt runs pages timelines --force",
        "tacker-k8s-mgmt runs pages --serve 8000",
    )
    exit_codes = (
        "0 no problem, 1 nothing is recorded, 2 a page cannot be written, or the port "
        "is in use"
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_records.add_state_path(parser)
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "directory",
            nargs="?",
            type=Path,
            metavar="DIR",
            help="it is created if it is missing",
        )
        where.add_argument(
            "--serve",
            type=_port,
            metavar="PORT",
            help="serve them on this port of 127.0.0.1 (0: a free one); the address "
            "that is printed is a secret",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace existing pages"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = host_records.state_path(parsed_args)
        if parsed_args.serve is None:
            _write_pages(path, parsed_args.directory, force=parsed_args.force)
        else:
            _serve_pages(path, parsed_args.serve)


def _write_pages(state_path: str, directory: Path, *, force: bool) -> None:
    # Imported late, as in `runs show`.
    from tacker_k8s_mgmt.tools.render import html, serving

    known = serving.timelines(state_path)
    if not known:
        raise host_records.nothing(state_path)
    pages = serving.pages(known, time.time())
    try:
        files.make_directory(directory, parents=True)
    except OSError as error:
        text = f"{directory} cannot be created: {files.reason(error)}"
        raise UsageError(text) from error
    for name in pages:
        base.check_output(directory / name, force=force)
    for name, page in pages.items():
        base.write_new(directory / name, page, force=force)
    base.show(f"{directory / html.INDEX}: {len(known)} VNF instance(s)")


def _serve_pages(state_path: str, port: int) -> None:
    # Imported late, as in `runs show`.
    from tacker_k8s_mgmt.tools.render import serving

    # A directory that may not be read is an error now, and not of each request.
    journal.instances(state_path)
    try:
        server = serving.PageServer(state_path, port)
    except OSError as error:
        reason = files.reason(error)
        raise UsageError(f"port {port} cannot be used: {reason}") from error
    with server, contextlib.suppress(KeyboardInterrupt):
        # At once, in a pipe too.
        base.show(f"{server.url}  (Ctrl-C ends it)\n", end="")
        server.serve_forever()


class RunsShow(Report):
    """Show what was recorded of a VNF instance: its last operation, or more.

    An operation is shown with all its hooks and retries. A page has all operations,
    unless --last is given.
    """

    examples = (
        f"tacker-k8s-mgmt runs show {base.EXAMPLE_ID}",
        f"tacker-k8s-mgmt runs show {base.EXAMPLE_ID} --last 3",
        "tacker-k8s-mgmt runs show --all --json",
        f"tacker-k8s-mgmt runs show {base.EXAMPLE_ID} --html timeline.html",
    )
    exit_codes = "0 no problem, 1 nothing is recorded of the VNF instance"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        host_records.add_arguments(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--last",
            type=_number,
            metavar="N",
            help="show the last N operations (default: 1)",
        )
        which.add_argument("--all", action="store_true", help="show all operations")
        parser.add_argument(
            "--html",
            type=Path,
            metavar="FILE",
            help="write the timeline to FILE as one page for a browser",
        )
        base.add_force(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        args = parsed_args
        if args.html and (args.formatter or args.columns):
            raise UsageError("--html writes a page; give no other form of output")
        if args.html:
            base.check_output(args.html, force=args.force)
        vnf_id = host_records.chosen(args)
        if vnf_id is None:
            raise host_records.nothing(args.state_path, args.vnf)
        records, _ = journal.read(journal.path_of(args.state_path, vnf_id))
        if not records:
            raise host_records.nothing(args.state_path, vnf_id)
        timeline = Timeline(records)
        operations = timeline.occurrences()
        shown = operations if args.all or args.html else operations[-1:]
        if args.last:
            shown = operations[-args.last :]
        runs = {hook.run for operation in shown for hook in operation}
        records = [one for one in records if untrusted.text_of(one, "run") in runs]
        earlier = len(operations) - len(shown)
        document = {
            "vnf_instance_id": vnf_id,
            "vnf_instance_name": timeline.vnf_name or None,
            "earlier_operations": earlier,
            "records": records,
        }
        if args.html:
            show = partial(_write_page, args, vnf_id, records)
        else:
            show = partial(_print, records, earlier)
        return Outcome(document, show)


def _port(text: str) -> int:
    """:raises argparse.ArgumentTypeError: it is no port."""
    if not (text.isascii() and text.isdecimal() and int(text[:6]) <= 65535):
        raise argparse.ArgumentTypeError("must be a port, 0 to 65535")
    return int(text)


def _number(text: str) -> int:
    """:raises argparse.ArgumentTypeError: it is none above 0."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError("must be a number, 1 or more")
    return value


def _print(records: Sequence[dict[str, Any]], earlier: int) -> None:
    timeline = Timeline()
    from tacker_k8s_mgmt.tools.render.console import Console, Reporter

    reporter = Reporter(Console(), timeline)
    if earlier:
        which = "operation is" if earlier == 1 else "operations are"
        reporter.say(
            f"{earlier} earlier {which} recorded; --last N or --all shows them."
        )
    known = 0
    for record in records:
        event = str(record.get("event"))
        operation = timeline.add(record)
        if event == "operation-start" and len(timeline.occurrences()) > known:
            known += 1
            reporter.say(_head(operation), "bold")
        if event != "progress":
            reporter.report(operation, event)
    if timeline.last and timeline.last.ended is None:
        reporter.say(f"{timeline.last.hook_name}: {host_records.state(timeline.last)}")


def _head(operation: Operation) -> str:
    known = (
        operation.occurrence and f", LCM operation occurrence {operation.occurrence}"
    )
    return f"{operation.title}{known}"


def _write_page(
    args: argparse.Namespace, vnf_id: str, records: Sequence[dict[str, Any]]
) -> None:
    # Imported late: the other forms need no templates.
    from tacker_k8s_mgmt.tools.render import html

    timeline = Timeline(records)
    text = html.render(vnf_id, timeline, time.time())
    base.write_new(args.html, text, force=args.force)
    base.show(f"{args.html}: {len(timeline.operations)} hooks")
