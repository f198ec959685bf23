"""``tacker-k8s-mgmt runs metrics``: the metrics for Prometheus, once."""

import argparse

from tacker_k8s_mgmt.cli import recorded
from tacker_k8s_mgmt.cli.base import Command


class RunsMetrics(Command):
    """Write the metrics of all operations for Prometheus.

    They are written, or printed without a directory, with what the journals have had
    since the last time. The end of each hook does the same where [k8s_mgmt]
    metrics_directory is set; run by cron, this command also shows an operation that is
    under way, or that a conductor left when it was killed. Run it as the user of the
    conductor, or as root.
    """

    examples = (
        "tacker-k8s-mgmt runs metrics",
        "tacker-k8s-mgmt runs metrics "
        "--metrics-directory /var/lib/prometheus/node-exporter",
    )
    exit_codes = "0 all is well, 1 something cannot be read or written"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        recorded.add_state_path(parser)
        parser.add_argument(
            "--metrics-directory",
            metavar="DIR",
            help="[k8s_mgmt] metrics_directory of the conductor (default: print them)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write or print them."""
        # Imported late: the other commands do without Prometheus' client.
        from tacker_k8s_mgmt.metrics import textfile

        state_path = recorded.state_path(parsed_args)
        if parsed_args.metrics_directory:
            print(textfile.write(state_path, parsed_args.metrics_directory))
        else:
            print(textfile.text(state_path), end="")
