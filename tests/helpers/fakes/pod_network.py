# SPDX-License-Identifier: Apache-2.0
"""The pod network between the fake site's nodes."""

from collections.abc import Sequence

from tacker_k8s_mgmt.features.pod_network.measurement import Measurement, PodPath
from tacker_k8s_mgmt.model.nodes import Node
from tests.helpers.fakes.state import SiteState

MTU = 1400


class FakePodNetwork:
    """Pods measure as the site's ``pod_sizes`` and ``pod_service`` have it."""

    def __init__(self, site: SiteState) -> None:
        self._site = site

    def measure(self, nodes: Sequence[Node], hub: Node) -> tuple[Measurement, ...]:
        self._site.touch("pod_network.measure")
        names = [hub.name, *(node.name for node in nodes if node is not hub)]
        self._site.pod_probes.append((names[0], names[1:]))
        addresses = {name: f"10.233.64.{n}" for n, name in enumerate(names, 1)}
        new = {node.name for node in nodes}

        def path(source: str, target: str) -> PodPath:
            return PodPath(MTU, self._site.pod_sizes.get((source, target), MTU))

        return tuple(
            Measurement(
                name,
                (addresses[name],),
                {
                    addresses[other]: path(other, name)
                    for other in (names[1:] if name == hub.name else names[:1])
                },
                {"10.233.0.1": self._site.pod_service} if name in new else {},
            )
            for name in names
        )
