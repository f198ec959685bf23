# SPDX-License-Identifier: Apache-2.0
"""The cloud through the real openstacksdk, at the lab's stand-ins."""

import json
import os
import sys
import types
from typing import Any

import pytest

from lab.cloud.base import KEY_PAIR
from lab.cloud.state import State
from lab.services import compute, images, network
from tacker_k8s_mgmt.errors import CloudError
from tacker_k8s_mgmt.tools.cloud import client
from tacker_k8s_mgmt.tools.cloud.facts import Flavor, Image, Quota, Server, Subnet
from tests.helpers.hostile import DEEP
from tests.helpers.openstack_cloud import PASSWORD, PROJECT


@pytest.fixture
def cloud(openstack):
    return client.connect()


def test_the_login_comes_from_the_environment(cloud, openstack):
    assert (cloud.auth_url, cloud.project) == (openstack.auth_url, PROJECT)


def test_images(cloud):
    other, _, ubuntu = cloud.images()
    assert isinstance(ubuntu, Image)
    assert (ubuntu.name, ubuntu.distribution) == (images.UBUNTU, "ubuntu")
    assert (ubuntu.login, ubuntu.min_disk, ubuntu.min_ram) == ("ubuntu", 4, 512)
    assert cloud.image(images.UBUNTU) == cloud.image(ubuntu.id) == ubuntu
    assert cloud.image("no-such") is None
    assert other.name == images.OTHER


def test_two_images_of_one_name(cloud, monkeypatch):
    twice = images.IMAGES[0]
    monkeypatch.setattr(images, "IMAGES", (twice, {**twice, "id": "another"}))
    with pytest.raises(CloudError, match=r"More than one .*Name it by its id"):
        cloud.image(images.UBUNTU)


def test_flavors(cloud):
    names = [flavor.name for flavor in cloud.flavors()]
    assert names == [compute.TOO_SMALL, "m1.small", "m1.medium", "m1.large"]
    assert cloud.flavor("m1.small") == Flavor("2", "m1.small", 1, 2048, 20)
    assert cloud.flavor("2") == cloud.flavor("m1.small")
    assert cloud.flavor("no-such") is None


def test_keypairs_and_quotas(cloud):
    assert cloud.keypairs() == [KEY_PAIR]
    quotas = cloud.compute_quotas()
    assert quotas["instances"] == Quota(compute.INSTANCES, 0)
    assert quotas["ram"] == Quota(compute.RAM, 0)
    assert set(quotas) == {"instances", "cores", "ram", "server_groups"}
    quotas = cloud.network_quotas()
    assert quotas["ports"] == Quota(network.QUOTAS["port"], 0)
    assert "security_group_rules" in quotas


def test_servers(cloud, openstack):
    assert cloud.servers() == []
    with State(f"{os.environ['LAB_STATE']}/cloud").edit() as records:
        for number in (1, 2):
            port = {"id": str(number), "address": f"10.0.0.{number}", "mac": ""}
            records["ports"][str(number)] = {**port, "network_id": "n"}
        row = {"id": "s", "name": "vm", "status": "ACTIVE", "ports": ["1", "2"]}
        records["servers"]["s"] = row
    assert cloud.servers() == [Server("s", "vm", ("10.0.0.1", "10.0.0.2"))]


@pytest.mark.parametrize("addresses", [None, "a", [], {"n": None}, {"n": ["a"]}])
def test_a_server_with_odd_addresses(addresses):
    one = types.SimpleNamespace(id="s", name=None, addresses=addresses)
    assert set(client._server(one).addresses) <= {""}


def test_networks(cloud):
    (outer,) = cloud.networks()
    assert outer.name == "external"
    assert outer.subnets == (Subnet("external-subnet", "10.99.0.0/24", "10.99.0.1"),)
    assert (outer.is_open, outer.port_security) == (True, True)
    assert cloud.network("external") == cloud.network(network.EXTERNAL_ID) == outer
    assert cloud.network("no-such") is None
    assert "allowed-address-pairs" in cloud.network_extensions()


def test_heat_and_tacker(cloud):
    heat = cloud.heat()
    assert heat.versions == {"2018-08-31"}
    assert "OS::Nova::Server" in heat.types
    (vim,) = cloud.vims()
    assert (vim.name, vim.kind, vim.is_default) == ("openstack-lab", "openstack", True)
    assert (vim.project, vim.domain) == (PROJECT, "Default")
    assert vim.auth_url in cloud.identity_urls
    assert cloud.domain == vim.domain


@pytest.mark.parametrize(
    ("kind", "name", "question"),
    [
        ("compute", "Nova", "flavors"),
        ("image", "Glance", "images"),
        ("compute", "Nova", "keypairs"),
        ("compute", "Nova", "compute_quotas"),
        ("network", "Neutron", "networks"),
        ("network", "Neutron", "network_extensions"),
        ("network", "Neutron", "network_quotas"),
        ("orchestration", "Heat", "heat"),
        ("nfv-orchestration", "Tacker", "vims"),
    ],
)
def test_services_that_are_absent_or_refuse(openstack, kind, name, question):
    openstack.refused.add(kind)
    with pytest.raises(CloudError, match=f"{name} does not answer as it should"):
        getattr(client.connect(), question)()
    openstack.absent.add(kind)
    with pytest.raises(CloudError, match=f"catalogue has no {name}"):
        getattr(client.connect(), question)()


def test_cinder_is_absent_here(cloud):
    with pytest.raises(CloudError, match="catalogue has no Cinder"):
        cloud.volume_quotas()


def test_a_refused_login_shows_no_password(openstack, monkeypatch):
    monkeypatch.setenv("OS_PASSWORD", f"{PASSWORD}-wrong")
    with pytest.raises(CloudError, match="Keystone does not answer") as caught:
        client.connect()
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("by_option", [True, False])
def test_a_cloud_that_no_file_names(openstack, monkeypatch, tmp_path, by_option):
    file = tmp_path / "clouds.yaml"
    file.write_text("clouds: {site1: {}, site2: {}}")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    if not by_option:
        monkeypatch.setenv("OS_CLOUD", "nosuch")
    with pytest.raises(CloudError) as caught:
        client.connect("nosuch" if by_option else None)
    text = str(caught.value)
    known = "No clouds.yaml has a cloud nosuch (there are: site1, site2). "
    assert text.startswith(known)
    assert "~/.config/openstack" in text


@pytest.mark.parametrize("has_login", [True, False])
def test_files_without_a_cloud_have_none(openstack, monkeypatch, tmp_path, has_login):
    """The clouds that openstacksdk adds are in no file."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        if not has_login:
            monkeypatch.delenv(name)
    file = tmp_path / "clouds.yaml"
    file.write_text("clouds: {}")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    with pytest.raises(CloudError, match=r"cloud nosuch \(there are: none\)\."):
        client.connect("nosuch")


def test_without_openstacksdk_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openstack", None)
    with pytest.raises(CloudError, match=r"pip install 'tacker-k8s-mgmt\[cloud\]'"):
        client.connect()


# --- clouds.yaml

LOGIN = "auth_url: http://127.0.0.1:1/v3, username: u, password: pa55, project_name: p"


def beside_a_login(key):
    return f"clouds: {{c: {{{key}: %s, auth: {{{LOGIN}}}}}}}", f"clouds.c.{key}"


#: Where a shape is put, and what the error calls the place.
PLACES = {
    "clouds": ("clouds: %s", "clouds"),
    "client": ("{client: %s, clouds: {c: {}}}", "client"),
    "cache": ("{cache: %s, clouds: {c: {}}}", "cache"),
    "a cloud": ("clouds: {c: %s}", "clouds.c"),
    "auth": ("clouds: {c: {auth: %s}}", "clouds.c.auth"),
    "regions": beside_a_login("regions"),
    "profile": beside_a_login("profile"),
    "cacert": beside_a_login("cacert"),
    "auth_type": beside_a_login("auth_type"),
    "region_name": beside_a_login("region_name"),
    # openstacksdk's own words, or ours for what it has none for.
    "interface": beside_a_login("interface"),
    "verify": beside_a_login("verify"),
    "auth_url": ("clouds: {c: {auth: {auth_url: %s}}}", "clouds.c.auth.auth_url"),
    "password": (
        "clouds: {c: {auth: {auth_url: 'http://127.0.0.1:1', password: %s}}}",
        "clouds.c.auth.password",
    ),
    "the whole": ("%s", ""),
}
OWN_WORDS = ("interface", "verify", "the whole")
SHAPES = {
    "a list": "[]",
    "a list of lists": "[[]]",
    "empty": "",
    "a number": "7",
    "a text": "pa55",
    "true or false": "true",
    "a mapping": "{pa55: {}}",
    "a date": "2026-01-01",
}


@pytest.fixture
def clouds_yaml(monkeypatch, tmp_path):
    """A file that openstacksdk reads, without a cloud in the environment."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    return file


#: What openstacksdk and the plugins of keystoneauth take as text.
TEXTS = (
    *("auth_type", "cacert", "cert", "key", "cloud", "profile"),
    *(f"auth.{name}" for name in ("auth_url", "username", "user_id", "password")),
    *(f"auth.{name}" for name in ("token", "system_scope", "project_name")),
    *(f"auth.{name}" for name in ("project_id", "domain_name", "domain_id")),
    *(f"auth.{name}" for name in ("user_domain_name", "user_domain_id")),
    *(f"auth.{name}" for name in ("project_domain_name", "project_domain_id")),
    *(f"auth.application_credential_{what}" for what in ("id", "name", "secret")),
)


@pytest.mark.parametrize("name", TEXTS)
def test_a_list_in_the_place_of_a_text(clouds_yaml, name):
    cloud: dict[str, Any] = {name: ["pa55"]}
    if name.startswith("auth."):
        cloud = {"auth": {name.removeprefix("auth."): ["pa55"]}}
    clouds_yaml.write_text(json.dumps({"clouds": {"c": cloud}}))
    with pytest.raises(CloudError) as caught:
        client.connect("c")
    assert f"clouds.c.{name}" in str(caught.value)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize("name", ["auth.auth_url", "auth_type", "region_name"])
def test_nothing_in_the_place_of_what_a_login_needs(clouds_yaml, name):
    cloud: dict[str, Any] = {"region_name": "r", "auth_type": "password", name: None}
    if name.startswith("auth."):
        cloud = {"auth": {name.removeprefix("auth."): None}}
    clouds_yaml.write_text(json.dumps({"clouds": {"c": cloud}}))
    with pytest.raises(CloudError, match=f"clouds.c.{name}"):
        client.connect("c")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("place", PLACES)
def test_wrong_shapes_in_clouds_yaml(clouds_yaml, place, shape):
    text, key = PLACES[place]
    clouds_yaml.write_text(text % SHAPES[shape])
    with pytest.raises(CloudError) as caught:
        client.connect("c")
    said = str(caught.value)
    assert "pa55" not in said or place in ("clouds", "auth_type")
    is_named = f"{clouds_yaml}: " in said
    assert is_named or shape != "a date" or place in OWN_WORDS
    if is_named:
        assert f"{clouds_yaml}: {key} must be ".replace("  ", " ") in said
        assert f", and is {shape.removesuffix(' of lists')}" in said


UNREADABLE = {
    "no YAML": (b"clouds: {c: {auth: {password: pa55", "is no YAML: line 2, column 1"),
    "deep": (DEEP.encode(), "is no YAML: line 1, column 200: is nested too deeply"),
    "in Latin-1": (b"clouds: {c: {auth: {password: pa55\xe9}}}", "is no text in UTF-8"),
}


@pytest.mark.parametrize(("content", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_openstacksdk_would_skip(clouds_yaml, content, why):
    clouds_yaml.write_bytes(content)
    with pytest.raises(CloudError) as caught:
        client.connect("c")
    assert str(caught.value).startswith(f"{clouds_yaml} {why}")
    assert "pa55" not in str(caught.value)


def test_a_directory_in_place_of_the_file(clouds_yaml):
    clouds_yaml.mkdir()
    with pytest.raises(CloudError, match=r"clouds.yaml cannot be read: Is a directory"):
        client.connect("c")


def test_other_clouds_of_the_file_may_be_wrong(openstack, monkeypatch, clouds_yaml):
    login = openstack.environment(clouds_yaml.parent)
    auth = {
        name.removeprefix("OS_").lower(): value
        for name, value in login.items()
        if name.startswith("OS_")
    }
    mine = {"auth": auth, "profile": None, "cacert": None}
    clouds_yaml.write_text(json.dumps({"clouds": {"mine": mine, "other": 7}}))
    assert client.connect("mine").project == PROJECT
