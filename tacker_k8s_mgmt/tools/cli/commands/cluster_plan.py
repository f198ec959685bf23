# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt cluster plan``: what a request would do to a cluster."""

import argparse
from collections.abc import Mapping
from typing import Any

from tacker_k8s_mgmt.tools.cli import base, host_records, plan_report
from tacker_k8s_mgmt.tools.cli.base import Outcome, Report, UsageError

#: The operations that have a plan, by the names of request bodies.
_PLANNED = ("heal", "scale", "modify", "change_vnfpkg")


class ClusterPlan(Report):
    """Show what a request would do to a cluster; changes nothing.

    REQUEST is the body of a request to scale, heal, modify or change the package, as
    Tacker's API takes it. --package, in its place, is the change to another package,
    by the id of its VNFD. The plan is made by the operation's own code, which is run
    without what changes something: the nodes that leave, join or are replaced, in
    their order; the pods that have to move, and the budgets that forbid it; labels,
    tenants, applications and parameters that change; the steps, with the time that
    former ones took; and why it would be refused.

    It runs where `cluster check` runs: on a conductor's host, as the user of the
    conductor or as root. It takes no lock, so an operation may change what it shows.
    """

    examples = (
        f"tacker-k8s-mgmt cluster plan {base.EXAMPLE_ID} scale.json",
        f"tacker-k8s-mgmt cluster plan {base.EXAMPLE_ID} modify.json --json",
        f"tacker-k8s-mgmt cluster plan {base.EXAMPLE_ID} --package VNFD_ID \\\n"
        "      --kubernetes-version 1.35.4",
    )
    exit_codes = plan_report.EXIT_CODES
    reports_failures = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("vnf", metavar="VNF", help="id or name of the VNF instance")
        parser.add_argument(
            "request",
            metavar="REQUEST",
            nargs="?",
            help="file with the body in JSON; - is stdin",
        )
        parser.add_argument(
            "--package", metavar="VNFD_ID", help="the package to change to, in v2"
        )
        parser.add_argument(
            "--kubernetes-version",
            metavar="VERSION",
            help="with --package: whole, such as 1.35.4",
        )
        host_records.add_config_file(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        args = parsed_args
        if bool(args.request) == bool(args.package):
            raise UsageError("give either REQUEST or --package")
        if args.kubernetes_version and not args.package:
            raise UsageError("--kubernetes-version needs --package")
        with self.status("Asking …"):
            if args.package:
                operation = "change_vnfpkg"
                content = plan_report.change_of_package(args)
            else:
                operation, content = _read(args.request)
            return plan_report.make(args.vnf, operation, content, args.config_file)


def _read(path: str) -> tuple[str, Mapping[str, Any]]:
    """The operation and the body in a file.

    :raises UsageError: it is none that has a plan.
    """
    # Imported late: they bring the model of all parameters.
    from tacker_k8s_mgmt.tools.cli import request_input
    from tacker_k8s_mgmt.tools.csar import body

    document = request_input.load(path)
    try:
        request = body.read(document.value)
    except ValueError as error:
        raise UsageError(f"{document.name}: {error}") from None
    if request.problems:
        raise UsageError(f"{document.name}: {'; '.join(request.problems)}")
    if request.operation not in _PLANNED:
        what = request.operation or "no operation that it could tell"
        raise UsageError(
            f"{document.name} is a request for {what}; there are plans for: "
            f"{', '.join(_PLANNED)}"
        )
    return request.operation, request.body
