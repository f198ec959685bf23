# SPDX-License-Identifier: Apache-2.0
"""What a command line gives: request, profile, passwords and VMs, read and checked.

JSON that an operator has written is read here; no error message quotes the text, which
may hold passwords. Passwords that a request lacks are asked on the terminal. The
problems of the request are printed, and what its profile has given.

Parameters are masked for the screen. ``text.py`` replaces the texts of secrets in log
lines; here the values themselves are masked, so short secrets are, too, and nothing
else changes. Of free-form variables rather too much is masked.

VMs for a preview come from a file, or are assumed at addresses for documentation. The
driver's own search finds them in a stack as Heat would describe it.
"""

import argparse
import copy
import dataclasses
import getpass
import itertools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
)

from tacker_k8s_mgmt import files
from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model import network_plugins, untrusted
from tacker_k8s_mgmt.model.nodes import ROLES, Machine, Role
from tacker_k8s_mgmt.request import fields, operator_server, profiles, reader, secrets
from tacker_k8s_mgmt.request.applications import Application, SourceFile
from tacker_k8s_mgmt.request.cross_checks import LOGINS
from tacker_k8s_mgmt.request.profile_document import (
    LARGEST,
    SUFFIX,
    InvalidProfile,
    Profile,
    ResolvedProfile,
    Source,
)
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.secrets import Place, Reference, Resolver
from tacker_k8s_mgmt.request.structure import camel
from tacker_k8s_mgmt.tools.cli import base
from tacker_k8s_mgmt.tools.cli.base import UsageError
from tacker_k8s_mgmt.tools.csar.body import CREATE, INSTANTIATE, Request, read
from tacker_k8s_mgmt.tools.csar.stack_preview import SERVER, complete, port
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.heat_stack import (
    Machines,
    VmSelector,
    find_machines,
    vm_selectors,
)
from tacker_k8s_mgmt.topology.stack_resources import StackResource


def add_profiles(parser: argparse.ArgumentParser, default: str = "none") -> None:
    """Add the option for a directory of profiles.

    :param default: what is taken without it, for the help.
    """
    parser.add_argument(
        "--profiles",
        metavar="DIR",
        help="the directory with NAME.yaml of the profile that the request names, "
        f"unless it is the driver's own (default: {default})",
    )


def source(directory: str | None) -> Source:
    """The profiles in a directory, and the driver's own.

    :param directory: None: only the driver's own.
    """
    return partial(_found, Path(directory)) if directory else _built_in


def _built_in(name: str) -> Profile:
    try:
        return profiles.built_in(name)
    except InvalidProfile as error:
        text = "; --profiles DIR names a directory with others"
        raise InvalidProfile(
            [f"{problem}{text}" for problem in error.problems]
        ) from None


def _found(directory: Path, name: str) -> Profile:
    path = directory / f"{name}{SUFFIX}"
    return profiles.chosen(name, {str(path): partial(_content, path)})


def _content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidProfile([f"cannot be read: {error.strerror}"]) from None


def note(expansion: ResolvedProfile | None, name: str) -> str:
    """What a profile has to do with an attribute; "" for nothing.

    :param name: its dotted name.
    """
    if expansion is None:
        return ""
    place = tuple(name.split("."))
    profile = f"profile {expansion.profile.name}"
    if expansion.has_given(place):
        return profile
    if place in expansion.replaced:
        value = _value_text(expansion.replaced[place])
        return f"in place of {value} of the {profile}"
    inner = {one[: len(place)] for one in (*expansion.places, *expansion.replaced)}
    return f"with values of the {profile}" if place in inner else ""


def document(expansion: ResolvedProfile | None) -> Mapping[str, Any] | None:
    """The same of all attributes, for programs; None without a profile."""
    if expansion is None:
        return None
    return {
        "name": expansion.profile.name,
        "source": expansion.profile.source,
        "given": _dotted(expansion.places),
        "replaced": _dotted(expansion.replaced),
    }


def show(expansion: ResolvedProfile | None) -> None:
    """Print what a profile has given, and what of it the request replaces."""
    if expansion is None:
        return
    base.show(f"profile: {expansion.profile.name}, {expansion.profile.source}")
    for name, value in _dotted(expansion.places).items():
        base.show(f"  {name}: {_value_text(value)}")
    for name, value in _dotted(expansion.replaced).items():
        base.show(f"  {name}: not {_value_text(value)}, which the request replaces")


def _dotted(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    return {".".join(place): _plain(value) for place, value in sorted(values.items())}


def _value_text(value: Any) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _plain(value: Any) -> Any:
    """A value with references as they are given."""
    if isinstance(value, Reference):
        return value.as_given()
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


#: In place of a file: standard input, or standard output.
STANDARD_STREAM = "-"


@dataclass(frozen=True)
class Document:
    """A JSON document.

    :param name: its name in messages.
    :param warnings: repeated keys, whose first values are lost.
    """

    name: str
    value: Any
    warnings: tuple[str, ...]


def load(path: str) -> Document:
    """The JSON document in a file, or on standard input for ``-``.

    :raises UsageError: it cannot be read, or is no JSON.
    """
    name = "standard input" if path == STANDARD_STREAM else path
    twice: list[str] = []

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [key for key, _ in pairs]
        twice.extend(dict.fromkeys(key for key in names if names.count(key) > 1))
        return dict(pairs)

    try:
        value = untrusted.parse_json(_read_text(path), pairs=mapping)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise UsageError(f"{name} is no JSON: {place}: {error.msg}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no text in UTF-8") from None
    except ValueError as error:
        raise UsageError(f"{name} is no JSON that can be read: {error}") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {files.reason(error)}") from error
    warnings = (
        f"{key!r} is given twice in one object; the last one counts" for key in twice
    )
    return Document(name, value, tuple(warnings))


def _read_text(path: str) -> str:
    if path == STANDARD_STREAM:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    with open(path, encoding="utf-8-sig") as file:
        return file.read()


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
    add_profiles(parser)


@dataclass(frozen=True)
class CheckedRequest:
    """The request of a command line, and its parameters.

    :param body: the request itself.
    :param params: None if there are problems or no parameters.
    :param absent: why a request without problems has no parameters, "" if it has.
    """

    name: str
    body: Request
    params: ClusterRequest | None
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
    if STANDARD_STREAM == args.request == args.stored:
        raise UsageError("only one of the two can come from standard input")
    document = load(args.request)
    warnings = list(document.warnings)
    body = _request(document)
    if amend:
        body = amend(body)
    stored = None
    if args.stored:
        before = load(args.stored)
        warnings += before.warnings
        stored = _request(before)
    _refuse_order(document.name, body, stored)
    warnings += body.warnings
    problems = [*body.problems, *(stored.problems if stored else ())]
    absent = _absent(body, stored)
    parsed = None
    request_reader = reader.RequestReader(
        resolver,
        find_profile=source(args.profiles or profiles),
        find_server=find_server,
    )
    try:
        parsed = None if absent else _parsed(body, stored, request_reader)
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
    elif body.operation in (CREATE, INSTANTIATE):
        raise UsageError(
            f"{name}: --stored is for requests that come after an instantiation, and "
            f"it is a request to {body.operation}"
        )
    elif stored.operation not in ("", INSTANTIATE):
        raise UsageError(
            f"--stored: it is a {stored.operation} request, not an instantiate request"
        )


def _absent(body: Request, stored: Request | None) -> str:
    """Why a request may have no parameters; "" if it must have some."""
    if body.operation == CREATE:
        return "A create request has no parameters of the driver."
    if body.is_later and stored is None:
        return (
            f"The {body.operation} request has no {reader.ATTRIBUTE} and changes no "
            "parameters; with --stored INSTANTIATE.json they are shown."
        )
    return ""


def _request(document: Document) -> Request:
    try:
        return read(document.value)
    except ValueError as error:
        raise UsageError(f"{document.name}: {error}") from error


def _parsed(
    body: Request, stored: Request | None, request_reader: reader.RequestReader
) -> ClusterRequest | None:
    params = body.additional_params
    if stored is None:
        return request_reader.read(params)
    before = stored.additional_params
    return request_reader.update(before, params, upgrade=body.may_upgrade)


def _nothing(body: Request) -> str:
    names = ", ".join(body.additional_params) or "nothing"
    return (
        f"additionalParams: there is no {reader.ATTRIBUTE} (there is: {names}), so the "
        "driver does nothing with the VMs"
    )


def print_findings(checked: CheckedRequest) -> None:
    """Print the problems and warnings, one per line."""
    counts = _counted(len(checked.problems), "problem")
    if checked.warnings:
        counts += f", {_counted(len(checked.warnings), 'warning')}"
    base.show(f"{checked.name}: {counts}")
    for problem in checked.problems:
        base.show(f"problem: {problem}")
    for warning in checked.warnings:
        base.show(f"warning: {warning}")


def _counted(number: int, word: str) -> str:
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


def completed(request: Request) -> Request:
    """The request with a password in each login that has neither one nor a key.

    Those in Barbican, which is not reached from here, are asked for as well.

    :raises UsageError: there is no terminal to ask on.
    """
    installation = copy.deepcopy(dict(request.installation))
    for name, prefix in LOGINS:
        login = installation.get(_written(installation, name))
        if isinstance(login, dict) and not _has(login, prefix):
            user = login.get(_written(login, f"{prefix}username"), "?")
            login[_written(login, f"{prefix}password")] = _ask(f"{name}, user {user}")
    values = dict(request.additional_params)
    values[_written(values, reader.ATTRIBUTE)] = installation
    body = {**request.body, "additionalParams": values}
    return dataclasses.replace(request, body=body)


def _written(structure: Mapping[str, Any], name: str) -> str:
    """The spelling of an attribute in a structure; the specification's if absent."""
    other = camel(name)
    return other if other in structure and name not in structure else name


def _has(login: Mapping[str, Any], prefix: str) -> bool:
    names = (f"{prefix}password", f"{prefix}private_key")
    return any(_is_usable(login.get(_written(login, name))) for name in names)


def _is_usable(value: Any) -> bool:
    if isinstance(value, Mapping) and value.keys() & {"secret_ref", "secretRef"}:
        return False
    return fields.blank_is_absent(value) is not None


def _ask(login: str) -> str:
    try:
        with warnings.catch_warnings():
            # Without a terminal getpass reads standard input and echoes it.
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(f"Password of {login}: ")
    except getpass.GetPassWarning:
        raise UsageError(
            f"there is no terminal to ask for the password of {login}"
        ) from None
    except EOFError:
        raise UsageError(f"the input ended at the password of {login}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the password of {login} is no text in UTF-8") from None


def masked(params: ClusterRequest, *, but_keys: bool = False) -> ClusterRequest:
    """A copy with stars in place of every secret.

    A proxy keeps its host, a private key that is a path stays one, and a URL of an
    application loses its query.

    :param but_keys: whether private keys stay unmasked.
    """

    def shown(place: Place, secret: Any) -> Any:
        is_key = but_keys and place.form.by_path
        is_named = place.is_variable and secrets.is_reference(secret)
        return secret if is_key or is_named else place.form.masked(secret)

    copy = secrets.changed(ClusterRequest, params, shown, whole=True)
    apps = tuple(map(_without_queries, copy.applications))
    # Unchanged values are not in the update: they still count as defaults.
    return copy.model_copy(update={"applications": apps} if apps else {})


def _without_queries(app: Application) -> Application:
    """An application, whose URLs have no query, which may hold a token."""

    def shown(file: SourceFile) -> SourceFile:
        url = untrusted.shown(file.url or "")
        return file.model_copy(update={"url": url}) if url else file

    found = {
        "chart": shown(app.chart) if app.chart else None,
        "manifests": tuple(map(shown, app.manifests)),
    }
    return app.model_copy(update={name: one for name, one in found.items() if one})


#: For SSH and in the cluster: RFC 5737 and RFC 3849.
_EXAMPLES = {
    "ipv4": (
        network_plugins.network("192.0.2.0/24"),
        network_plugins.network("198.51.100.0/24"),
    ),
    "ipv6": (
        network_plugins.network("2001:db8::/64"),
        network_plugins.network("2001:db8:1::/64"),
    ),
}
_FIRST = 11
_MOST = 240


def _address(value: Any) -> str:
    return str(network_plugins.address(value))


class _Vm(BaseModel):
    """One VM of a file; the id and a second address are optional."""

    model_config = ConfigDict(extra="forbid")

    role: Role
    aspect_id: str = ""
    ssh_address: Annotated[str, BeforeValidator(_address)]
    address: Annotated[str, BeforeValidator(_address)] | None = None
    server_id: str = ""


def _read(path: str) -> tuple[str, list[Machine]]:
    document = load(path)
    try:
        vms = TypeAdapter(list[_Vm]).validate_python(document.value)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {detail['msg']}"
            for detail in error.errors(include_url=False)
        )
        raise UsageError(
            f"{document.name} does not list machines: {problems}"
        ) from error
    return document.name, [
        Machine(
            vm.role,
            vm.server_id or _server_id(number),
            vm.ssh_address,
            vm.address or vm.ssh_address,
            vm.aspect_id,
        )
        for number, vm in enumerate(vms, 1)
    ]


def listed(path: str, params: ClusterRequest) -> list[Machine]:
    """The VMs of a JSON file, for a cluster with these parameters.

    :raises UsageError: it cannot be read, or its VMs do not fit the parameters.
    """
    name, machines = _read(path)
    known = _aspects(params)
    for number, machine in enumerate(machines):
        role, aspect_id = machine.role, machine.aspect_id
        parameter = ROLES[role].parameter
        if role not in known:
            raise UsageError(
                f"{name} has a {role.value}, and the request no {parameter}"
            )
        if aspect_id and aspect_id not in known[role]:
            raise UsageError(
                f"{name} has the aspect_id {aspect_id}, and the "
                f"request no such aspect in {parameter}.aspects"
            )
        if aspect_id not in known[role]:
            machines[number] = replace(machine, aspect_id=known[role][0])
    return machines


def assumed(params: ClusterRequest, control_planes: int, workers: int) -> list[Machine]:
    """Example VMs, one of each further role that the parameters have.

    :raises UsageError: there are more VMs than example addresses.
    """
    numbers = {Role.CONTROL_PLANE: control_planes, Role.WORKER: workers}
    roles = [role for role in params.vms for _ in range(numbers.get(role, 1))]
    if len(roles) > _MOST:
        raise UsageError(f"there are addresses for {_MOST} VMs; give --machines FILE")
    outside, inside = _EXAMPLES[params.address_family]
    aspects = {role: itertools.cycle(ids) for role, ids in _aspects(params).items()}
    selectors = {_place_of(selector): selector for selector in vm_selectors(params)}
    machines = []
    for number, role in enumerate(roles):
        aspect_id = next(aspects[role])
        selector = selectors[role, aspect_id]
        network = outside if selector.ssh_cp == selector.nic_cp else inside
        addresses = str(outside[_FIRST + number]), str(network[_FIRST + number])
        machines.append(Machine(role, _server_id(number + 1), *addresses, aspect_id))
    return machines


def _aspects(params: ClusterRequest) -> Mapping[Role, Sequence[str]]:
    """The possible ``aspect_id`` by role; "" stands for that of the structure."""
    found: dict[Role, list[str]] = {}
    for role, aspect_id in map(_place_of, vm_selectors(params)):
        found.setdefault(role, []).append(aspect_id)
    return found


def _place_of(selector: VmSelector) -> tuple[Role, str]:
    own = selector.aspect_id if selector.own_labels else None
    return selector.role, own or ""


def _server_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def search(params: ClusterRequest, machines: Sequence[Machine]) -> Machines:
    """The VMs as the driver finds them.

    :raises DiscoveryError: they do not fit the parameters.
    """
    found = find_machines("of these VMs", list(_stack(params, machines)), params)
    found.require_whole()
    return found


def _stack(
    params: ClusterRequest, machines: Sequence[Machine]
) -> Iterator[StackResource]:
    for selector in vm_selectors(params):
        role, aspect_id = place = _place_of(selector)
        group, name = f"{role.value}{aspect_id}", selector.aspect_id or role.value
        yield complete("stack", name, base_hot.GROUP, group, is_stack=True)
        members = [m for m in machines if (m.role, m.aspect_id) == place]
        for number, machine in enumerate(members):
            stack, server_id = f"{group}/{number}", machine.server_id
            yield complete(group, str(number), "vm", stack, is_stack=True)
            yield complete(stack, "server", base_hot.SERVER, server_id, SERVER)
            cps = {
                selector.nic_cp: machine.address,
                selector.ssh_cp: machine.ssh_address,
            }
            for cp, address in cps.items():
                attributes = port(server_id, [address])
                yield complete(stack, cp, base_hot.PORT, f"{stack}/{cp}", attributes)
