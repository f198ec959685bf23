# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt preflight``: the checks of instantiate_start, without Tacker.

Everything that a request needs is checked; nothing is changed anywhere.
"""

import argparse
import os
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from rich.text import Text

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.errors import (
    CloudError,
    PackageError,
    TackerConfigError,
    TackerError,
)
from tacker_k8s_mgmt.model.nodes import Machine
from tacker_k8s_mgmt.operations.preconditions import vim_name
from tacker_k8s_mgmt.remote import local_files, operator_server
from tacker_k8s_mgmt.remote.ansible import server
from tacker_k8s_mgmt.remote.ssh import known_hosts, reachability, session
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.login import Credentials
from tacker_k8s_mgmt.remote.ssh.routes import HostConnector
from tacker_k8s_mgmt.request.operator_server import OperatorServer
from tacker_k8s_mgmt.request.profile_document import IN_STATE_PATH
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import FILE, SECRET_REF, Reference, Unresolved
from tacker_k8s_mgmt.tools.cli import base, host_records, request_input
from tacker_k8s_mgmt.tools.cli.base import Outcome, Report, UsageError
from tacker_k8s_mgmt.tools.cli.request_input import CheckedRequest
from tacker_k8s_mgmt.tools.cloud import client, cloud_checks, demand
from tacker_k8s_mgmt.tools.cloud.client import Cloud
from tacker_k8s_mgmt.tools.cloud.cloud_checks import Check, CloudChecks
from tacker_k8s_mgmt.tools.csar import archive, request_check, stack_preview
from tacker_k8s_mgmt.tools.csar.body import INSTANTIATE, Request
from tacker_k8s_mgmt.tools.render.console import Console
from tacker_k8s_mgmt.tools.tacker import packages
from tacker_k8s_mgmt.tools.tacker.client import Tacker
from tacker_k8s_mgmt.topology.heat_stack import as_named

_PARALLEL = 8
_IN_BARBICAN = "only a hook asks Barbican"
_SILENT = "the Ansible server could not be asked"


class RequestChecks:
    """Everything that the parameters name, as seen from this host.

    :param warnings: the checks add theirs.
    :param cloud: the checks of the cloud, if that is to be asked.
    """

    def __init__(
        self,
        params: ClusterRequest,
        args: argparse.Namespace,
        warnings: list[str],
        cloud: CloudChecks | None = None,
    ) -> None:
        self._cloud = cloud
        self._params = params
        self._args = args
        self._warnings = warnings
        self._logins = Credentials(params, args.key_directory)
        self._ways = HostConnector(params, self._logins, self, args.connect_timeout)
        self._session: session.Session | None = None

    def checks(self) -> Iterator[Check]:
        """Check everything.

        :raises UsageError: a file of the command line cannot be used.
        """
        # Errors of the command line come before anything that takes time.
        listed = []
        if self._args.machines:
            listed = request_input.listed(self._args.machines, self._params)
        yield from self._secrets()
        yield from self._package()
        owner = self._args.vnf_instance_id
        name = vim_name(self._params, owner or "(id)")
        if self._cloud is None:
            yield Check("VIM name", name, skipped="only Tacker knows the others")
        else:
            yield self._cloud.vims.name(name)
            yield from self._cloud.rows()
            self._warnings += self._cloud.warnings
        try:
            yield from self._server(owner)
            yield from self._reachable()
            yield from self._machines(listed)
        finally:
            if self._session is not None:
                self._session.close()
            self._ways.close()

    def _secrets(self) -> Iterator[Check]:
        for kind, skipped in ((FILE, ""), (SECRET_REF, _IN_BARBICAN)):
            uses = (u for u in self._params.references if u.reference.kind == kind)
            if where := ", ".join(use.attribute for use in uses):
                yield Check(f"secrets by {kind}", where, skipped=skipped)

    def _hidden(self, *structures: str) -> str:
        """Why logins of these structures cannot be tried; "" if they can."""
        hidden = [
            use.attribute
            for use in self._params.references
            if use.location[0] in structures and not use.is_known
        ]
        return f"{' and '.join(hidden)}: {_IN_BARBICAN}" if hidden else ""

    def _between(self, connection: str) -> tuple[str, ...]:
        bastion = self._params.bastion
        return ("bastion",) if bastion and connection in bastion.used_for else ()

    def _package(self) -> Iterator[Check]:
        title, package = "load balancer's script", self._args.package
        params = self._params
        certificates = [
            one.certificate_path or ""
            for one in params.private_registries
            if one.certificate_file(params.container_engine)
        ]
        path = params.load_balancer.script_path if params.load_balancer else ""
        if params.load_balancer is None:
            yield Check(title, "", skipped="there is no external_lb_param")
        named = {title: path, "registries' certificates": ", ".join(certificates)}
        named = {what: where for what, where in named.items() if where}
        if package is None:
            for what, where in named.items():
                yield Check(what, where, skipped="give --package")
            return
        try:
            files = archive.read(Path(package))
        except errors.PackageError as error:
            yield Check(title, package, error.problems)
            return
        looks = {title: request_check.script}
        for what, where in named.items():
            look = looks.get(what, request_check.certificates)
            yield Check(what, where, tuple(look(params, files)))

    def _server(self, owner: str) -> Iterator[Check]:
        ansible = self._params.ansible
        hidden = self._hidden("ansible", *self._between("ansible"))
        readiness = server.Readiness(self._logins.findings())
        if not hidden:
            look = server.check_server
            readiness = look(self._params, self._logins, self._connected, owner)
        yield self._keys(readiness.keys)
        yield from self._bastion()
        unusable = (
            "" if self._session or readiness.connection else "its key cannot be used"
        )
        skipped = hidden or unusable
        host = f"{ansible.username}@{ansible.host}:{ansible.port}"
        yield Check("Ansible server", host, readiness.connection, skipped)
        unasked = _SILENT if skipped or readiness.connection else ""
        installed = " with ".join(filter(None, (ansible.kubespray_root, ansible.venv)))
        yield Check("kubespray and Ansible", installed, readiness.installed, unasked)
        yield Check("Ansible strategy", readiness.strategy, skipped=unasked)
        yield Check(
            "cluster's directory", ansible.directory, readiness.directory, unasked
        )

    def _reachable(self) -> Iterator[Check]:
        if self._cloud is not None:
            alive = self._session is not None and self._session.alive
            session = self._session if alive else None
            networks = self._cloud.networks
            yield from cloud_checks.rows(
                session, self._params, networks, self._warnings
            )

    def _bastion(self) -> Iterator[Check]:
        """The bastion, unless the connection to the Ansible server goes through it."""
        bastion = self._params.bastion
        if bastion is not None and "ansible" not in bastion.used_for:
            hidden = self._hidden("bastion")
            why = "" if hidden else self._ways.finding()
            where = f"{bastion.username}@{bastion.host}:{bastion.port}"
            yield Check("bastion", where, (why,) if why else (), hidden)

    def _keys(self, findings: Sequence[str]) -> Check:
        keys = [a.private_key for a in self._params.accounts() if a.private_key]
        unknown = {
            ".".join(use.location).removesuffix("_passphrase")
            for use in self._params.references
            if not use.is_known
        }
        known = [key.attribute for key in keys if key.attribute not in unknown]
        # In place of the others there is only a text that would be reported as damaged.
        directory = self._args.key_directory
        here = f"; here key_directory is {directory}" if directory else ""
        problems = tuple(
            f"{text}{here}" for text in findings if text.split()[0] in known
        )
        why = _IN_BARBICAN if keys else "there are none in the request"
        return Check("private keys", ", ".join(known), problems, "" if known else why)

    def _connected(self) -> session.Session:
        if self._session is None or not self._session.alive:
            self._session = self._ways.server()
        return self._session

    def add(self, keys: HostKeys) -> None:
        """Host keys are not recorded here."""

    def load(self) -> HostKeys:
        """The host keys that the conductor has recorded, for whichever project."""
        try:
            return known_hosts.load_all(self._args.state_path)
        except OSError as error:
            self._warnings.append(
                f"{error.filename} cannot be read ({error.strerror}), so the host key "
                "of the Ansible server was not compared: be root or the conductor's "
                "user"
            )
            return HostKeys()

    def _machines(self, listed: Sequence[Machine]) -> Iterator[Check]:
        if not self._args.machines:
            yield Check("VMs", "", skipped="give --machines")
        with ThreadPoolExecutor(_PARALLEL) as pool:
            logins = pool.map(self._login, listed)
            ports = pool.map(self._port, listed)
            for machine, login, port in zip(listed, logins, ports, strict=True):
                where = f"{machine.role.value} {machine.ssh_address}"
                yield Check("login and sudo", where, login, self._untried(machine))
                unasked = _SILENT if port is None else self._detour()
                yield Check("from the Ansible server", where, port or (), unasked)

    def _detour(self) -> str:
        bastion = self._params.bastion
        led = bastion is not None and bastion.carries_playbooks
        return "it goes through the bastion" if led else ""

    def _untried(self, machine: Machine) -> str:
        structure = self._params.account(machine.role).attribute
        return self._hidden(structure, *self._between("vms"))

    def _login(self, machine: Machine) -> tuple[str, ...]:
        if self._untried(machine):
            return ()
        account = self._params.account(machine.role)
        with suppress(errors.PrivateKeyError):
            endpoint = self._ways.machine(account, machine.ssh_address)
            why = reachability.login_problem(
                endpoint, self._logins.redact, self._args.connect_timeout
            )
            return (why,) if why else ()
        return (f"{account.attribute}: the private key cannot be used",)

    def _port(self, machine: Machine) -> tuple[str, ...] | None:
        if self._session is None or not self._session.alive:
            return None
        if self._detour():
            return ()
        port = self._params.account(machine.role).port
        why = reachability.port_problem(self._session, machine.ssh_address, port)
        return (why,) if why else ()


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
        request_input.add_profiles(parser, f"{IN_STATE_PATH} in the state_path")
        base.add_cloud(parser)
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
            host_records.add_directory(parser, option)
        parser.add_argument(
            "--connect-timeout",
            type=base.seconds,
            metavar="SECONDS",
            help="for each login (default: [k8s_mgmt] connect_timeout of tacker.conf)",
        )
        host_records.add_config_file(parser)
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        host_records.complete(parsed_args, *_DIRECTORIES, "connect_timeout")
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
                checks += RequestChecks(
                    checked.params, parsed_args, warnings, cloud
                ).checks()
            elif cloud:
                # What is wrong with the rest of the request hides nothing of the cloud.
                checks += cloud.rows()
                warnings += cloud.warnings
        count = sum(len(check.findings) for check in checks)
        return Outcome(
            _document(checked.name, count, checks, warnings),
            partial(_print, count, checks, warnings),
            base.PROBLEMS if count else base.OK,
        )


def _identify(args: argparse.Namespace) -> None:
    vnf = args.vnf_instance_id
    args.vnf_instance_id = host_records.identified(args.state_path, vnf) if vnf else ""
    if args.vnf_instance_id is None:
        raise UsageError(f"no VNF instance of the name {vnf} is recorded; give its id")


def _cloud(
    name: str | None, checked: CheckedRequest, package: str, checks: list[Check]
) -> CloudChecks | None:
    """The checks of the cloud; None, with a row that has the reason, if impossible."""
    body, params = checked.body, checked.params or stack_preview.reduced(checked.body)
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
    onboarded = partial(_onboarded, cloud, source.vnfd_id, Path(package))
    checks.append(cloud_checks.row("VNF package", source.vnfd_id, onboarded))
    params = as_named(params, source.base.names)
    made = demand.of_request(body, params, source)
    return CloudChecks(cloud, body, params, source, made)


def _onboarded(cloud: Cloud, vnfd_id: str, package: Path) -> Iterator[str]:
    """Whether Tacker has this package, or could take it."""
    try:
        found = packages.with_vnfd_id(Tacker(cloud), vnfd_id)
    except TackerError as error:
        yield str(error)
        return
    if found and not packages.is_of(found, package):
        yield (
            f"Tacker has another package of this VNFD id, {found['id']}, and would "
            "drop this one after its upload, with no error but in the conductor's log: "
            "instantiate that one, delete it, or give this one an id of its own "
            "(csar build --vnfd-id new)"
        )


def _secret(directory: str, reference: Reference) -> str | None:
    """The secret of a reference; None for one that only a hook can resolve."""
    if reference.kind != FILE:
        return None
    try:
        return local_files.secret(reference.target, directory)
    except local_files.FileNotAllowed as error:
        raise Unresolved(str(error)) from None


def _server(args: argparse.Namespace) -> OperatorServer | None:
    """The operator's Ansible server; None if there is none.

    :raises UsageError: ``tacker.conf`` cannot be read, or is wrong.
    """
    options = host_records.options(args)
    try:
        return operator_server.find(options, args.vnf_instance_id or _NO_ID)
    except TackerConfigError as error:
        raise UsageError(str(error)) from None


def _amended(body: Request, *, ask_passwords: bool) -> Request:
    if body.operation not in ("", INSTANTIATE):
        raise UsageError(
            f"it is a {body.operation} request, and preflight is for instantiate ones"
        )
    return request_input.completed(body) if ask_passwords else body


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
