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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Begins the name of each entry of the metadata.
PREFIX = "k8s_nodes"
#: A taint's effects (core/v1).
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
#: The taint of a node in maintenance, key and effect.
MAINTENANCE_TAINT = ("tacker-k8s-mgmt/maintenance", "NoExecute")
#: Key and effect of a taint.
Taint = tuple[str, str]

#: Patterns of Kubernetes' names: the value of a label, and its key.
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DNS = (
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)
KEY = rf"(?:{_DNS}/)?{NAME}"
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


def merged(metadata: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata after a request that modifies the VNF instance, as Tacker merges."""
    values = {**metadata, **patch}
    return {name: value for name, value in values.items() if value is not None}


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
    if setting.kind == "taint" and setting.effect not in EFFECTS:
        yield f"has an unknown effect; there are {', '.join(EFFECTS)}"
    if setting.kind != "annotation" and not re.fullmatch(f"(?:{NAME})?", setting.value):
        yield (
            "must be empty or have at most 63 letters, digits, '-', '_' or '.', with a "
            "letter or digit at both ends"
        )


def _key_problems(key: str) -> Iterator[str]:
    prefix = key.rpartition("/")[0]
    if not re.fullmatch(KEY, key) or len(prefix) > _LONGEST_PREFIX:
        yield (
            "has no valid key: a name of at most 63 letters, digits, '-', '_' or '.', "
            "with a letter or digit at both ends, and before it, if need be, a DNS "
            "name and '/'"
        )
    elif _RESERVED.fullmatch(prefix):
        yield f"has a key of {prefix}, which is reserved for Kubernetes itself"
    elif prefix == _OURS:
        yield f"has a key of {prefix}, which this driver uses itself"
