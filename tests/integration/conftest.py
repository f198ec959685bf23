# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: the lab, clusters, the guides' commands.

``make test`` runs these tests inside the namespaces of a lab of their own.
"""

import os
from collections.abc import Iterator

import pytest

from tests.integration import warm
from tests.integration.cluster import (
    PARAMETERS,
    PHASE,
    PROXY_SECRET,
    REQUESTS,
    ROOT,
    SECRETS,
    SERVER_ACCOUNT,
    VM_ACCOUNT,
    Cluster,
    eventually,
)
from tests.integration.guide import Guide
from tests.integration.laboratory import (
    ANSIBLE_SERVER,
    CONDUCTOR,
    Lab,
    cloud,
    services,
)

__all__ = [
    "ANSIBLE_SERVER",
    "CONDUCTOR",
    "PARAMETERS",
    "PHASE",
    "PROXY_SECRET",
    "REQUESTS",
    "ROOT",
    "SECRETS",
    "SERVER_ACCOUNT",
    "VM_ACCOUNT",
    "Cluster",
    "Guide",
    "Lab",
    "cloud",
    "eventually",
    "services",
]


@pytest.fixture(scope="session", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The programs that start anew for each call take their time."""
    before = os.environ["PATH"]
    with warm.programs(tmp_path_factory.mktemp("bin")) as place:
        os.environ["PATH"] = f"{place}{os.pathsep}{before}"
        yield
        os.environ["PATH"] = before


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    if "LAB_STATE" not in os.environ:
        pytest.fail("these tests run inside the lab: make test")
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Guide:
    return Guide(tmp_path_factory.mktemp("guide"))
