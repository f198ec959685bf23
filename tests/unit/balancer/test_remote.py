# SPDX-License-Identifier: Apache-2.0
"""The steps of an operation and the code that calls the script over SSH."""

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model import load_balancer
from tacker_k8s_mgmt.model.load_balancer import (
    BalancerStatus,
    ExposedService,
    InstallOption,
    ScriptCall,
    Server,
    expose,
    parse_status,
    unusable,
)
from tacker_k8s_mgmt.model.nodes import Node, Role
from tacker_k8s_mgmt.operations import balancing as steps
from tacker_k8s_mgmt.operations.records import Healing
from tacker_k8s_mgmt.operations.state import ClusterState
from tacker_k8s_mgmt.remote.balancer_vm import Balancer
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tacker_k8s_mgmt.request.installation import LoadBalancer
from tests.unit.balancer.sandbox import SCRIPT, Sandbox


def node(role: Role, name: str, address: str) -> Node:
    return Node(role, f"server of {name}", "192.0.2.1", address, name=name)


def worker(name: str, address: str = "10.0.0.9") -> Node:
    return node(Role.WORKER, name, address)


NODES = (
    node(Role.CONTROL_PLANE, "cp-1", "10.0.0.1"),
    node(Role.CONTROL_PLANE, "cp-2", "fd00::2"),
    worker("w-1", "10.0.0.3"),
)


def state(
    balancer: Balancer,
    *,
    services: Sequence[ExposedService] = (),
    written: dict[str, object] | None = None,
    **proxies: SecretStr,
) -> ClusterState:
    """What the steps read of a cluster's state, with this load balancer."""
    urls: dict[str, Any] = {"http_proxy": None, "https_proxy": None, **proxies}
    wanted = LoadBalancer.model_construct(api_port=8443)
    params = SimpleNamespace(load_balancer=wanted, proxy=SimpleNamespace(**urls))
    parts = SimpleNamespace(
        machines=SimpleNamespace(load_balancer=SimpleNamespace(server_id="lb")),
        healing=Healing(),
        params=params,
        site=SimpleNamespace(balancer=lambda machine: balancer),
        records=SimpleNamespace(services=lambda: services),
        works=(),
        in_service=lambda node: True,
        write_json=({} if written is None else written).__setitem__,
    )
    return cast(ClusterState, parts)


def install(balancer: Balancer, **proxies: SecretStr) -> None:
    steps.install(state(balancer, **proxies), NODES)


def test_install_names_every_node():
    host = LocalHost({})
    install(Balancer(host, own(":")))
    assert host.commands[-1][0][2:] == (
        "install",
        *("--api-port", "8443"),
        *("--control-plane", "cp-1=10.0.0.1", "--control-plane", "cp-2=fd00::2"),
        *("--worker", "w-1=10.0.0.3"),
    )


def test_each_verb_has_its_time_limit():
    host = LocalHost({})
    cluster = state(
        Balancer(host, own("echo {}"), install_limit=901),
        services=[ExposedService("web", 80, 30080, servers=())],
    )
    steps.install(cluster, NODES)
    steps.add(cluster, NODES)
    steps.remove(cluster, NODES)
    steps.restore_services(cluster)
    with pytest.raises(errors.LoadBalancerError, match="no status report"):
        steps.status(cluster)
    verbs = [argv[2] for argv, _ in host.commands]
    assert dict(zip(verbs, host.limits, strict=True)) == {
        "install": 901,
        "add-worker": 420,
        "remove-worker": 420,
        "expose": 420,
        "status": 60,
    }


def test_locale_of_the_vm_does_not_matter(fresh, decimal_comma):
    host = LocalHost({**fresh.environment, **decimal_comma})
    balancer = Balancer(host, SCRIPT.read_bytes())
    install(balancer)
    assert balancer.status().api_port == 8443


HAPROXY = '{"active": true, "enabled": true, "current": true}'
REPORT = (
    '{{"format": 1, "haproxy": {haproxy}, "control_planes": [], "workers": [], '
    '"services": [], "api_port": {more}}}'
)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("HAProxy is active", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="an empty object"),
        pytest.param('{"format": 2}', id="another format"),
        pytest.param(REPORT.format(haproxy=HAPROXY, more='"true"'), id="a text"),
        pytest.param(REPORT.format(haproxy=HAPROXY, more="true"), id="no port"),
        pytest.param('{"format": 1, "haproxy": null, "workers": []}', id="a hole"),
    ],
)
def test_what_is_no_status_report_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_status(text)


class LocalHost:
    """A load balancer's VM: commands run here, in the sandbox, without sudo."""

    host = "10.99.0.12"

    def __init__(self, environment: Mapping[str, str], sudo: str = "") -> None:
        self.environment = dict(environment)
        self.sudo_warning = sudo
        self.commands: list[tuple[tuple[str, ...], bool]] = []
        self.limits: list[float] = []
        self.inputs: list[bytes | str | None] = []
        self.directories: list[Path] = []

    @property
    def redact(self) -> Callable[[str], str]:
        return lambda text: text.replace("s3cret", "***")

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | str | None = None,
        timeout: float,
        sudo: bool = False,
        check: bool = True,
    ) -> Result:
        assert not check
        self.limits.append(timeout)
        self.commands.append((tuple(argv), sudo))
        self.inputs.append(stdin)
        done = subprocess.run(
            list(argv),
            env=self.environment,
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return Result(done.returncode, done.stdout, self.sudo_warning + done.stderr)

    def copy(self, data: bytes, path: str, mode: int) -> None:
        Path(path).write_bytes(data)
        Path(path).chmod(mode)

    @contextmanager
    def scratch(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory() as directory:
            self.directories.append(Path(directory))
            yield directory


def test_install_and_status_work_with_the_real_script(fresh):
    host = LocalHost(fresh.environment)
    balancer = Balancer(host, SCRIPT.read_bytes())
    install(balancer)
    assert balancer.status() == BalancerStatus(
        active=True,
        enabled=True,
        current=False,
        options={"api_port": 8443},
        control_planes=(Server("cp-1", "10.0.0.1"), Server("cp-2", "fd00::2")),
        workers=(Server("w-1", "10.0.0.3"),),
        services=(),
    )
    assert [sudo for _, sudo in host.commands] == [True, True]
    (directory,) = host.directories
    balancer.close()
    assert not directory.exists()


def own(text: str, contract: int = 1) -> bytes:
    """A script of a package's own that says that it keeps the contract."""
    marker = f"# tacker-k8s-mgmt load-balancer contract: {contract}"
    return f"{marker}\n{text}\n".encode()


def test_the_script_says_that_it_keeps_the_contract():
    assert unusable(SCRIPT.read_bytes()) == ""
    assert unusable(own("exit 1")) == ""


def test_one_that_is_older_than_the_line_is_taken_for_its_verbs():
    older = SCRIPT.read_bytes().replace(b"load-balancer contract: 2", b"")
    assert older != SCRIPT.read_bytes()
    assert unusable(older) == ""
    assert "there is none" in unusable(older.replace(b"unexpose", b""))


def test_the_script_of_a_later_driver_is_run(fresh):
    later = SCRIPT.read_bytes().replace(b"contract: 2", b"contract: 12")
    balancer = Balancer(LocalHost(fresh.environment), later)
    install(balancer)
    assert balancer.status().api_port == 8443


UDP = ScriptCall("expose", ("dns",), contract=2, feature="UDP services")


def test_what_needs_a_later_script_is_named_and_not_called():
    host = LocalHost({})
    balancer = Balancer(host, own("exit 1"))
    with pytest.raises(errors.LoadBalancerError) as caught:
        balancer.call(UDP)
    text = str(caught.value)
    assert "refused `expose`: the package's script was not run: a script for" in text
    assert "for UDP services has the line `# tacker-k8s-mgmt load-balancer con" in text
    assert "contract: 2`, or a higher number, and it keeps contract 1: it does" in text
    assert "Build the package with `tacker-k8s-mgmt csar build`" in text
    assert (host.commands, host.directories) == ([], [])


@pytest.mark.parametrize("contract", [1, 2])
def test_what_needs_no_later_script_is_called(contract):
    assert Balancer(LocalHost({}), own("echo $1", 1)).call(ScriptCall("x")) == "x\n"
    balancer = Balancer(LocalHost({}), own("echo $1", 1 + contract))
    assert balancer.call(UDP) == "expose\n"


def test_warnings_of_the_script_are_logged_once(caplog):
    host = LocalHost({}, sudo="sudo: unable to resolve host lb\n")
    balancer = Balancer(host, own("echo 'warning: s3cret is ignored' >&2; echo done"))
    for _ in range(2):
        assert balancer.call(ScriptCall("frob")) == "done\n"
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == "Load balancer 10.99.0.12: *** is ignored"


@pytest.mark.parametrize(
    ("script", "found"),
    [
        pytest.param(b"#!/bin/bash\ngetopts m:w: o\n", "there is none", id="none"),
        pytest.param(b"", "there is none", id="empty"),
        pytest.param(b"\xff\x00", "there is none", id="binary"),
        pytest.param(b"echo " + own("").strip(), "there is none", id="inside a line"),
        pytest.param(own("", 0), "there is none", id="contract 0"),
    ],
)
def test_a_script_that_does_not_is_not_even_sent(script, found):
    host = LocalHost({})
    with pytest.raises(errors.LoadBalancerError) as caught:
        install(Balancer(host, script))
    assert found in str(caught.value)
    assert "Build the package with `tacker-k8s-mgmt csar build`" in str(caught.value)
    assert (host.commands, host.directories) == ([], [])


def test_nothing_stays_of_the_script_when_it_fails():
    host = LocalHost({})
    balancer = Balancer(host, own("exit 1"))
    with pytest.raises(errors.LoadBalancerError):
        balancer.status()
    balancer.close()
    assert [path.exists() for path in host.directories] == [False]


def test_exposed_services_are_read(serving):
    status = Balancer(LocalHost(serving.environment), SCRIPT.read_bytes()).status()
    (service,) = status.services
    assert (service.name, service.port, service.node_port) == ("web", 80, 30080)
    assert [server.address for server in service.servers] == [
        "10.10.0.15",
        "10.10.0.155",
        "fd00::7",
    ]


def names(balancer: Balancer) -> dict[str, str]:
    return {worker.name: worker.address for worker in balancer.status().workers}


def test_workers_come_and_go_by_their_whole_names(balancer):
    host = LocalHost(balancer.environment)
    remote = Balancer(host, SCRIPT.read_bytes())
    before = names(remote)
    assert {"worker5", "worker55"} < set(before)
    more = {"worker6": "10.10.0.16", "worker7": "fd00::8"}
    for _ in range(2):
        steps.add(state(remote), [worker(*route) for route in more.items()])
        assert names(remote) == {**before, **more}
    leaving = [worker(name) for name in ("worker5", "worker7", "never-there")]
    for _ in range(2):
        steps.remove(state(remote), leaving)
        assert "worker55" in names(remote)
        assert not {"worker5", "worker7"} & set(names(remote))
    verbs = [argv[2] for argv, _ in host.commands if argv[2] != "status"]
    assert verbs == ["add-worker"] * 2 + ["remove-worker"] * 2, "one call for all"


def test_no_workers_are_no_call():
    host = LocalHost({})
    remote = Balancer(host, own("exit 1"))
    cluster = state(remote)
    steps.add(cluster, [])
    steps.add(cluster, NODES[:2])  # control planes
    steps.remove(cluster, [])
    steps.restore_services(cluster)
    assert host.commands == []


@pytest.mark.parametrize(
    ("service", "arguments"),
    [
        (
            ExposedService("web", 80, 30080, servers=()),
            ("web", "--port", "80", "--node-port", "30080"),
        ),
        (
            ExposedService("web", 80, 30080, servers=(), check_port=30081),
            ("web", "--port", "80", "--node-port", "30080", "--check-port", "30081"),
        ),
    ],
)
def test_arguments_of_expose(service, arguments):
    assert expose([service]) == ScriptCall("expose", arguments)


def test_what_earlier_scripts_do_not_know_needs_contract_2():
    web = ExposedService("web", 80, 30080, servers=())
    dns = ExposedService("dns", 53, 30053, (), protocol="udp", health_port=32000)
    mail = replace(
        web, name="mail", proxy_protocol=True, sources=("10.0.0.0/8", "::/0")
    )
    call = expose([web, dns, mail], gone=["a", "b"])
    assert call.arguments == (
        *("--unexpose", "a", "--unexpose", "b"),
        *("web", "--port", "80", "--node-port", "30080"),
        *("dns", "--port", "53", "--node-port", "30053"),
        *("--protocol", "udp", "--health-port", "32000"),
        *("mail", "--port", "80", "--node-port", "30080", "--proxy-protocol", "yes"),
        *("--source", "10.0.0.0/8", "--source", "::/0"),
    )
    alone = [expose([one]) for one in (web, dns, mail)]
    assert [one.contract for one in (*alone, call, expose([], ["a"]))] == [
        1,
        2,
        2,
        2,
        2,
    ]
    old = Balancer(LocalHost({}), own("exit 1"))
    with pytest.raises(errors.LoadBalancerError, match="the exposure of CNFs"):
        old.call(call)


def test_what_was_exposed_can_be_exposed_again(serving, tmp_path_factory):
    old = Balancer(LocalHost(serving.environment), SCRIPT.read_bytes())
    serving.do(
        "expose", "dns", "--port", "53", "--node-port", "30053", "--check-port", "31"
    )
    written: dict[str, object] = {}
    noted = steps.status(state(old, written=written)).services
    assert written == {
        "services.json": [
            {"name": "dns", "port": 53, "node_port": 30053, "check_port": 31},
            {"name": "web", "port": 80, "node_port": 30080, "check_port": 30080},
        ]
    }
    assert [(one.name, one.check_port) for one in noted] == [
        ("dns", 31),
        ("web", 30080),
    ]
    anew = LocalHost(
        Sandbox(tmp_path_factory.mktemp("anew"), serving.haproxy).environment
    )
    new = Balancer(anew, SCRIPT.read_bytes())
    install(new)
    steps.restore_services(state(new, services=noted))
    seen = [(one.name, one.port, one.node_port, one.check_port) for one in noted]
    assert [
        (one.name, one.port, one.node_port, one.check_port)
        for one in new.status().services
    ] == seen


@pytest.mark.parametrize(
    ("step", "verb"),
    [
        (lambda cluster: steps.add(cluster, [worker("w")]), "add-worker"),
        (lambda cluster: steps.remove(cluster, [worker("w")]), "remove-worker"),
        (steps.restore_services, "expose"),
    ],
)
def test_a_change_that_fails_says_which(step, verb):
    balancer = Balancer(LocalHost({}), own("echo 'haproxy refuses it' >&2; exit 1"))
    with pytest.raises(errors.LoadBalancerError) as caught:
        step(state(balancer, services=[ExposedService("w", 1, 2, servers=())]))
    assert f"refused `{verb}`: haproxy refuses it." in str(caught.value)


def test_both_proxies_travel_on_standard_input():
    host = LocalHost({})
    script = own("read -r a; read -r b; [[ $a$b == http://u:*@onehttp://u:*@two ]]")
    install(
        Balancer(host, script),
        http_proxy=SecretStr("http://u:pr0xy-pa55@one"),
        https_proxy=SecretStr("http://u:pr0xy-pa55@two"),
    )
    argv, _ = host.commands[-1]
    assert argv[-4:] == ("--http-proxy", "-", "--https-proxy", "-")
    assert "pr0xy-pa55" not in str(host.commands)


def test_a_proxy_for_https_alone_is_the_only_line():
    host = LocalHost({})
    script = own("read -r a; [[ $a == http://p ]] && ! read -r b")
    install(Balancer(host, script), https_proxy=SecretStr("http://p"))
    assert host.commands[-1][0][-2:] == ("--https-proxy", "-")


def test_the_representation_of_a_call_has_no_password():
    assert "pr0xy-pa55" not in repr(
        ScriptCall("install", stdin="http://u:pr0xy-pa55@p")
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param("echo 'port 80 is used' >&2; exit 1", "port 80 is used.", id="1"),
        pytest.param("echo 'no s3cret.' >&2; exit 1", "no ***.", id="redacted"),
        pytest.param("exit 3", "exit code 3 and no message.", id="silent"),
    ],
)
def test_a_failure_carries_the_scripts_line(script, reason):
    host = LocalHost({}, sudo="sudo: unable to resolve host lb\n")
    if script == "exit 3":
        host.sudo_warning = ""
    with pytest.raises(errors.LoadBalancerError) as caught:
        install(Balancer(host, own(script)))
    assert str(caught.value).startswith(
        f"The load balancer on 10.99.0.12 refused `install`: {reason} Its earlier"
    )


TIMEOUT = InstallOption(
    "client_timeout", 90, "clients wait for {actual}, not for {wanted}", contract=3
)


class TestInstallOption:
    def test_one_that_is_given_demands_its_contract(self):
        port = InstallOption("api_port", 6443, "{actual} {wanted}")
        call = load_balancer.install((port, TIMEOUT))
        words = ("--api-port", "6443", "--client-timeout", "90")
        assert call == ScriptCall(
            "install", words, "", None, 3, "external_lb_param.client_timeout"
        )
        without = replace(TIMEOUT, wanted=None)
        call = load_balancer.install((port, without))
        assert call == ScriptCall("install", words[:2], limit=None)

    @pytest.mark.parametrize(
        ("actual", "wanted", "sentence"),
        [
            (90, 90, ""),
            (None, None, ""),
            (30, 90, "clients wait for 30, not for 90"),
            (None, 90, "clients wait for the script's default, not for 90"),
            (30, None, "clients wait for 30, not for the script's default"),
        ],
    )
    def test_what_is_otherwise_is_said(self, actual, wanted, sentence):
        more = f'6443, "new": true, "client_timeout": {json.dumps(actual)}'
        report = REPORT.format(haproxy=HAPROXY, more=more)
        option = replace(TIMEOUT, wanted=wanted)
        assert option.difference(parse_status(report)) == sentence
