# SPDX-License-Identifier: Apache-2.0
"""Settings of nodes: labels, annotations, taints and maintenance.

They are entries of a VNF instance's ``metadata``, which both of Tacker's APIs keep and
which a request that modifies the VNF instance merges (RFC 7396). Each setting is an
entry of its own whose value is text, because Tacker's v1 API stores nothing else:

* ``k8s_nodes:SELECTOR:label:KEY`` and ``k8s_nodes:SELECTOR:annotation:KEY``;
* ``k8s_nodes:SELECTOR:taint:KEY:EFFECT``, whose value is the taint's;
* ``k8s_nodes:vnfc:ID:maintenance``, whose value is ``true``.

SELECTOR is ``control_plane``, ``worker``, ``aspect:ID`` or ``vnfc:ID``.
"""

import enum
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model.nodes import MAINTENANCE_TAINT, Node, Role
from tacker_k8s_mgmt.request.fields import LABEL_KEY, LABEL_NAME
from tacker_k8s_mgmt.request.reader import ClusterRequest

#: Begins the name of each entry of the metadata.
PREFIX = "k8s_nodes"
# A taint's effects (core/v1).
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
#: Key and effect of a taint.
Taint = tuple[str, str]

_LONGEST_PREFIX = 253
# Of Kubernetes' own components, among them the roles that kubeadm and kubespray set.
_RESERVED = re.compile(r"(?:[^\n]{1,253}\.)?(?:kubernetes|k8s)\.io")
_OURS = "tacker-k8s-mgmt"
_FORM = (
    f"write {PREFIX}:SELECTOR:label:KEY, {PREFIX}:SELECTOR:annotation:KEY, "
    f"{PREFIX}:SELECTOR:taint:KEY:EFFECT or {PREFIX}:vnfc:ID:maintenance, where "
    "SELECTOR is control_plane, worker, aspect:ID or vnfc:ID"
)


class Scope(enum.Enum):
    """What a selector names, the more specific one later."""

    CONTROL_PLANE = "control_plane"
    WORKER = "worker"
    ASPECT = "aspect"
    VNFC = "vnfc"


@dataclass(frozen=True)
class Setting:
    """One setting.

    :param entry: its name in the metadata.
    :param name: id of the aspect or VNFC; "" for a role.
    :param kind: ``label``, ``annotation``, ``taint`` or ``maintenance``.
    :param effect: of a taint.
    """

    entry: str
    scope: Scope
    name: str
    kind: str
    key: str = ""
    effect: str = ""
    value: str = ""

    @property
    def shown(self) -> str:
        """What it sets, such as ``label disk``."""
        key = ":".join(filter(None, (self.key, self.effect)))
        return f"{self.kind} {key}".rstrip()


@dataclass(frozen=True)
class NodeSettings:
    """The settings of one node.

    :param taints: the value by key and effect; in maintenance, its taint is among them.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Mapping[Taint, str] = field(default_factory=dict)
    maintenance: bool = False

    def shown(self) -> dict[str, str]:
        """The value of each setting by its words, such as ``label disk``."""
        state = "true" if self.maintenance else ""
        return shown(self.labels, self.annotations, self.taints, state)


def shown(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    taints: Mapping[Taint, str],
    maintenance: str,
) -> dict[str, str]:
    """Settings in words."""
    return {
        **{f"label {key}": value for key, value in labels.items()},
        **{f"annotation {key}": value for key, value in annotations.items()},
        **{
            f"taint {':'.join(taint)}": value
            for taint, value in taints.items()
            if taint != MAINTENANCE_TAINT
        },
        **({"maintenance": maintenance} if maintenance else {}),
    }


def combined(settings: Sequence[Setting]) -> NodeSettings:
    """The settings of a node; of two for the same key, the later one holds."""
    taints = {(s.key, s.effect): s.value for s in settings if s.kind == "taint"}
    maintenance = any(s.kind == "maintenance" for s in settings)
    if maintenance:
        taints[MAINTENANCE_TAINT] = ""
    return NodeSettings(
        labels={s.key: s.value for s in settings if s.kind == "label"},
        annotations={s.key: s.value for s in settings if s.kind == "annotation"},
        taints=taints,
        maintenance=maintenance,
    )


def parse(metadata: Mapping[str, Any]) -> tuple[tuple[Setting, ...], tuple[str, ...]]:
    """The settings of a VNF instance's metadata, and every problem of them.

    More specific settings come later.
    """
    settings: list[Setting] = []
    problems: list[str] = []
    for entry in sorted(name for name in metadata if is_entry(name)):
        setting, found = _setting(entry, metadata[entry])
        problems += [f"{entry} {problem}" for problem in found]
        if setting and not found:
            settings.append(setting)
    order = list(Scope)
    settings.sort(key=lambda setting: order.index(setting.scope))
    return tuple(settings), tuple(problems)


def is_entry(name: str) -> bool:
    """Whether this entry of the metadata is a setting, or is meant to be one."""
    return name == PREFIX or name.startswith(f"{PREFIX}:")


def _setting(entry: str, value: Any) -> tuple[Setting | None, list[str]]:
    _, *words = entry.split(":")
    name = ""
    scope = next((s for s in Scope if words and s.value == words[0]), None)
    if scope in (Scope.ASPECT, Scope.VNFC) and len(words) > 1:
        name, words = words[1], words[1:]
    match words[1:]:
        case ["label" | "annotation" as kind, key]:
            effect = ""
        case ["taint" as kind, key, effect]:
            pass
        case ["maintenance" as kind]:
            key = effect = ""
        case _:
            return None, [f"is no setting: {_FORM}"]
    if scope is None or (scope in (Scope.ASPECT, Scope.VNFC)) != bool(name):
        return None, [f"is no setting: {_FORM}"]
    if not isinstance(value, str):
        return None, ["must be text, or null to remove it"]
    setting = Setting(entry, scope, name, kind, key, effect, value)
    return setting, list(_problems(setting))


def _problems(setting: Setting) -> Iterator[str]:
    if setting.kind == "maintenance":
        if setting.scope is not Scope.VNFC:
            yield "is refused: only single VNFCs can be in maintenance"
        if setting.value != "true":
            yield "must be true, or null to end the maintenance"
        return
    yield from _key_problems(setting.key)
    if setting.kind == "taint" and setting.effect not in _EFFECTS:
        yield f"has an unknown effect; there are {', '.join(_EFFECTS)}"
    is_value = re.fullmatch(f"(?:{LABEL_NAME})?", setting.value)
    if setting.kind != "annotation" and not is_value:
        yield (
            "must be empty or have at most 63 letters, digits, '-', '_' or '.', with a "
            "letter or digit at both ends"
        )


def _key_problems(key: str) -> Iterator[str]:
    prefix = key.rpartition("/")[0]
    if not re.fullmatch(LABEL_KEY, key) or len(prefix) > _LONGEST_PREFIX:
        yield (
            "has no valid key: a name of at most 63 letters, digits, '-', '_' or '.', "
            "with a letter or digit at both ends, and before it, if need be, a DNS "
            "name and '/'"
        )
    elif _RESERVED.fullmatch(prefix):
        yield f"has a key of {prefix}, which is reserved for Kubernetes itself"
    elif prefix == _OURS:
        yield f"has a key of {prefix}, which this driver uses itself"


class SettingsError(errors.ProblemList):
    """The settings of nodes in the VNF instance's metadata are wrong.

    :param problems: each names the entry of the metadata.
    """

    message = "The settings of nodes have {count} problem(s): {listed}."
    default_hint = "No node was changed."


@dataclass(frozen=True)
class Settings:
    """The settings of a VNF instance's nodes.

    :param problems: of the metadata.
    :param vnfcs: the server of each VNFC, by the VNFC's id.
    :param requested: the entries that the request names; others may be left of VNFCs
        that are gone.
    """

    settings: tuple[Setting, ...] = ()
    problems: tuple[str, ...] = ()
    vnfcs: Mapping[str, str] = field(default_factory=dict)
    requested: Collection[str] = ()

    @classmethod
    def read(
        cls,
        metadata: Mapping[str, Any],
        vnfcs: Mapping[str, str],
        requested: Collection[str] = (),
    ) -> "Settings":
        """Those of a VNF instance's metadata."""
        return cls(*parse(metadata), vnfcs, requested)

    @property
    def names_maintenance(self) -> bool:
        """Whether the request begins or ends the maintenance of a node."""
        return any(entry.endswith(":maintenance") for entry in self.requested)

    def of(self, node: Node, params: ClusterRequest) -> NodeSettings:
        return combined(tuple(self.entries(node, params)))

    def entries(self, node: Node, params: ClusterRequest) -> Iterator[Setting]:
        """The settings whose selector names this node."""
        group = params.node_groups[node.role]
        # Without labels of its own, an aspect is not recorded with its nodes.
        aspect = node.aspect_id or group.aspect_id
        names = {
            Scope.CONTROL_PLANE: "" if node.role is Role.CONTROL_PLANE else None,
            Scope.WORKER: "" if node.role is Role.WORKER else None,
            Scope.ASPECT: aspect,
        }
        for setting in self.settings:
            if setting.scope is Scope.VNFC:
                if self.vnfcs.get(setting.name) == node.server_id:
                    yield setting
            elif names[setting.scope] == setting.name:
                yield setting

    def unknown(self, nodes: Sequence[Node], params: ClusterRequest) -> Iterator[str]:
        """A problem for each requested setting whose selector names nothing."""
        workers = params.workers
        aspects = {aspect.aspect_id for aspect in workers.aspects}
        aspects |= {
            group.aspect_id for group in params.node_groups.values() if group.aspect_id
        }
        servers = {node.server_id for node in nodes}
        for setting in self.settings:
            if setting.entry not in self.requested:
                continue
            name = setting.name
            if setting.scope is Scope.ASPECT and name not in aspects:
                known = ", ".join(sorted(aspects)) or "none"
                yield (
                    f"{setting.entry} is of an unknown scaling aspect; those with "
                    f"nodes: {known}"
                )
            if setting.scope is Scope.VNFC and self.vnfcs.get(name) not in servers:
                yield f"{setting.entry} is of a VNFC that has no node"

    def owned(self, nodes: Sequence[Node], params: ClusterRequest) -> Iterator[str]:
        """A problem for each label and taint that the parameters set, too."""
        taken = {
            (node.role, node.aspect_id): set(_of_parameters(node, params))
            for node in nodes
        }
        owned: dict[str, None] = {}
        for node in nodes:
            for s in self.entries(node, params):
                if (s.kind, s.key, s.effect) in taken[node.role, node.aspect_id]:
                    owned[s.entry] = None
        for entry in owned:
            yield (
                f"{entry} is set by the parameters of the instantiation, with which "
                "kubespray sets it again"
            )


def _of_parameters(
    node: Node, params: ClusterRequest
) -> Iterator[tuple[str, str, str]]:
    variables = inventory.kubelet_vars(node, params)
    for key in variables["node_labels"]:
        yield "label", key, ""
    for taint in variables["node_taints"]:
        key, _, effect = taint.rpartition(":")
        yield "taint", key.partition("=")[0], effect
