"""``tacker-k8s-mgmt csar``: VNF packages."""

import argparse
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.cli import common, documents
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar import cnf, sources, vnfd
from tacker_k8s_mgmt.csar.api import APIS, V1
from tacker_k8s_mgmt.csar.build import build
from tacker_k8s_mgmt.csar.check import check
from tacker_k8s_mgmt.csar.customize import Site
from tacker_k8s_mgmt.errors import PackageError

NAME = "csar"
EXAMPLES = {
    "build": (
        "tacker-k8s-mgmt csar build simple -o simple.zip",
        "tacker-k8s-mgmt csar build simple -o simple.zip --force \\\n"
        "      --image ubuntu-24.04 --flavor m1.large --flavor externalLB=m1.small",
        "tacker-k8s-mgmt csar build simple --api v2 -o simple-v2.zip",
    ),
    "cnf": ("tacker-k8s-mgmt csar cnf -o web.zip",),
    "check": (
        "tacker-k8s-mgmt csar check simple.zip",
        "tacker-k8s-mgmt csar check simple.zip --request instantiate.json",
    ),
}


def add_parser(subparsers: Any) -> None:
    """Add the group to the command line."""
    verbs = common.add_group(subparsers, NAME, "build and check VNF packages", EXAMPLES)
    _add_build(verbs)
    _add_cnf(verbs)
    verb = common.add_verb(
        verbs,
        "check",
        _check,
        "find everything that is wrong with a package",
        EXAMPLES["check"],
    )
    verb.add_argument("package", type=Path, metavar="PACKAGE.zip")
    verb.add_argument(
        "--request",
        action="append",
        default=[],
        metavar="FILE",
        help="a request body to hold against the package as well; may be repeated, - "
        "reads standard input",
    )


def _add_cnf(verbs: Any) -> None:
    verb = common.add_verb(
        verbs, "cnf", _cnf, "pack a CNF that the driver exposes", EXAMPLES["cnf"]
    )
    verb.add_argument(
        "source",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="the package's directory, whose VNFD names the driver's file in Scripts; "
        "default: the sample",
    )
    verb.add_argument("-o", "--output", type=Path, metavar="FILE", required=True)
    verb.add_argument("--force", action="store_true", help="replace an existing FILE")
    verb.add_argument("--api", choices=sorted(cnf.DRIVER_FILES), default=V1.name)
    verb.add_argument("--vnfd-id", type=uuid.UUID, metavar="UUID")


def _cnf(args: argparse.Namespace) -> int:
    if args.source and not args.source.is_dir():
        raise UsageError(f"there is no directory {args.source}")
    if args.output.exists() and not args.force:
        raise UsageError(f"{args.output} exists; --force replaces it")
    vnfd_id = str(args.vnfd_id) if args.vnfd_id else None
    try:
        files = cnf.pack(args.output, source=args.source, api=args.api, vnfd_id=vnfd_id)
    except PackageError as error:
        _print_problems(f"{args.output} was not written", error.problems)
        return common.PROBLEMS
    print(f"{args.output}: {len(files)} files")
    return common.OK


def _add_build(verbs: Any) -> None:
    verb = common.add_verb(
        verbs, "build", _build, "build a package and check it", EXAMPLES["build"]
    )
    verb.add_argument("flavour", help="deployment flavour, for instance: simple")
    verb.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: FLAVOUR.zip"
    )
    verb.add_argument("--force", action="store_true", help="replace an existing FILE")
    verb.add_argument(
        "--api",
        choices=sorted(APIS),
        default=V1.name,
        help="Tacker's API that operates the VNF (default: %(default)s)",
    )
    verb.add_argument(
        "--types",
        type=Path,
        metavar="DIR",
        help=f"SOL001 types to use instead of ours: {', '.join(sources.TYPES)}",
    )
    verb.add_argument(
        "--source",
        type=Path,
        metavar="DIR",
        help="your own VNFD and HOT: vnfd/FLAVOUR and hot/FLAVOUR, laid out as in "
        f"{sources.samples()}, or the directory of a package, with Definitions and "
        "BaseHOT/FLAVOUR; its scripts are replaced where this driver needs its own",
    )
    for option, text in (("--image", "image"), ("--flavor", "Nova flavour")):
        verb.add_argument(
            option,
            action="append",
            default=[],
            metavar="[VDU=]NAME",
            help=f"your site's name of the {text}, for one VDU or for all others",
        )
    verb.add_argument(
        "--vnfd-id",
        type=uuid.UUID,
        metavar="UUID",
        help="another VNFD id: Tacker takes only one package of each",
    )


def _need_parsers() -> None:
    if missing := vnfd.missing_parsers():
        raise UsageError(
            f"packages are read with {' and '.join(missing)}, not installed here: "
            "pip install 'tacker-k8s-mgmt[csar]', or '.[csar]' in a source tree"
        )


def _build(args: argparse.Namespace) -> int:
    _need_parsers()
    output = args.output or Path(f"{args.flavour}.zip")
    _check_usage(args, output)
    names = Site(
        images=_by_vdu(args.image),
        flavors=_by_vdu(args.flavor),
        vnfd_id=str(args.vnfd_id) if args.vnfd_id else None,
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
        _print_problems(f"{output} was not written", error.problems)
        return 1
    print(f"{built.path}: {len(built.files)} files, SHA-256 {built.sha256}")
    for name in built.replaced:
        print(f"replaced by this driver's: {name}")
    return 0


def _check_usage(args: argparse.Namespace, output: Path) -> None:
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
    if output.exists() and not args.force:
        raise UsageError(f"{output} exists; --force replaces it")
    if not output.parent.is_dir():
        raise UsageError(f"there is no directory {output.parent}")
    if args.types and not args.types.is_dir():
        raise UsageError(f"--types: there is no directory {args.types}")


def _by_vdu(values: Iterable[str]) -> dict[str, str]:
    """``["NAME", "VDU=NAME"]`` by VDU, "" for the one without."""
    pairs = [value.rpartition("=") for value in values]
    return {vdu: name for vdu, _, name in pairs}


def _check(args: argparse.Namespace) -> int:
    _need_parsers()
    if not args.package.is_file():
        raise UsageError(f"there is no file {args.package}")
    requests = [documents.load(path) for path in args.request]
    report = check(args.package, {body.name: body.value for body in requests})
    repeated = [f"{body.name}: {text}" for body in requests for text in body.warnings]
    flavours = f"flavours: {', '.join(report.flavours) or 'none'}"
    if report.problems:
        _print_problems(str(args.package), report.problems)
    else:
        print(f"{args.package}: no problems ({flavours})")
    for warning in (*report.warnings, *repeated):
        print(f"warning: {warning}")
    return common.PROBLEMS if report.problems else common.OK


def _print_problems(subject: str, problems: Sequence[str]) -> None:
    print(f"{subject}: {len(problems)} problem(s)")
    for number, problem in enumerate(problems, 1):
        print(f"{number:>3}. {problem}")
