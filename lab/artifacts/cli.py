"""``python3 -m lab artifacts``: build what kubespray downloads, or check a mirror."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.artifacts import golang, mirror, releases
from lab.real import site
from lab.report import Report
from lab.settings import Settings, from_environment

if TYPE_CHECKING:
    from lab.manager import Lab


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "artifacts", help="build what the real kubespray installs"
    )
    parser.add_argument(
        "releases",
        nargs="*",
        metavar="RELEASE",
        help=f"of kubespray: {', '.join(releases.RELEASES)}",
    )
    _add_mirror(parser, "only check this directory ($MIRROR) for what is missing")
    parser.add_argument(
        "--forget-sources",
        action="store_true",
        help="remove what Go has fetched and half made, after the build",
    )
    parser.set_defaults(run=run)


def add_kubespray(parser: argparse.ArgumentParser) -> None:
    """The options of a command that starts a lab with the real kubespray."""
    parser.add_argument(
        "--kubespray",
        metavar="WHICH",
        help="the real one in such VMs: checkout, REPOSITORY@REFERENCE or release",
    )
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        choices=releases.RELEASES,
        help="serve what this release of kubespray downloads, too",
    )
    _add_mirror(parser, "files and images for it ($MIRROR); default: built here")


def wanted(args: argparse.Namespace) -> site.Wanted | None:
    """The real kubespray that a command line asks for."""
    if not args.kubespray:
        return None
    return site.Wanted(args.kubespray, tuple(args.also), given(args))


def given(args: argparse.Namespace) -> Path | None:
    """The user's mirror, by the command line or the environment."""
    named = args.mirror or os.environ.get("MIRROR")
    return Path(named) if named else None


def run(_lab: "Lab", args: argparse.Namespace) -> None:
    """Build or check one release after the other.

    :raises LabError: something could not be built, or is missing in the mirror.
    """
    settings, report = from_environment(args.state, args.cache), Report()
    for name in args.releases or [releases.DEFAULT]:
        found = prepare(settings, report, name, given(args))
        report.line(f"kubespray {name}: {found}")
    if args.forget_sources:
        golang.forget_sources(settings)


def prepare(
    settings: Settings, report: Report, name: str, own: Path | None = None
) -> Path:
    """A mirror for a release of kubespray.

    :param name: tag of the release.
    :param own: the user's mirror, which is used as it is; default: built here.
    :raises LabError: something could not be built, or is missing in the user's mirror.
    """
    release = releases.find(name)
    if own is None:
        return mirror.make(settings, report, release)
    mirror.check(own, release)
    return own


def _add_mirror(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--mirror", type=Path, metavar="DIRECTORY", help=text)
