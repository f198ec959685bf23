# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt preflight``: the checks of instantiate_start, without Tacker."""

import argparse
import os
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt.cli import (
    common,
    conductor,
    passwords,
    profile_input,
    recorded,
    request_input,
)
from tacker_k8s_mgmt.cli.base import Outcome, Report
from tacker_k8s_mgmt.cli.checks import Site
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.cli.render.console import Console
from tacker_k8s_mgmt.cli.request_input import CheckedRequest
from tacker_k8s_mgmt.cloud import client, demand
from tacker_k8s_mgmt.cloud.checks import CloudChecks
from tacker_k8s_mgmt.csar import archive, request, vms
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.errors import CloudError, PackageError, TackerConfigError
from tacker_k8s_mgmt.remote import operator_server, restricted_files
from tacker_k8s_mgmt.request.operator_server import OperatorServer
from tacker_k8s_mgmt.request.profile_values import IN_STATE_PATH
from tacker_k8s_mgmt.request.secret_references import FILE, Reference, Unresolved
from tacker_k8s_mgmt.status.check import Check
from tacker_k8s_mgmt.topology.vm_selectors import as_named

_DIRECTORIES = ("state_path", "key_directory", "secret_directory")
# In place of the id of a VNF instance that there is not yet.
_NO_ID = str(uuid.UUID(int=0))


class Preflight(Report):
    """Check everything that a request needs, without Tacker.

    Run the checks of the hook instantiate_start without Tacker, before a request is
    sent: the parameters, the private keys, the Ansible server with its kubespray and
    its Ansible, and the directory of the cluster. Nothing is changed anywhere.

    Run it on a conductor's host: what matters is what can be reached from there. Host
    keys that the conductor has recorded are compared; those of other hosts are neither
    compared nor recorded, as when an operation first sees a host. Only Tacker knows
    whether the VIM's name is free. Secrets that the request names are read from files;
    Barbican is not asked, so logins with secrets from there are tried only with
    --ask-passwords.

    With --cloud, also check what the request needs of OpenStack: images, flavours, key
    pairs, networks and their port security, quotas, Heat, and Tacker's VIMs, with the
    login of clouds.yaml or of the variables OS_*; and whether the Ansible server
    reaches the VMs' networks, mirrors and registries.
    """

    examples = (
        "tacker-k8s-mgmt preflight instantiate.json",
        "tacker-k8s-mgmt preflight instantiate.json --package simple.zip --json",
        "tacker-k8s-mgmt preflight instantiate.json --ask-passwords \\\n"
        "      --machines machines.json",
        "tacker-k8s-mgmt preflight instantiate.json --package simple.zip --cloud",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of its options."""
        parser = super().get_parser(prog_name)
        parser.set_defaults(stored=None)
        parser.add_argument(
            "request",
            metavar="REQUEST.json",
            help="an instantiate request, its additionalParams, or "
            "k8s_cluster_installation_param alone; - reads standard input",
        )
        parser.add_argument(
            "--package",
            metavar="CSAR",
            help="look for the load balancer's script in it, and with --cloud for "
            "what the request makes",
        )
        profile_input.add_profiles(parser, f"{IN_STATE_PATH} in the state_path")
        common.add_cloud(parser)
        parser.add_argument(
            "--cloud",
            action="store_true",
            help="also check what the request needs of OpenStack, and what the Ansible "
            "server reaches",
        )
        parser.add_argument(
            "--machines",
            metavar="FILE",
            help="VMs to log in to, as for inventory preview: login and sudo from "
            "here, and their SSH port from the Ansible server",
        )
        parser.add_argument(
            "--vnf-instance-id",
            metavar="VNF",
            help="id or recorded name of the VNF instance that may own the cluster's "
            "directory, before a retry",
        )
        parser.add_argument(
            "--ask-passwords",
            action="store_true",
            help="ask for passwords that are not in the request, or are in Barbican",
        )
        for option in _DIRECTORIES:
            conductor.add_directory(parser, option)
        parser.add_argument(
            "--connect-timeout",
            type=common.seconds,
            metavar="SECONDS",
            help="for each login (default: [k8s_mgmt] connect_timeout of tacker.conf)",
        )
        conductor.add_config_file(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        """Check it."""
        conductor.complete(parsed_args, *_DIRECTORIES, "connect_timeout")
        _identify(parsed_args)
        wants_cloud = parsed_args.cloud or parsed_args.os_cloud
        if wants_cloud and parsed_args.package is None:
            raise UsageError(
                "--cloud needs --package CSAR: what the request makes is in the package"
            )
        checked = request_input.read_request(
            parsed_args,
            partial(_amended, ask_passwords=parsed_args.ask_passwords),
            partial(_secret, parsed_args.secret_directory),
            os.path.join(parsed_args.state_path, IN_STATE_PATH),
            partial(_server, parsed_args),
        )
        checks = [Check("request", checked.name, checked.problems)]
        warnings = list(checked.warnings)
        with self.status("Asking …"):
            cloud = None
            if wants_cloud:
                name = self.cloud_name(parsed_args)
                cloud = _cloud(name, checked, parsed_args.package, checks)
            if checked.params:
                checks += Site(checked.params, parsed_args, warnings, cloud).checks()
            elif cloud:
                # What is wrong with the rest of the request hides nothing of the cloud.
                checks += cloud.rows()
                warnings += cloud.warnings
        count = sum(len(check.findings) for check in checks)
        return Outcome(
            _document(checked.name, count, checks, warnings),
            partial(_print, count, checks, warnings),
            common.PROBLEMS if count else common.OK,
        )


def _identify(args: argparse.Namespace) -> None:
    vnf = args.vnf_instance_id
    args.vnf_instance_id = recorded.identified(args.state_path, vnf) if vnf else ""
    if args.vnf_instance_id is None:
        raise UsageError(f"no VNF instance of the name {vnf} is recorded; give its id")


def _cloud(
    name: str | None, checked: CheckedRequest, package: str, checks: list[Check]
) -> CloudChecks | None:
    """The checks of the cloud; None, with a row that has the reason, if impossible."""
    body, params = checked.body, checked.params or vms.reduced(checked.body)
    if params is None:
        skipped = "the request does not lead to the VMs"
        checks.append(Check("cloud", name or "OS_*", skipped=skipped))
        return None
    try:
        files = archive.read(Path(package))
        source = demand.package(files, str(body.body.get("flavourId") or ""))
    except PackageError as error:
        checks.append(Check("package", package, error.problems))
        return None
    try:
        cloud = client.connect(name)
    except CloudError as error:
        checks.append(Check("cloud", name or "OS_*", (str(error),)))
        return None
    checks.append(Check("cloud", f"{cloud.project} at {cloud.auth_url}"))
    params = as_named(params, source.base.names)
    made = demand.of_request(body, params, source)
    return CloudChecks(cloud, body, params, source, made)


def _secret(directory: str, reference: Reference) -> str | None:
    """The secret of a reference; None for one that only a hook can resolve."""
    if reference.kind != FILE:
        return None
    try:
        return restricted_files.secret(reference.target, directory)
    except restricted_files.Refused as error:
        raise Unresolved(str(error)) from None


def _server(args: argparse.Namespace) -> OperatorServer | None:
    """The operator's Ansible server; None if there is none.

    :raises UsageError: ``tacker.conf`` cannot be read, or is wrong.
    """
    options = conductor.options(args)
    try:
        return operator_server.find(options, args.vnf_instance_id or _NO_ID)
    except TackerConfigError as error:
        raise UsageError(str(error)) from None


def _amended(body: Request, *, ask_passwords: bool) -> Request:
    if body.operation not in ("", request.INSTANTIATE):
        raise UsageError(
            f"it is a {body.operation} request, and preflight is for instantiate ones"
        )
    return passwords.completed(body) if ask_passwords else body


def _document(
    name: str, count: int, checks: Sequence[Check], warnings: Sequence[str]
) -> dict[str, Any]:
    return {
        "request": name,
        "problems": count,
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


def _print(count: int, checks: Sequence[Check], warnings: Sequence[str]) -> None:
    console = Console()
    console.table(("CHECK", "WHERE", "RESULT"), [_cells(check) for check in checks])
    for check in checks:
        for finding in check.findings:
            console.say(f"problem: {check.name}: {finding}", "red")
    for warning in warnings:
        console.say(f"warning: {warning}", "yellow")
    if count:
        console.say(f"{count} problem{'s' if count > 1 else ''}.", "bold red")
    else:
        console.say("No problem was found.", "bold green")


def _cells(check: Check) -> tuple[Text, ...]:
    style = "bold red" if check.findings else "dim" if check.skipped else "green"
    return Text(check.name), Text(check.where), Text(check.result, style=style)
