# SPDX-License-Identifier: Apache-2.0
"""Compute: a stand-in for Nova's flavours, key pairs and limits.

Servers are the matter of Heat's plugins (:mod:`lab.cloud`), which ask no Nova; this
lists what they have made. A flavour is a name with numbers, and no host is larger for
it.
"""

from collections.abc import Mapping
from typing import Any

from lab.services import stand_in
from lab.services.stand_in import Answer
from lab.settings import url

NAME = "compute"
#: A flavour on which kubespray installs nothing.
TOO_SMALL = "m1.tiny"
#: Numbers that the lab's project may have.
INSTANCES, CORES, RAM = 60, 120, 245760
_VERSION = {
    "id": "v2.1",
    "status": "CURRENT",
    "version": "2.90",
    "min_version": "2.1",
    "links": [{"rel": "self", "href": f"{url(NAME)}/v2.1/"}],
}


def _flavor(number: int, name: str, vcpus: int, ram: int, disk: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "name": name,
        "vcpus": vcpus,
        "ram": ram,
        "disk": disk,
        "swap": 0,
        "description": None,
        "OS-FLV-DISABLED:disabled": False,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "os-flavor-access:is_public": True,
        "rxtx_factor": 1.0,
        "links": [],
    }


FLAVORS = (
    _flavor(1, TOO_SMALL, 1, 512, 1),
    _flavor(2, "m1.small", 1, 2048, 20),
    _flavor(3, "m1.medium", 2, 4096, 40),
    _flavor(4, "m1.large", 4, 8192, 80),
)


def answer(path: str, query: Mapping[str, str]) -> Answer:
    """Status and document of a GET."""
    if path in ("", "/v2.1"):
        return 200, {"versions": [_VERSION]} if not path else {"version": _VERSION}
    if path in ("/v2.1/flavors", "/v2.1/flavors/detail"):
        # Pages: a marker is the last one of the page before.
        return 200, {"flavors": [] if "marker" in query else FLAVORS}
    if path == "/v2.1/os-keypairs":
        pairs = [] if "marker" in query else _keypairs()
        return 200, {"keypairs": [{"keypair": pair} for pair in pairs]}
    if path == "/v2.1/servers/detail":
        return 200, {"servers": [] if "marker" in query else _servers()}
    if path == "/v2.1/limits":
        return 200, {"limits": {"rate": [], "absolute": _limits()}}
    for flavor in FLAVORS:
        if path == f"/v2.1/flavors/{flavor['id']}":
            return 200, {"flavor": flavor}
    return stand_in.absent(path)


def _keypairs() -> list[dict[str, Any]]:
    made = stand_in.records()["keypairs"].values()
    return [{"type": "ssh", "fingerprint": "", **pair} for pair in made]


def _servers() -> list[dict[str, Any]]:
    made = stand_in.records()
    return [
        {
            "id": row["id"],
            "name": row["name"],
            "status": row["status"],
            "addresses": _addresses(row, made["ports"]),
        }
        for row in made["servers"].values()
    ]


def _addresses(
    row: Mapping[str, Any], ports: Mapping[str, dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """The addresses of a server's ports, by network."""
    found: dict[str, list[dict[str, Any]]] = {}
    for port in (ports[one] for one in row["ports"] if one in ports):
        fixed = {
            "addr": port["address"],
            "version": 4,
            "OS-EXT-IPS-MAC:mac_addr": port["mac"],
            "OS-EXT-IPS:type": "fixed",
        }
        found.setdefault(port["network_id"], []).append(fixed)
    return found


def _limits() -> dict[str, int]:
    servers = stand_in.records()["servers"].values()
    known = {flavor["name"]: flavor for flavor in FLAVORS}
    known |= {flavor["id"]: flavor for flavor in FLAVORS}
    used = [known[s["flavor"]] for s in servers if s["flavor"] in known]
    usual = {"instances": INSTANCES, "cores": CORES, "ram": RAM}
    limits = stand_in.limited(usual)
    return {
        "maxServerMeta": 128,
        "maxTotalInstances": limits["instances"],
        "totalInstancesUsed": len(servers),
        "maxTotalCores": limits["cores"],
        "totalCoresUsed": sum(flavor["vcpus"] for flavor in used),
        "maxTotalRAMSize": limits["ram"],
        "totalRAMUsed": sum(flavor["ram"] for flavor in used),
        "maxServerGroups": 50,
        "totalServerGroupsUsed": 0,
        "maxServerGroupMembers": 20,
        "maxTotalKeypairs": 100,
    }
