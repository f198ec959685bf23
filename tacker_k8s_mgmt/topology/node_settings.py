# SPDX-License-Identifier: Apache-2.0
"""Which nodes the settings of a VNF instance's metadata are for."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.kubespray import inventory
from tacker_k8s_mgmt.model import node_settings
from tacker_k8s_mgmt.model.node_settings import NodeSettings, Scope, Setting
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.request.installation import NodeGroup
from tacker_k8s_mgmt.request.reader import ClusterRequest


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
        return cls(*node_settings.parse(metadata), vnfcs, requested)

    @property
    def names_maintenance(self) -> bool:
        """Whether the request begins or ends the maintenance of a node."""
        return any(entry.endswith(":maintenance") for entry in self.requested)

    def __bool__(self) -> bool:
        return bool(self.settings)

    def check(self, problems: Iterable[str] = ()) -> None:
        """See that they can be applied.

        :param problems: those of the caller.
        :raises SettingsError: with every problem.
        """
        if found := (*self.problems, *problems):
            raise SettingsError(found)

    def of(self, node: Node, params: ClusterRequest) -> NodeSettings:
        """The settings of one node."""
        return node_settings.combined(tuple(self.entries(node, params)))

    def entries(self, node: Node, params: ClusterRequest) -> Iterator[Setting]:
        """The settings whose selector names this node."""
        group = _group(node.role, params)
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
            group.aspect_id
            for group in (params.control_plane, workers)
            if group.aspect_id
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


def _group(role: Role, params: ClusterRequest) -> NodeGroup:
    return params.control_plane if role is Role.CONTROL_PLANE else params.workers


def _of_parameters(
    node: Node, params: ClusterRequest
) -> Iterator[tuple[str, str, str]]:
    variables = inventory.kubelet_vars(node, params)
    for key in variables["node_labels"]:
        yield "label", key, ""
    for taint in variables["node_taints"]:
        key, _, effect = taint.rpartition(":")
        yield "taint", key.partition("=")[0], effect
