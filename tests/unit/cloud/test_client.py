# SPDX-License-Identifier: Apache-2.0
"""The cloud through the real openstacksdk, at the lab's stand-ins."""

import sys

import pytest

from lab.cloud.base import KEY_PAIR
from lab.services import compute, images, network
from tacker_k8s_mgmt.cloud import client
from tacker_k8s_mgmt.cloud.facts import Flavor, Image, Quota, Subnet
from tacker_k8s_mgmt.errors import CloudError
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
        ("network", "Neutron", "networks"),
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
    assert text.startswith("No clouds.yaml has a cloud nosuch (there are: ")
    assert "~/.config/openstack" in text
    if by_option:
        assert "site1, site2)" in text


def test_without_openstacksdk_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openstack", None)
    with pytest.raises(CloudError, match=r"pip install 'tacker-k8s-mgmt\[cloud\]'"):
        client.connect()
