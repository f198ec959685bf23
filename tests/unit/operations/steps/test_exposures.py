# SPDX-License-Identifier: Apache-2.0
"""The exposures of CNFs and their record, through whatever happens to the cluster."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.exposure import exposures
from tacker_k8s_mgmt.model.exposure import Exposure, of_service
from tacker_k8s_mgmt.model.load_balancer import ExposedService
from tacker_k8s_mgmt.operations import balancing
from tacker_k8s_mgmt.operations.heal import HealEnd, HealStart
from tacker_k8s_mgmt.operations.state import ClusterState
from tests.helpers import operations
from tests.helpers.fakes.clock import FakeClock
from tests.helpers.fakes.site import FakeSite
from tests.helpers.operations import dependencies, instantiated, rebuild, run
from tests.helpers.requests import params

ONE = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"
TWO = "6ba7b811-9dad-41d1-80b4-00c04fd430c8"
WEB = Exposure(ONE, "shop", "web", "tcp", 80, 30080, sources=("10.0.0.0/8",))
DNS = Exposure(ONE, "shop", "dns", "udp", 53, 30053, check_port=32000)
OTHER = Exposure(TWO, "shop", "web", "tcp", 8080, 30081, proxy_protocol=True)
FILE = "exposures.json"


def state_of(site: FakeSite, wanted: Any = None) -> ClusterState:
    state = ClusterState(dependencies(wanted or params(), site, FakeClock()))
    state.machines = site.machines()
    return state


def put(site: FakeSite, owner: str, *wanted: Exposure) -> None:
    exposures.set_exposures(state_of(site), owner, wanted)


def on_balancer(site: FakeSite) -> set[Exposure | None]:
    return {of_service(service) for service in site.exposed}


def record(site: FakeSite) -> set[Exposure]:
    return set(exposures.recorded_exposures(state_of(site)))


def calls(site: FakeSite) -> list[str]:
    made = [call for call in site.calls if call == "balancer.expose"]
    site.calls.clear()
    return made


def test_the_set_of_one_owner_becomes_what_is_wanted_in_one_change() -> None:
    site = instantiated()
    put(site, ONE, WEB, DNS)
    assert len(calls(site)) == 1
    put(site, TWO, OTHER)
    assert on_balancer(site) == record(site) == {WEB, DNS, OTHER}
    moved = replace(WEB, node_port=30090)
    calls(site)
    put(site, ONE, moved)
    assert len(calls(site)) == 1
    assert on_balancer(site) == record(site) == {moved, OTHER}
    put(site, ONE, moved)
    assert calls(site) == []
    put(site, ONE)
    assert on_balancer(site) == record(site) == {OTHER}


def test_a_port_without_node_port_is_sent_to_no_script() -> None:
    site = instantiated()
    with pytest.raises(errors.ExposureError, match="80/tcp of Service shop/web has no"):
        put(site, ONE, replace(WEB, node_port=0), DNS)
    assert calls(site) == []
    assert record(site) == set()


def test_all_conflicts_are_named_with_their_owner_before_anything_changes() -> None:
    site = instantiated()
    by_hand = ExposedService("ntp", 123, 30123, servers=(), protocol="udp")
    site.exposed = (by_hand,)
    put(site, TWO, OTHER)
    before = (dict(site.files), site.exposed)
    wanted = [
        replace(WEB, port=8080),
        replace(WEB, port=6443),
        replace(WEB, port=8404),
        replace(WEB, port=22),
        replace(DNS, port=123),
        replace(DNS, port=8080),
        WEB,
        replace(WEB, service="second"),
    ]
    with pytest.raises(errors.ExposureError) as caught:
        put(site, ONE, *wanted)
    ports = (8080, 6443, 8404, 22)
    users = (
        f"Service shop/web of the CNF {TWO}",
        "the Kubernetes API",
        "HAProxy's statistics",
        "SSH",
    )
    assert caught.value.problems == (
        *(
            f"port {port}/tcp of Service shop/web is in use by {user}"
            for port, user in zip(ports, users, strict=True)
        ),
        "port 123/udp of Service shop/dns is in use by ntp, which was exposed by hand",
        "port 80/tcp of Service shop/second is in use by its own Service shop/web",
    )
    assert (site.files, site.exposed) == before


def test_a_refusal_of_the_script_brings_the_former_record_back() -> None:
    site = instantiated()
    put(site, ONE, WEB)
    site.faults = {"balancer.expose"}
    site.error = errors.LoadBalancerError(host="h", verb="expose", reason="in use")
    with pytest.raises(errors.LoadBalancerError):
        put(site, ONE, DNS)
    assert on_balancer(site) == record(site) == {WEB}


@pytest.mark.parametrize("fault", ["balancer.status", "balancer.expose"])
def test_what_the_balancer_did_not_get_is_recorded_and_follows(fault: str) -> None:
    site = instantiated()
    put(site, ONE, WEB)
    put(site, TWO, OTHER)
    site.faults = {fault}
    with pytest.raises(errors.RemoteError):
        put(site, ONE)
    assert record(site) == {OTHER}
    assert on_balancer(site) == {WEB, OTHER}
    put(site, TWO, OTHER)
    assert on_balancer(site) == {OTHER}


@pytest.mark.parametrize("spoiled", [None, "", "{", '[{"owner": 1}]'])
def test_a_lost_or_spoiled_record_is_rebuilt_by_the_balancer(
    spoiled: str | None,
) -> None:
    site = instantiated()
    put(site, ONE, WEB, DNS)
    before = site.files.pop(FILE)
    if spoiled is not None:
        site.files[FILE] = spoiled
    put(site, TWO, OTHER)
    put(site, TWO)
    assert site.files[FILE] == before
    assert on_balancer(site) == {WEB, DNS}


def test_a_cluster_without_a_balancer_only_loses_the_record() -> None:
    site = instantiated()
    put(site, ONE, WEB)
    site.load_balancer = None
    put(site, ONE)
    assert json.loads(site.files[FILE]) == []


def test_a_spoiled_record_is_not_lost_with_the_balancer() -> None:
    """Nothing else says what the other CNFs have."""
    site = instantiated()
    put(site, ONE, WEB)
    site.load_balancer = None
    site.files[FILE] = "{"
    with pytest.raises(errors.DamagedFile, match="heal each CNF after that"):
        put(site, TWO)
    assert site.files[FILE] == "{"


@pytest.mark.parametrize("answers", [True, False])
def test_they_survive_a_heal_of_the_load_balancer(answers: bool) -> None:
    site = instantiated()
    put(site, ONE, WEB, DNS)
    put(site, TWO, OTHER)
    by_hand = ExposedService("ntp", 123, 30123, servers=(), check_port=30123)
    site.exposed = (*site.exposed, by_hand)
    state = state_of(site)
    balancing.status(state)
    assert site.load_balancer
    old = site.load_balancer.server_id
    if not answers:
        site.faults = {"balancer.status"}
    run(HealStart, site, servers={old: "vnfc"})
    (new,) = rebuild(site, old)
    site.exposed = ()
    run(HealEnd, site, servers={new: "vnfc"})
    assert on_balancer(site) == {None, WEB, DNS, OTHER}
    assert by_hand in site.exposed
    assert record(site) == {WEB, DNS, OTHER}


def test_they_survive_a_heal_of_the_whole_vnf() -> None:
    site = instantiated()
    put(site, ONE, WEB, DNS)
    operations.heal_all_start(site)
    operations.replace_all(site)
    operations.heal_all_end(site)
    assert on_balancer(site) == record(site) == {WEB, DNS}


def test_the_cluster_is_not_terminated_while_cnfs_are_exposed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = instantiated()
    deps = dependencies(params(), site, FakeClock())
    (step,) = ClusterState(deps).terminating(forced=False)
    assert not ClusterState(deps).terminating(forced=True)
    step.take()
    put(site, ONE, WEB)
    with pytest.raises(errors.ClusterError) as caught:
        step.take()
    assert f"{ONE} (port 80/tcp of Service shop/web)" in str(caught.value)
    assert "FORCEFUL" in str(caught.value)
    put(site, ONE)
    step.take()
    site.files[FILE] = "{"
    step.take()
    assert "Whether CNFs are exposed is not known" in caplog.text


def test_the_first_udp_port_goes_through_the_proxy() -> None:
    url = "http://user:s3cret@proxy:3128"
    wanted = params(proxy={"http_proxy": url})
    site = instantiated(wanted)
    seen: list[Any] = []
    balancer = site.balancer

    def noted(machine: Any) -> Any:
        remote = balancer(machine)
        call = remote.call
        remote.call = lambda one: (seen.append(one), call(one))[1]  # type: ignore
        return remote

    site.balancer = noted
    exposures.set_exposures(state_of(site, wanted), ONE, (DNS,))
    exposures.set_exposures(state_of(site, wanted), ONE, (WEB,))
    udp, tcp = seen
    assert udp.arguments[-2:] == ("--http-proxy", "-")
    assert (udp.stdin, udp.limit) == (f"{url}\n", None)
    assert "s3cret" not in repr(udp)
    assert (tcp.stdin, tcp.limit is None) == ("", False)


def test_its_name_has_everything_that_the_record_needs() -> None:
    for one in (WEB, DNS, OTHER):
        assert of_service(one.on_balancer()) == one
    for name in ("web", "shop.web.tcp.80", f"{ONE}.shop.web.sctp.80"):
        assert of_service(ExposedService(name, 80, 30080, servers=())) is None
