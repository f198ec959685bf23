#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Ansible module: of the facts that ``setup`` gathers, those that are used here.

Their names and meanings are ``setup``'s, and Ansible keeps them in its cache likewise.
Without Ansible's library, as ``lab_units``: ``setup`` is the most expensive task of a
playbook, and one for each host.
"""

import json
import os
import pwd
import socket
import subprocess
from typing import Any

# Somewhere far away, as in Ansible's own facts. Nothing is sent there.
_FAR = {
    socket.AF_INET: ("8.8.8.8", 53),
    socket.AF_INET6: ("2404:6800:400a:800::1012", 53),
}


def default_address(family: socket.AddressFamily) -> dict[str, str]:
    """The address from which the host talks to the world; {} if it cannot."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_FAR[family])
        except OSError:
            return {}
        return {"address": str(probe.getsockname()[0])}


def addresses(family: str) -> list[str]:
    """All of a family (``inet``, ``inet6``) that are not the loopback's."""
    told = subprocess.run(
        ["ip", "-json", "address", "show"], capture_output=True, text=True, check=True
    )
    return [
        address["local"]
        for interface in json.loads(told.stdout)
        if "LOOPBACK" not in interface["flags"]
        for address in interface["addr_info"]
        if address["family"] == family
    ]


def gather() -> dict[str, Any]:
    """The facts, with the names that they have as variables."""
    system = os.uname()
    facts = {
        "system": system.sysname,
        "kernel": system.release,
        "machine": system.machine,
        "architecture": system.machine,
        "nodename": system.nodename,
        "hostname": system.nodename.partition(".")[0],
        "fqdn": socket.getfqdn(),
        "user_id": pwd.getpwuid(os.getuid()).pw_name,
        "effective_user_id": os.geteuid(),
        "default_ipv4": default_address(socket.AF_INET),
        "default_ipv6": default_address(socket.AF_INET6),
        "all_ipv4_addresses": addresses("inet"),
        "all_ipv6_addresses": addresses("inet6"),
    }
    return {f"ansible_{name}": value for name, value in facts.items()}


def main() -> None:
    # It takes no arguments, but this is how Ansible knows that it needs no library.
    json.loads(r"""<<INCLUDE_ANSIBLE_MODULE_JSON_ARGS>>""")
    try:
        print(json.dumps({"changed": False, "ansible_facts": gather()}))
    except (OSError, subprocess.CalledProcessError) as problem:
        print(json.dumps({"failed": True, "msg": str(problem)}))


if __name__ == "__main__":
    main()
