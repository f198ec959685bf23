# SPDX-License-Identifier: Apache-2.0
"""Each structure of a request has an example in the reference, and each is valid."""

import copy
import json
from typing import get_args

import pytest
from pydantic import BaseModel

from tacker_k8s_mgmt.request.cluster_options import Cluster
from tacker_k8s_mgmt.request.reader import ATTRIBUTE, ClusterRequest, RequestReader
from tests.tree import ROOT

EXAMPLES = json.loads((ROOT / "doc" / "source" / "parameter-examples.json").read_text())
#: Without which others are not valid.
NEEDED = {
    "cluster.storage": ("cluster.openstack",),
    "cluster.node_registry": ("cluster",),
    "tenants": ("cluster.network",),
}
ALWAYS = ("ansible", "master_node", "worker_node", "external_lb_param")


def structures(model, prefix=""):
    """The attributes of a model that are structures, or lists of them."""
    for name, field in model.model_fields.items():
        kinds = (field.annotation, *get_args(field.annotation))
        inner = any(
            isinstance(one, type) and issubclass(one, BaseModel) for one in kinds
        )
        if inner and not field.exclude:
            yield f"{prefix}{field.alias or name}"


def test_each_structure_has_one():
    assert set(EXAMPLES) == {
        *structures(ClusterRequest),
        *structures(Cluster, "cluster."),
    }


@pytest.mark.parametrize("path", EXAMPLES)
def test_it_is_valid(path):
    body = {}
    for name in (*ALWAYS, *NEEDED.get(path, ()), path):
        *outer, last = name.split(".")
        place = body
        for one in outer:
            place = place.setdefault(one, {})
        place[last] = copy.deepcopy(EXAMPLES[name])
    read = RequestReader(lambda _: "s3cret").read({ATTRIBUTE: body})
    assert read is not None
