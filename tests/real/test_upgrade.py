# SPDX-License-Identifier: Apache-2.0
"""An upgrade by one minor release of Kubernetes, stopped once on its way."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.real import request
from tests.integration.cluster import PARAMETERS
from tests.integration.v2 import REQUESTS, ClusterV2
from tests.real import workloads
from tests.real.cluster import (
    answering_pods,
    consistent,
    deploy,
    settled,
    uids,
    versions,
)
from tests.real.conftest import RealLabV2

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def former(lab_v2: RealLabV2) -> tuple[str, Path]:
    """The release of kubespray that installs the version to come from; its mirror."""
    found = min(lab_v2.site.others.items(), default=None)
    if found is None or found[0] > lab_v2.site.release:
        pytest.skip("the laboratory serves no older Kubernetes: lab up --also")
    return found


@pytest.fixture(scope="module")
def cluster(
    lab_v2: RealLabV2,
    former: tuple[str, Path],
    record_testsuite_property: Callable[[str, object], None],
) -> Iterator[ClusterV2]:
    changes: dict[str, Any] = request.of_kubernetes(*former)
    with lab_v2.instance("upgraded", **changes) as made:
        assert isinstance(made, ClusterV2)
        lab_v2.keep_secrets_in_barbican(made.parameters)
        made.instantiate()
        deploy(made)
        yield made
        record_testsuite_property("versions", json.dumps(versions(made)))


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The VNFD id of another package."""
    return str(RealLabV2(tmp_path_factory.mktemp("newer")).vnfd_id)


def upgrade(lab: RealLabV2, cluster: ClusterV2, vnfd_id: str, **more: Any) -> str:
    body = json.loads((REQUESTS / "change-vnfpkg.json").read_text())
    body["vnfdId"] = vnfd_id
    body["additionalParams"]["vdu_params"] = []
    wanted = request.of_kubernetes(lab.site.release, lab.site.mirror)
    body["additionalParams"][PARAMETERS] = {**wanted, **more}
    return cluster.perform("change_vnfpkg", body, "FAILED_TEMP")


def kubelets(cluster: ClusterV2) -> set[str]:
    nodes = cluster.nodes()
    return {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes}


def test_upgrade_stops_at_a_budget_and_goes_on_by_retry(
    lab_v2: RealLabV2, cluster: ClusterV2, former: tuple[str, Path], newer: str
) -> None:
    nodes = uids(cluster)
    before = f"v{request.kubernetes_version(former[0])}"
    after = f"v{request.kubernetes_version(lab_v2.site.release)}"
    assert kubelets(cluster) == {before}
    every = workloads.budget(workloads.REPLICAS)
    cluster.kubectl("apply", "-f", "-", stdin=every)
    error = upgrade(lab_v2, cluster, newer, drain={"timeout": 30})
    assert kubelets(cluster) == {before, after}
    assert "web" in error
    consistent(cluster, 2)
    cluster.kubectl("delete", "pdb", "web")
    cluster.handle("retry", "COMPLETED")
    assert kubelets(cluster) == {after}
    assert uids(cluster) == nodes
    consistent(cluster, 2)
    settled(cluster)
    assert len(answering_pods(cluster)) >= 2
