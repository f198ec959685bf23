"""VNFD against Base HOT: the one as heat-translator reads it is held against the other.

heat-translator makes a template out of a flavour, with the names that Tacker expects
and with groups and policies for the scaling aspects. Everything in it that Tacker looks
for later must be in the Base HOT under the same name and wired in the same way.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tacker_k8s_mgmt.csar import hot, vnfd, vnfd_rules
from tacker_k8s_mgmt.csar.api import Api
from tacker_k8s_mgmt.csar.tree import dig, mapping, parse, sequence

_SERVER = "OS::Nova::Server"
_PORT = "OS::Neutron::Port"
_NET = "OS::Neutron::Net"
_POLICY = "OS::Heat::ScalingPolicy"
_POLICY_KEYS = ("auto_scaling_group_id", "adjustment_type", "scaling_adjustment")
_COMPARED = (_SERVER, _PORT, _NET, hot.GROUP, _POLICY)


@dataclass(frozen=True)
class Resource:
    """A resource with its properties as seen from the top template."""

    type: str
    template: str
    properties: Mapping[str, Any]


def problems(flavour: vnfd.Flavour, base: hot.BaseHot, api: Api) -> list[str]:
    """Where the Base HOT is not what the VNFD describes."""
    try:
        tosca = vnfd.parse_flavour(flavour)
    except Exception as error:  # tosca-parser raises whatever its dictionaries raise
        said = vnfd.complaints(error, flavour.path.parent)
        return [f"{text} (in {flavour.path.name} alone)" for text in said]
    try:
        wanted = _translated(tosca, flavour.input_values)
    except Exception as error:  # so does heat-translator
        return [f"heat-translator cannot translate {flavour.path.name}: {error!r}"]
    actual = _resources(base)
    wanted = _without_needless_policies(wanted, actual, api)
    comparison = _Comparison(base, api, flavour)
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
            texts = comparison.differences(name, want.properties, have)
            found += [f"{have.template}: {name} {text}" for text in texts]
    found += [
        f"{have.template}: {name} ({have.type}) is not in the VNFD"
        for name, have in sorted(actual.items())
        if have.type in (_SERVER, _PORT) and name not in wanted
    ]
    found += comparison.unscaled(set(actual) - set(wanted), actual)
    return found + _path_problems(flavour, base, api) + _level_problems(flavour, base)


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


def _without_needless_policies(
    wanted: Mapping[str, Resource], actual: Mapping[str, Resource], api: Api
) -> dict[str, Resource]:
    """What is wanted of a Base HOT whose control planes, say, do not scale.

    Their aspect in the VNFD only tells Tacker how many of them there are.
    """
    if not api.scaling_policies:
        return {name: want for name, want in wanted.items() if want.type != _POLICY}
    fixed = {name for name, have in actual.items() if have.type == hot.FIXED_GROUP}
    return {
        name: want
        for name, want in wanted.items()
        if want.type != _POLICY
        or dig(want.properties, "auto_scaling_group_id", "get_resource") not in fixed
    }


def _path_problems(flavour: vnfd.Flavour, base: hot.BaseHot, api: Api) -> list[str]:
    """Values that are taken from ``nfv`` but that no user data puts there."""
    filled = {
        ("nfv", "VDU", vdu, key)
        for vdu in flavour.of_type(vnfd.VDU)
        for key in api.vdu_keys
    } | {
        ("nfv", "CP", cp, key)
        for cp in vnfd_rules.external_cps(flavour)
        for key in ("network", "fixed_ips")
    }
    return [
        f"{base.top.name}: nobody fills {'.'.join(path)}"
        for path in hot.parameter_paths(dict(base.top.resources))
        if path[0] == "nfv" and path not in filled
    ]


def _translated(tosca: Any, inputs: Mapping[str, Any]) -> dict[str, Resource]:
    from translator.hot.tosca_translator import TOSCATranslator

    translator = TOSCATranslator(tosca, dict(inputs))
    with vnfd.quiet():
        texts = translator.translate_to_yaml_files_dict("top.yaml")
    trees = {name: parse(text) for name, text in texts.items()}
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


class _Comparison:
    """Holds resources of one Base HOT against what heat-translator makes."""

    def __init__(self, base: hot.BaseHot, api: Api, flavour: vnfd.Flavour) -> None:
        self._base = base
        self._api = api
        self._default = flavour.instances(next(iter(flavour.levels), ""))

    def differences(
        self, name: str, want: Mapping[str, Any], have: Resource
    ) -> Iterator[str]:
        """Where a resource is not what is wanted."""
        match have.type:
            case "OS::Nova::Server":
                yield from self._server(name, want, have.properties)
            case "OS::Neutron::Port":
                yield from _port(name, want, have.properties)
            case "OS::Heat::ScalingPolicy":
                yield from _same(_POLICY_KEYS, want, have.properties)
            case hot.GROUP:
                yield from _same(("min_size", "max_size"), want, have.properties)
                yield from self._number(name, have)
            case hot.FIXED_GROUP:
                yield from self._number(name, have)

    def unscaled(
        self, names: Collection[str], actual: Mapping[str, Resource]
    ) -> Iterator[str]:
        """Groups that no aspect stands for, and that have another number of members."""
        if self._api.scaling_policies:
            return
        for name in sorted(names):
            if actual[name].type in hot.GROUPS:
                for text in self._number(name, actual[name]):
                    yield f"{actual[name].template}: {name} {text}"

    def _server(
        self, name: str, want: Mapping[str, Any], have: Mapping[str, Any]
    ) -> Iterator[str]:
        ports, wanted = _ports(have), _ports(want)
        if ports != wanted:
            yield f"has the ports {_words(ports)} instead of {_words(wanted)}"
        for key, ours in (("flavor", self._api.flavor), ("image", self._api.image)):
            yield from _from_nfv(key, have, ["nfv", "VDU", name, ours])

    def _number(self, name: str, have: Resource) -> Iterator[str]:
        # Tacker's v1 API fills its parameter from the instantiation level
        # (openstack.py, create).
        key = hot.CAPACITIES[have.type]
        number = have.properties.get(key)
        vdu = self._base.vdu({"type": have.type, "properties": have.properties})
        wanted = self._api.capacity(name, vdu)
        if number == wanted:
            return
        path = wanted["get_param"]
        told = ".".join(path) if isinstance(path, list) else path
        default = self._default.get(vdu) if self._api.scaling_policies else None
        if default is None:
            yield f"must take its {key} from the parameter {told}"
        elif number != default:
            # v1 scales by signals, so the number that it begins with may be written.
            yield (
                f"must take its {key} from the parameter {told}, or have that of the "
                f"default level, {default}"
            )


def _port(name: str, want: Mapping[str, Any], have: Mapping[str, Any]) -> Iterator[str]:
    if want.get("network") is None:  # external: the request names the network
        yield from _from_nfv("network", have, ["nfv", "CP", name, "network"])
    elif have.get("network") != want["network"]:
        yield f"is not on the network {dig(want, 'network', 'get_resource')}"


def _same(
    keys: Collection[str], want: Mapping[str, Any], have: Mapping[str, Any]
) -> Iterator[str]:
    for key in keys:
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
