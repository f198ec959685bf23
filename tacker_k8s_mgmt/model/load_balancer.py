# SPDX-License-Identifier: Apache-2.0
"""The external load balancer: calls of its script, and its status.

They are arguments and output of ``scripts/install_external_lb.sh``, or of a package's
own script with the same contract, which a line of the script declares.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacker_k8s_mgmt.model import untrusted
from tacker_k8s_mgmt.text import in_line

#: TCP port of HAProxy's statistics, which the script reads.
STATISTICS_PORT = 8404
_STATUS_FORMAT = 1
_MARKER = "# tacker-k8s-mgmt load-balancer contract:"
_MARKED = re.compile(rf"^{_MARKER} *([0-9]{{1,9}})\s*$".encode(), re.MULTILINE)
# "unexpose" contains "expose".
_FIRST_VERBS = (b"install", b"add-worker", b"remove-worker", b"status", b"unexpose")
# No bool, which is an int, too.
_OPTION_TYPES = (str, int, type(None))


def contract(script: bytes) -> int:
    """The contract that a script keeps, with all earlier ones; 0 for none.

    A script without the verbs may do anything when it is called with them: that of
    Tacker's sample driver installs packages, rewrites ``haproxy.cfg`` and waits.
    """
    if marked := _MARKED.search(script):
        return int(marked[1])
    # Packages from before the line was required stay valid.
    return int(all(verb in script for verb in _FIRST_VERBS))


def unusable(script: bytes, needed: int = 1, feature: str = "this driver") -> str:
    """Why the driver does not run a script on the load balancer; "" if it does.

    :param needed: the first contract that is sufficient.
    :param feature: what needs it.
    """
    kept = contract(script)
    if kept >= needed:
        return ""
    actual = f"it keeps contract {kept}" if kept else "there is none"
    return (
        f"a script for {feature} has the line `{_MARKER} {needed}`, or a higher "
        f"number, and {actual}: it does not know the verbs or options that the driver "
        "uses. Build the package with `tacker-k8s-mgmt csar build`, which brings "
        "Scripts/install_external_lb.sh, or let the script keep the contract that the "
        "documentation describes and have that line"
    )


@dataclass(frozen=True)
class ScriptCall:
    """A call of the script.

    :param stdin: may have passwords, which no process list shows there.
    :param limit: seconds; the script may wait 300 for a concurrent call. None: it may
        install packages, and ``[k8s_mgmt] load_balancer_timeout`` is the limit.
    :param contract: the first one whose scripts know the verb and these arguments.
    :param feature: what needs that contract, for the error.
    """

    verb: str
    arguments: tuple[str, ...] = ()
    stdin: str = field(default="", repr=False)
    limit: float | None = 420.0
    contract: int = 1
    feature: str = "this driver"

    def problem(self, script: bytes) -> str:
        """Why a script does not understand the call; "" if it does."""
        return unusable(script, self.contract, self.feature)


STATUS = ScriptCall("status", limit=60.0)


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
    """A port that is forwarded to a node port of every worker.

    :param check_port: a worker is healthy if it accepts connections there; None for
        the node port, or for kubelet's if the protocol is UDP.
    :param protocol: ``tcp`` or ``udp``.
    :param health_port: a worker is healthy if it answers ``GET /healthz`` with 200
        there; None for ``check_port``.
    :param sources: CIDRs of the clients that may connect; empty for all.
    :param proxy_protocol: connections begin with the header of the PROXY protocol.
    """

    name: str
    port: int
    node_port: int
    servers: tuple[Server, ...]
    check_port: int | None = None
    protocol: str = "tcp"
    health_port: int | None = None
    sources: tuple[str, ...] = ()
    proxy_protocol: bool = False


def expose(services: Sequence[ExposedService], gone: Sequence[str] = ()) -> ScriptCall:
    """The call that exposes services, in one change of the configuration.

    :param gone: names of services that are no longer exposed.
    """
    arguments = [word for name in gone for word in ("--unexpose", name)]
    plain = len(services) == 1 and not gone
    for service in services:
        ports: dict[str, object] = {
            "--port": service.port,
            "--node-port": service.node_port,
            "--check-port": service.check_port,
        }
        later: dict[str, object] = {
            "--protocol": "" if service.protocol == "tcp" else service.protocol,
            "--health-port": service.health_port,
            "--proxy-protocol": "yes" if service.proxy_protocol else "",
        }
        arguments.append(service.name)
        for option, value in (*ports.items(), *later.items()):
            arguments += [option, str(value)] if value else []
        for source in service.sources:
            arguments += ["--source", source]
        plain = plain and not (any(later.values()) or service.sources)
    if plain:
        return ScriptCall("expose", tuple(arguments))
    feature = "the exposure of CNFs"
    return ScriptCall("expose", tuple(arguments), contract=2, feature=feature)


@dataclass(frozen=True)
class BalancerStatus:
    """The state of the load balancer.

    :param active: whether HAProxy runs.
    :param enabled: whether HAProxy starts with the VM.
    :param current: whether the running HAProxy has the present configuration.
    :param options: what the verb ``install`` was given, by the names of
        :class:`InstallOption`.
    :param udp_active: whether the service for UDP runs, and starts with the VM; None if
        no UDP port is exposed.
    """

    active: bool
    enabled: bool
    current: bool
    options: Mapping[str, int | str | None]
    control_planes: tuple[Server, ...]
    workers: tuple[Server, ...]
    services: tuple[ExposedService, ...]
    udp_active: bool | None = None

    @property
    def api_port(self) -> int | None:
        """Port of the API; None if the load balancer was never installed."""
        port = self.options["api_port"]
        return port if isinstance(port, int) else None


@dataclass(frozen=True)
class InstallOption:
    """An option of the verb ``install``: ``--api-port`` in its words.

    The status report has it under its name.

    :param name: that of the request's attribute: ``api_port``.
    :param wanted: None for the script's default.
    :param differs: a sentence with ``{actual}`` and ``{wanted}``.
    :param contract: the first one whose scripts know it.
    """

    name: str
    wanted: int | str | None
    differs: str
    contract: int = 1

    def difference(self, status: BalancerStatus) -> str:
        """A sentence if the load balancer has another value; "" if it has this one."""
        values = {"actual": status.options.get(self.name), "wanted": self.wanted}
        if values["actual"] == values["wanted"]:
            return ""
        default = "the script's default"
        shown = {k: default if v is None else v for k, v in values.items()}
        return self.differs.format(**shown)


def install(options: Iterable[InstallOption]) -> ScriptCall:
    """The call that installs the load balancer, without nodes and proxies.

    It demands the contract that brought the last of its options.
    """
    given = [option for option in options if option.wanted is not None]
    words = (
        word
        for option in given
        for word in (f"--{option.name.replace('_', '-')}", str(option.wanted))
    )
    call = ScriptCall("install", tuple(words), limit=None)
    newest = max(given, key=lambda option: option.contract, default=None)
    if newest is None or newest.contract == call.contract:
        return call
    feature = f"external_lb_param.{newest.name}"
    return replace(call, contract=newest.contract, feature=feature)


def parse_status(text: str) -> BalancerStatus:
    """Parse the output of the verb ``status``.

    :raises ValueError: it is not a status report of the known format.
    """
    report = untrusted.parse_json(text)
    try:
        if report["format"] != _STATUS_FORMAT:
            found = in_line(str(report["format"])[:20])
            raise ValueError(f"format {found} is not known")
        workers = tuple(_server(worker) for worker in report["workers"])
        addresses = {worker.name: worker.address for worker in workers}
        status = BalancerStatus(
            active=report["haproxy"]["active"],
            enabled=report["haproxy"]["enabled"],
            current=report["haproxy"]["current"],
            options=_options(report),
            control_planes=tuple(_server(plane) for plane in report["control_planes"]),
            workers=workers,
            services=tuple(_service(s, addresses) for s in report["services"]),
            udp_active=all(udp.values()) if (udp := report.get("udp")) else None,
        )
        return untrusted.checked(status)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not a status report: {type(error).__name__}") from error


def _options(report: Mapping[str, Any]) -> Mapping[str, int | str | None]:
    """Those of its fields that may be some; a later script has more."""
    if type(report["api_port"]) not in _OPTION_TYPES[1:]:
        raise TypeError
    return {
        name: value
        for name, value in report.items()
        if name != "format" and type(value) in _OPTION_TYPES
    }


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
        protocol=report.get("protocol", "tcp"),
        health_port=report.get("health_port"),
        sources=tuple(report.get("sources", ())),
        proxy_protocol=report.get("proxy_protocol", False),
    )
