# SPDX-License-Identifier: Apache-2.0
"""The settings of nodes, wanted and actual, for ``cluster labels``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tacker_k8s_mgmt.model import node_marks
from tacker_k8s_mgmt.model.node_marks import NodeMetadata
from tacker_k8s_mgmt.model.nodes import Node
from tacker_k8s_mgmt.request.reader import ClusterRequest
from tacker_k8s_mgmt.status.facts import Source
from tacker_k8s_mgmt.topology.node_settings import Settings


@dataclass(frozen=True)
class SettingRow:
    """One setting of one node.

    :param node: "" where the selector names no node.
    :param setting: such as ``label disk`` or ``taint gpu:NoSchedule``.
    :param wanted: its value; None if a former request has set it.
    :param actual: its value; None if the Node object has none.
    :param entry: the metadata's; "" likewise.
    """

    node: str
    setting: str
    wanted: str | None
    actual: str | None
    entry: str

    @property
    def differs(self) -> bool:
        """Whether the node has it otherwise than wanted."""
        return self.wanted != self.actual


@dataclass(frozen=True)
class SettingsReport:
    """All settings.

    :param problems: of the metadata.
    :param failures: why a source could not be read.
    """

    rows: tuple[SettingRow, ...]
    problems: tuple[str, ...]
    failures: Mapping[Source, str]

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.problems) or any(row.differs for row in self.rows)


def rows(
    nodes: Sequence[Node],
    marks: Mapping[str, NodeMetadata],
    settings: Settings,
    params: ClusterRequest,
) -> Iterator[SettingRow]:
    """The settings, node by node; then those whose selector names none.

    :param nodes: of the inventory.
    :param marks: by the names of the Node objects.
    """
    used: set[str] = set()
    for node in nodes:
        actual = marks.get(node.name, NodeMetadata(node.name))
        present = actual.shown()
        entries = tuple(settings.entries(node, params))
        used.update(setting.entry for setting in entries)
        wanted = {setting.shown: setting for setting in entries}
        for shown, setting in wanted.items():
            value, entry = setting.value, setting.entry
            yield SettingRow(node.name, shown, value, present.get(shown), entry)
        for shown in node_marks.applied(actual):
            if shown in present and shown not in wanted:
                yield SettingRow(node.name, shown, None, present[shown], "")
    for setting in settings.settings:
        if setting.entry not in used:
            yield SettingRow("", setting.shown, setting.value, None, setting.entry)
