"""VNFD against Base HOT: the one as heat-translator reads it is held against the other.

heat-translator makes a template out of a flavour, with the names that Tacker expects
and with groups and policies for the scaling aspects. Everything in it that Tacker looks
for later must be in the Base HOT under the same name and wired in the same way.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tacker_k8s_mgmt.csar import demands, hot, vnfd
from tacker_k8s_mgmt.csar.tree import dig, mapping, sequence

_SERVER = "OS::Nova::Server"
_PORT = "OS::Neutron::Port"
_NET = "OS::Neutron::Net"
_POLICY = "OS::Heat::ScalingPolicy"
_COMPARED = (_SERVER, _PORT, _NET, hot.GROUP, _POLICY)


@dataclass(frozen=True)
class Resource:
    """A resource with its properties as seen from the top template."""

    type: str
    template: str
    properties: Mapping[str, Any]


def problems(flavour: vnfd.Flavour, base: hot.BaseHot) -> list[str]:
    """Where the Base HOT is not what the VNFD describes."""
    try:
        tosca = vnfd.parse_flavour(flavour)
    except Exception as error:  # tosca-parser raises whatever its dictionaries raise
        said = vnfd.complaints(error, flavour.path.parent)
        return [f"{text} (in {flavour.path.name} alone)" for text in said]
    try:
        wanted = _translated(tosca)
    except Exception as error:  # so does heat-translator
        return [f"heat-translator cannot translate {flavour.path.name}: {error!r}"]
    actual = _resources(base)
    wanted = _without_policies_of_fixed_groups(wanted, actual)
    found: list[str] = []
    for name, want in sorted(wanted.items()):
        if name not in actual:
            found.append(f"{base.top.name}: no {want.type} is named {name}")
        elif not _may_be(want.type, actual[name].type):
            found.append(
                f"{actual[name].template}: {name} is {actual[name].type} "
                f"instead of {want.type}"
            )
        else:
            have = actual[name]
            texts = _differences(name, want.properties, have)
            found += [f"{have.template}: {name} {text}" for text in texts]
    found += [
        f"{have.template}: {name} ({have.type}) is not in the VNFD"
        for name, have in sorted(actual.items())
        if have.type in (_SERVER, _PORT) and name not in wanted
    ]
    return found + _path_problems(flavour, base) + _level_problems(flavour, base)


def _level_problems(flavour: vnfd.Flavour, base: hot.BaseHot) -> list[str]:
    """Numbers of VMs that the Base HOT does not allow, such as four control planes."""
    found = []
    for aspect, vdus in flavour.scaled.items():
        parameter = f"{aspect}_desired_capacity"
        allowed = [
            dig(one, "allowed_values")
            for one in sequence(dig(base.top.parameters, parameter, "constraints"))
            if dig(one, "allowed_values")
        ]
        for level in flavour.levels:
            counts = flavour.instances(level)
            found += [
                f"the level {level} has {counts[vdu]} VMs of {vdu}, and the Base HOT "
                f"allows {' or '.join(map(str, values))} as {parameter}"
                for vdu in vdus
                for values in allowed
                if vdu in counts and counts[vdu] not in values
            ]
    return found


def _may_be(wanted: str, actual: str) -> bool:
    return wanted == actual or (wanted, actual) == (hot.GROUP, hot.FIXED_GROUP)


def _without_policies_of_fixed_groups(
    wanted: Mapping[str, Resource], actual: Mapping[str, Resource]
) -> dict[str, Resource]:
    """What is wanted of a Base HOT whose control planes, say, do not scale.

    Their aspect in the VNFD only tells Tacker how many of them there are.
    """
    fixed = {name for name, have in actual.items() if have.type == hot.FIXED_GROUP}
    return {
        name: want
        for name, want in wanted.items()
        if want.type != _POLICY
        or dig(want.properties, "auto_scaling_group_id", "get_resource") not in fixed
    }


def _path_problems(flavour: vnfd.Flavour, base: hot.BaseHot) -> list[str]:
    """Values that are taken from ``nfv`` but that no user data puts there."""
    filled = {
        ("nfv", "VDU", vdu, key)
        for vdu in flavour.of_type(vnfd.VDU)
        for key in ("flavor", "image")
    } | {
        ("nfv", "CP", cp, key)
        for cp in demands.external_cps(flavour)
        for key in ("network", "fixed_ips")
    }
    return [
        f"{base.top.name}: nobody fills {'.'.join(path)}"
        for path in hot.parameter_paths(dict(base.top.resources))
        if path[0] == "nfv" and path not in filled
    ]


def _translated(tosca: Any) -> dict[str, Resource]:
    from translator.hot.tosca_translator import TOSCATranslator

    translator = TOSCATranslator(tosca, {})
    with vnfd.quiet():
        texts = translator.translate_to_yaml_files_dict("top.yaml")
    trees = {name: yaml.safe_load(text) for name, text in texts.items()}
    templates = {
        name: hot.Template(name, tree.get("parameters") or {}, tree["resources"])
        for name, tree in trees.items()
    }
    top = templates.pop("top.yaml")
    found = _resources(hot.BaseHot(top, templates))
    return {name: r for name, r in found.items() if r.type in _COMPARED}


def _resources(base: hot.BaseHot) -> dict[str, Resource]:
    """Resources of all templates, with the parameters of nested ones filled in."""
    found = dict(_of_template(base.top, {}))
    for definition in base.top.resources.values():
        used = base.use(definition)
        if used is not None and used["type"] in base.nested:
            given = mapping(used.get("properties"))
            found.update(_of_template(base.nested[used["type"]], given))
    return found


def _of_template(
    template: hot.Template, given: Mapping[str, Any]
) -> Iterator[tuple[str, Resource]]:
    for name, definition in template.resources.items():
        properties = hot.filled(mapping(definition.get("properties")), given)
        yield name, Resource(definition["type"], template.name, properties)


def _differences(name: str, want: Mapping[str, Any], have: Resource) -> Iterator[str]:
    compare = {
        _SERVER: _server,
        _PORT: _port,
        hot.GROUP: _group,
        hot.FIXED_GROUP: _count,
        _POLICY: _policy,
    }.get(have.type)
    if compare is not None:
        yield from compare(name, want, have.properties)


def _server(
    name: str, want: Mapping[str, Any], have: Mapping[str, Any]
) -> Iterator[str]:
    ports, wanted = _ports(have), _ports(want)
    if ports != wanted:
        yield f"has the ports {_words(ports)} instead of {_words(wanted)}"
    for key in ("flavor", "image"):
        yield from _from_nfv(key, have, ["nfv", "VDU", name, key])


def _port(name: str, want: Mapping[str, Any], have: Mapping[str, Any]) -> Iterator[str]:
    if want.get("network") is None:  # external: the request names the network
        yield from _from_nfv("network", have, ["nfv", "CP", name, "network"])
    elif have.get("network") != want["network"]:
        yield f"is not on the network {dig(want, 'network', 'get_resource')}"


def _group(
    name: str, want: Mapping[str, Any], have: Mapping[str, Any]
) -> Iterator[str]:
    for key in ("min_size", "max_size"):
        if have.get(key) != want[key]:
            yield f"has the {key} {have.get(key)} instead of {want[key]}"
    yield from _count(name, want, have, "desired_capacity")


def _count(
    name: str, want: Mapping[str, Any], have: Mapping[str, Any], key: str = "count"
) -> Iterator[str]:
    # Tacker fills this parameter from the instantiation level (openstack.py, create).
    parameter = f"{name}_desired_capacity"
    if have.get(key) != {"get_param": parameter}:
        yield f"must take its {key} from the parameter {parameter}"


def _policy(
    name: str, want: Mapping[str, Any], have: Mapping[str, Any]
) -> Iterator[str]:
    for key in ("auto_scaling_group_id", "adjustment_type", "scaling_adjustment"):
        if have.get(key) != want[key]:
            yield f"has the {key} {have.get(key)} instead of {want[key]}"


def _from_nfv(key: str, have: Mapping[str, Any], path: list[str]) -> Iterator[str]:
    if have.get(key) != {"get_param": path}:
        yield f"must take its {key} from the parameter {'.'.join(path)}"


def _ports(properties: Mapping[str, Any]) -> list[str]:
    networks = sequence(properties.get("networks"))
    return [str(dig(entry, "port", "get_resource")) for entry in networks]


def _words(names: list[str]) -> str:
    return ", ".join(names) or "(none)"
