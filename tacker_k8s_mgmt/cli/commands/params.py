"""``tacker-k8s-mgmt params``: request parameters, before they are sent."""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
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
        "tell every problem of a request, or how it is understood; never a secret",
        EXAMPLES["check"],
    )
    add_request(verb)
    verb.add_argument(
        "--json", action="store_true", help="the findings as one JSON object"
    )


def add_request(verb: argparse.ArgumentParser) -> None:
    """Add the arguments that :func:`given` reads."""
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
class Given:
    """The parameters that a command was given.

    :param found: None when there are problems, or no parameters to look at.
    :param absent: why a request without problems has no parameters, "" where it has.
    """

    name: str
    found: InstallParams | None
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    absent: str = ""


def given(
    args: argparse.Namespace,
    amended: Callable[[Request], Request] | None = None,
    resolver: Resolver | None = None,
) -> Given:
    """Read and check what the command line names.

    :param amended: what to do with the request before it is checked.
    :param resolver: tells secrets that are given by reference.
    :raises UsageError: it cannot be read, or is not what it should be.
    """
    if documents.STDIN == args.request == args.stored:
        raise UsageError("only one of the two can come from standard input")
    document = documents.load(args.request)
    warnings = list(document.warnings)
    asked = _request(document)
    if amended:
        asked = amended(asked)
    stored = None
    if args.stored:
        before = documents.load(args.stored)
        warnings += before.warnings
        stored = _request(before)
    _refuse_order(document.name, asked, stored)
    problems = [*asked.problems, *(stored.problems if stored else ())]
    absent = _absent(asked, stored)
    found = None
    try:
        found = None if absent else _parsed(asked, stored, resolver)
    except ParamError as error:
        problems += error.problems
    else:
        warnings += found.warnings if found else ()
        problems += [] if found or absent else [_nothing(stored or asked)]
    return Given(
        document.name,
        None if problems else found,
        tuple(problems),
        tuple(warnings),
        absent,
    )


def _refuse_order(name: str, asked: Request, stored: Request | None) -> None:
    """See that the requests can come after each other.

    :raises UsageError: they cannot, or the first one is missing.
    """
    if asked.is_later and asked.concerns_us and stored is None:
        raise UsageError(
            f"{name} is a {asked.operation} request, which changes parameters "
            "of the instantiation; give that with --stored INSTANTIATE.json"
        )
    if stored is None:
        return
    if asked.operation in (request.CREATE, request.INSTANTIATE):
        raise UsageError(
            f"{name}: --stored is for requests that come after an instantiation, and "
            f"it is a request to {asked.operation}"
        )
    if stored.operation not in ("", request.INSTANTIATE):
        raise UsageError(
            f"--stored: it is a {stored.operation} request, not an instantiate request"
        )


def _absent(asked: Request, stored: Request | None) -> str:
    """Why a request may have no parameters; "" where there have to be some."""
    if asked.operation == request.CREATE:
        return "A create request has no parameters of the driver."
    if asked.is_later and stored is None:
        return (
            f"The {asked.operation} request has no {params.ATTRIBUTE} and changes no "
            "parameters; with --stored INSTANTIATE.json they are shown."
        )
    return ""


def _request(document: documents.Document) -> Request:
    try:
        return request.read(document.value)
    except ValueError as error:
        raise UsageError(f"{document.name}: {error}") from error


def _parsed(
    asked: Request, stored: Request | None, resolver: Resolver | None
) -> InstallParams | None:
    if stored is None:
        return params.parse(asked.additional_params, resolver)
    return params.merged(
        stored.additional_params,
        asked.additional_params,
        resolver,
        upgrade=asked.may_upgrade,
    )


def _nothing(asked: Request) -> str:
    named = ", ".join(asked.additional_params) or "nothing"
    return (
        f"additionalParams: there is no {params.ATTRIBUTE} (there is: {named}), so the "
        "driver does nothing with the VMs"
    )


def _check(args: argparse.Namespace) -> int:
    found = given(args)
    if args.json:
        print(json.dumps(_as_json(found), indent=2))
    else:
        tell(found)
        if found.found:
            _summarise(masking.masked(found.found))
        elif found.absent:
            print(found.absent)
    return common.PROBLEMS if found.problems else common.OK


def tell(found: Given) -> None:
    """Print the problems and warnings, one per line."""
    counts = _counted(len(found.problems), "problem")
    if found.warnings:
        counts += f", {_counted(len(found.warnings), 'warning')}"
    print(f"{found.name}: {counts}")
    for problem in found.problems:
        print(f"problem: {problem}")
    for warning in found.warnings:
        print(f"warning: {warning}")


def _counted(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True)
class _Entry:
    """One attribute as it is understood.

    :param is_secret: whether the value is the reference to a secret.
    """

    name: str
    value: Any
    is_default: bool
    is_secret: bool = False

    @property
    def note(self) -> str:
        """What there is to say about the value."""
        if self.is_secret:
            return f"  ({RESOLVED_LATER})"
        return "  (default)" if self.is_default and self.value is not None else ""


def _summarise(shown: InstallParams) -> None:
    print("\nUnderstood as:")
    entries = _understood(shown)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        value = "(not given)" if entry.value is None else _words(entry.value)
        print(f"  {entry.name:<{width}}  {value}{entry.note}")


def _understood(shown: InstallParams) -> list[_Entry]:
    """Every attribute, with references in the place of secrets."""
    given = {".".join(use.location): use.reference for use in shown.references}
    return [
        replace(entry, value=given[entry.name].as_given(), is_secret=True)
        if entry.name in given
        else entry
        for entry in _entries(shown)
    ]


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _entries(model: BaseModel, prefix: str = "") -> Iterator[_Entry]:
    """Every attribute by its dotted name, depth first."""
    for name, info in type(model).model_fields.items():
        if info.exclude:
            continue
        dotted = f"{prefix}{info.alias or name}"
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _entries(value, f"{dotted}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            for number, item in enumerate(value):
                yield from _entries(item, f"{dotted}.{number}.")
        else:
            yield _Entry(dotted, _plain(value), name not in model.model_fields_set)


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()  # masked before
    if isinstance(value, IPv4Network | IPv6Network):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _as_json(found: Given) -> dict[str, Any]:
    entries = _understood(masking.masked(found.found)) if found.found else []
    return {
        "request": found.name,
        "problems": found.problems,
        "warnings": found.warnings,
        "parameters": {entry.name: entry.value for entry in entries},
        "defaults": _names(entry for entry in entries if entry.is_default),
    }


def _names(entries: Iterable[_Entry]) -> list[str]:
    return [entry.name for entry in entries]
