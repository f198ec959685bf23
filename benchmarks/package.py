# SPDX-License-Identifier: Apache-2.0
"""A VNF package like the sample, for more workers than the sample allows."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import yaml

from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.build import Site, build

FLAVOUR = "simple"
#: Workers of the instantiation levels, by level.
LEVELS = {"instantiation_level_1": 2, "instantiation_level_2": 10}
_MOST = 24
_VNFD = "Definitions/kubernetes_df_simple.yaml"
_HOT = "base_hot_top.yaml"


def make(directory: Path) -> Path:
    """Build the package below a directory; its path.

    :raises PackageError: the sample has changed so that it cannot be made of it.
    """
    source = directory / "samples"
    shutil.copytree(parts.samples(), source)
    _edit(source / "vnfd" / FLAVOUR / _VNFD, _enlarge_vnfd)
    _edit(source / "hot" / FLAVOUR / _HOT, _enlarge_hot)
    output = directory / "package.zip"
    # An id of its own: the lab may have the sample, too.
    build(FLAVOUR, output, source=source, names=Site(vnfd_id=str(uuid.uuid4())))
    return output


def _edit(path: Path, change: Any) -> None:
    document = yaml.safe_load(path.read_text())
    change(document)
    path.write_text(yaml.safe_dump(document, sort_keys=False))


def _enlarge_vnfd(document: Any) -> None:
    topology = document["topology_template"]
    workers = topology["node_templates"]["workerNode"]["properties"]
    workers["vdu_profile"]["max_number_of_instances"] = _MOST
    first = min(LEVELS.values())
    for policy in topology["policies"]:
        ((name, content),) = policy.items()
        given = content["properties"]
        if name == "scaling_aspects":
            given["aspects"]["worker_instance"]["max_scale_level"] = _MOST - first
        for level, workers in LEVELS.items():
            if name == "instantiation_levels":
                scaled = given["levels"][level]["scale_info"]["worker_instance"]
                scaled["scale_level"] = workers - first
            elif name == "workerNode_instantiation_levels":
                given["levels"][level]["number_of_instances"] = workers


def _enlarge_hot(document: Any) -> None:
    group = document["resources"]["worker_instance"]["properties"]
    group["max_size"] = _MOST
