# SPDX-License-Identifier: Apache-2.0
"""What the commands find in place of Tacker."""

import contextlib
import types

import pytest

from tacker_k8s_mgmt.tools.cli import host_records


@pytest.fixture
def look_up(monkeypatch):
    """Return a function: every VNF instance that a command opens is this one.

    What the command asked for is kept: ``vnf`` and ``files``.
    """

    def instead(found):
        @contextlib.contextmanager
        def opened(vnf, config_files):
            found.vnf, found.files = vnf, config_files
            yield found

        lookup = types.SimpleNamespace(open_cluster=opened)
        monkeypatch.setattr(host_records, "lookup", lambda _: lookup)
        return found

    return instead
