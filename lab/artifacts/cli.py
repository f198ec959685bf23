# SPDX-License-Identifier: Apache-2.0
"""``python3 -m lab artifacts``: get what kubespray downloads, or check a mirror."""

import argparse
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lab import LabError
from lab.artifacts import golang, internet, mirror, releases
from lab.real import site
from lab.report import Report
from lab.settings import Settings, from_environment

INTERNET, BUILD = "internet", "build"


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "artifacts", help="download or build what the real kubespray installs"
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
    _add_mirror(parser, "files and images for it ($MIRROR)")


def wanted(args: argparse.Namespace) -> site.Wanted | None:
    """The real kubespray that a command line asks for."""
    if not args.kubespray:
        return None
    return site.Wanted(args.kubespray, tuple(args.also), source(args))


def source(args: argparse.Namespace) -> Path | str | None:
    """Where files and images come from: see :attr:`.site.Wanted.source`.

    The command line goes before the environment, a mirror before the other sources.

    :raises LabError: ``ARTIFACTS`` has no value that it can have.
    """
    named: str | None = args.artifacts or os.environ.get("ARTIFACTS") or None
    own = args.mirror or (not args.artifacts and os.environ.get("MIRROR"))
    if own:
        return Path(own)
    if named not in (INTERNET, BUILD, None):
        raise LabError(f"ARTIFACTS={named} is neither {INTERNET} nor {BUILD}", 2)
    return named


def run(_lab: object, args: argparse.Namespace) -> None:
    """Download, build or check what releases of kubespray need.

    :raises LabError: see :func:`prepare`.
    """
    settings, report = from_environment(args.state, args.cache), Report()
    names = args.releases or [releases.DEFAULT]
    mirrors = prepare(settings, report, names, source(args))
    for name, path in mirrors.items():
        report.line(f"kubespray {name}: {path}")
    if args.forget_sources:
        golang.forget_sources(settings)


def prepare(
    settings: Settings,
    report: Report,
    names: Iterable[str],
    source: Path | str | None = None,
    kubespray: site.Checkout | None = None,
) -> dict[str, Path]:
    """The mirrors of releases of kubespray, all from one source.

    Published files and built ones do not mix: kubespray has one set of checksums.

    :param names: tags of the releases.
    :param source: see :attr:`.site.Wanted.source`.
    :param kubespray: has the checksums of published files. Default: the release's own,
        cloned from GitHub.
    :returns: by release its directory.
    :raises LabError: something could not be downloaded or built, or is missing in the
        user's mirror.
    """
    wanted = [releases.find(name) for name in dict.fromkeys(names)]
    if isinstance(source, Path):
        for release in wanted:
            mirror.check(source, release)
        return {release.name: source for release in wanted}
    if (source or _choose(settings, report, wanted)) == BUILD:
        return {each.name: mirror.make(settings, report, each) for each in wanted}
    for release in wanted:
        if not internet.is_ready(settings, release):
            tree = kubespray or site.find_checkout(release.name, settings.cache, report)
            internet.make(settings, report, release, tree)
    return {release.name: internet.path(settings) for release in wanted}


def _choose(
    settings: Settings, report: Report, wanted: Sequence[releases.Release]
) -> str:
    """What is in the cache already, else the internet if its hosts answer."""
    for kind, is_ready in (INTERNET, internet.is_ready), (BUILD, mirror.is_ready):
        if all(is_ready(settings, release) for release in wanted):
            return kind
    reason = internet.unreachable(settings, wanted[0])
    if reason:
        report.line(f"files and images: built from Go modules, no internet ({reason})")
        return BUILD
    report.line("files and images: from the internet")
    return INTERNET


def _add_mirror(parser: argparse.ArgumentParser, text: str) -> None:
    sources = parser.add_mutually_exclusive_group()
    sources.add_argument("--mirror", type=Path, metavar="DIRECTORY", help=text)
    sources.add_argument(
        "--artifacts",
        choices=(INTERNET, BUILD),
        help="without a mirror: where files and images come from ($ARTIFACTS;"
        " default: the internet if it answers)",
    )
