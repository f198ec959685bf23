# SPDX-License-Identifier: Apache-2.0
"""Which cluster a VNF instance of the v2 API is, as this conductor has recorded it.

Users write ``vimConnectionInfo`` and metadata of their VNF instances as they like, so
nothing there proves whose cluster an API is. These files are the driver's alone, below
its state path.
"""

import json
import os
import uuid
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from tacker_k8s_mgmt.files import replacing
from tacker_k8s_mgmt.model.cluster import ClusterIdentity

_DIRECTORY = "clusters"


def read(state_path: str, vnf_id: str) -> ClusterIdentity | None:
    """Return what is recorded of a cluster; None for nothing that can be read."""
    try:
        text = _path(state_path, vnf_id).read_text(encoding="utf-8")
        return TypeAdapter(ClusterIdentity).validate_json(text)
    except (OSError, ValueError):
        return None


def write(state_path: str, vnf_id: str, identity: ClusterIdentity) -> None:
    """Record a cluster.

    :raises OSError: it cannot be written.
    """
    path = _path(state_path, vnf_id)
    os.makedirs(path.parent, mode=0o700, exist_ok=True)
    with replacing(path, mode=0o600) as new:
        new.write_text(json.dumps(asdict(identity)), encoding="utf-8")


def remove(state_path: str, vnf_id: str) -> None:
    """Remove what is recorded of a cluster, if there is anything."""
    _path(state_path, vnf_id).unlink(missing_ok=True)


def _path(state_path: str, vnf_id: str) -> Path:
    return Path(state_path, _DIRECTORY, f"{uuid.UUID(vnf_id)}.json")
