# SPDX-License-Identifier: Apache-2.0
"""What a cloud has, in the few words that this project needs of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

UNLIMITED = -1


@dataclass(frozen=True)
class Image:
    """An image of Glance.

    :param distribution: property ``os_distro``; "" without it.
    :param login: property ``os_admin_user``, the user that it creates; "" without it.
    :param min_disk: GiB that a flavour needs at least.
    :param min_ram: MiB that a flavour needs at least.
    """

    id: str
    name: str
    status: str = "active"
    distribution: str = ""
    login: str = ""
    min_disk: int = 0
    min_ram: int = 0


@dataclass(frozen=True)
class Flavor:
    """A flavour of Nova.

    :param ram: MiB.
    :param disk: GiB; 0: as large as the image.
    """

    id: str
    name: str
    vcpus: int
    ram: int
    disk: int


@dataclass(frozen=True)
class Subnet:
    """A subnet of Neutron.

    :param gateway: "" without one.
    """

    name: str
    cidr: str
    gateway: str = ""


@dataclass(frozen=True)
class Network:
    """A network of Neutron.

    :param is_open: whether the project may have ports on it: it owns or shares it.
    :param port_security: None if this Neutron has no port security.
    """

    id: str
    name: str
    subnets: tuple[Subnet, ...] = ()
    is_up: bool = True
    is_external: bool = False
    is_open: bool = True
    port_security: bool | None = True


@dataclass(frozen=True)
class Quota:
    """A limit of the project, and what is in use of it."""

    limit: int
    used: int

    @property
    def free(self) -> float:
        """What is left; infinite without a limit."""
        return math.inf if self.limit == UNLIMITED else self.limit - self.used


@dataclass(frozen=True)
class Vim:
    """A VIM in Tacker's registry.

    :param project: name of its project; "" if it is not known, as with the others.
    :param domain: name of the project's domain.
    """

    name: str
    kind: str
    is_default: bool = False
    auth_url: str = ""
    project: str = ""
    domain: str = ""
    id: str = ""


@dataclass(frozen=True)
class Heat:
    """An orchestration service.

    :param versions: the template versions that it reads, such as ``2018-08-31``.
    :param types: the resource types that it has.
    """

    versions: frozenset[str]
    types: frozenset[str]


Quotas = Mapping[str, Quota]
