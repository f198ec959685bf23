# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt csar check``: what is wrong with a VNF package."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.cli import common, documents, packages
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar.check import check


class CsarCheck(Report):
    """Find everything that is wrong with a package."""

    examples = (
        "tacker-k8s-mgmt csar check simple.zip",
        "tacker-k8s-mgmt csar check simple.zip --request instantiate.json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument("package", type=Path, metavar="PACKAGE.zip")
        parser.add_argument(
            "--request",
            action="append",
            default=[],
            metavar="FILE",
            help="a request body to hold against the package as well; may be repeated, "
            "- reads standard input",
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Check it."""
        packages.need_parsers()
        package = parsed_args.package
        if not package.is_file():
            raise UsageError(f"there is no file {package}")
        requests = [documents.load(path) for path in parsed_args.request]
        report = check(package, {body.name: body.value for body in requests})
        repeated = [
            f"{body.name}: {text}" for body in requests for text in body.warnings
        ]
        document = {
            "package": str(package),
            "flavours": list(report.flavours),
            "problems": list(report.problems),
            "warnings": [*report.warnings, *repeated],
        }
        code = common.PROBLEMS if report.problems else common.OK
        return Outcome(document, partial(_show, document), code)


def _show(document: dict[str, Any]) -> None:
    flavours = f"flavours: {', '.join(document['flavours']) or 'none'}"
    if document["problems"]:
        packages.print_problems(document["package"], document["problems"])
    else:
        common.show(f"{document['package']}: no problems ({flavours})")
    for warning in document["warnings"]:
        common.show(f"warning: {warning}")
