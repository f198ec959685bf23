# SPDX-License-Identifier: Apache-2.0
"""A cloud without HTTP, in which the samples fit."""

from dataclasses import dataclass, field

from tacker_k8s_mgmt.errors import CloudError
from tacker_k8s_mgmt.tools.cloud import demand
from tacker_k8s_mgmt.tools.cloud.facts import (
    Flavor,
    Heat,
    Image,
    Network,
    Quota,
    Subnet,
    Vim,
)
from tacker_k8s_mgmt.tools.csar import parts
from tacker_k8s_mgmt.tools.csar.tacker_api import V1

UBUNTU = "ubuntu-24.04-server-cloudimg-amd64"
OUTER = Network("e1", "external", (Subnet("s", "10.99.0.0/24", "10.99.0.1"),))
VERSION = "2018-08-31"


def _quotas(**limits):
    return {name: Quota(limit, 0) for name, limit in limits.items()}


@dataclass
class Cloud:
    """A cloud in which the samples fit."""

    project: str = "nfv"
    domain: str = "Default"
    auth_url: str = "https://keystone.example.org:5000/v3"
    identity_urls: frozenset = frozenset(
        {"https://keystone.example.org:5000/v3", "http://192.0.2.1:5000"}
    )
    image_list: list = field(
        default_factory=lambda: [Image("i1", UBUNTU, distribution="ubuntu", min_disk=4)]
    )
    flavor_list: list = field(
        default_factory=lambda: [
            Flavor("2", "m1.small", 1, 2048, 20),
            Flavor("3", "m1.medium", 2, 4096, 40),
        ]
    )
    keys: list = field(default_factory=lambda: ["lab"])
    network_list: list = field(default_factory=lambda: [OUTER])
    extensions: frozenset = frozenset({"allowed-address-pairs"})
    compute: dict = field(
        default_factory=lambda: _quotas(
            instances=10, cores=20, ram=-1, server_groups=10
        )
    )
    neutron: dict = field(
        default_factory=lambda: _quotas(ports=20, networks=5, security_groups=10)
    )
    cinder: dict = field(default_factory=lambda: _quotas(volumes=5, gigabytes=100))
    types: set = field(default_factory=set)
    versions: frozenset = frozenset({VERSION})
    vim_list: list = field(
        default_factory=lambda: [Vim("lab", "openstack", True, project="nfv")]
    )
    silent: set = field(default_factory=set)

    def _answer(self, service, value):
        if service in self.silent:
            raise CloudError(detail=f"The cloud's catalogue has no {service}.")
        return value

    def _named(self, service, rows, name):
        every = self._answer(service, rows)
        return next((row for row in every if name in (row.id, row.name)), None)

    def images(self):
        return self._answer("Glance", self.image_list)

    def flavors(self):
        return self._answer("Nova", self.flavor_list)

    def networks(self):
        return self._answer("Neutron", self.network_list)

    def image(self, name):
        return self._named("Glance", self.image_list, name)

    def flavor(self, name):
        return self._named("Nova", self.flavor_list, name)

    def keypairs(self):
        return self._answer("Nova", self.keys)

    def network(self, name):
        return self._named("Neutron", self.network_list, name)

    def network_extensions(self):
        return self._answer("Neutron", self.extensions)

    def compute_quotas(self):
        return self._answer("Nova", self.compute)

    def network_quotas(self):
        return self._answer("Neutron", self.neutron)

    def volume_quotas(self):
        return self._answer("Cinder", self.cinder)

    def heat(self):
        return self._answer("Heat", Heat(self.versions, frozenset(self.types)))

    def vims(self):
        return self._answer("Tacker", self.vim_list)


def files(flavour="simple", api=V1, edit=None):
    """The files of a sample package; *edit* changes its Base HOT."""
    found = parts.collect(flavour, source=parts.samples(api), api=api)
    if edit:
        name = f"BaseHOT/{flavour}/base_hot_top.yaml"
        found[name] = edit(found[name].decode()).encode()
    return found


def package(flavour="simple", api=V1, edit=None):
    """A sample package as it is read."""
    return demand.package(files(flavour, api, edit), flavour)
