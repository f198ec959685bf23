# SPDX-License-Identifier: Apache-2.0
"""The real laboratory as the scenarios and fault campaigns see it."""

import json
import os
from typing import Any

from lab import client
from lab.real import request
from lab.real.site import Site
from tests.integration.cluster import Cluster
from tests.integration.laboratory import Lab
from tests.integration.v2 import LabV2
from tests.real.__main__ import STRATEGY

#: Seconds after which an operation is abandoned though it moves.
LONGEST = 4 * 3600.0


class _Real(Lab):
    """A lab whose requests are for the real kubespray."""

    #: Of its own playbooks, with a request that leaves nothing to warn of.
    expected_warnings = (
        *Lab.expected_warnings,
        # Such as bastion, and the play of `kube_control_plane | first`.
        "Could not match supplied host pattern",
        "raw module does not support the environment keyword",
        # The Python that it finds is the one of the images.
        "[WARNING]: Platform linux on host",
        # Directories that it looks into before it makes them.
        "path due to this access issue",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tacker.longest = LONGEST

    @property
    def site(self) -> Site:
        """What the laboratory was made of."""
        return Site.load(client.state())

    def _body(
        self, cluster: Cluster, dormant: bool, changes: dict[str, Any]
    ) -> dict[str, Any]:
        sample = json.loads(
            (self.requests / f"instantiate-{self.flavour}.json").read_text()
        )
        body = request.adapted(sample, self.site)
        ours = body["additionalParams"][request.PARAMETERS]
        ours["vim_name"] = cluster.vim_name
        if strategy := os.environ.get(STRATEGY):
            ours["ansible"]["strategy"] = strategy
        ours["ansible"]["transferring_inventory_path"] = cluster.directory
        for name, change in changes.items():
            ours[name] = {**ours.get(name, {}), **change}
        return body


class RealLab(_Real):
    """It, with a package for the v1 API."""


class RealLabV2(_Real, LabV2):
    """It, with a package for the v2 API."""
