# SPDX-License-Identifier: Apache-2.0
"""The operator's Ansible server, as ``tacker.conf`` has it; see :mod:`.request`'s."""

import os
import posixpath
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote import local_files
from tacker_k8s_mgmt.remote.local_files import FileNotAllowed, Place
from tacker_k8s_mgmt.request import fields, structure
from tacker_k8s_mgmt.request.accounts import CREDENTIALS
from tacker_k8s_mgmt.request.installation import AnsibleServer
from tacker_k8s_mgmt.request.operator_server import OperatorServer
from tacker_k8s_mgmt.request.structure import Location, WrittenRequest

# The attribute of a request's `ansible` for each option.
_PLAIN = {
    "ip_address": "ansible_host",
    "port": "ansible_port",
    "host_key": "ansible_host_key",
    "username": "ansible_username",
    "kubespray_root_path": "ansible_kubespray_root_path",
    "venv_path": "ansible_venv_path",
    "forks": "ansible_forks",
    "strategy": "ansible_strategy",
    "resolve_downloads": "ansible_resolve_downloads",
}
_IN_FILES = {name: f"ansible_{name}_file" for name in CREDENTIALS}
_ROOT = "ansible_inventory_root"
_DIRECTORY = "transferring_inventory_path"


def find(options: Any, vnf_id: str) -> OperatorServer | None:
    """The Ansible server for requests without ``ansible``; None if there is none.

    :param options: the ``[k8s_mgmt]`` group of Tacker's configuration.
    :param vnf_id: the VNF instance whose cluster it is.
    :raises TackerConfigError: naming every option that is wrong.
    """
    if not options.ansible_host:
        return None
    problems: list[str] = []
    values = {name: getattr(options, option) for name, option in _PLAIN.items()}
    values = {name: value for name, value in values.items() if value not in ("", None)}
    for name, option in _IN_FILES.items():
        if path := getattr(options, option):
            try:
                values[name] = _secret(path, options)
            except FileNotAllowed as error:
                problems.append(f"{option}: {error}")
    # Nothing of a tenant's is in the path.
    name = str(uuid.UUID(vnf_id))
    if root := getattr(options, _ROOT):
        values[_DIRECTORY] = posixpath.join(root, name)
    problems += _problems(options, values)
    if problems:
        raise errors.TackerConfigError(
            detail="The Ansible server that [k8s_mgmt] of tacker.conf has for requests "
            f"without ansible cannot be used: {'; '.join(problems)}.",
            hint="Tacker's operator has to correct that; nothing was changed.",
        )
    return OperatorServer(values, frozenset(options.ansible_variables))


def _secret(path: str, options: Any) -> str:
    """The secret in a file of the operator's.

    :raises FileNotAllowed: it cannot be read, or requests may name it.
    """
    if not os.path.isabs(path):
        raise FileNotAllowed("must be an absolute path")
    real = os.path.realpath(path)
    for option in ("key_directory", "secret_directory"):
        shared, of_projects, _ = (getattr(options, option) or "").partition(
            "{project_id}"
        )
        shared = os.path.dirname(shared) if of_projects else shared
        if shared and Path(real).is_relative_to(os.path.realpath(shared)):
            raise FileNotAllowed(
                f"must not be below {option}: requests may name its files"
            )
    place = Place("its directory", os.path.dirname(real))
    largest = local_files.LARGEST_SECRET
    data = local_files.read(real, os.path.dirname(real), place=place, largest=largest)
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise FileNotAllowed("is no text in UTF-8") from None


def _problems(options: Any, values: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the options, each by its name."""
    if not options.ansible_host_key:
        yield "ansible_host_key: is missing; the login is sent to no unknown host"
    if not {"private_key", "password"} & values.keys() and not (
        options.ansible_private_key_file or options.ansible_password_file
    ):
        yield "ansible_private_key_file or ansible_password_file is missing"
    if fields.is_path(str(values.get("private_key", ""))):
        yield "ansible_private_key_file: must have the text of a private key"
    names = {**_PLAIN, **_IN_FILES, _DIRECTORY: _ROOT}
    given: dict[Location, str] = {(name,): option for name, option in names.items()}
    _, mistakes = structure.build(AnsibleServer, values)
    yield from map(str, WrittenRequest({}, names=given).named(mistakes))
