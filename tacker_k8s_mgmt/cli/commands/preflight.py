"""``tacker-k8s-mgmt preflight``: what instantiate_start would find, without Tacker."""

import argparse
import json
import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import rich.box
from rich.table import Table
from rich.text import Text

from tacker_k8s_mgmt import config
from tacker_k8s_mgmt.cli import common, passwords
from tacker_k8s_mgmt.cli.checks import Check, Site
from tacker_k8s_mgmt.cli.commands import params
from tacker_k8s_mgmt.cli.commands.runs import DEFAULT_STATE_PATH
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.cli.render.console import Console, aligned
from tacker_k8s_mgmt.csar import request
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.remote import restricted_files
from tacker_k8s_mgmt.request.secret_references import FILE, Reference, Unresolved

NAME = "preflight"
#: It is a command by itself.
EXAMPLES: dict[str, tuple[str, ...]] = {}
_LINES = (
    "tacker-k8s-mgmt preflight instantiate.json",
    "tacker-k8s-mgmt preflight instantiate.json --package simple.zip --json",
    "tacker-k8s-mgmt preflight instantiate.json --ask-passwords \\\n"
    "      --machines machines.json",
)
_DESCRIPTION = """\
Run the checks of the hook instantiate_start without Tacker, before a request is sent:
the parameters, the private keys, the Ansible server with its kubespray and its Ansible,
and the directory of the cluster. Nothing is changed anywhere.

Run it on a conductor's host: what matters is what can be reached from there. Host keys
that the conductor has recorded are compared; those of other hosts are neither compared
nor recorded, as when an operation first sees a host. Only Tacker knows whether the
VIM's name is free. Secrets that the request names are read from files; Barbican is not
asked, so logins with secrets from there are tried only with --ask-passwords."""


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    verb = common.add_verb(
        subparsers,
        NAME,
        _preflight,
        "check everything that a request needs, without Tacker",
        _LINES,
    )
    verb.description = _DESCRIPTION
    verb.set_defaults(stored=None)
    verb.add_argument(
        "request",
        metavar="REQUEST.json",
        help="an instantiate request, its additionalParams, or "
        "k8s_cluster_installation_param alone; - reads standard input",
    )
    verb.add_argument(
        "--package", metavar="CSAR", help="look for the load balancer's script in it"
    )
    verb.add_argument(
        "--machines",
        metavar="FILE",
        help="VMs to log in to, as for inventory preview: login and sudo from here, "
        "and their SSH port from the Ansible server",
    )
    verb.add_argument(
        "--vnf-instance-id",
        type=uuid.UUID,
        metavar="ID",
        help="whose the cluster's directory may be already, before a retry",
    )
    verb.add_argument(
        "--ask-passwords",
        action="store_true",
        help="ask for passwords that are not in the request, or are in Barbican",
    )
    _add_site(verb)
    verb.add_argument(
        "--json", action="store_true", help="the findings as one JSON object"
    )


def _add_site(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--state-path",
        default=DEFAULT_STATE_PATH,
        metavar="DIR",
        help="[k8s_mgmt] state_path of the conductor (default: %(default)s)",
    )
    verb.add_argument(
        "--key-directory",
        default=config.KEY_DIRECTORY,
        metavar="DIR",
        help="[k8s_mgmt] key_directory of the conductor (default: %(default)s)",
    )
    verb.add_argument(
        "--secret-directory",
        default=config.SECRET_DIRECTORY,
        metavar="DIR",
        help="[k8s_mgmt] secret_directory of the conductor (default: %(default)s)",
    )
    verb.add_argument(
        "--connect-timeout",
        type=common.seconds,
        default=30.0,
        metavar="SECONDS",
        help="for each login (default: %(default)g)",
    )


def _preflight(args: argparse.Namespace) -> int:
    console = Console()
    given = params.given(
        args,
        lambda asked: _amended(asked, args.ask_passwords),
        partial(_secret, args.secret_directory),
    )
    checks = [Check("request", given.name, given.problems)]
    warnings = list(given.warnings)
    if given.found:
        with Console(stderr=True).status("Asking …"):
            checks += Site(given.found, args, warnings).checks()
    if args.json:
        print(json.dumps(_document(given.name, checks, warnings), indent=2))
    else:
        _tell(console, checks, warnings)
    return common.PROBLEMS if _problems(checks) else common.OK


def _secret(directory: str, reference: Reference) -> str | None:
    """What a reference leads to; None for one that only a hook can follow."""
    if reference.kind != FILE:
        return None
    try:
        return restricted_files.secret(reference.target, directory)
    except restricted_files.Refused as error:
        raise Unresolved(str(error)) from None


def _amended(asked: Request, ask_passwords: bool) -> Request:
    if asked.operation not in ("", request.INSTANTIATE):
        raise UsageError(
            f"it is a {asked.operation} request, and preflight is for instantiate ones"
        )
    return passwords.asked(asked) if ask_passwords else asked


def _problems(checks: Iterable[Check]) -> int:
    return sum(len(check.findings) for check in checks)


# For programs


def _document(
    name: str, checks: Sequence[Check], warnings: Sequence[str]
) -> dict[str, Any]:
    return {
        "request": name,
        "problems": _problems(checks),
        "checks": [
            {
                "check": check.name,
                "where": check.where,
                "not_checked": check.skipped or None,
                "findings": check.findings,
            }
            for check in checks
        ],
        "warnings": warnings,
    }


# For people


def _tell(console: Console, checks: Sequence[Check], warnings: Sequence[str]) -> None:
    if console.is_terminal:
        console.print(_table(checks))
    else:
        rows = [(check.name, check.where, check.result) for check in checks]
        for line in aligned([_HEADS, *rows]):
            console.say(line)
    for check in checks:
        for finding in check.findings:
            console.say(f"problem: {check.name}: {finding}", "red")
    for warning in warnings:
        console.say(f"warning: {warning}", "yellow")
    count = _problems(checks)
    if count:
        console.say(f"{count} problem{'s' if count > 1 else ''}.", "bold red")
    else:
        console.say("No problem was found.", "bold green")


_HEADS = ("CHECK", "WHERE", "RESULT")


def _table(checks: Sequence[Check]) -> Table:
    table = Table(*_HEADS, box=rich.box.SIMPLE_HEAD)
    for check in checks:
        style = "bold red" if check.findings else "dim" if check.skipped else "green"
        table.add_row(
            Text(check.name), Text(check.where), Text(check.result, style=style)
        )
    return table
