# SPDX-License-Identifier: Apache-2.0
"""Exposure of a CNF on fakes: what is exposed and refused, faults at every step."""

import json
from dataclasses import replace
from functools import partial

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure.cnf_operations import (
    CheckExposure,
    CheckModified,
    Expose,
    Unexpose,
)
from tacker_k8s_mgmt.model.exposure import of_service
from tacker_k8s_mgmt.model.services import Cnf
from tacker_k8s_mgmt.operations.connectivity import ConnectivityEnd
from tacker_k8s_mgmt.operations.terminate import remove_own
from tacker_k8s_mgmt.request import cnf_exposure
from tests.helpers.cnf import CNF, service
from tests.helpers.operations import (
    heal_end,
    heal_start,
    instantiated,
    rebuild,
    run,
)
from tests.helpers.requests import BALANCER, VNF, params

WANTED = params(external_lb_param=BALANCER)
WITHOUT = params(external_lb_param=None)
OTHER_CNF = "0c000001-9c0d-4f4e-8f7a-3b1c5d7e9f01"
OURS = Cnf(CNF, "default")
WEB = service("web", (80, "TCP", 30080))
LB = service("lb", (443, "TCP", 30443), type="LoadBalancer")
OTHERS = replace(LB, name="others", instance=OTHER_CNF)
ADDRESS = "203.0.113.9"
CLOUD = {
    "auth_url": "https://keystone.example:5000/v3",
    "region": "one",
    "application_credential_id": "an-id",
    "application_credential_name": "cluster",
    "application_credential_secret": "s3cret-of-it",
    "cloud_controller": True,
}


@pytest.fixture
def site():
    made = instantiated(WANTED, load_balancer=True)
    made.services = [WEB, LB, OTHERS]
    return made


def exposed(site, raw=None, wanted=WANTED):
    parsed = cnf_exposure.parse(raw)
    return run(Expose, site, wanted, cnf=OURS, params=parsed)


def checked(site, raw):
    site.calls.clear()
    run(CheckModified, site, WANTED, cnf=OURS, params=cnf_exposure.parse(raw))
    assert not any(call.startswith("lock") for call in site.calls)


def unexposed(site, wanted=WANTED):
    return run(Unexpose, site, wanted, owner=CNF)


def kept(site):
    found = map(of_service, site.exposed)
    return [(one.service, one.port) for one in found if one.owner == CNF]


def ingress(site):
    return {one.name: one.ingress for one in site.services}


def test_services_of_the_cnf_are_exposed_and_get_the_address(site):
    exposed(site)
    assert kept(site) == [("web", 30080), ("lb", 443)]
    assert ingress(site) == {
        "web": (),
        "lb": (site.load_balancer.ssh_address,),
        "others": (),
    }


def test_services_that_change_are_followed(site):
    exposed(site)
    site.services = [one for one in site.services if one.name != "web"]
    exposed(site)
    assert kept(site) == [("lb", 443)]
    exposed(site, {"services": []})
    assert kept(site) == []
    assert ingress(site) == {"lb": (), "others": ()}


def test_what_is_so_already_is_not_written_again(site):
    exposed(site)
    site.calls.clear()
    exposed(site)
    assert "cluster.publish" not in site.calls


def test_address_of_another_load_balancer_is_left_alone(site):
    theirs = replace(LB, ingress=(ADDRESS,))
    site.services = [theirs]
    exposed(site)
    unexposed(site)
    assert site.services == [theirs]


def test_address_that_another_controller_took_out_is_written_again(site):
    exposed(site)
    wiped = [replace(one, ingress=(), modes=()) for one in site.services]
    site.services = wiped
    exposed(site)
    assert ingress(site)["lb"] == (site.load_balancer.ssh_address,)


def test_address_that_nodes_take_for_themselves_is_written_anew(site):
    exposed(site)
    site.services = [replace(one, modes=("VIP",)) for one in site.services]
    exposed(site)
    (mode,) = (one.modes for one in site.services if one.name == "lb")
    assert mode == ("Proxy",)


def test_nothing_is_left_after_the_end(site):
    exposed(site)
    unexposed(site)
    assert kept(site) == []
    assert ingress(site) == {"web": (), "lb": (), "others": ()}


@pytest.mark.parametrize("cleared", [True, False])
def test_end_while_the_whole_cluster_is_being_healed(site, cleared):
    """Its VMs are deleted; heal_end has removed its records, or not come to it yet."""
    exposed(site)
    other = Cnf(OTHER_CNF, "default")
    port = {"port": 443, "external_port": 8443}
    elsewhere = cnf_exposure.parse({"services": [{"name": "others", "ports": [port]}]})
    run(Expose, site, WANTED, cnf=other, params=elsewhere)
    remove_own(VNF, site, keep=("exposures.json",) if cleared else tuple(site.files))
    assert ("hosts.yaml" in site.files) != cleared
    site.load_balancer, site.control_planes, site.workers = None, [], []
    for _ in range(2):
        unexposed(site)
        recorded = json.loads(site.files["exposures.json"])
        assert {one["owner"] for one in recorded} == {OTHER_CNF}
    site.files.clear()
    unexposed(site)
    assert site.files == {}


def test_services_that_are_gone_do_not_matter_at_the_end(site):
    exposed(site)
    site.services = []
    unexposed(site)
    assert kept(site) == []


def test_missing_service_is_named_and_nothing_is_exposed(site):
    with pytest.raises(errors.StepFailed, match="there is no Service gone") as caught:
        exposed(site, {"services": [{"name": "gone"}]})
    assert CNF in str(caught.value)
    assert kept(site) == []


def test_load_balancer_service_without_node_ports_is_refused(site):
    site.services = [service("lb", (443, "TCP", None), type="LoadBalancer")]
    with pytest.raises(errors.StepFailed, match="Service lb has no node port"):
        exposed(site)
    assert kept(site) == []


def test_conflict_is_found_before_anything_is_created(site):
    known = partial(cnf_exposure.parse(None).exposures, CNF, [WEB])
    run(CheckExposure, site, WANTED, owner=CNF, expected=known)
    assert not any(call.startswith("lock") for call in site.calls)
    site.services = [replace(WEB, instance=OTHER_CNF)]
    cnf = Cnf(OTHER_CNF, "default")
    run(Expose, site, WANTED, cnf=cnf, params=cnf_exposure.parse(None))
    with pytest.raises(errors.StepFailed) as caught:
        run(CheckExposure, site, WANTED, owner=CNF, expected=known)
    assert "30080/tcp of Service default/web is in use by" in str(caught.value)
    assert OTHER_CNF in str(caught.value)


def test_other_parameters_are_refused_before_they_are_stored(site):
    exposed(site)
    site.services = [LB, OTHERS]
    before = (dict(site.files), site.exposed, ingress(site))
    wanted = {"services": [{"name": "lb", "ports": [{"port": 443}]}]}
    checked(site, wanted)
    wanted["services"][0]["ports"][0]["external_port"] = 6443
    with pytest.raises(errors.StepFailed, match="in use by the Kubernetes API"):
        checked(site, wanted)
    with pytest.raises(errors.StepFailed, match="there is no Service web"):
        checked(site, {"services": [{"name": "web"}]})
    assert before == (dict(site.files), site.exposed, ingress(site))


class TestCloudController:
    """Its load balancers are for Services of that type."""

    WANTED = params(
        external_lb_param=BALANCER,
        cluster={"openstack": CLOUD},
    )

    @pytest.fixture
    def site(self):
        made = instantiated(self.WANTED, load_balancer=True)
        made.services = [WEB, LB, OTHERS]
        return made

    def test_its_services_are_left_to_it(self, site):
        exposed(site, None, self.WANTED)
        assert kept(site) == [("web", 30080)]
        assert ingress(site)["lb"] == ()

    def test_one_that_the_request_names_is_exposed_and_gets_no_address(self, site):
        exposed(site, {"services": [{"name": "lb"}]}, self.WANTED)
        assert kept(site) == [("lb", 443)]
        assert ingress(site)["lb"] == ()

    def test_ports_that_will_not_be_used_are_no_conflict(self, site):
        on_api_port = service("lb", (6443, "TCP", None), type="LoadBalancer")
        known = partial(cnf_exposure.parse(None).exposures, CNF, [on_api_port])
        run(CheckExposure, site, self.WANTED, owner=CNF, expected=known)
        with pytest.raises(errors.StepFailed, match="in use by the Kubernetes API"):
            run(CheckExposure, site, WANTED, owner=CNF, expected=known)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (CheckExposure, {"owner": CNF, "expected": lambda cloud: ()}),
        (CheckModified, {"cnf": OURS, "params": cnf_exposure.parse(None)}),
        (Expose, {"cnf": OURS, "params": cnf_exposure.parse(None)}),
    ],
)
def test_load_balancer_that_is_being_rebuilt_is_waited_for(site, kind, arguments):
    heal_start(site, site.load_balancer.server_id, wanted=WANTED)
    balancer, site.load_balancer = site.load_balancer, None
    with pytest.raises(errors.StepFailed, match="has no complete VM") as caught:
        run(kind, site, WANTED, **arguments)
    assert "Wait for the end of its heal" in str(caught.value)
    # The advice is that for what a retry can fix.
    assert not isinstance(caught.value.__cause__, errors.UnsupportedOperation)
    site.load_balancer = balancer
    run(kind, site, WANTED, **arguments)


class TestClusterWithoutLoadBalancer:
    @pytest.fixture
    def site(self):
        return instantiated(WITHOUT, load_balancer=False)

    @pytest.mark.parametrize(
        ("kind", "arguments"),
        [
            (CheckExposure, {"owner": CNF, "expected": lambda cloud: ()}),
            (Expose, {"cnf": OURS, "params": cnf_exposure.parse(None)}),
        ],
    )
    def test_exposure_is_refused(self, site, kind, arguments):
        with pytest.raises(errors.StepFailed, match="has no external load balancer"):
            run(kind, site, WITHOUT, **arguments)

    def test_there_is_nothing_to_remove(self, site):
        unexposed(site, WITHOUT)
        assert "exposures.json" not in site.files


@pytest.mark.parametrize(
    "fault",
    [
        "lock for 120 s",
        "machines",
        "cluster.services",
        "balancer.status",
        "balancer.expose",
        "cluster.publish",
    ],
)
def test_after_a_fault_at_any_step_it_can_be_run_again(site, fault):
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match="fault in"):
        exposed(site)
    exposed(site)
    assert kept(site) == [("web", 30080), ("lb", 443)]
    assert ingress(site)["lb"] == (site.load_balancer.ssh_address,)
    site.faults.add(fault)
    with pytest.raises(errors.StepFailed, match="fault in"):
        unexposed(site)
    unexposed(site)
    assert kept(site) == []
    assert ingress(site)["lb"] == ()


def test_new_address_of_the_load_balancer_is_written(site):
    exposed(site)
    site.load_balancer = replace(site.load_balancer, ssh_address=ADDRESS)
    exposed(site)
    assert ingress(site)["lb"] == (ADDRESS,)


def test_service_of_another_cnf_keeps_its_address(site):
    """v1: Tacker lists the Services of an instantiation that failed on these names."""
    exposed(site)
    run(Unexpose, site, WANTED, owner=OTHER_CNF)
    assert ingress(site)["lb"] == (site.load_balancer.ssh_address,)
    assert kept(site) == [("web", 30080), ("lb", 443)]


def test_service_gets_the_address_of_a_healed_load_balancer(site):
    exposed(site)
    old = site.load_balancer.server_id
    heal_start(site, old, wanted=WANTED)
    (new,) = rebuild(site, old)
    site.load_balancer = replace(site.load_balancer, ssh_address=ADDRESS)
    heal_end(site, new, wanted=WANTED)
    assert ingress(site) == {"web": (), "lb": (ADDRESS,), "others": ()}


def test_service_gets_the_address_that_the_load_balancer_was_moved_to(site):
    exposed(site)
    site.known = dict(site.stored)
    site.load_balancer = replace(site.load_balancer, ssh_address=ADDRESS)
    run(ConnectivityEnd, site, WANTED)
    assert ingress(site) == {"web": (), "lb": (ADDRESS,), "others": ()}


def test_heal_goes_on_by_retry_when_the_api_is_away(site):
    exposed(site)
    old = site.load_balancer.server_id
    heal_start(site, old, wanted=WANTED)
    (new,) = rebuild(site, old)
    site.faults.add("cluster.services")
    step = "publish its address in the exposed Services"
    with pytest.raises(errors.StepFailed, match=step):
        heal_end(site, new, wanted=WANTED)
    heal_end(site, new, wanted=WANTED)
