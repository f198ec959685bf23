"""The external load balancer as values: what is wanted of it, and what it reports.

The other side is ``scripts/install_external_lb.sh``, or a script of the package's own
that keeps the same contract: what its verbs take on the command line and what its
``status`` prints. A line of the script says that it does. Nothing here reaches a host.
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
# `expose` is part of the last one.
_VERBS = (b"install", b"add-worker", b"remove-worker", b"status", b"unexpose")


def unusable(script: bytes) -> str:
    """Why the driver does not run a script on the load balancer; "" if it does.

    A script that does not know the verbs may do anything with them: that of Tacker's
    sample driver installs packages, rewrites ``haproxy.cfg`` and waits.

    :param script: its content.
    """
    marked = _MARKED.search(script)
    if marked and int(marked[1]) == _CONTRACT:
        return ""
    if marked is None and all(verb in script for verb in _VERBS):
        # Packages that were onboarded before the line was asked for stay valid.
        return ""
    found = f"it keeps contract {int(marked[1])}" if marked else "there is none"
    return (
        f"a script for this driver has the line `{_MARKER} {_CONTRACT}`, and {found}: "
        "it does not know the verbs that the driver calls. Build the package with "
        "`tacker-k8s-mgmt csar build`, which brings Scripts/install_external_lb.sh, or "
        "let the script keep the contract that the documentation describes and say so"
    )


@dataclass(frozen=True)
class BalancerSpec:
    """Everything that ``install`` sets; services that are exposed already are kept.

    :param api_port: port on which the load balancer offers the Kubernetes API.
    :param control_planes: name and address of each control-plane node.
    :param workers: name and address of each worker node.
    :param http_proxy: URL of the proxy through which the load balancer's VM fetches
        the HAProxy package; it may hold a password. It serves for https too, where
        ``https_proxy`` is not given.
    :param https_proxy: the same for https.
    """

    api_port: int
    control_planes: tuple[tuple[str, str], ...]
    workers: tuple[tuple[str, str], ...]
    http_proxy: SecretStr | None = None
    https_proxy: SecretStr | None = None

    @property
    def proxies(self) -> Mapping[str, SecretStr]:
        """The proxies by the option of ``install`` that takes them, in its order."""
        found = {"--http-proxy": self.http_proxy, "--https-proxy": self.https_proxy}
        return {option: url for option, url in found.items() if url is not None}


def install_arguments(spec: BalancerSpec) -> tuple[str, ...]:
    """What follows the verb ``install`` on the command line.

    The proxies' URLs may hold passwords and are not there: the script reads them from
    its standard input, one line each (:func:`install_input`).
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
    """What ``install`` reads from its standard input; it may hold passwords."""
    return "".join(f"{url.get_secret_value()}\n" for url in spec.proxies.values())


@dataclass(frozen=True)
class Server:
    """A node behind the load balancer.

    :param state: HAProxy's word for it (``UP``, ``DOWN``, ``UP 1/3``), empty where
        HAProxy has none or does not run.
    """

    name: str
    address: str
    state: str = ""


@dataclass(frozen=True)
class ExposedService:
    """A TCP port that is forwarded to a node port of every worker.

    :param check_port: a worker that accepts connections there is healthy; None: the
        node port.
    """

    name: str
    port: int
    node_port: int
    servers: tuple[Server, ...]
    check_port: int | None = None


def expose_arguments(service: ExposedService) -> tuple[str, ...]:
    """What follows the verb ``expose`` on the command line."""
    ports = ("--port", str(service.port), "--node-port", str(service.node_port))
    if service.check_port is None:
        return (service.name, *ports)
    return (service.name, *ports, "--check-port", str(service.check_port))


@dataclass(frozen=True)
class BalancerStatus:
    """The load balancer as it is.

    :param active: HAProxy runs.
    :param enabled: HAProxy starts with the VM.
    :param current: the running HAProxy has the configuration that is wanted.
    :param api_port: None when the load balancer was never installed.
    """

    active: bool
    enabled: bool
    current: bool
    api_port: int | None
    control_planes: tuple[Server, ...]
    workers: tuple[Server, ...]
    services: tuple[ExposedService, ...]


def parse_status(text: str) -> BalancerStatus:
    """Read what the script's ``status`` printed.

    :raises ValueError: it is not a status report of the format that we know.
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
            control_planes=tuple(_server(one) for one in report["control_planes"]),
            workers=workers,
            services=tuple(_service(one, addresses) for one in report["services"]),
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
            Server(one["name"], addresses[one["name"]], one["state"] or "")
            for one in report["servers"]
        ),
        check_port=report.get("check_port"),
    )
