# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt csar cnf``: the package of a CNF that the driver exposes."""

import argparse
import uuid
from functools import partial
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.cli import common, packages
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar import cnf
from tacker_k8s_mgmt.csar.api import V1
from tacker_k8s_mgmt.errors import PackageError


class CsarCnf(Report):
    """Pack a CNF that the driver exposes."""

    examples = ("tacker-k8s-mgmt csar cnf -o web.zip",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "source",
            type=Path,
            nargs="?",
            metavar="DIR",
            help="the package's directory, whose VNFD names the driver's file in "
            "Scripts; default: the sample",
        )
        parser.add_argument("-o", "--output", type=Path, metavar="FILE", required=True)
        parser.add_argument(
            "--force", action="store_true", help="replace an existing FILE"
        )
        parser.add_argument("--api", choices=sorted(cnf.DRIVER_FILES), default=V1.name)
        parser.add_argument("--vnfd-id", type=uuid.UUID, metavar="UUID")
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Pack it."""
        args = parsed_args
        if args.source and not args.source.is_dir():
            raise UsageError(f"there is no directory {args.source}")
        common.check_output(args.output, force=args.force)
        vnfd_id = str(args.vnfd_id) if args.vnfd_id else None
        try:
            files = cnf.pack(
                args.output, source=args.source, api=args.api, vnfd_id=vnfd_id
            )
        except PackageError as error:
            said = f"{args.output} was not written"
            show = partial(packages.print_problems, said, error.problems)
            document: dict[str, Any] = {
                "package": None,
                "problems": list(error.problems),
            }
            return Outcome(document, show, common.PROBLEMS)
        said = f"{args.output}: {len(files)} files"
        document = {
            "package": str(args.output),
            "problems": [],
            "files": list(files),
        }
        return Outcome(document, partial(print, said))
