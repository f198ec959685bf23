# SPDX-License-Identifier: Apache-2.0
"""VNFD against Base HOT, and the security groups of the Base HOT's ports.

heat-translator makes a template out of a flavour, with the names that Tacker expects
and with groups and policies for the scaling aspects. Everything in it that Tacker looks
for later must be in the Base HOT under the same name and wired in the same way.

What security groups admit to the ports is judged by what the templates say themselves
only: groups that are there before, rules of their own
(``OS::Neutron::SecurityGroupRule``) and values without a default may admit anything,
and so they do here.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tacker_k8s_mgmt.model import network_plugins
from tacker_k8s_mgmt.model.yaml_text import dig, mapping, parse_yaml, sequence
from tacker_k8s_mgmt.tools.csar import hot, vnfd
from tacker_k8s_mgmt.tools.csar.tacker_api import Api
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
            for cp in vnfd.external_cps(flavour)
            for key in ("network", "fixed_ips")
        }
    )
    for path in hot.parameter_paths(dict(base.top.resources)):
        # Of addresses, the path continues with an index.
        if path[0] == "nfv" and path[:4] not in filled:
            yield f"{base.top.name}: {'.'.join(path)} gets no value"


def _translated(tosca: Any, inputs: Mapping[str, Any]) -> dict[str, Resource]:
    """heat-translator's resources by name, as far as they are compared."""
    from translator.hot.tosca_translator import TOSCATranslator

    translator = TOSCATranslator(tosca, dict(inputs))
    with vnfd.quiet():
        texts = translator.translate_to_yaml_files_dict("top.yaml")
    trees = {name: parse_yaml(text) for name, text in texts.items()}
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


_RULE = "OS::Neutron::SecurityGroupRule"
_BY_GROUP = "remote_group_id"


class SecurityGroups:
    """The security groups of the ports.

    :param values: of the Base HOT's parameters.
    """

    def __init__(self, base: base_hot.BaseHot, values: Mapping[str, Any]) -> None:
        self._top, self._values = base.top.resources, values
        self._ports = {r.name: r for r in base.resources() if r.type == base_hot.PORT}
        self._is_open = any(one["type"] == _RULE for one in self._top.values())

    def names(self, port: str) -> tuple[str, ...]:
        """The groups of a port; empty if they are not known, or none are named."""
        if port not in self._ports:
            return ()
        groups = _flat(self._ports[port].properties.get("security_groups"))
        names = tuple(str(dig(group, "get_resource")) for group in groups)
        return names if all(name in self._top for name in names) else ()

    def admit(
        self, port: str, number: int, peer: str | network_plugins.Address
    ) -> bool:
        """Whether a port gets TCP packets of a peer.

        :param number: the TCP port.
        :param peer: another port, by its name, or an address that is no VM's.
        """
        names = self.names(port)
        if self._is_open or not names:
            return True
        return any(
            self._has_port(rule, number) and self._has_peer(name, rule, peer)
            for name in names
            for rule in self._rules(name)
        )

    def _rules(self, group: str) -> Iterator[Mapping[str, Any]]:
        """The rules of a group for what comes in."""
        for rule in sequence(dig(self._top, group, "properties", "rules")):
            given = base_hot.filled(dict(mapping(rule)), self._values)
            if given.get("direction", "ingress") == "ingress":
                yield given

    @staticmethod
    def _has_port(rule: Mapping[str, Any], number: int) -> bool:
        if str(rule.get("protocol") or "any").lower() not in ("any", "tcp", "6"):
            return isinstance(rule.get("protocol"), Mapping)
        low, high = rule.get("port_range_min"), rule.get("port_range_max")
        if low is None:
            return True
        try:
            return int(low) <= number <= int(low if high is None else high)
        except (TypeError, ValueError):
            return True

    def _has_peer(
        self, group: str, rule: Mapping[str, Any], peer: str | network_plugins.Address
    ) -> bool:
        if rule.get("remote_mode") == _BY_GROUP:
            # Without an id, the group's own members.
            given = rule.get(_BY_GROUP) or {"get_resource": group}
            admitted = dig(given, "get_resource")
            if not isinstance(peer, str):
                return admitted not in self._top
            members = self.names(peer)
            return admitted not in self._top or not members or admitted in members
        prefix = rule.get("remote_ip_prefix")
        if isinstance(peer, str) or prefix is None:
            return True
        try:
            return peer in network_plugins.network(prefix)
        except ValueError:
            return True


def _flat(value: Any) -> list[Any]:
    """A list, without lists in it; a parameter may stand for several groups."""
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [one for inner in value for one in _flat(inner)]
