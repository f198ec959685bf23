"""The code that calls the script over SSH."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.model.load_balancer import (
    BalancerSpec,
    BalancerStatus,
    ExposedService,
    Server,
    expose_arguments,
    install_arguments,
    parse_status,
    unusable,
)
from tacker_k8s_mgmt.remote.load_balancer import Balancer
from tacker_k8s_mgmt.remote.ssh.channel import Result
from tests.unit.balancer.sandbox import SCRIPT, Sandbox

SPEC = BalancerSpec(
    api_port=8443,
    control_planes=(("cp-1", "10.0.0.1"), ("cp-2", "fd00::2")),
    workers=(("w-1", "10.0.0.3"),),
)


def test_install_names_every_node() -> None:
    assert install_arguments(SPEC) == (
        *("--api-port", "8443"),
        *("--control-plane", "cp-1=10.0.0.1", "--control-plane", "cp-2=fd00::2"),
        *("--worker", "w-1=10.0.0.3"),
    )


def test_locale_of_the_vm_does_not_matter(
    fresh: Sandbox, decimal_comma: Mapping[str, str]
) -> None:
    host = LocalHost({**fresh.environment, **decimal_comma})
    balancer = Balancer(host, SCRIPT.read_bytes())
    balancer.install(SPEC)
    assert balancer.status().api_port == SPEC.api_port


def test_the_proxy_is_not_on_the_command_line() -> None:
    spec = BalancerSpec(8443, SPEC.control_planes, (), SecretStr("http://u:pw@proxy"))
    arguments = install_arguments(spec)
    assert arguments[-2:] == ("--http-proxy", "-")
    assert "pw" not in "".join(arguments)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("HAProxy is active", id="no JSON"),
        pytest.param("[]", id="a list"),
        pytest.param("{}", id="an empty object"),
        pytest.param('{"format": 2}', id="another format"),
        pytest.param('{"format": 1, "haproxy": null, "workers": []}', id="a hole"),
    ],
)
def test_what_is_no_status_report_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_status(text)


class LocalHost:
    """A load balancer's VM: commands run here, in the sandbox, without sudo."""

    host = "10.99.0.12"

    def __init__(self, environment: Mapping[str, str], sudo: str = "") -> None:
        self.environment = dict(environment)
        self.sudo_warning = sudo
        self.commands: list[tuple[tuple[str, ...], bool]] = []
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
        assert timeout > 0
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


def test_install_and_status_work_with_the_real_script(fresh: Sandbox) -> None:
    host = LocalHost(fresh.environment)
    balancer = Balancer(host, SCRIPT.read_bytes())
    balancer.install(SPEC)
    assert balancer.status() == BalancerStatus(
        active=True,
        enabled=True,
        current=False,
        api_port=8443,
        control_planes=(Server("cp-1", "10.0.0.1"), Server("cp-2", "fd00::2")),
        workers=(Server("w-1", "10.0.0.3"),),
        services=(),
    )
    assert [sudo for _, sudo in host.commands] == [True, True]
    (directory,) = host.directories
    balancer.close()
    assert not directory.exists()


def own(text: str) -> bytes:
    """A script of a package's own that says that it keeps the contract."""
    return f"# tacker-k8s-mgmt load-balancer contract: 1\n{text}\n".encode()


def test_the_script_says_that_it_keeps_the_contract() -> None:
    assert unusable(SCRIPT.read_bytes()) == ""
    assert unusable(own("exit 1")) == ""


def test_one_that_is_older_than_the_line_is_taken_for_its_verbs() -> None:
    older = SCRIPT.read_bytes().replace(b"load-balancer contract: 1", b"")
    assert older != SCRIPT.read_bytes()
    assert unusable(older) == ""
    assert "there is none" in unusable(older.replace(b"unexpose", b""))


@pytest.mark.parametrize(
    ("script", "found"),
    [
        pytest.param(b"#!/bin/bash\ngetopts m:w: o\n", "there is none", id="none"),
        pytest.param(b"", "there is none", id="empty"),
        pytest.param(b"\xff\x00", "there is none", id="binary"),
        pytest.param(b"echo " + own("").strip(), "there is none", id="inside a line"),
        pytest.param(
            own("").replace(b": 1", b": 2"), "it keeps contract 2", id="later"
        ),
    ],
)
def test_a_script_that_does_not_is_not_even_sent(script: bytes, found: str) -> None:
    host = LocalHost({})
    with pytest.raises(errors.LoadBalancerError) as caught:
        Balancer(host, script).install(SPEC)
    assert found in str(caught.value)
    assert "Build the package with `tacker-k8s-mgmt csar build`" in str(caught.value)
    assert (host.commands, host.directories) == ([], [])


def test_nothing_stays_of_the_script_when_it_fails() -> None:
    host = LocalHost({})
    balancer = Balancer(host, own("exit 1"))
    with pytest.raises(errors.LoadBalancerError):
        balancer.status()
    balancer.close()
    assert [path.exists() for path in host.directories] == [False]


def test_exposed_services_are_read(serving: Sandbox) -> None:
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


def test_workers_come_and_go_by_their_whole_names(balancer: Sandbox) -> None:
    host = LocalHost(balancer.environment)
    remote = Balancer(host, SCRIPT.read_bytes())
    before = names(remote)
    assert {"worker5", "worker55"} < set(before)
    more = [("worker6", "10.10.0.16"), ("worker7", "fd00::8")]
    for _ in range(2):
        remote.add_workers(more)
        assert names(remote) == {**before, **dict(more)}
    for _ in range(2):
        remote.remove_workers(["worker5", "worker7", "never-there"])
        assert "worker55" in names(remote)
        assert not {"worker5", "worker7"} & set(names(remote))
    verbs = [argv[2] for argv, _ in host.commands if argv[2] != "status"]
    assert verbs == ["add-worker"] * 2 + ["remove-worker"] * 2, "one call for all"


def test_a_second_call_changes_nothing(balancer: Sandbox) -> None:
    remote = Balancer(LocalHost(balancer.environment), SCRIPT.read_bytes())
    remote.add_workers([("worker6", "10.10.0.16")])
    balancer.acts()
    remote.add_workers([("worker6", "10.10.0.16"), ("worker5", "10.10.0.15")])
    remote.remove_workers(["never-there"])
    assert not balancer.acts()


def test_no_workers_are_no_call() -> None:
    host = LocalHost({})
    remote = Balancer(host, own("exit 1"))
    remote.add_workers([])
    remote.remove_workers([])
    remote.expose([])
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
def test_expose_arguments(service: ExposedService, arguments: tuple[str, ...]) -> None:
    assert expose_arguments(service) == arguments


def test_what_was_exposed_can_be_exposed_again(
    serving: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    old = Balancer(LocalHost(serving.environment), SCRIPT.read_bytes())
    serving.do(
        "expose", "dns", "--port", "53", "--node-port", "30053", "--check-port", "31"
    )
    noted = old.status().services
    assert [(one.name, one.check_port) for one in noted] == [
        ("dns", 31),
        ("web", 30080),
    ]
    anew = LocalHost(Sandbox(tmp_path_factory.mktemp("anew")).environment)
    new = Balancer(anew, SCRIPT.read_bytes())
    new.install(SPEC)
    new.expose(noted)
    seen = [(one.name, one.port, one.node_port, one.check_port) for one in noted]
    assert [
        (one.name, one.port, one.node_port, one.check_port)
        for one in new.status().services
    ] == seen


@pytest.mark.parametrize(
    ("call", "verb"),
    [
        (lambda balancer: balancer.add_workers([("w", "10.0.0.9")]), "add-worker"),
        (lambda balancer: balancer.remove_workers(["w"]), "remove-worker"),
        (
            lambda balancer: balancer.expose([ExposedService("w", 1, 2, servers=())]),
            "expose",
        ),
    ],
)
def test_a_change_that_fails_says_which(
    call: Callable[[Balancer], None], verb: str
) -> None:
    script = own("echo 'haproxy refuses it' >&2; exit 1")
    with pytest.raises(errors.LoadBalancerError) as caught:
        call(Balancer(LocalHost({}), script))
    assert f"refused `{verb}`: haproxy refuses it." in str(caught.value)


def test_both_proxies_travel_on_standard_input() -> None:
    spec = BalancerSpec(
        8443,
        SPEC.control_planes,
        (),
        http_proxy=SecretStr("http://u:pr0xy-pa55@one"),
        https_proxy=SecretStr("http://u:pr0xy-pa55@two"),
    )
    host = LocalHost({})
    script = own("read -r a; read -r b; [[ $a$b == http://u:*@onehttp://u:*@two ]]")
    Balancer(host, script).install(spec)
    argv, _ = host.commands[-1]
    assert argv[-4:] == ("--http-proxy", "-", "--https-proxy", "-")
    assert "pr0xy-pa55" not in str(host.commands)


def test_a_proxy_for_https_alone_is_the_only_line() -> None:
    spec = BalancerSpec(
        8443, SPEC.control_planes, (), https_proxy=SecretStr("http://p")
    )
    host = LocalHost({})
    script = own("read -r a; [[ $a == http://p ]] && ! read -r b")
    Balancer(host, script).install(spec)
    assert host.commands[-1][0][-2:] == ("--https-proxy", "-")


def test_the_proxy_travels_on_standard_input() -> None:
    host = LocalHost({})
    spec = BalancerSpec(
        8443, SPEC.control_planes, (), SecretStr("http://u:pr0xy-pa55@proxy")
    )
    script = own('read -r url; [[ $url == "http://u:pr0xy-pa55@proxy" ]]')
    Balancer(host, script).install(spec)
    assert "pr0xy-pa55" not in str(host.commands)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param("echo 'port 80 is used' >&2; exit 1", "port 80 is used.", id="1"),
        pytest.param("echo 'no s3cret.' >&2; exit 1", "no ***.", id="redacted"),
        pytest.param("exit 3", "exit code 3 and no message.", id="silent"),
    ],
)
def test_a_failure_carries_the_scripts_line(script: str, reason: str) -> None:
    host = LocalHost({}, sudo="sudo: unable to resolve host lb\n")
    if script == "exit 3":
        host.sudo_warning = ""
    with pytest.raises(errors.LoadBalancerError) as caught:
        Balancer(host, own(script)).install(SPEC)
    assert str(caught.value).startswith(
        f"The load balancer on 10.99.0.12 refused `install`: {reason} Its earlier"
    )


def test_a_status_that_cannot_be_read_is_a_load_balancer_error() -> None:
    with pytest.raises(errors.LoadBalancerError, match="no status report"):
        Balancer(LocalHost({}), own("echo all is well")).status()
