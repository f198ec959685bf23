# SPDX-License-Identifier: Apache-2.0
"""The look at the pod network: who measures with whom, what a failure leaves."""

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.operations.instantiate import Instantiate
from tests.helpers.control_planes import AvailableSite
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import (
    FIFTY_FIVE,
    FIVE,
    MASTER,
    SEVEN,
    SIX,
    grown,
    heal_end,
    heal_start,
    instantiated,
    rebuild,
    run,
    scale_out,
)
from tests.helpers.requests import params

MEASURE = "pod_network.measure"


def test_instantiation_looks_between_the_control_plane_and_all_workers():
    site = FakeSite()
    run(Instantiate, site)
    assert site.pod_probes == [(MASTER, [FIVE, FIFTY_FIVE])]


def test_instantiation_fails_before_the_cluster_is_a_vim_and_goes_on():
    site = FakeSite()
    site.pod_sizes[MASTER, FIVE] = 0
    with pytest.raises(errors.StepFailed, match="verify the pod network") as caught:
        run(Instantiate, site)
    assert f"from a pod on {MASTER} to one on {FIVE} no UDP" in str(caught.value)
    assert f"on {FIFTY_FIVE} no UDP" not in str(caught.value)
    assert site.vim is None
    site.pod_sizes.clear()
    run(Instantiate, site)
    assert site.vim is not None


@pytest.mark.parametrize("fault", [MEASURE, "lost"])
def test_scale_out_fails_before_traffic_is_led_to_the_worker(fault):
    site = grown(6, 7)
    if fault == "lost":
        site.pod_sizes[SIX, FIVE] = 0
    else:
        site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match="verify the pod network") as caught:
        scale_out(site, "server-6", "server-7", takes_back=False)
    assert isinstance(caught.value.__cause__, errors.RemoteError) is (fault == MEASURE)
    assert SIX not in {name for name, _ in site.routes}
    site.pod_sizes.clear()
    scale_out(site, "server-6", "server-7", takes_back=False)
    # A worker that was there is the counterpart, and nothing is scaled twice.
    assert site.pod_probes[-1] == (FIVE, [SIX, SEVEN])
    assert [one.name for one in site.runs] == ["facts", "scale"]
    assert {SIX, SEVEN} <= {name for name, _ in site.routes}
    site.changes.clear()
    site.pod_probes.clear()
    scale_out(site, "server-6", "server-7")
    assert site.changes == site.pod_probes == []


def test_scale_out_of_the_v1_api_is_taken_back():
    site = grown(6)
    site.pod_service = "timed out"
    with pytest.raises(errors.StepFailed, match=r"Service 10\.233\.0\.1 cannot"):
        scale_out(site, "server-6")
    assert SIX not in {*site.members, *site.listed}


def test_counterpart_is_a_node_that_is_well():
    site = grown(6)
    site.kill("server-5")
    scale_out(site, "server-6")
    assert site.pod_probes == [(FIFTY_FIVE, [SIX])]
    site = grown(6)
    site.dead.update(("server-5", "server-55"))  # they refuse logins, and are Ready
    scale_out(site, "server-6")
    assert site.pod_probes == [(MASTER, [SIX])]


def test_heal_of_a_worker_goes_on_after_a_failure():
    site = instantiated()
    heal_start(site, "server-5")
    servers = rebuild(site, "server-5")
    site.pod_sizes[FIVE, FIFTY_FIVE] = 1350
    with pytest.raises(errors.StepFailed, match=f"{FIVE} stay in the inventory") as e:
        heal_end(site, *servers)
    assert "packets of 1350 bytes arrive, but with DF set none of 1400" in str(e.value)
    site.pod_sizes.clear()
    heal_end(site, *servers)
    assert site.pod_probes == 2 * [(FIFTY_FIVE, [FIVE])]
    assert [one.name for one in site.runs] == ["remove-node", "facts", "scale"]
    assert FIVE in {name for name, _ in site.routes}


def test_heal_of_a_control_plane_goes_on_after_a_failure():
    site = AvailableSite()
    heal_start(site, "server-2", wanted=site.wanted)
    servers = site.rebuild("server-2")
    site.pod_probes.clear()
    site.faults.add(MEASURE)
    for _ in range(2):
        with pytest.raises(errors.StepFailed, match="of the control plane"):
            heal_end(site, *servers, wanted=site.wanted)
        site.pod_service = "timed out"
    assert "control-plane-10-10-0-2" not in dict(site.balanced.control_planes)
    site.pod_service = ""
    heal_end(site, *servers, wanted=site.wanted)
    assert set(dict(site.balanced.control_planes)) >= {"control-plane-10-10-0-2"}
    assert site.pod_probes == 2 * [(FIVE, ["control-plane-10-10-0-2"])]


@pytest.mark.parametrize("operation", ["instantiate", "scale", "heal"])
def test_nothing_is_looked_at_if_the_request_does_not_want_it(operation):
    wanted = params(cluster={"verify_pod_network": False})
    site = FakeSite()
    site.pod_service = "timed out"
    run(Instantiate, site, wanted)
    if operation == "scale":
        site.workers += grown(6).workers[-1:]
        scale_out(site, "server-6", wanted=wanted)
    elif operation == "heal":
        heal_start(site, "server-5", wanted=wanted)
        heal_end(site, *rebuild(site, "server-5"), wanted=wanted)
    assert site.pod_probes == []


@pytest.mark.parametrize(
    ("cluster", "kubespray_vars", "hints"),
    [
        ({}, {}, {"VXLAN (calico: UDP 4789"}),
        ({"network": {"encapsulation": "ipip"}}, {}, {"IP in IP (protocol 4)"}),
        ({"network": {"encapsulation": "none"}}, {}, {"allowed_address_pairs"}),
        ({"network": {"plugin": "kube-router"}}, {}, {"allowed_address_pairs"}),
        ({}, {"kube_network_plugin": "flannel"}, {"VXLAN"}),
        (
            {"network": {"plugin": "custom_cni"}},
            {},
            {"allowed_address_pairs", "packets of their own"},
        ),
    ],
)
def test_hint_fits_the_encapsulation(cluster, kubespray_vars, hints):
    site = FakeSite()
    site.pod_sizes[MASTER, FIVE] = site.pod_sizes[FIVE, MASTER] = 0
    wanted = params(cluster=cluster, kubespray_vars=kubespray_vars)
    with pytest.raises(errors.StepFailed) as caught:
        run(Instantiate, site, wanted)
    cause = caught.value.__cause__
    assert isinstance(cause, errors.PodNetworkError)
    assert len(cause.problems) == 2
    known = {"VXLAN", "IP in IP", "allowed_address_pairs", "packets of their own"}
    assert {word for word in known if word in cause.hint} == {
        word for word in known if any(word in hint for hint in hints)
    }
