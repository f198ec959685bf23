# SPDX-License-Identifier: Apache-2.0
"""OS::Nova::* in the lab: a server is a host made of Linux namespaces.

Also answers the constraints for which Heat would ask Nova, Neutron, Glance or Cinder.
"""

import hashlib
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from heat.common import exception
from heat.engine.resources.openstack.nova import server, server_group
from oslo_config import cfg

from lab.cloud import CloudError, addresses
from lab.cloud.addresses import Records
from lab.cloud.heat_resource import (
    CommandedResource,
    HostCommand,
    LabResource,
    Properties,
    Row,
    state,
)
from lab.cloud.hosts import Hosts

DETACH_LIMIT = 30.0


class Server(CommandedResource):
    """A host on the lab's networks, made and removed by the host command."""

    properties_schema = server.Server.properties_schema
    attributes_schema = server.Server.attributes_schema
    table = "servers"
    verbs = ("create", "delete")

    REPORTED = ("image", "flavor", "key_name", "availability_zone", "metadata")

    def add_dependencies(self, deps: Any) -> None:
        super().add_dependencies(deps)
        self.depend_on_subnets(
            deps, lambda: map(_network, self.properties.get("networks") or [])
        )

    def new_row(self, records: Records, row_id: str) -> Row:
        row = super().new_row(records, row_id)
        for key in self.REPORTED:
            row[key] = self.properties.get(key)
        absent = [key for key in ("image", "flavor") if not row[key]]
        if absent:
            raise CloudError(f"Server {row['name']} has no {' and no '.join(absent)}")
        user_data = str(self.properties.get("user_data") or "")
        row["user_data"] = user_data
        row["cloud_config"] = _cloud_config(user_data)
        pair = records["keypairs"].get(row["key_name"] or "", {})
        row["public_key"] = pair.get("public_key", "")
        row["status"] = "BUILD"
        row["host"] = _next_host(records)
        self._plug_in(records, row, self.properties.get("networks"))
        return row

    def _plug_in(
        self, records: Records, row: Row, networks: Iterable[Properties] | None
    ) -> None:
        ports = [self._port(records, wanted, row) for wanted in networks or []]
        for port in ports:
            port["server_id"] = row["id"]
        row["ports"] = [port["id"] for port in ports]
        row["nics"] = addresses.nics(records, row["ports"])

    def _port(self, records: Records, wanted: Properties, row: Row) -> Row:
        """The port of one entry of ``networks``: a given one or one of its own."""
        port_id = wanted.get("port")
        if not port_id:
            port = addresses.new_port(
                records,
                str(uuid.uuid4()),
                row["name"],
                str(_network(wanted)),
                subnet=wanted.get("subnet"),
                address=wanted.get("fixed_ip"),
            )
            port["own"] = True
            return port
        if port_id not in records["ports"]:
            raise CloudError(f"Port {port_id} could not be found")
        port = records["ports"][port_id]
        if port["server_id"] != row["id"] and port["server_id"] in records["servers"]:
            raise CloudError(f"Port {port_id} is still in use")
        return port

    def check_create_complete(self, command: HostCommand) -> bool:
        try:
            done = super().check_create_complete(command)
        except CloudError as error:
            self._set_status("ERROR")
            raise exception.ResourceInError(
                resource_status="ERROR", status_reason=str(error)
            ) from error
        if done:
            self._set_status("ACTIVE")
        return done

    def _set_status(self, status: str) -> None:
        with state().edit() as records:
            self.row(records)["status"] = status

    def needs_replace_with_prop_diff(
        self, changed: Iterable[str], after: Any, before: Any
    ) -> bool:
        """A server whose image, flavor, user data or key change is a new host."""
        replacing = {"image", "flavor", "user_data", "key_name"}
        return not replacing.isdisjoint(changed)

    def handle_update(
        self, json_snippet: Any, tmpl_diff: Any, prop_diff: Properties
    ) -> HostCommand | None:
        """Other ports are plugged into the host that runs, as the real one does it."""
        super().handle_update(json_snippet, tmpl_diff, prop_diff)
        if "networks" not in prop_diff:
            return None
        with state().edit() as records:
            row = self.row(records)
            former = row["ports"]
            self._plug_in(records, row, prop_diff["networks"])
            for port_id in set(former) - set(row["ports"]):
                if records["ports"].get(port_id, {}).get("own"):
                    del records["ports"][port_id]
                elif port_id in records["ports"]:
                    records["ports"][port_id]["server_id"] = ""
        return HostCommand("rewire", document=row)

    def prepare_for_replace(self) -> None:
        """As the real one: detach the ports, the replacement takes them."""
        if self.resource_id is None:
            return
        HostCommand("detach", self.resource_id).wait(DETACH_LIMIT)
        with state().edit() as records:
            self._release_ports(records)

    def _release_ports(self, records: Records) -> None:
        for port in records["ports"].values():
            if port["server_id"] == self.resource_id:
                port["server_id"] = ""

    def remove_row(self) -> None:
        with state().edit() as records:
            addresses.forget_server(records, self.resource_id)

    def handle_check(self) -> None:
        status = self.shown()["status"]
        if status != "ACTIVE":
            raise CloudError(f"Server {self.resource_id} is {status}, not ACTIVE")

    def shown(self) -> Row:
        records = state().read()
        row = self.row(records)
        status = row["status"]
        if status == "ACTIVE" and not _runs(row["id"]):
            status = "SHUTOFF"
        ports = [records["ports"][p] for p in row["ports"] if p in records["ports"]]
        networks: dict[str, list[str]] = {}
        addressed: dict[str, list[Row]] = {}
        for port in ports:
            networks.setdefault(port["network_id"], []).append(port["address"])
            addressed.setdefault(port["network_id"], []).append(_address(port))
        first = ports[0]["address"] if ports else ""
        return {
            "id": row["id"],
            "name": row["name"],
            "status": status,
            "image": row["image"],
            "flavor": row["flavor"],
            "key_name": row["key_name"],
            "metadata": row["metadata"],
            "networks": networks,
            "addresses": addressed,
            "first_address": first,
            "accessIPv4": first,
            "accessIPv6": "",
            "hostId": hashlib.sha224(row["host"].encode()).hexdigest(),
            "OS-EXT-SRV-ATTR:host": row["host"],
            "instance_name": row["name"],
            "console_urls": {},
            "tags": [],
            "os_collect_config": {},
        }


def _cloud_config(user_data: str) -> Row:
    """What the stand-in for cloud-init reads; it knows no other kinds of user data."""
    if not user_data.startswith("#cloud-config"):
        return {}
    return dict(yaml.safe_load(user_data) or {})


def _next_host(records: Records) -> str:
    """The compute host of a new server: no other server is on it, nor was before.

    That a server that is rebuilt comes to another one is as telling as can be.
    """
    numbers = [
        int(row["host"].rpartition("-")[2]) for row in records["servers"].values()
    ]
    return f"compute-{max(numbers, default=0) + 1}"


def _network(wanted: Properties) -> str | None:
    reference: str | None = wanted.get("network") or wanted.get("uuid")
    return reference


def _runs(server_id: str) -> bool:
    return Hosts(Path(cfg.CONF.lab.state_dir)).pid(server_id) is not None


def _address(port: Row) -> Row:
    return {
        "addr": port["address"],
        "version": 4,
        "port": port["id"],
        "subnets": [],
        "OS-EXT-IPS-MAC:mac_addr": port["mac"],
        "OS-EXT-IPS:type": "fixed",
    }


class ServerGroup(LabResource):
    """A record: all hosts of the lab are on one machine."""

    properties_schema = server_group.ServerGroup.properties_schema
    attributes_schema = server_group.ServerGroup.attributes_schema


class LabConstraint:
    """What a service would be asked for exists."""

    def validate(self, value: Any, context: Any) -> bool:
        return True

    def error(self, value: Any) -> str:
        return ""


class KeypairConstraint(LabConstraint):
    """A key pair is one of Nova's stand-in; an empty name is none."""

    def validate(self, value: Any, context: Any) -> bool:
        return not value or value in state().read()["keypairs"]

    def error(self, value: Any) -> str:
        return f"The Key ({value}) could not be found."


def resource_mapping() -> dict[str, type[LabResource]]:
    return {"OS::Nova::Server": Server, "OS::Nova::ServerGroup": ServerGroup}


def constraint_mapping() -> dict[str, type[LabConstraint]]:
    names = (
        "nova.flavor",
        "nova.server",
        "nova.network",
        "nova.host",
        "glance.image",
        "neutron.network",
        "neutron.subnet",
        "neutron.port",
        "neutron.security_group",
        "neutron.qos_policy",
        "neutron.router",
        "neutron.subnetpool",
        "neutron.address_scope",
        "neutron.segment",
        "cinder.volume",
        "cinder.snapshot",
        "cinder.vtype",
    )
    constraints = dict.fromkeys(names, LabConstraint)
    return {**constraints, "nova.keypair": KeypairConstraint}
