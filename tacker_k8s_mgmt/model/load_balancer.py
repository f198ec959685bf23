"""The external load balancer: its specification and its status.

They are arguments and output of ``scripts/install_external_lb.sh``, or of a package's
own script with the same contract, which a line of the script declares.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

_STATUS_FORMAT = 1
_CONTRACT = 1
_MARKER = "# tacker-k8s-mgmt load-balancer contract:"
_MARKED = re.compile(rf"^{_MARKER} *(\d+)\s*$".encode(), re.MULTILINE)
# "unexpose" contains "expose".
_VERBS = (b"install", b"add-worker", b"remove-worker", b"status", b"unexpose")


def unusable(script: bytes) -> str:
    """Why the driver does not run a script on the load balancer; "" if it does.

    A script without the verbs may do anything when it is called with them: that of
    Tacker's sample driver installs packages, rewrites ``haproxy.cfg`` and waits.
    """
    marked = _MARKED.search(script)
    if marked and int(marked[1]) == _CONTRACT:
        return ""
    if marked is None and all(verb in script for verb in _VERBS):
        # Packages from before the line was required stay valid.
        return ""
    actual = f"it keeps contract {int(marked[1])}" if marked else "there is none"
    return (
        f"a script for this driver has the line `{_MARKER} {_CONTRACT}`, and {actual}: "
        "it does not know the verbs that the driver calls. Build the package with "
        "`tacker-k8s-mgmt csar build`, which brings Scripts/install_external_lb.sh, or "
        "let the script keep the contract that the documentation describes and have "
        "that line"
    )


@dataclass(frozen=True)
class BalancerSpec:
    """The input of ``install``, which keeps exposed services.

    :param api_port: the load balancer's port for the Kubernetes API.
    :param control_planes: name and address of each control-plane node.
    :param workers: name and address of each worker node.
    :param http_proxy: URL of the proxy through which the load balancer's VM downloads
        HAProxy, for https also unless ``https_proxy`` is set; may hold a password.
    :param https_proxy: the same for https.
    """

    api_port: int
    control_planes: tuple[tuple[str, str], ...]
    workers: tuple[tuple[str, str], ...]
    http_proxy: SecretStr | None = None
    https_proxy: SecretStr | None = None

    @property
    def proxies(self) -> Mapping[str, SecretStr]:
        """The proxies by their option of ``install``, in its order."""
        options = {"--http-proxy": self.http_proxy, "--https-proxy": self.https_proxy}
        return {option: url for option, url in options.items() if url is not None}


def install_arguments(spec: BalancerSpec) -> tuple[str, ...]:
    """The arguments of the verb ``install``.

    The script reads the proxies' URLs, which may hold passwords, from standard input
    (:func:`install_input`).
    """
    arguments = ["--api-port", str(spec.api_port)]
    for name, address in spec.control_planes:
        arguments += ["--control-plane", f"{name}={address}"]
    for name, address in spec.workers:
        arguments += ["--worker", f"{name}={address}"]
    for option in spec.proxies:
        arguments += [option, "-"]
    return tuple(arguments)


def install_input(spec: BalancerSpec) -> str:
    """The standard input of ``install``, a line for each proxy's URL."""
    return "".join(f"{url.get_secret_value()}\n" for url in spec.proxies.values())


@dataclass(frozen=True)
class Server:
    """A node behind the load balancer.

    :param state: its state in HAProxy (``UP``, ``DOWN``, ``UP 1/3``); "" if HAProxy
        has none or does not run.
    """

    name: str
    address: str
    state: str = ""


@dataclass(frozen=True)
class ExposedService:
    """A TCP port that is forwarded to a node port of every worker.

    :param check_port: a worker is healthy if it accepts connections there; None for
        the node port.
    """

    name: str
    port: int
    node_port: int
    servers: tuple[Server, ...]
    check_port: int | None = None


def expose_arguments(service: ExposedService) -> tuple[str, ...]:
    """The arguments of the verb ``expose``."""
    check_port = service.check_port
    checked = () if check_port is None else ("--check-port", str(check_port))
    ports = ("--port", str(service.port), "--node-port", str(service.node_port))
    return (service.name, *ports, *checked)


@dataclass(frozen=True)
class BalancerStatus:
    """The state of the load balancer.

    :param active: whether HAProxy runs.
    :param enabled: whether HAProxy starts with the VM.
    :param current: whether the running HAProxy has the present configuration.
    :param api_port: None if the load balancer was never installed.
    """

    active: bool
    enabled: bool
    current: bool
    api_port: int | None
    control_planes: tuple[Server, ...]
    workers: tuple[Server, ...]
    services: tuple[ExposedService, ...]


def parse_status(text: str) -> BalancerStatus:
    """Parse the output of the verb ``status``.

    :raises ValueError: it is no status report of the known format.
    """
    report = json.loads(text)
    try:
        if report["format"] != _STATUS_FORMAT:
            raise ValueError(f"format {report['format']} is not known")
        workers = tuple(_server(worker) for worker in report["workers"])
        addresses = {worker.name: worker.address for worker in workers}
        return BalancerStatus(
            active=report["haproxy"]["active"],
            enabled=report["haproxy"]["enabled"],
            current=report["haproxy"]["current"],
            api_port=report["api_port"],
            control_planes=tuple(_server(plane) for plane in report["control_planes"]),
            workers=workers,
            services=tuple(_service(s, addresses) for s in report["services"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a status report: {error!r}") from error


def _server(report: Mapping[str, Any]) -> Server:
    return Server(report["name"], report["address"], report.get("state") or "")


def _service(report: Mapping[str, Any], addresses: Mapping[str, str]) -> ExposedService:
    return ExposedService(
        name=report["name"],
        port=report["port"],
        node_port=report["node_port"],
        servers=tuple(
            Server(worker["name"], addresses[worker["name"]], worker["state"] or "")
            for worker in report["servers"]
        ),
        check_port=report.get("check_port"),
    )
