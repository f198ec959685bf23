# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt inventory preview``: what an instantiation would write.

It is an instantiation that touches nothing: the real steps on a site that only records.
So the preview shows what the operation itself would write and call, in its order.
"""

import argparse
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import SecretStr

from tacker_k8s_mgmt import files
from tacker_k8s_mgmt.config import Limits
from tacker_k8s_mgmt.errors import DiscoveryError
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.load_balancer import BalancerStatus, ScriptCall
from tacker_k8s_mgmt.model.nodes import Machine, MachineIdentity, Node, NodeObject, Role
from tacker_k8s_mgmt.model.playbooks import PlaybookRequest
from tacker_k8s_mgmt.model.vim import ClusterAccess, VimSpec
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tacker_k8s_mgmt.operations.state import OperationContext
from tacker_k8s_mgmt.remote.site import Site
from tacker_k8s_mgmt.remote.timing import Clock
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.text import Redactor, in_private_key
from tacker_k8s_mgmt.tools.cli import base, request_input
from tacker_k8s_mgmt.tools.cli.base import Outcome, Report, UsageError
from tacker_k8s_mgmt.topology.heat_stack import Machines

_VNF = "<VNF instance id>"
_ASSUMED_MTU = 1500  # bytes, of the VMs' interfaces


@dataclass
class Record:
    """What an instantiation would do.

    :param files: by name in the cluster's directory, in the order of writing.
    :param balancer: the call of the load balancer's script, if there is one.
    """

    files: dict[str, str] = field(default_factory=dict)
    playbooks: list[str] = field(default_factory=list)
    balancer: ScriptCall | None = None
    vim: VimSpec | None = None


def rehearse(params: ClusterRequest, machines: Machines) -> Record:
    """Take all steps of an instantiation on these VMs.

    :raises K8sMgmtError: what the operation would refuse.
    """
    site = DryRunSite(params, machines)
    deps = OperationContext(
        params,
        _VNF,
        cast(Site, site),
        cast(Clock, site),
        Limits(ready_timeout=0, poll_interval=0),
        lambda progress: None,
    )
    for step in Instantiate(deps).steps():
        step.take()
    return site.record


class DryRunSite:
    """A site without problems, and all of its parts in one.

    What is not here has no effect, and answers None: Helm gets no login, for example.
    """

    def __init__(self, params: ClusterRequest, machines: Machines) -> None:
        self.record = Record()
        self.path = params.ansible.directory
        self.workdir = self.playbooks = self.vims = self
        self._machines = machines
        self._wanted = params.load_balancer

    def cluster(self, control_plane: Node) -> "DryRunSite":
        return self

    def balancer(self, machine: Machine) -> "DryRunSite":
        return self

    def machines(self) -> Machines:
        return self._machines

    # Nothing is wrong

    def package_findings(self) -> Sequence[str]:
        return ()

    server_findings = package_findings

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: None

    def identity(self, node: Node, **_: object) -> MachineIdentity:
        return MachineIdentity("", "", _ASSUMED_MTU)

    def clocks(self) -> Mapping[str, float]:
        return {}

    def now(self) -> float:
        return 0.0

    # The cluster's directory

    def read(self, name: str) -> str | None:
        return self.record.files.get(name)

    def write(self, name: str, text: str) -> bool:
        self.record.files[name] = text
        return True

    # The playbook, the cluster and its VIM

    def run(self, request: PlaybookRequest, nodes: int, on_progress: Any) -> None:
        self.record.playbooks.append(request.playbook)

    def nodes(self) -> Sequence[NodeObject]:
        members = inventory.parse(self.record.files[inventory.FILE_NAME])
        return [NodeObject(node.name, True, "", node.address, "") for node in members]

    def admin_access(self) -> ClusterAccess:
        return ClusterAccess(SecretStr(""), "")

    def register(self, spec: VimSpec) -> str:
        if not spec.tenant:
            self.record.vim = spec
        return ""

    # The load balancer

    def call(self, call: ScriptCall) -> str:
        self.record.balancer = call
        return ""

    def status(self) -> BalancerStatus:
        options = self._wanted.options if self._wanted else ()
        reported = {option.name: option.wanted for option in options}
        return BalancerStatus(True, True, True, reported, (), (), ())


_SHOWN = ("hosts.yaml", "vars.json")


class InventoryPreview(Report):
    """Show inventory, variables, load balancer and VIM; secrets are masked."""

    examples = (
        "tacker-k8s-mgmt inventory preview instantiate.json",
        "tacker-k8s-mgmt inventory preview instantiate.json --workers 5",
        "tacker-k8s-mgmt inventory preview instantiate.json \\\n"
        "      --machines machines.json --output-dir preview --reveal",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        request_input.add_request(parser)
        for option, number, text in (
            ("--control-planes", 1, "control-plane VMs"),
            ("--workers", 2, "worker VMs"),
        ):
            parser.add_argument(
                option,
                type=base.count,
                metavar="N",
                help=f"assume so many {text}, at example addresses (default: {number})",
            )
        parser.add_argument(
            "--machines",
            metavar="FILE",
            help="the VMs, as a JSON list of objects with role ("
            f"{' or '.join(role.value for role in Role)}), ssh_address and, where they "
            "differ, address and server_id",
        )
        parser.add_argument(
            "--output-dir",
            type=Path,
            metavar="DIR",
            help="write the files to DIR, mode 0600, instead of showing them",
        )
        parser.add_argument(
            "--force", action="store_true", help="replace existing files in DIR"
        )
        parser.add_argument(
            "--reveal",
            action="store_true",
            help="with --output-dir: do not mask secrets",
        )
        return parser

    def find(self, parsed_args: argparse.Namespace) -> Outcome:
        args = parsed_args
        _check_usage(args)
        checked = request_input.read_request(args)
        request_params = checked.params
        if checked.absent:
            raise UsageError(f"{checked.name} cannot be previewed. {checked.absent}")
        findings: dict[str, Any] = {
            "request": checked.name,
            "problems": checked.problems,
            "warnings": checked.warnings,
        }
        if request_params is None:
            show = partial(request_input.print_findings, checked)
            return Outcome(findings, show, base.PROBLEMS)
        listed = _machines(args, request_params)
        try:
            machines = request_input.search(request_params, listed)
        except DiscoveryError as error:
            findings["problems"] = list(error.problems)
            lines = [f"problem: {problem}" for problem in error.problems]
            return Outcome(findings, partial(_say, lines), base.PROBLEMS)
        texts, record = _rehearsed(request_params, machines, reveal=args.reveal)
        if args.output_dir:
            _write(args.output_dir, texts, force=args.force)

        def say() -> None:
            _say([f"warning: {warning}" for warning in checked.warnings])
            request_input.show(request_params.expansion)
            _print_files(args.output_dir, request_params, texts)
            _say(_rest(request_params, machines, record))

        # Secrets that were revealed are in the directory only.
        shown = {} if args.output_dir else dict(texts)
        directory = str(args.output_dir) if args.output_dir else None
        rest = _document(request_params, machines, record)
        document = {**findings, "files": shown, "output_dir": directory, **rest}
        return Outcome(document, say)


def _check_usage(args: argparse.Namespace) -> None:
    if args.reveal and not args.output_dir:
        raise UsageError("--reveal needs --output-dir: secrets are never shown")
    if args.machines and (args.control_planes, args.workers) != (None, None):
        raise UsageError("--machines says how many VMs there are; leave out the others")


def _print_files(
    directory: Path | None, request_params: ClusterRequest, texts: Mapping[str, str]
) -> None:
    place = f"{request_params.ansible.directory} on {request_params.ansible.host}"
    for name, text in texts.items():
        if directory:
            base.show(f"{name}: in {directory}, for {place}")
        else:
            base.show(f"==> {name} in {place}\n{text}")


def _rehearsed(
    request_params: ClusterRequest, machines: Machines, *, reveal: bool
) -> tuple[Mapping[str, str], Record]:
    """The files to be shown, and the rest of what the operation does."""
    if reveal:
        record = rehearse(request_params, machines)
        return {name: record.files[name] for name in _SHOWN}, record
    # The text of a private key goes into no file here, but its digest into a name.
    record = rehearse(request_input.masked(request_params, but_keys=True), machines)
    without_keys = Redactor(
        line
        for account in request_params.accounts()
        if account.private_key and not account.private_key.path
        for line in in_private_key(account.private_key.given.get_secret_value())
    )
    return {name: without_keys(record.files[name]) for name in _SHOWN}, record


def _write(directory: Path, texts: Mapping[str, str], *, force: bool) -> None:
    try:
        files.make_directory(directory)
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be created: {files.reason(error)}"
        ) from error
    existing = [
        str(directory / name) for name in texts if files.exists(directory / name)
    ]
    if existing and not force:
        listed = " and ".join(existing)
        raise UsageError(f"there is {listed} already; --force replaces it")
    for name, text in texts.items():
        base.write_new(directory / name, text, force=force)


def _say(lines: Sequence[str]) -> None:
    for line in lines:
        base.show(line)


def _document(
    request_params: ClusterRequest, machines: Machines, record: Record
) -> dict[str, Any]:
    """The rest of what the operation does, for programs."""
    balancer, vim = _balancer(request_params, machines, record), record.vim
    return {
        "profile": request_input.document(request_params.expansion),
        "load_balancer": balancer,
        "playbooks": record.playbooks,
        "vim": {"name": vim.name, "auth_url": vim.auth_url} if vim else None,
        "unread_secrets": dict(_unread(request_params)),
    }


def _rest(
    request_params: ClusterRequest, machines: Machines, record: Record
) -> list[str]:
    lines = []
    if balancer := _balancer(request_params, machines, record):
        lines += [
            f"load balancer: on {balancer['address']}, as root",
            f"  {shlex.join(balancer['command'])}",
        ]
        if "-" in balancer["command"]:
            lines.append("  (a proxy's URL is read from standard input)")
    lines.append(f"playbook: {', '.join(record.playbooks)}")
    if record.vim:
        lines.append(f"VIM: {record.vim.name} at {record.vim.auth_url}")
    later = request_input.RESOLVED_LATER
    for name, reference in _unread(request_params):
        lines.append(f"secret: {name}: {json.dumps(reference)}, {later}")
    return lines


def _balancer(
    request_params: ClusterRequest, machines: Machines, record: Record
) -> dict[str, Any] | None:
    """Where the load balancer's script is run, and how."""
    call, vm, params = record.balancer, machines.load_balancer, request_params
    if not (call and vm and params.load_balancer):
        return None
    script = ["bash", params.load_balancer.script_path, call.verb]
    return {"address": vm.ssh_address, "command": [*script, *call.arguments]}


def _unread(request_params: ClusterRequest) -> Iterator[tuple[str, Any]]:
    """The references that are resolved later, by attribute."""
    for use in request_params.references:
        if not use.is_known:
            yield use.attribute, use.reference.as_given()


def _machines(
    args: argparse.Namespace, request_params: ClusterRequest
) -> list[Machine]:
    if args.machines:
        return request_input.listed(args.machines, request_params)
    control_planes = 1 if args.control_planes is None else args.control_planes
    workers = 2 if args.workers is None else args.workers
    return request_input.assumed(request_params, control_planes, workers)
