# SPDX-License-Identifier: Apache-2.0
"""Requests against a package: what would fail once Tacker and Heat are at work."""

import ast
import difflib
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from tacker_k8s_mgmt.errors import ParamError
from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, parse_yaml, sequence
from tacker_k8s_mgmt.request import operator_server, profiles, reader
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.request.registries import certificate_problems
from tacker_k8s_mgmt.tools.csar import hot, stack_preview, vnfd
from tacker_k8s_mgmt.tools.csar.body import (
    ATTRIBUTES,
    CHANGE_EXT_CONN,
    CHANGE_VNFPKG,
    CREATE,
    INSTANTIATE,
    SCALE,
    Request,
    external_cps,
)
from tacker_k8s_mgmt.tools.csar.tacker_api import V1, V2, Api
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.heat_stack import as_named

#: The Base HOT's parameter for what extVirtualLinks does not connect.
_NETWORK = "public_network"


@dataclass(frozen=True)
class Contents:
    """The contents of a package that requests are checked against.

    :param descriptor_id: of the VNFD; "" if it could not be read.
    :param bases: the Base HOT of each flavour that has a usable one.
    :param api: Tacker's API that the package is for.
    """

    files: Mapping[str, bytes]
    descriptor_id: str
    flavours: Mapping[str, vnfd.Flavour]
    bases: Mapping[str, base_hot.BaseHot]
    api: Api = V1


@dataclass
class Findings:
    """Errors in a request, and what is valid but unusual."""

    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def findings(
    request: Request, contents: Contents, stored: Request | None = None
) -> Findings:
    """Check a request against a package.

    :param stored: the instantiate request that a scale or heal request comes after.
    """
    result = Findings(list(request.problems))
    if request.operation in (CREATE, CHANGE_VNFPKG):
        result.problems += _create(request, contents)
    if request.operation == INSTANTIATE:
        _instantiate(request, contents, result)
    if request.operation == SCALE:
        result.problems += _scale(request, contents, stored)
    if request.operation == CHANGE_EXT_CONN:
        result.problems += _reconnected(request, contents)
        if reader.PATH in request.additional_params:
            result.problems += _user_data(request, contents)
    if request.operation == CHANGE_VNFPKG:
        result.problems += _upgrade(request, contents)
    if request.operation not in (CREATE, INSTANTIATE):
        _override(request, contents, stored, result)
    return result


def _upgrade(request: Request, contents: Contents) -> Iterator[str]:
    """As the hook decides about a change of package."""
    yield from reader.package_change_problems(request.additional_params)
    if reader.path(request.additional_params):
        yield from _user_data(request, contents)


def _create(request: Request, contents: Contents) -> Iterator[str]:
    vnfd_id = str(request.body.get("vnfdId"))
    if contents.descriptor_id and vnfd_id.lower() != contents.descriptor_id.lower():
        yield f"vnfdId: the package's descriptor_id is {contents.descriptor_id}"


def _instantiate(request: Request, contents: Contents, result: Findings) -> None:
    flavour = contents.flavours.get(str(request.body.get("flavourId")))
    if flavour is None:
        result.problems.append(_unknown("flavourId", "flavour", contents.flavours))
        # The only one must be meant, so the rest is checked against it.
        if len(contents.flavours) == 1:
            (flavour,) = contents.flavours.values()
    base = contents.bases.get(flavour.id) if flavour else None
    if flavour is not None:
        result.problems += _level(request, flavour)
        result.problems += _links(request, flavour, base)
        result.warnings += _link_ports(request)
    if base is not None:
        result.problems += _required(request, base)
        result.problems += _refused(request, base)
        if contents.api is V1:
            result.problems += _unkept(request, base)
            if flavour is not None:
                result.problems += _different(request, flavour, base)
    result.problems += _user_data(request, contents)
    if not request.concerns_us:
        result.problems.append(
            f"additionalParams: there is no {reader.ATTRIBUTE}, so the driver does "
            "nothing with the VMs"
        )
        return
    try:
        find_profile = profiles.of_package(contents.files)
        parsed = reader.RequestReader(
            find_profile=find_profile, find_server=operator_server.unknown
        ).read(request.additional_params)
    except ParamError as error:
        result.problems += error.problems
        parsed = stack_preview.reduced(request)
    if parsed is None:
        return
    result.warnings += parsed.warnings
    result.problems += script(parsed, contents.files)
    result.problems += certificates(parsed, contents.files)
    result.problems += applications(parsed, contents.files)
    if flavour is not None and base is not None:
        parsed = as_named(parsed, base.names)
        look = stack_preview.StackPreview(request, parsed, flavour, base)
        result.problems += look.problems()
        result.warnings += look.warnings()
        result.warnings += stack_preview.of_request(
            base, request.additional_params, parsed
        )
        result.warnings += _unused(request, base)


def _required(request: Request, base: base_hot.BaseHot) -> Iterator[str]:
    for name in base.required:
        if not request.additional_params.get(name):
            yield (
                f"additionalParams.{name}: is missing: the Base HOT's parameter has no "
                "default"
            )


def _different(
    request: Request, flavour: vnfd.Flavour, base: base_hot.BaseHot
) -> Iterator[str]:
    """Parameters with one value for all, where VNFD or request have several."""
    nodes = [flavour.nodes[vdu] for vdu in flavour.of_type(vnfd.VDU)]
    links = map(mapping, sequence(request.body.get("extVirtualLinks")))
    values = {
        "flavor": ("the VNFD", [dig(node, *vnfd.FLAVOR) for node in nodes]),
        "image": ("the VNFD", [dig(node, *vnfd.IMAGE) for node in nodes]),
        _NETWORK: ("extVirtualLinks", [link.get("resourceId") for link in links]),
    }
    for name, (place, named) in values.items():
        schema = base.top.parameters.get(name, {"default": ""})
        several = {str(value) for value in named if value}
        is_given = bool(request.additional_params.get(name)) or "default" in schema
        if len(several) > 1 and not is_given:
            yield (
                f"additionalParams.{name}: is missing: the Base HOT has one for all, "
                f"and {place} has {_listed(several)}"
            )


def _refused(request: Request, base: base_hot.BaseHot) -> Iterator[str]:
    """Values that Heat would refuse."""
    for name, schema in base.top.parameters.items():
        if name in request.additional_params:
            value = request.additional_params[name]
            for why in hot.value_problems(schema, value):
                yield f"additionalParams.{name}: {why}"


def _unkept(request: Request, base: base_hot.BaseHot) -> Iterator[str]:
    """Values that later operations of the v1 API would get otherwise.

    It stores the stack's parameters as Python writes them, and reads that as YAML
    (``openstack.py``, ``create``; ``tacker/vnflcm/utils.py``, ``get_stack_param``).
    """
    for name in base.top.parameters:
        value = request.additional_params.get(name)
        try:
            kept = parse_yaml(str([value])) == [value]
        except yaml.YAMLError:
            kept = False
        if value and not kept:
            yield (
                f"additionalParams.{name}: has lines or quotes that Tacker's v1 API "
                "does not keep for a later heal; make it the default in the package "
                "(csar build --user-data, --parameter)"
            )


def _unknown(attribute: str, kind: str, known: Collection[str]) -> str:
    return f"{attribute}: the package has no such {kind} (it has: {_listed(known)})"


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _suggestion(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _level(request: Request, flavour: vnfd.Flavour) -> Iterator[str]:
    level = request.body.get("instantiationLevelId")
    if level and level not in flavour.levels:
        yield _unknown("instantiationLevelId", "level", flavour.levels)


def _connected(request: Request) -> list[str]:
    return [str(cp.get("cpdId")) for cp in external_cps(request.body)]


def _links(
    request: Request, flavour: vnfd.Flavour, base: base_hot.BaseHot | None
) -> Iterator[str]:
    """``extVirtualLinks`` against the connection points without a link in the VNFD."""
    every, external = flavour.of_type(vnfd.CP), vnfd.external_cps(flavour)
    seen: set[str] = set()
    for cp in _connected(request):
        if cp not in every:
            hint = _suggestion(cp, external)
            yield f"extVirtualLinks: the VNFD has no connection point {cp}{hint}"
        elif cp not in external:
            link = flavour.requirement(cp, "virtual_link")
            yield f"extVirtualLinks: {cp} is connected to {link} by the VNFD"
        elif cp in seen:
            yield f"extVirtualLinks: {cp} is connected twice"
        seen.add(cp)
    own = dig(base.top.parameters if base else {}, _NETWORK, "default")
    if request.additional_params.get(_NETWORK) or own:
        return
    for cp in sorted(external - seen):
        yield f"extVirtualLinks: there is no entry for {cp}"


def _reconnected(request: Request, contents: Contents) -> Iterator[str]:
    """Connection points that are external in no flavour of the package."""
    external = set().union(*map(vnfd.external_cps, contents.flavours.values()))
    for cp in _connected(request):
        if cp not in external:
            yield (
                f"extVirtualLinks: {cp} is no external connection point (there are: "
                f"{_listed(external)})"
            )


def _link_ports(request: Request) -> Iterator[str]:
    for cp in external_cps(request.body):
        configs = cp.get("cpConfig")
        if isinstance(configs, Mapping):
            configs = list(configs.values())
        if any("linkPortId" in mapping(config) for config in sequence(configs)):
            yield (
                f"extVirtualLinks: linkPortId of {cp.get('cpdId')} has no effect "
                "unless the package's user data reads it; the Base HOT makes the ports"
            )


def _user_data(request: Request, contents: Contents) -> Iterator[str]:
    """As Tacker looks for it (v1: ``openstack.py``, ``create``; v2: ``_make_hot``)."""
    path = request.additional_params.get(reader.PATH)
    name = request.additional_params.get(reader.CLASS)
    if contents.api is V2 and path is None and name is None:
        return
    if not isinstance(path, str) or not isinstance(name, str):
        yield (
            f"additionalParams: {reader.PATH} and {reader.CLASS} must be given, "
            "or Tacker does not use the Base HOT"
            if contents.api is V1
            else f"additionalParams: {reader.PATH} and {reader.CLASS} go together"
        )
        return
    content = contents.files.get(posixpath.normpath(path))
    if contents.api is V1 and not _can_be_imported(path):
        yield (
            f"additionalParams.{reader.PATH}: Tacker's v1 API imports {path} as a "
            "module: its name needs .py, and no other dot, and none in its directories"
        )
    elif content is None:
        yield f"additionalParams.{reader.PATH}: the package has no file {path}"
    elif name not in classes(content):
        yield f"additionalParams.{reader.CLASS}: {path} has no class {name}"


def _can_be_imported(path: str) -> bool:
    """Whether the module that Tacker makes of a path is that file.

    (``openstack.py``, ``create``: ``os.path.splitext(path.lstrip('./'))``.)
    """
    module, suffix = posixpath.splitext(path.lstrip("./"))
    normal = posixpath.normpath(path.lstrip("./")) == posixpath.normpath(path)
    return suffix == ".py" and "." not in module and "//" not in module and normal


def classes(source: bytes) -> set[str]:
    """The names of the classes of a Python file; none if it is no Python."""
    tree = untrusted.parse_python(source)
    body = tree.body if tree else ()
    return {node.name for node in body if isinstance(node, ast.ClassDef)}


def script(parsed: ClusterRequest, files: Mapping[str, bytes]) -> Iterator[str]:
    """Problems of the load balancer's script in a package's files."""
    balancer = parsed.load_balancer
    if balancer and (why := balancer.script_problem(files.get(balancer.script_path))):
        yield why


def certificates(parsed: ClusterRequest, files: Mapping[str, bytes]) -> Iterator[str]:
    """Problems of the private registries' certificates in a package's files."""
    return certificate_problems(parsed.private_registries, files.get)


def applications(parsed: ClusterRequest, files: Collection[str]) -> Iterator[str]:
    """Files of applications that a package does not have."""
    for number, app in enumerate(parsed.applications):
        for path in filter(None, (file.path for file in app.files())):
            if not any(name == path or name.startswith(f"{path}/") for name in files):
                yield f"applications.{number}: the VNF package has no {path}"


def _unused(request: Request, base: base_hot.BaseHot) -> Iterator[str]:
    """Names that nothing reads: most likely misspelled."""
    read = {*base.top.parameters, reader.PATH, reader.CLASS, *ATTRIBUTES}
    for name in request.additional_params:
        if name not in read:
            hint = _suggestion(name, read)
            yield f"additionalParams.{name}: nothing reads it{hint}"


def _scale(
    request: Request, contents: Contents, stored: Request | None
) -> Iterator[str]:
    chosen = contents.flavours.get(str(stored.body.get("flavourId")) if stored else "")
    flavours = (chosen,) if chosen else contents.flavours.values()
    aspects = {k: v for flavour in flavours for k, v in flavour.aspects.items()}
    aspect = str(request.body.get("aspectId"))
    if aspect not in aspects:
        yield _unknown("aspectId", "scaling aspect", aspects)
        return
    most = dig(aspects[aspect], "max_scale_level")
    steps = request.body.get("numberOfSteps", 1)
    if isinstance(most, int) and isinstance(steps, int) and not 0 < steps <= most:
        yield f"numberOfSteps: it must be from 1 to the max_scale_level, {most}"


def _override(
    request: Request, contents: Contents, stored: Request | None, result: Findings
) -> None:
    """The parameters that a later request changes."""
    if not request.concerns_us:
        return
    if stored is None:
        result.warnings.append(
            f"additionalParams.{reader.ATTRIBUTE}: it was not checked; give the "
            "instantiate request that it changes as well"
        )
        return
    try:
        merged = reader.RequestReader(
            find_profile=profiles.of_package(contents.files),
            find_server=operator_server.unknown,
        ).update(
            stored.additional_params,
            request.additional_params,
            upgrade=request.may_upgrade,
        )
    except ParamError as error:
        result.problems += error.problems
        return
    if merged is not None:
        result.problems += script(merged, contents.files)
        result.problems += certificates(merged, contents.files)
        result.warnings += merged.warnings
