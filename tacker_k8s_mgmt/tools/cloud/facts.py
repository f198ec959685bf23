# SPDX-License-Identifier: Apache-2.0
"""What a cloud has, and which distribution its images are.

The distributions are those on which kubespray installs, as images name them. Sources:
``supported_os_distributions`` in ``roles/kubernetes/preinstall/defaults``, the same in
all known releases; Glance's property ``os_distro``; the users that the distributions'
cloud images create.
"""

import math
import re
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
class Server:
    """A server of Nova.

    :param addresses: all of its ports', the floating ones too.
    """

    id: str
    name: str
    addresses: tuple[str, ...] = ()


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


#: The login user by distribution; "" where images differ.
LOGINS: Mapping[str, str] = {
    "ubuntu": "ubuntu",
    "debian": "debian",
    "rocky": "rocky",
    "almalinux": "almalinux",
    "centos": "cloud-user",
    "rhel": "cloud-user",
    "fedora": "fedora",
    "oraclelinux": "",
    "coreos": "core",
    "flatcar": "core",
    "opensuse": "opensuse",
    "sles": "",
    "amazon": "ec2-user",
    "openeuler": "",
    "kylin": "",
    "uos": "",
}
# Other words for them, in properties and names.
_ALIASES: Mapping[str, str] = {
    "alma": "almalinux",
    "redhat": "rhel",
    "oracle": "oraclelinux",
    "ol": "oraclelinux",
    "suse": "sles",
    "leap": "opensuse",
    "tumbleweed": "opensuse",
    "amzn": "amazon",
    "uniontech": "uos",
    "fcos": "coreos",
    "noble": "ubuntu",
    "jammy": "ubuntu",
    "focal": "ubuntu",
    "bookworm": "debian",
    "bullseye": "debian",
    "trixie": "debian",
}
# On which it installs nothing. What is in neither list may be an image of a site's own.
_REFUSED = frozenset(
    {"alpine", "arch", "cirros", "freebsd", "gentoo", "nixos", "windows"}
)


def distribution(image: Image) -> str:
    """The distribution of an image, by its property or else by its name.

    :returns: a key of :data:`LOGINS`; "" if kubespray does not install there, or if
        nothing tells.
    """
    known = [_ALIASES.get(word, word) for word in _words(image)]
    if "coreos" in known:
        # Fedora CoreOS, which has another user than Fedora.
        return "coreos"
    return next((word for word in known if word in LOGINS), "")


def is_refused(image: Image) -> bool:
    """Whether kubespray surely does not install on an image."""
    return not distribution(image) and not _REFUSED.isdisjoint(_words(image))


def _words(image: Image) -> list[str]:
    words: list[str] = re.findall("[a-z]+", (image.distribution or image.name).lower())
    return words


def login(image: Image) -> str:
    """The user that an image creates; "" if nothing tells."""
    return image.login or LOGINS.get(distribution(image), "")
