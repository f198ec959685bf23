# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs pages``: all operations as pages for a browser."""

import argparse
import time
from pathlib import Path

from tacker_k8s_mgmt import files, journal
from tacker_k8s_mgmt.cli import common, recorded
from tacker_k8s_mgmt.cli.base import Command
from tacker_k8s_mgmt.cli.common import UsageError


class RunsPages(Command):
    """Write an index page of all operations, and the timeline of each VNF instance.

    The index has the operations that failed last first, with what to do next, then all
    of them, the newest first. The pages load nothing else and are for their owner only.
    """

    examples = (
        "tacker-k8s-mgmt runs pages timelines",
        "tacker-k8s-mgmt runs pages timelines --force",
    )
    exit_codes = "0 all is well, 1 nothing is recorded, 2 a page cannot be written"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        recorded.add_state_path(parser)
        parser.add_argument(
            "directory", type=Path, metavar="DIR", help="it is made if it is missing"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace existing pages"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write them."""
        args, now = parsed_args, time.time()
        path = recorded.state_path(args)
        timelines = {
            vnf_id: recorded.timeline(path, vnf_id)
            for vnf_id in journal.instances(path)
        }
        if not timelines:
            raise recorded.nothing(path)
        # Imported late, as in `runs show`.
        from tacker_k8s_mgmt.cli.render import html

        pages = {html.INDEX: html.render_index(timelines, now)}
        for vnf_id, timeline in timelines.items():
            page = html.render(vnf_id, timeline, now, html.INDEX)
            pages[html.page_name(vnf_id)] = page
        try:
            files.make_directory(args.directory, parents=True)
        except OSError as error:
            text = f"{args.directory} cannot be made: {files.reason(error)}"
            raise UsageError(text) from error
        for name in pages:
            common.check_output(args.directory / name, force=args.force)
        for name, page in pages.items():
            common.write_new(args.directory / name, page, force=args.force)
        count = len(timelines)
        common.show(f"{args.directory / html.INDEX}: {count} VNF instance(s)")
