# SPDX-License-Identifier: Apache-2.0
"""VNF packages in Tacker: by their own ids, or those of their VNFDs."""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacker_k8s_mgmt.errors import TackerError
from tacker_k8s_mgmt.model.yaml_text import mapping
from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.tacker.client import Refused, Request, Tacker
from tacker_k8s_mgmt.tools.tacker.records import is_id

_PATH = "/vnfpkgm/v1/vnf_packages"
_ENABLED = "ENABLED"


def vnfd_files(tacker: Tacker, vnfd_id: str) -> Mapping[str, bytes]:
    """The files of a VNFD, by their names in the package.

    :raises TackerError: Tacker does not show it.
    :raises PackageError: its archive cannot be read.
    """
    path = f"{_PATH}/{_of_vnfd(tacker, vnfd_id)}/vnfd"
    answer = tacker.send(Request("GET", path, accept="application/zip"))
    with tempfile.NamedTemporaryFile(prefix="vnfd-", suffix=".zip") as file:
        file.write(answer.content)
        file.flush()
        return archive.read(Path(file.name))


def usable_vnfd(tacker: Tacker, name: str) -> str:
    """The id of the VNFD that is meant.

    :param name: its id, or that of its package.
    :raises TackerError: there is no such package, or it is not for use.
    """
    if not is_id(name):
        raise TackerError(
            detail=f"{name} is no id of a VNF package or of a VNFD.",
            hint="`openstack vnf package list` names the packages.",
        )
    try:
        row = tacker.document(f"{_PATH}/{name}", "")
    except Refused as error:
        if error.status != 404:
            raise
        row = tacker.document(f"{_PATH}/{_of_vnfd(tacker, name)}", "")
    vnfd_id, state = str(row.get("vnfdId")), row.get("operationalState")
    if state != _ENABLED or not is_id(vnfd_id):
        raise TackerError(
            detail=f"The VNF package of {name} is not for use: its onboardingState is "
            f"{row.get('onboardingState')}, its operationalState {state}."
        )
    return vnfd_id


def with_vnfd_id(tacker: Tacker, vnfd_id: str) -> Mapping[str, Any] | None:
    """The package that Tacker has of a VNFD id, as it shows it; None without one.

    :raises TackerError: Tacker does not tell.
    """
    if not is_id(vnfd_id):
        return None
    row = next(tacker.rows(_PATH, "", {"filter": f"(eq,vnfdId,{vnfd_id})"}), None)
    if row is None or not is_id(str(row.get("id"))):
        return None
    return tacker.document(f"{_PATH}/{row['id']}", "")


def is_of(row: Mapping[str, Any], package: Path) -> bool:
    """Whether a package that Tacker shows was made of this file.

    :raises OSError: the file cannot be read.
    """
    checksum = mapping(row.get("checksum"))
    name = str(checksum.get("algorithm")).lower().replace("-", "")
    try:
        digest = hashlib.new(name, package.read_bytes())
    except ValueError:
        return False
    return digest.hexdigest() == str(checksum.get("hash")).lower()


def _of_vnfd(tacker: Tacker, vnfd_id: str) -> str:
    """The id of the package with a VNFD."""
    query = {"filter": f"(eq,vnfdId,{vnfd_id})"}
    rows = tacker.rows(_PATH, "", query) if is_id(vnfd_id) else ()
    found = [str(row.get("id")) for row in rows]
    if len(found) != 1 or not is_id(found[0]):
        raise TackerError(
            detail=f"Tacker shows {len(found)} VNF packages with the VNFD {vnfd_id} to "
            "this user; one is needed."
        )
    return found[0]
