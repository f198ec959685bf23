# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt csar build``: a package of a sample or of own files."""

import argparse
import uuid
from functools import partial
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.cli import common, packages
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar import sources
from tacker_k8s_mgmt.csar.api import APIS, V1
from tacker_k8s_mgmt.csar.build import Built, build
from tacker_k8s_mgmt.csar.customize import Site
from tacker_k8s_mgmt.errors import PackageError
from tacker_k8s_mgmt.model import networks


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
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.add_argument("flavour", help="deployment flavour, for instance: simple")
        parser.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="default: FLAVOUR.zip"
        )
        parser.add_argument(
            "--force", action="store_true", help="replace an existing FILE"
        )
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
            help=f"SOL001 types to use instead of ours: {', '.join(sources.TYPES)}",
        )
        parser.add_argument(
            "--source",
            type=Path,
            metavar="DIR",
            help="your own VNFD and HOT: vnfd/FLAVOUR and hot/FLAVOUR, laid out as in "
            f"{sources.samples()}, or the directory of a package, with Definitions and "
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
        parser.add_argument(
            "--vnfd-id",
            type=uuid.UUID,
            metavar="UUID",
            help="another VNFD id: Tacker takes only one package of each",
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Build it."""
        packages.need_parsers()
        args = parsed_args
        output = args.output or Path(f"{args.flavour}.zip")
        _check_usage(args)
        common.check_output(output, force=args.force)
        names = Site(
            images=common.by_name(args.image),
            flavors=common.by_name(args.flavor),
            vnfd_id=str(args.vnfd_id) if args.vnfd_id else None,
            parameters=_parameters(args),
        )
        try:
            built = build(
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
            show = partial(packages.print_problems, said, error.problems)
            return Outcome(document, show, common.PROBLEMS)
        document = {
            "package": str(built.path),
            "problems": [],
            "vnfd_id": built.vnfd_id,
            "sha256": built.sha256,
            "files": list(built.files),
            "replaced": list(built.replaced),
        }
        return Outcome(document, partial(_show, built))


def _show(built: Built) -> None:
    common.show(f"{built.path}: {len(built.files)} files, SHA-256 {built.sha256}")
    for name in built.replaced:
        common.show(f"replaced by this driver's: {name}")


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
        f"{sources.samples() / 'cloud-init.yaml'} is an example",
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
    source = args.source or sources.samples(APIS[args.api])
    known = sources.flavours(source)
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
    network = networks.network(text)
    if networks.address(text.partition("/")[0]) != network.network_address:
        raise ValueError(f"{text} has host bits set")
