"""``tacker-k8s-mgmt params``: check request parameters before they are sent."""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from pydantic import BaseModel, SecretStr

from tacker_k8s_mgmt.cli import common, documents, masking
from tacker_k8s_mgmt.cli.common import UsageError
from tacker_k8s_mgmt.csar import request
from tacker_k8s_mgmt.csar.request import Request
from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.request import params
from tacker_k8s_mgmt.request.params import InstallParams
from tacker_k8s_mgmt.request.secret_references import Resolver

NAME = "params"
EXAMPLES = {
    "check": (
        "tacker-k8s-mgmt params check instantiate.json",
        "tacker-k8s-mgmt params check - --json <instantiate.json",
        "tacker-k8s-mgmt params check heal.json --stored instantiate.json",
    ),
}
RESOLVED_LATER = "resolved when a hook begins"


def add_parser(subparsers: Any) -> None:
    """Add the group to the command line."""
    verbs = common.add_group(
        subparsers, NAME, "check request parameters before they are sent", EXAMPLES
    )
    verb = common.add_verb(
        verbs,
        "check",
        _check,
        "list every problem of a request, or how it is understood; never a secret",
        EXAMPLES["check"],
    )
    add_request(verb)
    common.add_json(verb, "the findings")


def add_request(verb: argparse.ArgumentParser) -> None:
    """Add the arguments of :func:`read_request`."""
    verb.add_argument(
        "request",
        metavar="REQUEST.json",
        help="a request body, its additionalParams, or k8s_cluster_installation_param "
        "alone; - reads standard input",
    )
    verb.add_argument(
        "--stored",
        metavar="INSTANTIATE.json",
        help="the instantiate request of the VNF that a later request is for",
    )


@dataclass(frozen=True)
class CheckedRequest:
    """The request of a command line, and its parameters.

    :param params: None if there are problems or no parameters.
    :param absent: why a request without problems has no parameters, "" if it has.
    """

    name: str
    params: InstallParams | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    absent: str = ""


def read_request(
    args: argparse.Namespace,
    amend: Callable[[Request], Request] | None = None,
    resolver: Resolver | None = None,
) -> CheckedRequest:
    """Read and check the request of the command line.

    :param amend: changes the request before it is checked.
    :param resolver: resolves secrets that are given by reference.
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
    problems = [*body.problems, *(stored.problems if stored else ())]
    absent = _absent(body, stored)
    parsed = None
    try:
        parsed = None if absent else _parsed(body, stored, resolver)
    except ParamError as error:
        problems += error.problems
    else:
        warnings += parsed.warnings if parsed else ()
        problems += [] if parsed or absent else [_nothing(stored or body)]
    parsed = None if problems else parsed
    return CheckedRequest(
        document.name, parsed, tuple(problems), tuple(warnings), absent
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
    body: Request, stored: Request | None, resolver: Resolver | None
) -> InstallParams | None:
    if stored is None:
        return params.parse(body.additional_params, resolver)
    return params.merged(
        stored.additional_params,
        body.additional_params,
        resolver,
        upgrade=body.may_upgrade,
    )


def _nothing(body: Request) -> str:
    names = ", ".join(body.additional_params) or "nothing"
    return (
        f"additionalParams: there is no {params.ATTRIBUTE} (there is: {names}), so the "
        "driver does nothing with the VMs"
    )


def _check(args: argparse.Namespace) -> int:
    checked = read_request(args)
    entries = _entries(masking.masked(checked.params)) if checked.params else []
    if args.json:
        print(json.dumps(_document(checked, entries), indent=2))
    else:
        print_findings(checked)
        if entries:
            _summarise(entries)
        elif checked.absent:
            print(checked.absent)
    return common.PROBLEMS if checked.problems else common.OK


def print_findings(checked: CheckedRequest) -> None:
    """Print the problems and warnings, one per line."""
    counts = _counted(len(checked.problems), "problem")
    if checked.warnings:
        counts += f", {_counted(len(checked.warnings), 'warning')}"
    print(f"{checked.name}: {counts}")
    for problem in checked.problems:
        print(f"problem: {problem}")
    for warning in checked.warnings:
        print(f"warning: {warning}")


def _counted(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class _Entry:
    """One attribute as it is understood.

    :param is_secret: whether the value is a reference to a secret.
    """

    name: str
    value: Any
    is_default: bool
    is_secret: bool = False


def _summarise(entries: Sequence[_Entry]) -> None:
    print("\nUnderstood as:")
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        value, note = entry.value, ""
        if entry.is_secret:
            note = f"  ({RESOLVED_LATER})"
        elif value is None:
            value = "(not given)"
        elif entry.is_default:
            note = "  (default)"
        text = value if isinstance(value, str) else json.dumps(value)
        print(f"  {entry.name:<{width}}  {text}{note}")


def _entries(shown: InstallParams) -> list[_Entry]:
    """Every attribute, with references in place of secrets."""
    references = {".".join(use.location): use.reference for use in shown.references}
    return [
        _Entry(name, references[name].as_given(), is_default, is_secret=True)
        if name in references
        else _Entry(name, value, is_default)
        for name, value, is_default in _attributes(shown)
    ]


def _attributes(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Dotted name, value, and whether it is the default; depth first."""
    for name, info in type(model).model_fields.items():
        if info.exclude:
            continue
        dotted = f"{prefix}{info.alias or name}"
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _attributes(value, f"{dotted}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for number, item in enumerate(value):
                yield from _attributes(item, f"{dotted}.{number}.")
        else:
            yield dotted, _plain(value), name not in model.model_fields_set


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()  # already masked
    if isinstance(value, IPv4Network | IPv6Network):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _document(checked: CheckedRequest, entries: Sequence[_Entry]) -> dict[str, Any]:
    return {
        "request": checked.name,
        "problems": checked.problems,
        "warnings": checked.warnings,
        "parameters": {entry.name: entry.value for entry in entries},
        "defaults": [entry.name for entry in entries if entry.is_default],
    }
