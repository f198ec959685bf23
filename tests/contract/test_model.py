# SPDX-License-Identifier: Apache-2.0
"""Histories of a cluster with faults anywhere, on a model of everything around it.

Operations are run as each of Tacker's APIs runs them, by the tables of the hooks, while
calls of the ports fail before or after they take effect, conductors are killed, Heat
refuses or does not complete a VM, VMs die, and things are deleted by hand. After each
operation :mod:`tests.helpers.model.invariants` are checked. At its end a history is
fixed, the advice of the last error is followed, and a heal and a termination have to
end well.

The histories are the same in each run. For a campaign with others, say how many::

    K8S_MGMT_HISTORIES=5000 python -m pytest tests/contract/test_model.py

A history takes about 60 ms. Of one that fails, Hypothesis prints the shortest form.
"""

import logging
import os

import pytest
from hypothesis import settings

from tests.helpers.model.history import STATEFUL, History
from tests.helpers.model.v1 import V1
from tests.helpers.model.v2 import V2

#: Histories of each API, in a campaign; not set: a few, always the same.
CAMPAIGN = os.environ.get("K8S_MGMT_HISTORIES")


@pytest.fixture(autouse=True)
def _quiet():
    """Without the logs of thousands of operations."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class HistoryV1(History):
    api = V1


class HistoryV2(History):
    api = V2


_PROFILE = settings(
    STATEFUL,
    max_examples=int(CAMPAIGN or 150),
    derandomize=not CAMPAIGN,
)
TestV1 = HistoryV1.TestCase
TestV1.settings = _PROFILE
TestV2 = HistoryV2.TestCase
TestV2.settings = _PROFILE
