# SPDX-License-Identifier: Apache-2.0
"""Makes what a real laboratory needs beside its hosts, or takes what is given."""

from lab import LabError
from lab.artifacts import cli as artifacts
from lab.artifacts.mirror import make_own, make_registry
from lab.real import site
from lab.real.site import Site, Wanted
from lab.report import Report
from lab.services import mirror
from lab.settings import Settings


def prepare(settings: Settings, report: Report, wanted: Wanted) -> None:
    """Kubespray, its Ansible, its mirror and the registry of a laboratory.

    :raises LabError: something is not to be had, or the laboratory runs with another
        kubespray.
    """
    found = site.find_checkout(wanted.kubespray, settings.cache, report)
    environment = site.prepare_ansible(settings, report, found)
    releases = (found.release, *wanted.also)
    # Its checksums are those that it will compare other releases' files with, too.
    mirrors = artifacts.prepare(settings, report, releases, wanted.source, found)
    made = Site(
        kubespray=str(found.path),
        version=found.version,
        ansible=str(environment),
        mirrors={name: str(path.absolute()) for name, path in mirrors.items()},
    )
    before = Site.find(settings.state)
    if settings.cloud.exists() and made != before:
        has = f"kubespray {before.version}" if before else "the stand-in for kubespray"
        raise LabError(
            f"The lab in {settings.state} has {has}. For another one, take it down"
            " first (python3 -m lab down) or use another --state",
            2,
        )
    make_registry(settings, report)
    own = make_own(settings, report)
    if made != before:
        mirror.link(settings, [*mirrors.values(), own])
    made.save(settings.state)
