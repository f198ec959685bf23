# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt csar``: VNF packages built and checked, and packages of CNFs.

``csar build``
    makes a package of a sample or of own files.
``csar check``
    finds what is wrong with a VNF package.
``csar cnf``
    makes the package of a CNF that the driver exposes.
"""

import argparse
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.tools.cli import base, request_input
from tacker_k8s_mgmt.tools.cli.base import Outcome, Report, UsageError
from tacker_k8s_mgmt.tools.csar import build, parts, vnfd
from tacker_k8s_mgmt.tools.csar.build import Built, Site
from tacker_k8s_mgmt.tools.csar.package_check import check
from tacker_k8s_mgmt.tools.csar.tacker_api import APIS, V1


def need_parsers() -> None:
    """Check that packages can be read.

    :raises UsageError: the parsers are not installed.
    """
    if missing := vnfd.missing_parsers():
        raise UsageError(
            f"packages are read with {' and '.join(missing)}, not installed here: "
            "pip install 'tacker-k8s-mgmt[csar]', or '.[csar]' in a source tree"
        )


def _add_vnfd_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vnfd-id",
        type=_vnfd_id,
        metavar="UUID",
        help="another VNFD id, or the word new for one of its own: Tacker takes only "
        "one package of each",
    )


def _vnfd_id(text: str) -> str:
    """:raises ValueError: it is neither a UUID nor ``new``."""
    return str(uuid.uuid4() if text == "new" else uuid.UUID(text))


def print_problems(subject: str, problems: Sequence[str]) -> None:
    """Print what is wrong with a package, numbered."""
    base.show(f"{subject}: {len(problems)} problem(s)")
    for number, problem in enumerate(problems, 1):
        base.show(f"{number:>3}. {problem}")


class CsarBuild(Report):
    """Build a package and check it."""

    examples = (
        "tacker-k8s-mgmt csar build simple -o simple.zip",
        "tacker-k8s-mgmt csar build simple -o simple.zip --force \\\n"
        "      --image ubuntu-24.04 --flavor m1.large --flavor externalLB=m1.small \\\n"
        "      --key-name kubernetes --management-cidr 192.0.2.0/24",
        "tacker-k8s-mgmt csar build simple --api v2 -o simple-v2.zip",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("flavour", help="deployment flavour, for instance: simple")
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="default: FLAVOUR.zip"
        )
        base.add_force(parser)
        parser.add_argument(
            "--api",
            choices=sorted(APIS),
            default=V1.name,
            help="Tacker's API that operates the VNF (default: %(default)s)",
        )
        parser.add_argument(
            "--types",
            type=Path,
            metavar="DIR",
            help=f"SOL001 types to use instead of ours: {', '.join(parts.TYPES)}",
        )
        parser.add_argument(
            "--source",
            type=Path,
            metavar="DIR",
            help="your own VNFD and HOT: vnfd/FLAVOUR and hot/FLAVOUR, laid out as in "
            f"{parts.samples()}, or the directory of a package, with Definitions and "
            "BaseHOT/FLAVOUR; its scripts are replaced where this driver needs its own",
        )
        for option, text in (("--image", "image"), ("--flavor", "Nova flavour")):
            parser.add_argument(
                option,
                action="append",
                default=[],
                metavar="[VDU=]NAME",
                help=f"your site's name of the {text}, for one VDU or for all others",
            )
        _add_defaults(parser)
        _add_vnfd_id(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        need_parsers()
        args = parsed_args
        output = args.output or Path(f"{args.flavour}.zip")
        _check_usage(args)
        base.check_output(output, force=args.force)
        names = Site(
            images=base.by_name(args.image),
            flavors=base.by_name(args.flavor),
            vnfd_id=args.vnfd_id,
            parameters=_parameters(args),
        )
        try:
            built = build.build(
                args.flavour,
                output,
                source=args.source,
                types=args.types,
                api=APIS[args.api],
                names=names,
            )
        except PackageError as error:
            document: dict[str, Any] = {
                "package": None,
                "problems": list(error.problems),
            }
            said = f"{output} was not written"
            show = partial(print_problems, said, error.problems)
            return Outcome(document, show, base.PROBLEMS)
        document = {
            "package": str(built.path),
            "problems": [],
            "vnfd_id": built.vnfd_id,
            "sha256": built.sha256,
            "files": list(built.files),
            "replaced": list(built.replaced),
        }
        return Outcome(document, partial(_show_built, built))


def _show_built(built: Built) -> None:
    base.show(f"{built.path}: {len(built.files)} files, VNFD id {built.vnfd_id}")
    base.show(f"SHA-256 {built.sha256}")
    for name in built.replaced:
        base.show(f"replaced by this driver's: {name}")


def _add_defaults(parser: argparse.ArgumentParser) -> None:
    """Add the options that are defaults of the Base HOT's parameters."""
    parser.add_argument(
        "--key-name",
        metavar="NAME",
        help="key pair in Nova with which the image's own user logs in",
    )
    parser.add_argument(
        "--network",
        metavar="NAME",
        help="network of external connection points that a request does not connect",
    )
    parser.add_argument(
        "--management-cidr",
        metavar="CIDR",
        help="network from which SSH and the Kubernetes API can be reached: that of "
        "Tacker's conductors and the Ansible server",
    )
    parser.add_argument(
        "--user-data",
        type=Path,
        metavar="FILE",
        help="cloud-init's user data for every VM, readable to all users of the stack; "
        f"{parts.samples() / 'cloud-init.yaml'} is an example",
    )
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="default of another parameter of the Base HOT; may be repeated",
    )


def _parameters(args: argparse.Namespace) -> dict[str, str]:
    """Defaults of the Base HOT's parameters, by name."""
    given = {}
    for option in args.parameter:
        name, separator, value = option.partition("=")
        if not name or not separator:
            raise UsageError(f"--parameter {option}: it must be NAME=VALUE")
        given[name] = value
    try:
        if args.user_data:
            given["user_data"] = args.user_data.read_text(encoding="utf-8")
        if args.management_cidr:
            _check_network(args.management_cidr)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{args.user_data} is no text in UTF-8") from None
    except ValueError as error:
        raise UsageError(f"--management-cidr: {error}") from None
    named = {
        "key_name": args.key_name,
        "public_network": args.network,
        "management_cidr": args.management_cidr,
    }
    return given | {name: value for name, value in named.items() if value}


def _check_usage(args: argparse.Namespace) -> None:
    source = args.source or parts.samples(APIS[args.api])
    known = parts.flavours(source)
    if not known:
        raise UsageError(
            f"{source} has no deployment flavour: there is neither vnfd/FLAVOUR/"
            "Definitions with hot/FLAVOUR, nor Definitions with BaseHOT/FLAVOUR"
        )
    if args.flavour not in known:
        listed = ", ".join(known)
        raise UsageError(f"no flavour {args.flavour} in {source} (it has: {listed})")
    if args.types and not args.types.is_dir():
        raise UsageError(f"--types: there is no directory {args.types}")


def _check_network(text: str) -> None:
    """Check a network.

    :raises ValueError: it is none, or has host bits.
    """
    network = network_plugins.network(text)
    if network_plugins.address(text.partition("/")[0]) != network.network_address:
        raise ValueError(f"{text} has host bits set")


class CsarCheck(Report):
    """Find everything that is wrong with a package."""

    examples = (
        "tacker-k8s-mgmt csar check simple.zip",
        "tacker-k8s-mgmt csar check simple.zip --request instantiate.json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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
        need_parsers()
        package = parsed_args.package
        if not package.is_file():
            raise UsageError(f"there is no file {package}")
        requests = [request_input.load(path) for path in parsed_args.request]
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
        code = base.PROBLEMS if report.problems else base.OK
        return Outcome(document, partial(_show_checked, document), code)


def _show_checked(document: dict[str, Any]) -> None:
    flavours = f"flavours: {', '.join(document['flavours']) or 'none'}"
    if document["problems"]:
        print_problems(document["package"], document["problems"])
    else:
        base.show(f"{document['package']}: no problems ({flavours})")
    for warning in document["warnings"]:
        base.show(f"warning: {warning}")


class CsarCnf(Report):
    """Pack a CNF that the driver exposes."""

    examples = ("tacker-k8s-mgmt csar cnf -o web.zip",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
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
        base.add_force(parser)
        parser.add_argument(
            "--api", choices=sorted(build.DRIVER_FILES), default=V1.name
        )
        _add_vnfd_id(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        args = parsed_args
        if args.source and not args.source.is_dir():
            raise UsageError(f"there is no directory {args.source}")
        base.check_output(args.output, force=args.force)
        try:
            built = build.pack(
                args.output, source=args.source, api=args.api, vnfd_id=args.vnfd_id
            )
        except PackageError as error:
            said = f"{args.output} was not written"
            show = partial(print_problems, said, error.problems)
            document: dict[str, Any] = {
                "package": None,
                "problems": list(error.problems),
            }
            return Outcome(document, show, base.PROBLEMS)
        document = {
            "package": str(args.output),
            "problems": [],
            "vnfd_id": built.vnfd_id,
            "sha256": built.sha256,
            "files": list(built.files),
        }
        return Outcome(document, partial(_show_built, built))
