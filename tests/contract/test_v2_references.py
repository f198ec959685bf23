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
    referring,
    scale,
    terminate,
)


def test_references_need_no_repetition(tacker, tmp_path):
    instantiate(tacker, **referring(tmp_path))
    scale(tacker, "SCALE_OUT", params={})
    heal(tacker, "workerNode-server-5", params={})
    scale(tacker, "SCALE_IN", params={})
    heal(tacker, params={})
    assert tacker.site.members == [MASTER, FIVE, FIFTY_FIVE]
    no_secrets(tacker)
    terminate(tacker, params={})
    assert tacker.site.owner is None
