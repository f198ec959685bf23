# SPDX-License-Identifier: Apache-2.0
"""OS::Neutron::* in the lab: networks are bridges, ports are addresses on them."""

from typing import Any

from heat.engine.resources.openstack.neutron import (
    floatingip,
    net,
    port,
    security_group,
    subnet,
)

from lab.cloud import addresses, networks
from lab.cloud.addresses import Records
from lab.cloud.heat_resource import (
    CommandedResource,
    HostCommand,
    LabResource,
    Properties,
    Row,
    network_of,
    state,
)


class Net(CommandedResource):
    """An isolated bridge."""

    properties_schema = net.Net.properties_schema
    attributes_schema = net.Net.attributes_schema
    table = "networks"
    verbs = ("net-create", "net-delete")

    def new_row(self, records: Records, row_id: str) -> Row:
        row = super().new_row(records, row_id)
        return {**row, "bridge": networks.bridge_name(row_id)}

    def shown(self) -> Row:
        records = state().read()
        row = self.row(records)
        subnets = records["subnets"].values()
        return {
            "id": row["id"],
            "name": row["name"],
            "status": "ACTIVE",
            "admin_state_up": True,
            "subnets": [s["id"] for s in subnets if s["network_id"] == row["id"]],
            "mtu": 1500,
            "port_security_enabled": False,
            "shared": False,
            "tenant_id": "",
            "qos_policy_id": None,
            "l2_adjacency": True,
            "segments": None,
        }


class Subnet(LabResource):
    """The addresses of a network."""

    properties_schema = subnet.Subnet.properties_schema
    attributes_schema = subnet.Subnet.attributes_schema
    table = "subnets"

    def new_row(self, records: Records, row_id: str) -> Row:
        properties = self.properties
        reference = str(network_of(properties))
        network = addresses.find_network(records, reference)
        gateway = properties.get("gateway_ip")
        return addresses.new_subnet(
            row_id,
            self.display_name(),
            network["id"] if network else reference,
            properties.get("cidr"),
            gateway=gateway,
            # In templates an empty gateway means none.
            with_gateway=gateway not in ("", "~"),
            pools=properties.get("allocation_pools") or (),
        )


class Port(LabResource):
    """An address on a network; its user changes, the address stays."""

    properties_schema = port.Port.properties_schema
    attributes_schema = port.Port.attributes_schema
    table = "ports"

    def add_dependencies(self, deps: Any) -> None:
        super().add_dependencies(deps)
        self.depend_on_subnets(deps, lambda: [network_of(self.properties)])

    def new_row(self, records: Records, row_id: str) -> Row:
        fixed = (self.properties.get("fixed_ips") or [{}])[0]
        return addresses.new_port(
            records,
            row_id,
            self.display_name(),
            str(network_of(self.properties)),
            subnet=fixed.get("subnet") or fixed.get("subnet_id"),
            address=fixed.get("ip_address"),
            mac=self.properties.get("mac_address"),
        )

    def handle_update(
        self, json_snippet: Any, tmpl_diff: Any, prop_diff: Properties
    ) -> HostCommand | None:
        """Another address is taken at once; a real host asks DHCP for it in time."""
        super().handle_update(json_snippet, tmpl_diff, prop_diff)
        if "fixed_ips" not in prop_diff:
            return None
        fixed = (prop_diff["fixed_ips"] or [{}])[0]
        with state().edit() as records:
            moved = addresses.readdress(
                records,
                self.resource_id,
                subnet=fixed.get("subnet") or fixed.get("subnet_id"),
                address=fixed.get("ip_address"),
            )
            server = records["servers"].get(self.row(records)["server_id"])
            if not moved or server is None:
                return None
            server["nics"] = addresses.nics(records, server["ports"])
        return HostCommand("rewire", document=server)

    def check_update_complete(self, command: HostCommand | None) -> bool:
        return command is None or command.finished()

    def prepare_for_replace(self) -> None:
        """As the real one: the address is abandoned, the replacement may take it."""
        if self.resource_id is None:
            return
        with state().edit() as records:
            self.row(records)["released"] = True

    def shown(self) -> Row:
        row = self.row(state().read())
        return {
            "id": row["id"],
            "name": row["name"],
            "status": "ACTIVE" if row["server_id"] else "DOWN",
            "admin_state_up": True,
            "device_id": row["server_id"],
            "device_owner": "compute:lab" if row["server_id"] else "",
            "mac_address": row["mac"],
            "network_id": row["network_id"],
            "fixed_ips": [
                {"subnet_id": row["subnet_id"], "ip_address": address}
                for address in addresses.addresses_of(row)
            ],
            "subnets": [{"id": row["subnet_id"]}],
            "tenant_id": "",
            "security_groups": [],
            "allowed_address_pairs": [],
            "dns_assignment": None,
            "port_security_enabled": False,
            "propagate_uplink_status": None,
            "qos_policy_id": None,
        }


class FloatingIP(LabResource):
    """The external network is reached directly, so it is its port's own address."""

    properties_schema = floatingip.FloatingIP.properties_schema
    attributes_schema = floatingip.FloatingIP.attributes_schema

    def new_row(self, records: Records, row_id: str) -> Row:
        properties = self.properties
        network = properties.get("floating_network") or properties.get(
            "floating_network_id"
        )
        return {
            "id": row_id,
            "port_id": properties.get("port_id"),
            "floating_network_id": str(network),
        }

    def shown(self) -> Row:
        records = state().read()
        row = self.row(records)
        address = records["ports"].get(row["port_id"], {}).get("address")
        return {
            "id": row["id"],
            "port_id": row["port_id"],
            "floating_network_id": row["floating_network_id"],
            "floating_ip_address": address,
            "fixed_ip_address": address,
            "router_id": None,
            "tenant_id": "",
        }


class SecurityGroup(LabResource):
    """A record: nothing is filtered in the lab."""

    properties_schema = security_group.SecurityGroup.properties_schema
    attributes_schema = security_group.SecurityGroup.attributes_schema


def resource_mapping() -> dict[str, type[LabResource]]:
    return {
        "OS::Neutron::FloatingIP": FloatingIP,
        "OS::Neutron::Net": Net,
        "OS::Neutron::Port": Port,
        "OS::Neutron::SecurityGroup": SecurityGroup,
        "OS::Neutron::Subnet": Subnet,
    }
