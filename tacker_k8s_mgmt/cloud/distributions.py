# SPDX-License-Identifier: Apache-2.0
"""The distributions on which kubespray installs, as images name them.

Sources: ``supported_os_distributions`` in ``roles/kubernetes/preinstall/defaults``, the
same in all known releases; Glance's property ``os_distro``; the users that the
distributions' cloud images create.
"""

import re
from collections.abc import Mapping

from tacker_k8s_mgmt.cloud.facts import Image

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
