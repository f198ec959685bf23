# SPDX-License-Identifier: Apache-2.0
"""Checks of everything that a request needs; nothing is changed anywhere."""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.cli import vm_input
from tacker_k8s_mgmt.cloud import reachability
from tacker_k8s_mgmt.cloud.checks import CloudChecks
from tacker_k8s_mgmt.csar import archive, request_check
from tacker_k8s_mgmt.lifecycle.steps.preflight import vim_name
from tacker_k8s_mgmt.model.nodes import Machine
from tacker_k8s_mgmt.remote.ansible import preflight
from tacker_k8s_mgmt.remote.ssh import key_file, probe, session
from tacker_k8s_mgmt.remote.ssh.connector import Ways
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys
from tacker_k8s_mgmt.remote.ssh.logins import Logins
from tacker_k8s_mgmt.request.accounts import SSH_PORT
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import FILE, SECRET_REF
from tacker_k8s_mgmt.status.check import Check

_PARALLEL = 8
_IN_BARBICAN = "only a hook asks Barbican"
_SILENT = "the Ansible server could not be asked"


class Site:
    """Everything that the parameters name, as seen from this host.

    :param warnings: the checks add theirs.
    :param cloud: the checks of the cloud, if that is to be asked.
    """

    def __init__(
        self,
        params: InstallParams,
        args: argparse.Namespace,
        warnings: list[str],
        cloud: CloudChecks | None = None,
    ) -> None:
        self._cloud = cloud
        self._params = params
        self._args = args
        self._warnings = warnings
        self._logins = Logins(params, args.key_directory)
        self._ways = Ways(params, self._logins, self, args.connect_timeout)
        self._session: session.Session | None = None

    def checks(self) -> Iterator[Check]:
        """Check everything.

        :raises UsageError: a file of the command line cannot be used.
        """
        # Errors of the command line come before anything that takes time.
        listed = []
        if self._args.machines:
            listed = vm_input.listed(self._args.machines, self._params)
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
        readiness = preflight.Readiness(self._logins.findings())
        if not hidden:
            look = preflight.look
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
        yield Check(
            "cluster's directory", ansible.directory, readiness.directory, unasked
        )

    def _reachable(self) -> Iterator[Check]:
        if self._cloud is not None:
            alive = self._session is not None and self._session.alive
            session = self._session if alive else None
            networks = self._cloud.networks
            yield from reachability.rows(
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
            return key_file.load_all(self._args.state_path)
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
            endpoint = self._ways.machine(account, machine.ssh_address, SSH_PORT)
            why = probe.login(endpoint, self._logins.redact, self._args.connect_timeout)
            return (why,) if why else ()
        return (f"{account.attribute}: the private key cannot be used",)

    def _port(self, machine: Machine) -> tuple[str, ...] | None:
        if self._session is None or not self._session.alive:
            return None
        if self._detour():
            return ()
        why = probe.port(self._session, machine.ssh_address, SSH_PORT)
        return (why,) if why else ()
