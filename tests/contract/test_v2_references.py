# SPDX-License-Identifier: Apache-2.0
"""A cluster's life through the v2 API with secrets that requests only name.

As Tacker does it: Python is started for each hook and imports what that needs.
"""

import pytest

pytest.importorskip("tacker", reason="the contract is with an installed Tacker")

from tests.contract.v2_operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    heal,
    instantiate,
    no_secrets,
    reference,
    scale,
    terminate,
)
from tests.helpers.requests import additional_params


def test_references_need_no_repetition(tacker, tmp_path):
    node = {"password": reference(tmp_path, "node", "n0de-secret")}
    server = {"password": reference(tmp_path, "server", "serv3r-secret")}
    balancer = {"ssh_password": reference(tmp_path, "balancer", "b4lancer-secret")}
    given = additional_params()["k8s_cluster_installation_param"]
    instantiate(
        tacker,
        ansible={**given["ansible"], **server},
        master_node={**given["master_node"], **node},
        worker_node={**given["worker_node"], **node},
        external_lb_param={**given["external_lb_param"], **balancer},
    )
    scale(tacker, "SCALE_OUT", params={})
    heal(tacker, "workerNode-server-5", params={})
    scale(tacker, "SCALE_IN", params={})
    heal(tacker, params={})
    assert tacker.site.members == [MASTER, FIVE, FIFTY_FIVE]
    no_secrets(tacker)
    terminate(tacker, params={})
    assert tacker.site.owner is None
