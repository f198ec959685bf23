# SPDX-License-Identifier: Apache-2.0
"""Networks: a stand-in for Neutron's lists and quotas.

Networks and ports are the matter of Heat's plugins (:mod:`lab.cloud`), which ask no
Neutron; this shows what they have made, beside the external network.
"""

from collections.abc import Mapping
from typing import Any

from lab.cloud.addresses import CONTROLLER_ADDRESS, EXTERNAL, EXTERNAL_CIDR, Records
from lab.services import stand_in
from lab.services.stand_in import Answer
from lab.settings import url

NAME = "network"
EXTERNAL_ID = "00000000-0000-4000-8000-e87e00000001"
#: Numbers that the lab's project may have; a lab has not the rest.
QUOTAS = {"network": 100, "subnet": 100, "port": 500, "floatingip": 50}
UNCOUNTED = {"security_group": 100, "security_group_rule": 1000}
_TABLES = {"network": "networks", "subnet": "subnets", "port": "ports"}
_VERSION = {
    "id": "v2.0",
    "status": "CURRENT",
    "links": [{"rel": "self", "href": f"{url(NAME)}/v2.0/"}],
}
_EXTENSIONS = ("port-security", "allowed-address-pairs", "quota_details", "router")


def answer(path: str, query: Mapping[str, str]) -> Answer:
    """Status and document of a GET."""
    if not path:
        return 200, {"versions": [_VERSION]}
    records = stand_in.records()
    # Pages: a marker is the last one of the page before.
    rows = {
        "networks": list(_networks(records)),
        "subnets": list(_subnets(records)),
        "extensions": [{"alias": name, "name": name} for name in _EXTENSIONS],
    }
    for kind, every in rows.items():
        if path == f"/v2.0/{kind}":
            filters = {k: v for k, v in query.items() if k not in ("limit", "fields")}
            found = [] if "marker" in query else stand_in.matching(every, filters)
            return 200, {kind: found}
        for row in every:
            if path == f"/v2.0/{kind}/{row.get('id')}":
                return 200, {kind.removesuffix("s"): row}
    if path.startswith("/v2.0/quotas/") and path.endswith("/details"):
        return 200, {"quota": _quotas(records)}
    return stand_in.absent(path)


def _network(network_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": network_id,
        "name": name,
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": False,
        "router:external": False,
        # As in most clouds; no port of the lab drops anything.
        "port_security_enabled": True,
        "mtu": 1500,
        **more,
    }


def _networks(records: Records) -> list[dict[str, Any]]:
    made = [_network(row["id"], row["name"]) for row in records["networks"].values()]
    outer = _network(EXTERNAL_ID, EXTERNAL, shared=True)
    return [outer, *made]


def _subnets(records: Records) -> list[dict[str, Any]]:
    outer = {
        "id": f"{EXTERNAL}-subnet",
        "name": f"{EXTERNAL}-subnet",
        "network_id": EXTERNAL_ID,
        "cidr": EXTERNAL_CIDR,
        "gateway_ip": CONTROLLER_ADDRESS,
        "ip_version": 4,
    }
    keys = ("id", "name", "network_id", "cidr", "gateway_ip", "ip_version")
    made = [{k: row[k] for k in keys} for row in records["subnets"].values()]
    return [outer, *made]


def _quotas(records: Records) -> dict[str, dict[str, int]]:
    def used(kind: str) -> int:
        return len(records[_TABLES[kind]]) if kind in _TABLES else 0

    limits = stand_in.limited({**QUOTAS, **UNCOUNTED})
    return {
        kind: {"limit": limit, "used": used(kind), "reserved": 0}
        for kind, limit in limits.items()
    }
