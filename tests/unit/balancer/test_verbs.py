# SPDX-License-Identifier: Apache-2.0
"""What each verb changes, and that a second time changes nothing."""

import os
import subprocess
from pathlib import Path

import pytest

from lab import suites
from lab.settings import from_environment
from tests.unit.balancer.sandbox import (
    CONTROL_PLANES,
    INSTALL,
    SCRIPT,
    WORKERS,
    Sandbox,
    each_haproxy,
)

GOLDEN = Path(__file__).parent / "golden" / "haproxy.cfg"
WEB = ("expose", "web", "--port", "80", "--node-port", "30080")
WEB_2 = (
    *("expose", "web-2", "--port", "8080", "--node-port", "30081"),
    *("--protocol", "tcp", "--check-port", "10256"),
)


def workers_of(sandbox: Sandbox) -> list[str]:
    return [worker["name"] for worker in sandbox.status()["workers"]]


def services_of(sandbox: Sandbox) -> list[str]:
    return [service["name"] for service in sandbox.status()["services"]]


def test_first_install_starts_haproxy_and_enables_it(fresh):
    assert fresh.do(*INSTALL) == "changed"
    assert fresh.acts() == ["enable --now haproxy"]


def test_install_on_a_running_haproxy_reloads_and_never_restarts(fresh):
    (fresh.directory / "active").touch()
    fresh.do(*INSTALL)
    assert fresh.acts() == ["reload haproxy"]


def test_systemctl_is_that_of_the_path(fresh):
    path = f"{fresh.directory}:{os.environ['PATH']}"
    result = fresh.run(*INSTALL, LB_SYSTEMCTL="systemctl", PATH=path)
    assert (result.stdout, result.stderr) == ("changed\n", "")
    assert fresh.acts() == ["enable --now haproxy"]


def test_second_install_changes_nothing_whatever_the_order(balancer):
    before = (balancer.written(), balancer.config.stat().st_ino)
    again = ("install", "--api-port", "6443", *reversed_pairs(CONTROL_PLANES + WORKERS))
    assert balancer.do(*again) == "unchanged"
    assert balancer.acts() == []
    assert (balancer.written(), balancer.config.stat().st_ino) == before


def reversed_pairs(options: tuple[str, ...]) -> list[str]:
    pairs = list(zip(options[::2], options[1::2], strict=True))
    return [word for pair in reversed(pairs) for word in pair]


def test_unchanged_install_starts_a_stopped_haproxy(balancer):
    (balancer.directory / "active").unlink()
    assert balancer.do(*INSTALL) == "unchanged"
    assert balancer.acts() == ["enable --now haproxy"]


def test_install_sets_all_nodes_and_keeps_the_exposed_services(balancer):
    balancer.do(*WEB)
    balancer.do("install", "--control-plane", "cp=10.0.0.1", "--worker", "w=10.0.0.2")
    status = balancer.status()
    assert [control_plane["address"] for control_plane in status["control_planes"]] == [
        "10.0.0.1"
    ]
    assert workers_of(balancer) == ["w"]
    assert services_of(balancer) == ["web"]


@each_haproxy
def test_a_cluster_without_workers_is_accepted(fresh):
    fresh.do("install", "--control-plane", "cp=10.0.0.1")
    assert fresh.do(*WEB) == "changed"


def test_hand_edits_are_overwritten(balancer):
    wanted = balancer.config.read_text()
    balancer.config.write_text(f"{wanted}# edited\n")
    assert balancer.do(*INSTALL) == "changed"
    assert balancer.config.read_text() == wanted
    assert balancer.acts() == ["reload haproxy"]


def test_the_distributions_file_is_kept_once(fresh):
    fresh.config.parent.mkdir()
    fresh.config.write_text("global\n    # the distribution's\n")
    fresh.do(*INSTALL)
    fresh.config.write_text("# someone else's\n")
    fresh.do(*INSTALL)
    assert "the distribution's" in fresh.original.read_text()


def test_files_are_readable_and_nothing_temporary_stays(balancer):
    assert sorted(balancer.written()) == ["haproxy.cfg", "load-balancer.state"]
    for path in (balancer.config, balancer.state):
        assert path.stat().st_mode & 0o777 == 0o644


def test_workers_are_added_several_at_once(balancer):
    assert balancer.do("add-worker", "w-b=10.0.0.2", "w-a=10.0.0.1") == "changed"
    assert balancer.acts() == ["reload haproxy"]
    assert {"w-a", "w-b", "worker5", "worker55"} < set(workers_of(balancer))


def test_a_worker_that_is_there_already_is_not_added_twice(balancer):
    assert balancer.do("add-worker", "worker5=10.10.0.15") == "unchanged"
    assert balancer.acts() == []


def test_a_worker_that_came_back_with_another_address_is_replaced(balancer):
    balancer.do("add-worker", "worker5=10.10.0.16")
    addresses = {one["name"]: one["address"] for one in balancer.status()["workers"]}
    assert addresses["worker5"] == "10.10.0.16"


def test_removing_worker5_leaves_worker55(balancer):
    balancer.do(*WEB)
    assert balancer.do("remove-worker", "worker5") == "changed"
    assert workers_of(balancer) == ["worker55", "worker-fd00-7"]
    text = balancer.config.read_text()
    assert "server worker55 10.10.0.155:30080" in text
    assert "server worker5 " not in text


def test_removing_what_is_gone_is_no_change(balancer):
    assert balancer.do("remove-worker", "worker5", "worker55") == "changed"
    balancer.acts()
    assert balancer.do("remove-worker", "worker5", "worker") == "unchanged"
    assert balancer.acts() == []


def test_services_with_similar_names_stay_apart(balancer):
    balancer.do(*WEB)
    balancer.do(*WEB_2)
    assert balancer.do(*WEB_2) == "unchanged"
    assert balancer.do("unexpose", "web") == "changed"
    assert services_of(balancer) == ["web-2"]
    assert balancer.do("unexpose", "web") == "unchanged"
    assert balancer.do("unexpose", "web-2") == "changed"
    assert "service-" not in balancer.config.read_text()


def test_exposing_again_moves_the_service(balancer):
    balancer.do(*WEB)
    balancer.do("expose", "web", "--port", "81", "--node-port", "30080")
    assert [one["port"] for one in balancer.status()["services"]] == [81]


@each_haproxy
def test_an_ipv4_host_gets_ipv4_listeners(fresh):
    fresh.run(*INSTALL, LB_BIND="0.0.0.0")
    assert "    bind 0.0.0.0:6443\n" in fresh.config.read_text()


def test_rendered_configuration_is_the_golden_one(fresh):
    del fresh.environment["LB_HAPROXY_USER"]
    for verb in (INSTALL, WEB, WEB_2):
        fresh.do(*verb)
    text = fresh.config.read_text()
    if os.environ.get("REGENERATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


@each_haproxy
def test_haproxy_takes_the_golden_configuration_without_a_warning(fresh):
    checked = subprocess.run(
        [fresh.environment["LB_HAPROXY"], "-W", "-dW", "-c", "-f", str(GOLDEN)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_haproxy_of_debian_13_takes_it_without_a_warning():
    program = suites.path(from_environment(), suites.HAPROXY_DEBIAN_13)
    asked = [program, "-W", "-dW", "-c", "-f", str(GOLDEN)]
    checked = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_status_before_install(fresh):
    status = fresh.status()
    assert status["api_port"] is None
    assert status["haproxy"]["active"] is False
    assert status["control_planes"] == status["workers"] == status["services"] == []


def test_help_names_every_verb(fresh):
    text = fresh.do("--help")
    for verb in ("install", "add-worker", "remove-worker", "expose", "unexpose"):
        assert f"\n  {verb} " in text
    assert "\n  status\n" in text


@pytest.mark.parametrize(
    "option",
    [
        *("--api-port", "--control-plane", "--worker", "--http-proxy", "--https-proxy"),
        *("--port", "--node-port", "--check-port", "--protocol"),
        *("--health-port", "--source", "--proxy-protocol", "--unexpose"),
    ],
)
def test_help_names_every_option(fresh, option):
    assert f" {option} " in fresh.do("--help").replace("[", " ").replace("(", " ")


@pytest.mark.parametrize("word", ["sed -i", "service restart", "curl", "wget", "eval"])
def test_the_script_does_without(word):
    code = [
        line
        for line in SCRIPT.read_text().splitlines()
        if not line.lstrip().startswith("#")
    ]
    assert not [line for line in code if word in line]


MAIL = ("mail", "--port", "25", "--node-port", "30025")


@each_haproxy
def test_several_services_are_exposed_and_removed_in_one_reload(serving):
    expose = ("expose", "--unexpose", "web", "--unexpose", "none", *MAIL, *WEB_2[1:])
    assert serving.do(*expose) == "changed"
    assert serving.acts() == ["reload haproxy"]
    assert services_of(serving) == ["mail", "web-2"]
    assert serving.do(*expose) == "unchanged"
    # One takes over the port of another in the same change.
    assert serving.do("expose", "--unexpose", "mail", "x", *MAIL[1:]) == "changed"
    assert serving.do("unexpose", "x", "web-2") == "changed"
    assert services_of(serving) == []


@each_haproxy
def test_what_an_earlier_script_would_open_to_all_is_no_service_of_its_state(serving):
    serving.do("expose", *MAIL, "--source", "10.0.0.0/8", "--source", "FD00::/8")
    serving.do(*WEB_2, "--health-port", "32000", "--proxy-protocol", "yes")
    lines = serving.state.read_text().splitlines()[-3:]
    assert lines == [
        "exposure mail tcp 25 30025 30025 10.0.0.0/8,fd00::/8 -",
        "service web 80 30080 30080",
        "exposure web-2 tcp 8080 30081 http:32000 - proxy",
    ]
    mail, web, web_2 = serving.status()["services"]
    assert (mail["sources"], mail["check_port"]) == (["10.0.0.0/8", "fd00::/8"], 30025)
    assert (web["sources"], web["proxy_protocol"]) == ([], False)
    assert (web_2["health_port"], web_2["check_port"]) == (32000, None)
    assert web_2["proxy_protocol"] is True
    assert serving.do("add-worker", "w-9=10.0.0.9") == "changed"
    assert serving.state.read_text().splitlines()[-3:] == lines
