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
    "noble": "ubuntu",
    "jammy": "ubuntu",
    "bookworm": "debian",
    "bullseye": "debian",
    "trixie": "debian",
}


def distribution(image: Image) -> str:
    """The distribution of an image, by its property or else by its name.

    :returns: a key of :data:`LOGINS`; "" if kubespray does not install there, or if
        nothing tells.
    """
    text = (image.distribution or image.name).lower()
    words: list[str] = re.findall("[a-z]+", text)
    for word in words:
        known = _ALIASES.get(word, word)
        if known in LOGINS:
            return known
    return ""


def login(image: Image) -> str:
    """The user that an image creates; "" if nothing tells."""
    return image.login or LOGINS.get(distribution(image), "")
