# SPDX-License-Identifier: Apache-2.0
"""VNFD against Base HOT: what heat-translator makes of the VNFD, against the Base HOT.

heat-translator makes a template out of a flavour, with the names that Tacker expects
and with groups and policies for the scaling aspects. Everything in it that Tacker looks
for later must be in the Base HOT under the same name and wired in the same way.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.csar import hot, vnfd, vnfd_rules
from tacker_k8s_mgmt.csar.api import Api
from tacker_k8s_mgmt.model.tree import dig, parse, sequence
from tacker_k8s_mgmt.topology import base_hot
from tacker_k8s_mgmt.topology.base_hot import Resource

_POLICY = "OS::Heat::ScalingPolicy"
_POLICY_KEYS = ("auto_scaling_group_id", "adjustment_type", "scaling_adjustment")
#: What may stand in for a scaling group.
_FIXED = (base_hot.GROUP, base_hot.FIXED_GROUP)
_NET = "OS::Neutron::Net"
_COMPARED = (base_hot.SERVER, base_hot.PORT, _NET, base_hot.GROUP, _POLICY)


def problems(flavour: vnfd.Flavour, base: base_hot.BaseHot, api: Api) -> list[str]:
    """Where the Base HOT is not what the VNFD describes."""
    try:
        tosca = vnfd.parse_flavour(flavour)
    except Exception as error:  # tosca-parser raises whatever its dictionaries raise
        complaints = vnfd.complaints(error, flavour.path.parent)
        return [f"{text} (in {flavour.path.name} alone)" for text in complaints]
    try:
        translated = _translated(tosca, flavour.input_values)
    except Exception as error:  # so does heat-translator
        return [f"heat-translator cannot translate {flavour.path.name}: {error!r}"]
    comparison = _Comparison(base, api, flavour)
    return [
        *comparison.problems(translated),
        *_path_problems(flavour, base, api),
        *_level_problems(flavour, base),
    ]


def _level_problems(flavour: vnfd.Flavour, base: base_hot.BaseHot) -> Iterator[str]:
    """Numbers of VMs that the Base HOT does not allow, such as four control planes."""
    for aspect, vdus in flavour.scaled.items():
        parameter = f"{aspect}_desired_capacity"
        constraints = sequence(dig(base.top.parameters, parameter, "constraints"))
        allowed = [dig(constraint, "allowed_values") for constraint in constraints]
        for level in flavour.levels:
            counts = flavour.instances(level)
            for vdu in vdus:
                for values in filter(None, allowed):
                    if vdu in counts and counts[vdu] not in values:
                        yield (
                            f"the level {level} has {counts[vdu]} VMs of {vdu}, and "
                            f"the Base HOT allows {' or '.join(map(str, values))} as "
                            f"{parameter}"
                        )


def _path_problems(
    flavour: vnfd.Flavour, base: base_hot.BaseHot, api: Api
) -> Iterator[str]:
    """Values that are taken from ``nfv`` but that no user data puts there."""
    filled = (
        {
            ("nfv", "VDU", vdu, key)
            for vdu in flavour.of_type(vnfd.VDU)
            for key in api.vdu_keys
        }
        | {
            # Volumes that VMs boot from have an image, too.
            ("nfv", "VDU", storage, api.image)
            for storage in flavour.of_type(vnfd.STORAGE)
        }
        | {
            ("nfv", "CP", cp, key)
            for cp in vnfd_rules.external_cps(flavour)
            for key in ("network", "fixed_ips")
        }
    )
    for path in hot.parameter_paths(dict(base.top.resources)):
        # Of addresses, the path goes on with an index.
        if path[0] == "nfv" and path[:4] not in filled:
            yield f"{base.top.name}: {'.'.join(path)} gets no value"


def _translated(tosca: Any, inputs: Mapping[str, Any]) -> dict[str, Resource]:
    """heat-translator's resources by name, as far as they are compared."""
    from translator.hot.tosca_translator import TOSCATranslator

    translator = TOSCATranslator(tosca, dict(inputs))
    with vnfd.quiet():
        texts = translator.translate_to_yaml_files_dict("top.yaml")
    trees = {name: parse(text) for name, text in texts.items()}
    templates = {
        name: base_hot.Template(name, tree.get("parameters") or {}, tree["resources"])
        for name, tree in trees.items()
    }
    resources = base_hot.BaseHot(templates.pop("top.yaml"), templates).resources()
    return {r.name: r for r in resources if r.type in _COMPARED}


class _Comparison:
    """The resources of one Base HOT, compared with heat-translator's."""

    def __init__(self, base: base_hot.BaseHot, api: Api, flavour: vnfd.Flavour) -> None:
        self._top = base.top.name
        self._actual = {resource.name: resource for resource in base.resources()}
        self._api = api
        self._default = flavour.instances(next(iter(flavour.levels), ""))
        self._has_internal = base_hot.INTERNAL_NETWORK in base.top.parameters

    def problems(self, translated: Mapping[str, Resource]) -> Iterator[str]:
        """What is missing, of another type, different, or not in the VNFD."""
        for name, want in sorted(translated.items()):
            have = self._actual.get(name)
            if self._is_needless(want) or (self._has_internal and want.type == _NET):
                continue
            if have is None:
                yield f"{self._top}: no {want.type} is named {name}"
            elif want.type == have.type or (want.type, have.type) == _FIXED:
                for text in self._differences(want.properties, have):
                    yield f"{have.template}: {name} {text}"
            else:
                yield f"{have.template}: {name} is {have.type} instead of {want.type}"
        extra = sorted(self._actual.keys() - translated.keys())
        for have in map(self._actual.__getitem__, extra):
            if have.type in (base_hot.SERVER, base_hot.PORT):
                yield f"{have.template}: {have.name} ({have.type}) is not in the VNFD"
        for have in map(self._actual.__getitem__, extra):
            # Without an aspect such a group has another number of members.
            if have.type in base_hot.GROUPS and not self._api.scaling_policies:
                for text in self._number(have):
                    yield f"{have.template}: {have.name} {text}"

    def _is_needless(self, want: Resource) -> bool:
        """Whether it is a scaling policy that nothing signals, or of a fixed group.

        The aspect of such a group only says how many VMs Tacker expects in it.
        """
        if want.type != _POLICY or not self._api.scaling_policies:
            return want.type == _POLICY
        group = dig(want.properties, "auto_scaling_group_id", "get_resource")
        return (
            group in self._actual and self._actual[group].type == base_hot.FIXED_GROUP
        )

    def _differences(self, want: Mapping[str, Any], have: Resource) -> Iterator[str]:
        if have.type == base_hot.SERVER:
            yield from self._server(want, have)
        elif have.type == base_hot.PORT:
            yield from _port(want, have)
        elif have.type == _POLICY:
            yield from _same(_POLICY_KEYS, want, have)
        elif have.type == base_hot.GROUP:
            yield from _same(("min_size", "max_size"), want, have)
        if have.type in base_hot.GROUPS:
            yield from self._number(have)

    def _server(self, want: Mapping[str, Any], have: Resource) -> Iterator[str]:
        actual, wanted = _ports(have.properties), _ports(want)
        if actual != wanted:
            yield f"has the ports {actual} instead of {wanted}"
        yield from _from_nfv("flavor", have, "VDU", self._api.flavor, "flavor")
        volumes = ("block_device_mapping", "block_device_mapping_v2")
        if "image" in have.properties or not have.properties.keys() & {*volumes}:
            yield from _from_nfv("image", have, "VDU", self._api.image, "image")

    def _number(self, have: Resource) -> Iterator[str]:
        # Tacker's v1 API fills its parameter from the instantiation level
        # (openstack.py, create).
        key = base_hot.CAPACITIES[have.type]
        number = have.properties.get(key)
        capacity = self._api.capacity(have.name, have.vdu)
        if number == capacity:
            return
        path = capacity["get_param"]
        source = ".".join(path) if isinstance(path, list) else path
        default = self._default.get(have.vdu) if self._api.scaling_policies else None
        if default is None:
            yield f"must take its {key} from the parameter {source}"
        elif number != default:
            # v1 scales by signals, so the initial number may be a constant.
            yield (
                f"must take its {key} from the parameter {source}, or have that of the "
                f"default level, {default}"
            )


def _port(want: Mapping[str, Any], have: Resource) -> Iterator[str]:
    if want.get("network") is None:  # external: the request names the network
        yield from _from_nfv("network", have, "CP", "network", "public_network")
    elif have.properties.get("network") not in (
        want["network"],
        {"get_param": base_hot.INTERNAL_NETWORK},
    ):
        yield f"is not on the network {dig(want, 'network', 'get_resource')}"


def _same(
    keys: Collection[str], want: Mapping[str, Any], have: Resource
) -> Iterator[str]:
    for key in keys:
        if have.properties.get(key) != want[key]:
            yield f"has the {key} {have.properties.get(key)} instead of {want[key]}"


def _from_nfv(
    key: str, have: Resource, kind: str, source: str, single: str
) -> Iterator[str]:
    """A property that takes its value from elsewhere.

    :param single: the specification's parameter, which has one value for all.
    """
    path = ["nfv", kind, have.name, source]
    if have.properties.get(key) not in ({"get_param": path}, {"get_param": single}):
        yield f"must take its {key} from the parameter {'.'.join(path)}"


def _ports(properties: Mapping[str, Any]) -> str:
    networks = sequence(properties.get("networks"))
    names = [str(dig(entry, "port", "get_resource")) for entry in networks]
    return ", ".join(names) or "(none)"
