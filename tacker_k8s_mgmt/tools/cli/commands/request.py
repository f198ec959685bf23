# SPDX-License-Identifier: Apache-2.0
"""``tacker-k8s-mgmt request init``: write an instantiate request for a site.

Each question on the terminal has its default and what to choose from.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.errors import K8sMgmtError, ParamError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.request import operator_server, reader, structure
from tacker_k8s_mgmt.tools.cli import base, request_input
from tacker_k8s_mgmt.tools.cli.base import Command, UsageError, complain, is_text
from tacker_k8s_mgmt.tools.cli.request_input import STANDARD_STREAM
from tacker_k8s_mgmt.tools.cloud import client, demand, interview
from tacker_k8s_mgmt.tools.cloud.client import Cloud
from tacker_k8s_mgmt.tools.cloud.interview import (
    OPTIONS,
    Given,
    Interview,
    Question,
    Site,
)
from tacker_k8s_mgmt.tools.csar import archive, parts
from tacker_k8s_mgmt.tools.csar.body import read
from tacker_k8s_mgmt.tools.csar.tacker_api import APIS, V1, V2
from tacker_k8s_mgmt.tools.tacker import packages
from tacker_k8s_mgmt.tools.tacker.client import Tacker

_NO_TEXT = "It is not a text in UTF-8."


def on_terminal(question: Question) -> str:
    """The answer to a question; nothing but Enter takes the default.

    A number stands for one of the choices.

    :raises UsageError: the input has ended, as Ctrl-D ends it.
    """
    lines = [f"{question.text[0].upper()}{question.text[1:]}"]
    lines += [f"  {n}  {text}" for n, text in enumerate(question.choices, 1)]
    enter = f"[{question.default}]" if question.default else f"({question.without})"
    numbered = {str(n): text for n, text in enumerate(question.choices, 1)}
    # Prompts are no output: that may be the request.
    complain("\n".join(lines))
    while True:
        complain(f"{enter}> ", end="")
        line = sys.stdin.readline()
        if not line:
            complain("")
            raise UsageError(
                f"The input ended at the question for --{question.option}. Nothing was "
                "written; --yes takes the defaults."
            )
        answer = line.strip()
        answer = numbered.get(answer, answer)
        why = question.problem(answer) if is_text(answer) else _NO_TEXT
        if not why:
            return answer or question.default
        complain(why)


def default(question: Question) -> str:
    """The default of a question, which is not asked."""
    return question.default


_PAIRS: Mapping[str, tuple[str, str]] = {
    "network": ("[CP=]NETWORK", "network of a connection point, or of all others"),
    "image": ("[VDU=]IMAGE", "image of a VDU, or of all others"),
    "flavor": ("[VDU=]FLAVOR", "flavour of a VDU, or of all others"),
    "hot": ("NAME=VALUE", "a parameter of the Base HOT"),
    "set": ("NAME=VALUE", "a parameter of the driver, such as cluster.helm=true"),
}


class RequestInit(Command):
    """Write an instantiate request for a site.

    What the request needs is asked on the terminal, with defaults and choices from the
    cloud; each answer may be given as an option instead. Where neither says it, the
    request has a marked blank, which `params check`, `csar check` and Tacker's hooks
    report by name. Secrets are references: the path of a key on the conductor,
    file:NAME for a file in its secret_directory, or the URL of a secret in Barbican.

    The cloud is only read: that of --os-cloud, OS_CLOUD or OS_AUTH_URL. Without these,
    and with --offline, none is asked.
    """

    examples = (
        "tacker-k8s-mgmt request init -o instantiate.json",
        "tacker-k8s-mgmt request init ha --api v2 --os-cloud site1 -o instantiate.json",
        "tacker-k8s-mgmt request init --offline --yes --name blue \\\n"
        "      --ansible-host 192.0.2.5 --vm-private-key ./blue -o instantiate.json",
    )
    exit_codes = "0 written, with blanks or without, 2 wrong or unreadable input"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "flavour",
            nargs="?",
            default="",
            help="deployment flavour (default: simple, or the package's only one)",
        )
        parser.add_argument(
            "-o",
            "--output",
            metavar="FILE",
            default="instantiate.json",
            help="where to; - is standard output (default: %(default)s)",
        )
        base.add_force(parser)
        parser.add_argument(
            "--package",
            type=Path,
            metavar="CSAR",
            help="the package that the request is for (default: the sample package)",
        )
        parser.add_argument(
            "--api",
            choices=sorted(APIS),
            default=V1.name,
            help="Tacker's API, without --package (default: %(default)s)",
        )
        base.add_cloud(parser)
        parser.add_argument("--offline", action="store_true", help="ask no cloud")
        parser.add_argument(
            "-y",
            "--yes",
            action="store_true",
            help="take the defaults and ask nothing, as without a terminal",
        )
        parser.add_argument(
            "--literal-secrets",
            action="store_true",
            help="ask for passwords of logins without a reference, and write them into "
            "the request, which Tacker stores and shows",
        )
        for name, text in OPTIONS.items():
            parser.add_argument(f"--{name}", metavar="VALUE", default="", help=text)
        for name, (metavar, text) in _PAIRS.items():
            parser.add_argument(
                f"--{name}",
                metavar=metavar,
                action="append",
                default=[],
                help=f"{text}; may be repeated",
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        args = parsed_args
        if args.output != STANDARD_STREAM:
            base.check_output(Path(args.output), force=args.force)
        files = _files(args)
        package = demand.package(files, args.flavour)
        asks = sys.stdin.isatty() and not args.yes
        ask = on_terminal if asks else default
        try:
            given, cloud = _given(args), self._cloud(args)
            if asks:
                complain(_opening(package, cloud))
            site = Interview(package, cloud, given, ask).site()
            body = interview.body(package, files, site.answers)
        except ValueError as error:
            raise UsageError(str(error)) from None
        if args.literal_secrets:
            body = dict(request_input.completed(read(body, package.api)).body)
        text = json.dumps(body, indent=2, ensure_ascii=False) + "\n"
        if args.output == STANDARD_STREAM:
            base.show(text, end="")
            return base.OK
        base.write_new(Path(args.output), text, force=args.force)
        name = None if args.offline else self.cloud_name(args)
        _report(args, package, body, site, name)
        if cloud and not site.build:
            _say_if_onboarded(cloud, package.vnfd_id)
        return base.OK

    def _cloud(self, args: argparse.Namespace) -> Cloud | None:
        name = self.cloud_name(args)
        if args.offline:
            return None
        if not (name or client.is_named()):
            base.complain(
                "No cloud is asked: neither --os-cloud nor OS_CLOUD or OS_AUTH_URL "
                "names one."
            )
            return None
        with self.status("Asking the cloud …"):
            return client.connect(name)


def _opening(package: demand.Package, cloud: Cloud | None) -> str:
    """What comes, and how to answer."""
    whose = (
        f" The choices are those of the project {cloud.project} at {cloud.auth_url}."
        if cloud
        else ""
    )
    return (
        f"An instantiate request for Tacker's {package.api.name} API, deployment "
        f"flavour {package.flavour.id}.{whose} Enter takes what is in brackets, a "
        "number one of the choices; nothing is sent, and Ctrl-D ends without a file.\n"
    )


def _say_if_onboarded(cloud: Cloud, vnfd_id: str) -> None:
    """Warn that Tacker has a package of this VNFD id."""
    try:
        found = packages.with_vnfd_id(Tacker(cloud), vnfd_id)
    except K8sMgmtError as error:
        complain(
            f"Whether Tacker has the VNFD id {vnfd_id} already is unknown: {error}"
        )
        return
    if found:
        complain(
            f"Tacker has the VNF package {found['id']} of the VNFD id {vnfd_id} "
            "already, and drops another one after its upload. Use that one (leave "
            "out `vnf package` and give this VNFD id), or build this one with "
            "--vnfd-id new."
        )


def _files(args: argparse.Namespace) -> Mapping[str, bytes]:
    """The files of the package, or of the sample that would become one."""
    if args.package:
        return archive.read(args.package)
    args.flavour = args.flavour or "simple"
    api = APIS[args.api]
    source = parts.samples(api)
    known = parts.flavours(source)
    if args.flavour not in known:
        listed = ", ".join(known)
        raise UsageError(f"there is no flavour {args.flavour} (there are: {listed})")
    return parts.collect(args.flavour, source=source, api=api)


def _given(args: argparse.Namespace) -> Given:
    values = {name: getattr(args, name.replace("-", "_")) for name in OPTIONS}
    return Given(
        {name: value for name, value in values.items() if value},
        base.by_name(args.network),
        base.by_name(args.image),
        base.by_name(args.flavor),
        _named("--hot", args.hot),
        {name: _value(text) for name, text in _named("--set", args.set).items()},
        args.literal_secrets,
    )


def _named(option: str, values: Iterable[str]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if not all(name and sign for name, sign, _ in pairs):
        raise UsageError(f"{option} needs NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _value(text: str) -> Any:
    """A value as JSON has it, or a text."""
    try:
        return untrusted.parse_json(text)
    except ValueError:
        return text


def _report(
    args: argparse.Namespace,
    package: demand.Package,
    body: Mapping[str, Any],
    site: Site,
    cloud: str | None,
) -> None:
    """Print what is left to be filled in, and the commands that come next.

    :param cloud: what ``--os-cloud`` has named.
    """
    problems = list(read(body, package.api).problems)
    try:
        find_server = operator_server.unknown
        reader.RequestReader(find_server=find_server).read(body["additionalParams"])
    except ParamError as error:
        problems += error.problems
    problems += [
        f"csar build {option} {'.'.join(place)}: {text}"
        for option, values in site.build.items()
        for value in values
        for place, text in structure.places(dict([_split(value)]))
    ]
    base.show(f"{args.output}: {len(problems) or 'nothing'} left to correct or fill in")
    for problem in problems:
        base.show(f"  {problem}")
    csar = str(args.package or f"{package.flavour.id}.zip")
    named = ["--os-cloud", cloud] if cloud else []
    tacker = ["openstack", *named]
    lcm = [*tacker, *(["--os-tacker-api-version", "2"] if package.api is V2 else [])]
    lines = [
        [base.PROGRAM, "csar", "check", csar, "--request", args.output],
        [base.PROGRAM, "preflight", args.output, "--package", csar, "--cloud", *named],
        [*tacker, "vnf", "package", "create"],
        [*tacker, "vnf", "package", "upload", "--path", csar, "PACKAGE_ID"],
        [
            *(*tacker, "vnf", "package", "show", "PACKAGE_ID"),
            *("-c", "Onboarding State", "-c", "VNFD ID"),
        ],
        [*lcm, "vnflcm", "create", "VNFD_ID", "--name", args.name or interview.UNNAMED],
        [*lcm, "vnflcm", "instantiate", "VNF_INSTANCE_ID", args.output],
        [base.PROGRAM, "runs", "follow", "VNF_INSTANCE_ID", "--wait", "600"],
    ]
    if args.package is None or site.build:
        api = ["--api", package.api.name] if package.api is V2 else []
        built = [base.PROGRAM, "csar", "build", package.flavour.id, "-o", csar, *api]
        built += ["--force"] if Path(csar).exists() else []
        for option, values in site.build.items():
            built += [word for value in values for word in (option, value)]
        lines.insert(0, built)
    base.show("next:")
    for line in lines:
        base.show(f"  {shlex.join(line)}")


def _split(value: str) -> tuple[str, str]:
    """``VDU=NAME`` in two, or nothing and a name."""
    before, mark, after = value.partition(structure.BEGINNING)
    return before.rstrip("="), f"{mark}{after}"
