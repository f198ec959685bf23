# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt runs metrics``: the metrics for Prometheus, once."""

import argparse

from tacker_k8s_mgmt.cli import common, conductor, recorded
from tacker_k8s_mgmt.cli.base import Command


class RunsMetrics(Command):
    """Write the metrics of all operations for Prometheus.

    They are written to [k8s_mgmt] metrics_directory, or printed where that is not set,
    with what the journals have had since the last time. The end of each hook does the
    same where it is set; run by cron, this command also shows an operation that is
    under way, or that a conductor left when it was killed. Run it as the user of the
    conductor, or as root.
    """

    examples = (
        "tacker-k8s-mgmt runs metrics",
        "tacker-k8s-mgmt runs metrics --print",
    )
    exit_codes = "0 all is well, 1 something cannot be read or written"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        recorded.add_state_path(parser)
        conductor.add_directory(parser, "metrics_directory")
        parser.add_argument(
            "--print", action="store_true", help="print them, and write no file"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write or print them."""
        # Imported late: the other commands do without Prometheus' client.
        from tacker_k8s_mgmt.metrics import textfile

        args = parsed_args
        conductor.complete(args, "state_path", "metrics_directory")
        if args.print or not args.metrics_directory:
            common.show(textfile.text(args.state_path), end="")
        else:
            common.show(textfile.write(args.state_path, args.metrics_directory))
