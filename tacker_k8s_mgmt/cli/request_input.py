# SPDX-License-Identifier: Apache-2.0
"""The request of a command line: read, checked, and its problems printed."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from tacker_k8s_mgmt.cli import common, documents, profile_input
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar import request
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import operator_server, params
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.profile_values import Source
from tacker_k8s_mgmt.request.secret_references import Resolver

RESOLVED_LATER = "resolved when a hook begins"


def add_request(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of :func:`read_request`."""
    parser.add_argument(
        "request",
        metavar="REQUEST.json",
        help="a request body, its additionalParams, or k8s_cluster_installation_param "
        "alone; - reads standard input",
    )
    parser.add_argument(
        "--stored",
        metavar="INSTANTIATE.json",
        help="the instantiate request of the VNF that a later request is for",
    )
    profile_input.add_profiles(parser)


@dataclass(frozen=True)
class CheckedRequest:
    """The request of a command line, and its parameters.

    :param body: the request itself.
    :param params: None if there are problems or no parameters.
    :param absent: why a request without problems has no parameters, "" if it has.
    """

    name: str
    body: Request
    params: InstallParams | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    absent: str = ""


def read_request(
    args: argparse.Namespace,
    amend: Callable[[Request], Request] | None = None,
    resolver: Resolver | None = None,
    profiles: str | None = None,
    find_server: operator_server.Find = operator_server.unknown,
) -> CheckedRequest:
    """Read and check the request of the command line.

    :param amend: changes the request before it is checked.
    :param resolver: resolves secrets that are given by reference.
    :param profiles: a directory with profiles, without that of the command line.
    :param find_server: finds the operator's Ansible server; without it, one stands for
        what ``tacker.conf`` may have.
    :raises UsageError: it cannot be read, or is not what it should be.
    """
    if documents.STDIN == args.request == args.stored:
        raise UsageError("only one of the two can come from standard input")
    document = documents.load(args.request)
    warnings = list(document.warnings)
    body = _request(document)
    if amend:
        body = amend(body)
    stored = None
    if args.stored:
        before = documents.load(args.stored)
        warnings += before.warnings
        stored = _request(before)
    _refuse_order(document.name, body, stored)
    warnings += body.warnings
    problems = [*body.problems, *(stored.problems if stored else ())]
    absent = _absent(body, stored)
    parsed = None
    find_profile = profile_input.source(args.profiles or profiles)
    try:
        find = (find_profile, find_server)
        parsed = None if absent else _parsed(body, stored, resolver, *find)
    except ParamError as error:
        problems += error.problems
    else:
        warnings += parsed.warnings if parsed else ()
        problems += [] if parsed or absent else [_nothing(stored or body)]
    parsed = None if problems else parsed
    return CheckedRequest(
        document.name, body, parsed, tuple(problems), tuple(warnings), absent
    )


def _refuse_order(name: str, body: Request, stored: Request | None) -> None:
    """Check that the requests can follow each other.

    :raises UsageError: they cannot, or the first one is missing.
    """
    if stored is None:
        if body.is_later and body.concerns_us:
            raise UsageError(
                f"{name} is a {body.operation} request, which changes parameters "
                "of the instantiation; give that with --stored INSTANTIATE.json"
            )
    elif body.operation in (request.CREATE, request.INSTANTIATE):
        raise UsageError(
            f"{name}: --stored is for requests that come after an instantiation, and "
            f"it is a request to {body.operation}"
        )
    elif stored.operation not in ("", request.INSTANTIATE):
        raise UsageError(
            f"--stored: it is a {stored.operation} request, not an instantiate request"
        )


def _absent(body: Request, stored: Request | None) -> str:
    """Why a request may have no parameters; "" if it must have some."""
    if body.operation == request.CREATE:
        return "A create request has no parameters of the driver."
    if body.is_later and stored is None:
        return (
            f"The {body.operation} request has no {params.ATTRIBUTE} and changes no "
            "parameters; with --stored INSTANTIATE.json they are shown."
        )
    return ""


def _request(document: documents.Document) -> Request:
    try:
        return request.read(document.value)
    except ValueError as error:
        raise UsageError(f"{document.name}: {error}") from error


def _parsed(
    body: Request,
    stored: Request | None,
    resolver: Resolver | None,
    find_profile: Source,
    find_server: operator_server.Find,
) -> InstallParams | None:
    if stored is None:
        return params.parse(
            body.additional_params,
            resolver,
            find_profile=find_profile,
            find_server=find_server,
        )
    return params.merged(
        stored.additional_params,
        body.additional_params,
        resolver,
        upgrade=body.may_upgrade,
        find_profile=find_profile,
        find_server=find_server,
    )


def _nothing(body: Request) -> str:
    names = ", ".join(body.additional_params) or "nothing"
    return (
        f"additionalParams: there is no {params.ATTRIBUTE} (there is: {names}), so the "
        "driver does nothing with the VMs"
    )


def print_findings(checked: CheckedRequest) -> None:
    """Print the problems and warnings, one per line."""
    counts = _counted(len(checked.problems), "problem")
    if checked.warnings:
        counts += f", {_counted(len(checked.warnings), 'warning')}"
    common.show(f"{checked.name}: {counts}")
    for problem in checked.problems:
        common.show(f"problem: {problem}")
    for warning in checked.warnings:
        common.show(f"warning: {warning}")


def _counted(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"
