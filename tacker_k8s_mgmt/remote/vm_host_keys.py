# SPDX-License-Identifier: Apache-2.0
"""The host keys of a cluster's VMs, in its directory on the Ansible server.

Each VM that ``machines.json`` records has a key in ``known_hosts`` at any time: an
entry is written after its key, and removed before it. So a key that is not there was
lost, and the next key that the VM shows must not be trusted instead.
"""

import json
from collections.abc import Mapping

from pydantic import TypeAdapter

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.lifecycle.ports import Records, WorkDir
from tacker_k8s_mgmt.lifecycle.steps.records import MACHINES_FILE
from tacker_k8s_mgmt.remote.ssh import known_hosts
from tacker_k8s_mgmt.remote.ssh.key_file import KNOWN_HOSTS
from tacker_k8s_mgmt.remote.ssh.known_hosts import HostKeys

_PORT = 22
_LOST = (
    "Restore it. Or delete it: then the key that each VM shows next is trusted, so "
    "compare them with what the VMs' consoles show."
)


def load(directory: Records, host: str) -> HostKeys:
    """Return the recorded keys; none where there is no file.

    :param host: the Ansible server.
    :raises SpoiledFile: the file is not valid, or lacks the key of a VM; the keys exist
        nowhere else.
    """
    path = f"{directory.path}/{KNOWN_HOSTS}"
    before = _machines(directory)
    try:
        text = directory.read(KNOWN_HOSTS)
    except errors.SpoiledFile as error:
        raise errors.SpoiledFile(hint=_LOST, **error.fields) from error
    keys = HostKeys(text or "", f"{path} on {host}")
    # Where it was emptied, not deleted, nobody has decided to trust new keys.
    if text is not None:
        reason = known_hosts.damage(text) or _lacks(keys, directory, before)
        if reason:
            raise errors.SpoiledFile(hint=_LOST, path=path, host=host, reason=reason)
    return keys


def save(directory: WorkDir, keys: HostKeys) -> None:
    """Write the keys, where Ansible reads them."""
    recorded = _machines(directory)
    if gone := _without_key(keys, recorded):
        kept = {server: recorded[server] for server in recorded if server not in gone}
        directory.write(MACHINES_FILE, json.dumps(kept, indent=2) + "\n")
    directory.write(KNOWN_HOSTS, keys.text())


def _lacks(keys: HostKeys, directory: Records, before: Mapping[str, str]) -> str:
    """Return what the file lacks; "" for nothing."""
    if not (missing := _without_key(keys, before)):
        return ""
    # An operation may have removed them between the two reads.
    there = _machines(directory)
    lost = [f"{missing[server]} ({server})" for server in missing if server in there]
    if not lost:
        return ""
    return f"it has no host key of these VMs, which it had: {', '.join(lost)}"


def _without_key(keys: HostKeys, machines: Mapping[str, str]) -> dict[str, str]:
    return {
        server: address
        for server, address in machines.items()
        if not keys.knows(address, _PORT)
    }


def _machines(directory: Records) -> Mapping[str, str]:
    """Return the addresses of the recorded VMs by server id.

    A spoiled record proves nothing: it is rebuilt from the keys.
    """
    try:
        text = directory.read(MACHINES_FILE)
        return TypeAdapter(dict[str, str]).validate_json(text or "{}")
    except (errors.SpoiledFile, ValueError):
        return {}
