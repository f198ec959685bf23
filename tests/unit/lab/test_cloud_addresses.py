# SPDX-License-Identifier: Apache-2.0
"""Address allocation of the lab's cloud."""

import pytest

from lab.cloud import CloudError, addresses


def records(**subnet):
    """Records with one network, ``inner``, and its subnet."""
    values = {"cidr": "10.10.0.0/29", **subnet}
    network = {"id": "net-1", "name": "inner", "bridge": "br-1"}
    made = addresses.new_subnet("sub-1", "inner-subnet", "net-1", **values)
    return {
        "networks": {"net-1": network},
        "subnets": {"sub-1": made},
        "ports": {},
        "servers": {},
        "other": {},
    }


def port(data, number, network="inner", **wanted):
    port_id = f"{number:02x}" * 4 + "-0000-0000-0000-000000000000"
    return addresses.new_port(data, port_id, f"port{number}", network, **wanted)


def test_ports_of_a_network_get_the_lowest_free_addresses():
    data = records()
    taken = [port(data, number)["address"] for number in range(3)]
    assert taken == ["10.10.0.2", "10.10.0.3", "10.10.0.4"]


def test_an_address_is_free_again_when_its_port_is_gone():
    data = records()
    first = port(data, 1)
    port(data, 2)
    del data["ports"][first["id"]]
    assert port(data, 3)["address"] == first["address"]


def test_a_released_address_can_be_taken_by_the_replacement():
    data = records()
    port(data, 1, address="10.10.0.5")["released"] = True
    assert port(data, 2, address="10.10.0.5")["address"] == "10.10.0.5"


def test_a_full_network_says_so():
    data = records()
    for number in range(5):
        port(data, number)
    with pytest.raises(CloudError, match=r"No more IP addresses .* network net-1"):
        port(data, 9)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        pytest.param("10.10.0.2", "already in use", id="taken"),
        pytest.param("10.10.0.1", "already in use", id="gateway"),
        pytest.param("10.10.1.2", "is not in 10.10.0.0/29", id="other-network"),
        pytest.param("fd00::1", "Expected 4 octets", id="ipv6"),
    ],
)
def test_an_unusable_wanted_address_is_refused(wanted, reason):
    data = records()
    port(data, 1)
    with pytest.raises(CloudError, match=reason):
        port(data, 2, address=wanted)
    assert list(data["ports"]) == ["01010101-0000-0000-0000-000000000000"]


@pytest.mark.parametrize("reference", ["net-1", "inner"])
def test_a_network_is_found_by_id_and_by_name(reference):
    made = port(records(), 1, reference)
    assert (made["network_id"], made["subnet_id"]) == ("net-1", "sub-1")
    assert (made["bridge"], made["prefix"]) == ("br-1", 29)


def test_a_name_that_two_networks_share_is_refused():
    data = records()
    data["networks"]["net-2"] = {"id": "net-2", "name": "inner", "bridge": "br-2"}
    with pytest.raises(CloudError, match="More than one network"):
        port(data, 1)


def test_equal_addresses_on_different_networks_do_not_collide():
    data = records()
    data["networks"]["net-2"] = {"id": "net-2", "name": "other", "bridge": "br-2"}
    data["subnets"]["sub-2"] = {**data["subnets"]["sub-1"], "network_id": "net-2"}
    assert port(data, 1, "inner")["address"] == port(data, 2, "other")["address"]


def test_every_foreign_reference_is_the_external_network():
    data = records()
    first = port(data, 1, "external")
    second = port(data, 2, "8d2a6f0e-extmgmt")
    assert (first["address"], second["address"]) == ("10.99.0.10", "10.99.0.11")
    assert first["bridge"] == second["bridge"] == "external"
    assert second["network_id"] == "8d2a6f0e-extmgmt"


@pytest.mark.parametrize("reserved", ["10.99.0.1", "10.99.0.5"])
def test_addresses_of_the_lab_itself_are_not_given_away(reserved):
    with pytest.raises(CloudError, match="already in use"):
        port(records(), 1, "external", address=reserved)


def test_a_network_without_subnet_has_no_addresses():
    data = records()
    data["subnets"].clear()
    with pytest.raises(CloudError, match="inner has no subnet yet"):
        port(data, 1)


def test_the_wanted_subnet_decides():
    data = records()
    data["subnets"]["sub-2"] = addresses.new_subnet(
        "sub-2", "second", "net-1", "10.20.0.0/24"
    )
    assert port(data, 1, subnet="second")["address"] == "10.20.0.2"
    with pytest.raises(CloudError, match="no subnet third"):
        port(data, 2, subnet="third")


@pytest.mark.parametrize(
    ("given", "first", "gateway"),
    [
        pytest.param({}, "10.10.0.2", "10.10.0.1", id="default-gateway"),
        pytest.param({"with_gateway": False}, "10.10.0.1", None, id="no-gateway"),
        pytest.param({"gateway": "10.10.0.6"}, "10.10.0.1", "10.10.0.6", id="own"),
        pytest.param(
            {"pools": [{"start": "10.10.0.4", "end": "10.10.0.5"}]},
            "10.10.0.4",
            "10.10.0.1",
            id="pool",
        ),
    ],
)
def test_subnets_are_filled_in_as_neutron_does(given, first, gateway):
    data = records(**given)
    assert data["subnets"]["sub-1"]["gateway_ip"] == gateway
    assert port(data, 1)["address"] == first


@pytest.mark.parametrize(
    ("cidr", "reason"),
    [
        pytest.param(None, "needs a cidr", id="absent"),
        pytest.param("fd00::/64", "networks are IPv4", id="ipv6"),
        pytest.param("10.10.0.1/24", "has host bits set", id="not-a-network"),
        pytest.param("10.10.0.0/30", "no room for hosts", id="too-small"),
    ],
)
def test_a_cidr_that_cannot_work_is_refused(cidr, reason):
    with pytest.raises(CloudError, match=reason):
        addresses.new_subnet("sub", "name", "net", cidr)


def test_mac_addresses_differ_and_can_be_chosen():
    data = records()
    macs = {port(data, number)["mac"] for number in range(1, 4)}
    assert len(macs) == 3
    assert port(data, 4, mac="02:00:00:00:00:01")["mac"] == "02:00:00:00:00:01"


def test_a_reused_address_has_the_same_mac():
    data = records()
    first = port(data, 1)
    first["released"] = True
    second = port(data, 2)
    assert second["address"] == first["address"]
    assert second["mac"] == first["mac"]


def test_a_servers_document_describes_its_nic():
    made = port(records(), 1)
    assert addresses.nic(made) == {
        "bridge": "br-1",
        "address": "10.10.0.2",
        "prefix": 29,
        "mac": "fa:16:3e:0a:00:02",
        "port_id": made["id"],
    }


def test_a_port_gets_the_address_that_it_is_given():
    data = records()
    moved = port(data, 1)
    assert addresses.readdress(data, moved["id"], address="10.10.0.5") is True
    assert (moved["address"], moved["mac"]) == ("10.10.0.5", "fa:16:3e:0a:00:05")


def test_a_port_keeps_an_address_that_suits():
    data = records()
    kept = port(data, 1)
    before = dict(kept)
    assert addresses.readdress(data, kept["id"]) is False
    assert addresses.readdress(data, kept["id"], subnet="inner-subnet") is False
    assert addresses.readdress(data, kept["id"], address=kept["address"]) is False
    assert kept == before


def test_a_port_does_not_get_the_address_of_another_one():
    data = records()
    first, second = port(data, 1), port(data, 2)
    with pytest.raises(CloudError, match="already in use"):
        addresses.readdress(data, first["id"], address=second["address"])


def with_server(data):
    """A server with a port that it was given, and one of its own."""
    given, own = port(data, 1), port(data, 2)
    own["own"] = True
    for one in (given, own):
        one["server_id"] = "server"
    data["servers"]["server"] = {"id": "server", "ports": [given["id"], own["id"]]}
    return given, own


def test_more_addresses_of_a_port_are_listed_in_the_order_of_texts():
    data = records(cidr="10.10.0.0/24")
    given, _ = with_server(data)
    addresses.add_address(data, "server", "10.10.0.100")
    assert addresses.addresses_of(given) == ["10.10.0.100", "10.10.0.2"]
    with pytest.raises(CloudError, match="already in use"):
        port(data, 3, address="10.10.0.100")
    with pytest.raises(CloudError, match="No port of the server is in a subnet"):
        addresses.add_address(data, "server", "10.20.0.7")


def test_ports_of_a_server_that_nova_has_deleted_are_unbound():
    data = records()
    given, _ = with_server(data)
    other = port(data, 3)
    other["server_id"] = "other"
    addresses.forget_server(data, "server")
    assert data["servers"] == {}
    assert data["ports"] == {given["id"]: given, other["id"]: other}
    assert (given["server_id"], other["server_id"]) == ("", "other")
    # Heat deletes it afterwards.
    addresses.forget_server(data, "server")
