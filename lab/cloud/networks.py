# SPDX-License-Identifier: Apache-2.0
"""Bridges and cables: the lab's networks as ``ip`` commands.

Everything happens in the network namespace of the calling process, which is the
lab's. A network is a bridge, a port is a veth pair: its bridge end is named after the
port, its other end is eth0, eth1, ... in the host.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cloud import CloudError
from lab.cloud.addresses import CONTROLLER_ADDRESS, EXTERNAL

# The longest name of a network interface in Linux has 15 characters.
ID_DIGITS = 12
LIMIT = 20.0
# The network namespace's own: milliseconds between ICMP errors to one address.
ICMP_RATE_LIMIT = Path("/proc/sys/net/ipv4/icmp_ratelimit")


@dataclass(frozen=True)
class Nic:
    """One port of a host, as the server's document describes it."""

    bridge: str
    address: str
    prefix: int
    mac: str
    port_id: str

    @property
    def link(self) -> str:
        """Name of the bridge end of the port's cable."""
        return link_name(self.port_id)


def bridge_name(network_id: str) -> str:
    """Name of the bridge of a network made in the lab."""
    return f"br-{network_id.replace('-', '')[:ID_DIGITS]}"


def link_name(port_id: str) -> str:
    """Name of the bridge end of a port's cable."""
    return f"tap{port_id.replace('-', '')[:ID_DIGITS]}"


def create_bridge(name: str, address: str | None = None) -> None:
    """Make a bridge, with an address of the controller's when it shall have one.

    :param address: ``address/prefix``.
    :raises CloudError: ``ip`` refused.
    """
    if name in _links():
        return
    lines = [f"link add {name} type bridge forward_delay 0 stp_state 0"]
    lines.append(f"link set {name} addrgenmode none up")
    if address:
        lines.append(f"address add {address} dev {name}")
    _ip(lines)


def refuse_promptly() -> None:
    """Have each query to a port without a listener refused, not only one a second.

    There is no name server in the lab. A VM whose queries are dropped waits 5 s for
    each; sudo asks for the VM's own name once kubespray has changed it.
    """
    ICMP_RATE_LIMIT.write_text("0")


def delete_bridge(name: str) -> None:
    """Remove a bridge; it may be gone already."""
    if name in _links():
        _ip([f"link delete {name}"])


def plug(nics: Sequence[Nic], pid: int) -> None:
    """Connect a host: one cable per port, eth0.. in the ports' order.

    A cable of the same port that still hangs in another host (one that is being
    replaced) is pulled out first: a port has one owner.

    :param pid: a process in the host's network namespace.
    :raises CloudError: ``ip`` refused, e.g. a bridge is missing.
    """
    _plug(dict(enumerate(nics)), pid)


def rewire(before: Sequence[Nic], after: Sequence[Nic], pid: int) -> None:
    """Change the ports of a host that runs; those that stay are not touched.

    :param pid: a process in the host's network namespace.
    :raises CloudError: ``ip`` refused.
    """
    inside = ("nsenter", "--target", str(pid), "--net")
    changed = [
        number
        for number in range(max(len(before), len(after)))
        if before[number : number + 1] != after[number : number + 1]
    ]
    gone = [f"link delete eth{number}" for number in changed if number < len(before)]
    _ip(gone, prefix=inside, check=False)
    new = {number: after[number] for number in changed if number < len(after)}
    _plug(new, pid)
    lines = [line for number in new for line in _interface(number, new[number])]
    _ip([*lines, *_default_route(after)], prefix=inside)


def _plug(nics: Mapping[int, Nic], pid: int) -> None:
    existing = _links()
    # A cable can also vanish by itself meanwhile, with the old host's namespace.
    old = [nic.link for nic in nics.values() if nic.link in existing]
    _ip([f"link delete {link}" for link in old], check=False)
    lines = []
    for number, nic in nics.items():
        lines.append(
            f"link add {nic.link} type veth"
            f" peer name eth{number} address {nic.mac} netns {pid}"
        )
        lines.append(f"link set {nic.link} master {nic.bridge} addrgenmode none up")
    _ip(lines)


def unplug(count: int, pid: int) -> None:
    """Pull all cables of a host, seen from its end, so that none is left behind.

    Removing the near ends by name could hit a replacement that owns the ports by now.
    """
    _ip(
        [f"link delete eth{number}" for number in range(count)],
        prefix=("nsenter", "--target", str(pid), "--net"),
        check=False,
    )


def set_links(nics: Iterable[Nic], *, up: bool) -> None:
    """Connect or cut the ports of a host at their bridge ends.

    :raises CloudError: a cable is missing: the host is switched off.
    """
    _ip([f"link set {nic.link} {'up' if up else 'down'}" for nic in nics])


def links_down() -> set[str]:
    """Names of the links that are cut."""
    return {name for name, flags in _links().items() if "UP" not in flags}


def host_setup(nics: Sequence[Nic]) -> str:
    """What ``ip -batch`` has to do inside a host once its cables are plugged.

    The default route goes to the controller over the first external port.
    """
    lines = ["link set lo up"]
    for number, nic in enumerate(nics):
        lines += _interface(number, nic)
    return "\n".join([*lines, *_default_route(nics)]) + "\n"


def _interface(number: int, nic: Nic) -> tuple[str, ...]:
    return (
        f"address add {nic.address}/{nic.prefix} dev eth{number}",
        f"link set eth{number} up",
    )


def _default_route(nics: Sequence[Nic]) -> Iterator[str]:
    outer = [number for number, nic in enumerate(nics) if nic.bridge == EXTERNAL]
    for number in outer[:1]:
        yield f"route replace default via {CONTROLLER_ADDRESS} dev eth{number}"


def _links() -> dict[str, list[str]]:
    argv = ["ip", "-json", "link", "show"]
    listed = subprocess.run(
        argv, check=True, capture_output=True, text=True, timeout=LIMIT
    )
    return {link["ifname"]: link["flags"] for link in json.loads(listed.stdout)}


def _ip(
    lines: Sequence[str], *, prefix: Sequence[str] = (), check: bool = True
) -> None:
    if not lines:
        return
    done = subprocess.run(
        [*prefix, "ip", *([] if check else ["-force"]), "-batch", "-"],
        input="\n".join(lines) + "\n",
        text=True,
        capture_output=True,
        timeout=LIMIT,
    )
    if check and done.returncode:
        raise CloudError(f"ip: {done.stderr.strip()} (in: {'; '.join(lines)})")
