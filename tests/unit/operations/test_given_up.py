# SPDX-License-Identifier: Apache-2.0
"""Workers that a scale-in or heal leaves halfway when it is abandoned."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.table import FEATURES
from tacker_k8s_mgmt.operations.cluster_check import ClusterInspection
from tacker_k8s_mgmt.operations.heal import HealStart
from tacker_k8s_mgmt.operations.scale import ScaleIn
from tests.helpers.fakes.cluster import FakeCluster
from tests.helpers.operations import FIVE, instantiated, run
from tests.helpers.requests import VNF, params

DRAINED = "drained and out of the load balancer"
ROUTE = f"`sudo bash lb.sh add-worker {FIVE}=10.10.0.5`"
UNCORDON = f"`kubectl uncordon {FIVE}`"
JOIN = "The next scale-out, or heal of a VNFC, makes it a member."
OPERATIONS = [
    (ScaleIn, {"stacks": {"member-server-5"}, "size": 1}),
    (HealStart, {"servers": {"server-5": "vnfc-5"}}),
]


def remedies(site):
    rows = ClusterInspection(params(), VNF, site, features=FEATURES).take().rows
    return [finding.remedy.text for row in rows for finding in row.findings]


@pytest.mark.parametrize(
    ("fault", "how", "ways"),
    [
        ("balancer.remove-worker", "without their routes", []),
        ("cluster.cordon", "cordoned and out of the load balancer", [ROUTE]),
        ("run remove-node", DRAINED, [UNCORDON, ROUTE]),
        ("cluster.remove_nodes", DRAINED, [JOIN]),
    ],
)
@pytest.mark.parametrize(("kind", "arguments"), OPERATIONS)
def test_error_and_check_say_how_the_worker_is_given_back(
    kind, arguments, fault, how, ways
):
    site = instantiated()
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed) as caught:
        run(kind, site, **arguments)
    text = str(caught.value)
    assert f"Left as they are: {FIVE}, {how}." in text
    assert f"`tacker-k8s-mgmt cluster check {VNF}` prints the commands" in text
    found = remedies(site)
    assert len(found) == len(ways)
    assert [way for way in ways if any(way in one for one in found)] == ways


@pytest.mark.parametrize(("kind", "arguments"), OPERATIONS)
def test_commands_give_it_back(kind, arguments):
    site = instantiated()
    site.faults.add("run remove-node")
    with pytest.raises(errors.StepFailed):
        run(kind, site, **arguments)
    FakeCluster(site).uncordon([FIVE])
    site.routes |= {(FIVE, "10.10.0.5")}
    assert remedies(site) == []


def test_without_a_load_balancer_no_route_is_named():
    wanted = params(external_lb_param=None)
    site = instantiated(wanted, load_balancer=False)
    site.faults.add("run remove-node")
    with pytest.raises(errors.StepFailed, match=rf"are: {FIVE}, drained\."):
        run(ScaleIn, site, wanted, stacks={"member-server-5"}, size=1)


def test_after_a_blocked_drain_nothing_is_left():
    site = instantiated()
    site.budget = "pod web is kept by budget web-pdb"
    site.pods = {FIVE: ["web"]}
    with pytest.raises(errors.StepFailed, match="No node was removed") as caught:
        run(ScaleIn, site, stacks={"member-server-5"}, size=1)
    assert "cluster check" not in str(caught.value)
    assert remedies(site) == []
