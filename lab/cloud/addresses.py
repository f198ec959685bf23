# SPDX-License-Identifier: Apache-2.0
"""Which address a port gets: the pools of the lab's networks, without any I/O."""

import contextlib
import ipaddress
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.cloud import CloudError

EXTERNAL = "external"
EXTERNAL_CIDR = "10.99.0.0/24"
CONTROLLER_ADDRESS = "10.99.0.1"
ANSIBLE_SERVER_ADDRESS = "10.99.0.5"
FIRST_EXTERNAL_ADDRESS = "10.99.0.10"

Records = dict[str, dict[str, dict[str, Any]]]
Range = tuple[ipaddress.IPv4Address, ipaddress.IPv4Address]


@dataclass(frozen=True)
class Pool:
    """The addresses of one subnet.

    :ivar network: reference of the network as its ports show it.
    :ivar subnet: id of the subnet as its ports show it.
    :ivar bridge: name of the Linux bridge behind the network.
    :ivar ranges: first and last address of each allocation pool.
    :ivar reserved: addresses that no port may have.
    """

    network: str
    subnet: str
    bridge: str
    cidr: ipaddress.IPv4Network
    ranges: tuple[Range, ...]
    reserved: frozenset[str]

    def take(self, used: Collection[str], wanted: str | None = None) -> str:
        """An address that is not in use: the wanted one, or the lowest free one.

        :raises CloudError: the wanted address is taken, reserved or not of this
            subnet, or nothing is free.
        """
        if wanted:
            return self._check(wanted, used)
        for address in self._candidates():
            if address not in used and address not in self.reserved:
                return address
        raise CloudError(f"No more IP addresses available on network {self.network}")

    def _check(self, wanted: str, used: Collection[str]) -> str:
        try:
            inside = ipaddress.IPv4Address(wanted) in self.cidr
        except ValueError as error:
            raise CloudError(f"IP address {wanted}: {error}") from error
        if not inside:
            raise CloudError(f"IP address {wanted} is not in {self.cidr}")
        if wanted in used or wanted in self.reserved:
            raise CloudError(f"IP address {wanted} is already in use")
        return wanted

    def _candidates(self) -> Iterator[str]:
        for first, last in self.ranges:
            for number in range(int(first), int(last) + 1):
                yield str(ipaddress.IPv4Address(number))


def find_network(records: Records, reference: str) -> dict[str, Any] | None:
    """The network made in the lab that has this id or name."""
    networks = records["networks"]
    if reference in networks:
        return networks[reference]
    named = [row for row in networks.values() if row["name"] == reference]
    if len(named) > 1:
        raise CloudError(f"More than one network is named {reference}: use its id")
    return named[0] if named else None


def find_pool(records: Records, network: str, subnet: str | None = None) -> Pool:
    """The pool that a port on a network takes its address from.

    :param network: id or name; whatever is not a network made in the lab is the
        external network.
    :param subnet: id or name of one of the network's subnets; default: its first one.
    :raises CloudError: no network is named, or it has no (such) subnet.
    """
    if not network:
        raise CloudError("A port needs a network")
    row = find_network(records, network)
    if row is None:
        return external_pool(network)
    subnets = [s for s in records["subnets"].values() if s["network_id"] == row["id"]]
    if subnet:
        subnets = [s for s in subnets if subnet in (s["id"], s["name"])]
    if not subnets:
        raise CloudError(
            f"Network {row['name']} has no subnet{f' {subnet}' if subnet else ''} yet:"
            " let what makes the port depend on the subnet"
        )
    return subnet_pool(subnets[0], row["bridge"])


def external_pool(reference: str = EXTERNAL) -> Pool:
    """The pool of the external network, which every foreign reference means.

    Ports show its id in Neutron's spelling, whatever a request has.
    """
    with contextlib.suppress(ValueError):
        reference = str(uuid.UUID(reference))
    cidr = ipaddress.IPv4Network(EXTERNAL_CIDR)
    first = ipaddress.IPv4Address(FIRST_EXTERNAL_ADDRESS)
    return Pool(
        network=reference,
        subnet=f"{EXTERNAL}-subnet",
        bridge=EXTERNAL,
        cidr=cidr,
        ranges=((first, cidr.broadcast_address - 1),),
        reserved=frozenset({CONTROLLER_ADDRESS, ANSIBLE_SERVER_ADDRESS}),
    )


def subnet_pool(subnet: Mapping[str, Any], bridge: str) -> Pool:
    """The pool of a subnet made in the lab."""
    return Pool(
        network=subnet["network_id"],
        subnet=subnet["id"],
        bridge=bridge,
        cidr=ipaddress.IPv4Network(subnet["cidr"]),
        ranges=tuple(
            (ipaddress.IPv4Address(p["start"]), ipaddress.IPv4Address(p["end"]))
            for p in subnet["allocation_pools"]
        ),
        reserved=frozenset({subnet["gateway_ip"]} - {None}),
    )


def new_subnet(
    subnet_id: str,
    name: str,
    network_id: str,
    cidr: str | None,
    *,
    gateway: str | None = None,
    with_gateway: bool = True,
    pools: Collection[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """The record of a subnet, filled in as Neutron does.

    :param gateway: default: the first address, unless ``with_gateway`` is false.
    :param pools: default: every address but the gateway's.
    :raises CloudError: not an IPv4 CIDR with room for hosts.
    """
    if not cidr:
        raise CloudError("A subnet in the lab needs a cidr: there are no subnet pools")
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise CloudError(
            f"cidr {cidr}: {error} (the lab's networks are IPv4)"
        ) from error
    if network.prefixlen > 29:
        raise CloudError(f"cidr {cidr} has no room for hosts")
    first, last = network.network_address + 1, network.broadcast_address - 1
    if with_gateway and not gateway:
        gateway = str(first)
    default = {"start": str(first), "end": str(last)}
    return {
        "id": subnet_id,
        "name": name,
        "network_id": network_id,
        "cidr": str(network),
        "ip_version": 4,
        "gateway_ip": gateway if with_gateway else None,
        "allocation_pools": [dict(p) for p in pools] or [default],
        "enable_dhcp": False,
        "dns_nameservers": [],
        "host_routes": [],
        "tenant_id": "",
    }


def new_port(
    records: Records,
    port_id: str,
    name: str,
    network: str,
    *,
    subnet: str | None = None,
    address: str | None = None,
    mac: str | None = None,
) -> dict[str, Any]:
    """Record a port with an address of its own and return its record.

    :raises CloudError: see :func:`find_pool` and :meth:`Pool.take`.
    """
    pool = find_pool(records, network, subnet)
    taken = pool.take(_used(records, pool.bridge), address)
    records["ports"][port_id] = {
        "id": port_id,
        "name": name,
        "network_id": pool.network,
        "subnet_id": pool.subnet,
        "bridge": pool.bridge,
        "address": taken,
        "prefix": pool.cidr.prefixlen,
        "mac": mac or mac_of(taken),
        "server_id": "",
        "released": False,
        "more": [],
    }
    return records["ports"][port_id]


def _used(records: Records, bridge: str) -> set[str]:
    return {
        address
        for port in records["ports"].values()
        if port["bridge"] == bridge and not port["released"]
        for address in addresses_of(port)
    }


def addresses_of(port: Mapping[str, Any]) -> list[str]:
    """The addresses of a port, in Neutron's order, which is that of texts."""
    return sorted((port["address"], *port["more"]))


def add_address(records: Records, server_id: str, address: str) -> None:
    """Give that port of a server in whose subnet it is an address beside its own.

    :raises CloudError: it is in no subnet of its ports, or in use.
    """
    for port_id in records["servers"][server_id]["ports"]:
        port = records["ports"][port_id]
        pool = find_pool(records, port["network_id"], port["subnet_id"])
        if ipaddress.IPv4Address(address) in pool.cidr:
            port["more"].append(pool.take(_used(records, pool.bridge), address))
            return
    raise CloudError(f"No port of the server is in a subnet with {address}")


def forget_server(records: Records, server_id: str) -> None:
    """Delete a server's record: ports that it was given are unbound, others go."""
    row = records["servers"].pop(server_id, {"ports": []})
    for port_id in row["ports"]:
        if records["ports"].get(port_id, {}).get("own"):
            del records["ports"][port_id]
    for port in records["ports"].values():
        if port["server_id"] == server_id:
            port["server_id"] = ""


def readdress(
    records: Records,
    port_id: str,
    *,
    subnet: str | None = None,
    address: str | None = None,
) -> bool:
    """Give a port another address, as Neutron does: it keeps its own if that suits.

    :return: whether it is another one.
    :raises CloudError: see :func:`find_pool` and :meth:`Pool.take`.
    """
    port = records["ports"][port_id]
    pool = find_pool(records, port["network_id"], subnet)
    if address in (None, port["address"]) and pool.subnet == port["subnet_id"]:
        return False
    taken = pool.take(_used(records, pool.bridge), address)
    port.update(
        subnet_id=pool.subnet,
        address=taken,
        prefix=pool.cidr.prefixlen,
        mac=mac_of(taken),
    )
    return True


def mac_of(address: str) -> str:
    """The hardware address of the port with this address.

    Addresses are used again within seconds. With a hardware address of its own each
    new owner would have to announce itself, and an announcement that is lost costs
    its neighbours longer than Ansible's ConnectTimeout.
    """
    return "fa:16:3e:" + ":".join(f"{int(n):02x}" for n in address.split(".")[1:])


def nic(port: Mapping[str, Any]) -> dict[str, Any]:
    """One port in a server's document."""
    return {
        "bridge": port["bridge"],
        "address": port["address"],
        "prefix": port["prefix"],
        "mac": port["mac"],
        "port_id": port["id"],
    }


def nics(records: Records, port_ids: Iterable[str]) -> list[dict[str, Any]]:
    """The ports in a server's document, in their order."""
    return [nic(records["ports"][port_id]) for port_id in port_ids]
