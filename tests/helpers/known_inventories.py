# SPDX-License-Identifier: Apache-2.0
"""A fixture that makes tests of operations on fakes quick."""

import functools
from collections.abc import Iterator

import pytest

from tacker_k8s_mgmt.kubespray import inventory

_PARSE = functools.cache(inventory.parse)


@pytest.fixture(scope="module", autouse=True)
def known_inventories() -> Iterator[None]:
    """Have each inventory parsed once: an operation reads the same some fifty times.

    The driver itself remembers none, for they have passwords.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inventory, "parse", _PARSE)
        yield
