"""``tacker-k8s-mgmt runs``: what operations did and are doing, from their journals."""

import argparse
import json
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
from rich.status import Status

from tacker_k8s_mgmt import journal

DEFAULT_STATE_PATH = "/var/lib/tacker/k8s_mgmt"
_POLL_SECONDS = 0.5
_PIPE_SECONDS = 10.0

_EXAMPLES = """examples:
  tacker-k8s-mgmt runs list
  tacker-k8s-mgmt runs follow                # the VNF instance that changed last
  tacker-k8s-mgmt runs show 0f3b0f6e-... --json
"""


def add_parser(subparsers: Any) -> None:
    """Add the group to the command line."""
    group = subparsers.add_parser(
        "runs",
        help="progress and history of operations",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = group.add_subparsers(dest="verb", required=True)
    for name, function, text in (
        ("list", _list, "VNF instances with their last operation"),
        ("show", _show, "all that was recorded of a VNF instance"),
        ("follow", _follow, "live, until the operation ends"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument(
            "--state-path",
            default=DEFAULT_STATE_PATH,
            metavar="DIR",
            help="[k8s_mgmt] state_path of the conductor (default: %(default)s)",
        )
        if name != "list":
            verb.add_argument(
                "vnf",
                nargs="?",
                type=uuid.UUID,
                metavar="VNF_INSTANCE_ID",
                help="default: the one that changed last",
            )
        if name == "show":
            verb.add_argument(
                "--json", action="store_true", help="the records as they are"
            )
        verb.set_defaults(function=function)


class Teller:
    """Tells the records of a journal on a console, one line per step.

    On a terminal the current step and its counters are shown live; in a pipe a
    counter line appears at most every ten seconds.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._step = ""
        self._counted = 0.0
        self.finished = False

    def tell(self, records: Iterable[dict[str, Any]]) -> None:
        """Tell *records*; unknown events are passed over."""
        tellers: dict[str, Callable[[dict[str, Any]], None]] = {
            "operation-start": self._operation_start,
            "step-start": self._step_start,
            "progress": self._progress,
            "step-end": self._step_end,
            "operation-end": self._operation_end,
        }
        for record in records:
            tell = tellers.get(record.get("event", ""))
            if tell is not None:
                tell(record)

    def close(self) -> None:
        """Take the live line off the terminal."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _live(self, text: str) -> None:
        if not self._console.is_terminal:
            return
        if self._status is None:
            self._status = self._console.status(text)
            self._status.start()
        self._status.update(text)

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(
            text, style=style or None, markup=False, highlight=False, soft_wrap=True
        )

    def _operation_start(self, record: dict[str, Any]) -> None:
        self.finished = False
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record["time"]))
        self._line(f"{record['hook']}  {at}  ({record['steps']} steps)", "bold")

    def _step_start(self, record: dict[str, Any]) -> None:
        self._step = f"{record['number']:>3}/{record['total']} {record['step']}"
        self._live(self._step)

    def _progress(self, record: dict[str, Any]) -> None:
        text = f"{self._step}: {record.get('text', '')}"
        self._live(text)
        if (
            not self._console.is_terminal
            and record["time"] - self._counted >= _PIPE_SECONDS
        ):
            self._counted = record["time"]
            self._line(text)

    def _step_end(self, record: dict[str, Any]) -> None:
        failed = record["outcome"] == "failed"
        self._line(
            f"{record['number']:>3}/{record['total']} {record['step']:<48} "
            f"{record['outcome']:<10} {record['seconds']:>7.1f} s",
            "red" if failed else "",
        )

    def _operation_end(self, record: dict[str, Any]) -> None:
        self.close()
        self.finished = True
        failed = record["outcome"] == "failed"
        self._line(
            f"{record['hook']} {record['outcome']} after {record['seconds']:.1f} s",
            "bold red" if failed else "bold green",
        )
        if failed:
            self._line(record.get("error", ""), "red")


def _chosen(args: argparse.Namespace) -> str | None:
    if args.vnf:
        return str(args.vnf)
    known = journal.instances(args.state_path)
    return known[0] if known else None


def _nothing(args: argparse.Namespace, console: Console) -> int:
    console.print(
        f"No operation is recorded below {args.state_path}; give --state-path when "
        "[k8s_mgmt] state_path or [DEFAULT] state_path is another one.",
        style="red",
    )
    return 1


def _list(args: argparse.Namespace) -> int:
    console = Console()
    known = journal.instances(args.state_path)
    if not known:
        return _nothing(args, console)
    for vnf_id in known:
        records, _ = journal.read(journal.path_of(args.state_path, vnf_id))
        last = records[-1] if records else {}
        state = last.get("outcome") if last.get("event") == "operation-end" else "…"
        console.print(f"{vnf_id}  {last.get('hook', ''):<20} {state}", highlight=False)
    return 0


def _show(args: argparse.Namespace) -> int:
    console = Console()
    vnf_id = _chosen(args)
    if vnf_id is None:
        return _nothing(args, console)
    records, _ = journal.read(journal.path_of(args.state_path, vnf_id))
    if not records:
        return _nothing(args, console)
    if args.json:
        for record in records:
            print(json.dumps(record))
        return 0
    steps = [record for record in records if record.get("event") != "progress"]
    teller = Teller(console)
    teller.tell(steps)
    teller.close()
    return 0


def _follow(args: argparse.Namespace) -> int:
    console = Console()
    vnf_id = _chosen(args)
    if vnf_id is None:
        return _nothing(args, console)
    path = journal.path_of(args.state_path, vnf_id)
    teller, offset = Teller(console), 0
    try:
        while not teller.finished:
            records, offset = journal.read(path, offset)
            teller.tell(records)
            if not teller.finished:
                time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        return 130
    finally:
        teller.close()
    return 0
