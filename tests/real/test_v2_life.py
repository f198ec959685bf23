# SPDX-License-Identifier: Apache-2.0
"""The life of a cluster through Tacker's v2 API."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.integration.v2 import KUBERNETES, OPENSTACK, ClusterV2
from tests.real import cnfs, settings, workloads
from tests.real.cluster import (
    answering_pods,
    by_age,
    consistent,
    deploy,
    kill,
    named,
    settled,
    uids,
    versions,
)
from tests.real.cnfs import Cnfs
from tests.real.conftest import RealLabV2

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def cluster(
    lab_v2: RealLabV2, record_testsuite_property: Callable[[str, object], None]
) -> Iterator[ClusterV2]:
    with lab_v2.instance("real-v2", drain=settings.DRAIN) as made:
        assert isinstance(made, ClusterV2)
        lab_v2.keep_secrets_in_barbican(made.parameters)
        # v1_life has the other mode for which the machines' kernel is enough. In this
        # one, node ports are at a node's first address only: not the outer one.
        made.parameters["kubespray_vars"] |= {
            "kube_proxy_mode": "nftables",
            "kube_proxy_nodeport_addresses_cidr": "0.0.0.0/0",
        }
        made.instantiate()
        record_testsuite_property("versions", json.dumps(versions(made)))
        yield made


@pytest.fixture(scope="module")
def exposed(lab_v2: RealLabV2, cluster: ClusterV2) -> Iterator[Cnfs]:
    """CNFs that answer through the load balancer."""
    with cnfs.on(lab_v2, cluster, cluster.vim_for_a_cnf()) as made:
        made.instantiate()
        yield made


def test_instantiated(lab_v2: RealLabV2, cluster: ClusterV2) -> None:
    consistent(cluster, 2)
    assert cluster.api("/readyz") == "ok"
    assert cluster.vim_types() == [OPENSTACK, KUBERNETES]


def test_cnf_of_tacker_answers_from_pods_of_two_workers(
    lab_v2: RealLabV2, cluster: ClusterV2
) -> None:
    port = workloads.CNF_PORT
    manifest = workloads.web("web", port, replicas=2, spread=True)
    with lab_v2.cnf_on(cluster.vim_for_a_cnf(), manifest) as cnf:
        cnf.instantiate(level="two")
        assert len({pod["spec"]["nodeName"] for pod in cluster.pods("app=web")}) == 2
        assert len(answering_pods(cluster, port=port)) == 2


def test_workloads_answer_through_every_worker(cluster: ClusterV2) -> None:
    deploy(cluster)
    assert len(answering_pods(cluster)) >= 2


def test_labels_and_taints(cluster: ClusterV2) -> None:
    settings.label(cluster)


def test_maintenance_is_blocked_by_a_budget_first(cluster: ClusterV2) -> None:
    settings.maintain(cluster, lambda _: cluster.handle("retry", "COMPLETED"))


def test_exposed_cnfs_answer_through_the_load_balancer(exposed: Cnfs) -> None:
    exposed.answer()
    exposed.scale("OUT")
    exposed.answer()
    exposed.scale("IN")
    exposed.answer()


def test_scaled_out(cluster: ClusterV2, exposed: Cnfs) -> None:
    before = uids(cluster)
    with exposed.held_open():
        cluster.scale("OUT")
    consistent(cluster, 3)
    assert before.items() <= uids(cluster).items()
    settled(cluster)
    settings.assert_labelled(cluster)
    exposed.answer()


def test_scaled_in(cluster: ClusterV2, exposed: Cnfs) -> None:
    before = uids(cluster)
    newest = by_age(cluster)[-1]
    with exposed.held_open(newest):
        cluster.scale("IN")
    consistent(cluster, 2)
    assert before.keys() - uids(cluster).keys() == {newest}
    assert uids(cluster).items() < before.items()
    settled(cluster)
    exposed.answer()


def test_killed_worker_is_healed(cluster: ClusterV2, exposed: Cnfs) -> None:
    before = uids(cluster)
    address, server = next(iter(cluster.workers().items()))
    with exposed.held_open(named(address)):
        kill(cluster, address, server)
        cluster.heal(server)
    consistent(cluster, 2)
    assert len(before.items() & uids(cluster).items()) == len(before) - 1
    settled(cluster)
    exposed.answer()


def test_load_balancer_is_healed(cluster: ClusterV2, exposed: Cnfs) -> None:
    before = uids(cluster)
    cluster.heal(cluster.server("externalLB"))
    consistent(cluster, 2)
    assert uids(cluster) == before
    exposed.answer()
    exposed.end()


def test_terminate_leaves_nothing(cluster: ClusterV2) -> None:
    cluster.terminate()
    # What was set by requests stays the operator's.
    cluster.theirs = settings.ENTRIES
    cluster.assert_nothing_left()
