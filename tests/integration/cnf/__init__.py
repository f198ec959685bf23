# SPDX-License-Identifier: Apache-2.0
"""A CNF: one Deployment that Tacker makes on a Kubernetes VIM."""

import contextlib
import uuid
from pathlib import Path
from typing import Any

from lab.client import Tacker
from tacker_k8s_mgmt.tools.csar import archive, parts

SOURCE = Path(__file__).parent
NAMESPACE = "default"
# Not one directory higher: Tacker takes what is there for VNFDs, each one document
# (vnflcm/utils.py, _get_flavour_based_vnfd).
MANIFEST = "Files/kubernetes/web.yaml"


def build(path: Path, vnfd_id: str, manifest: str | None = None) -> None:
    """Put the VNF package at *path*.

    :param manifest: what it has in place of its own manifest.
    """
    types = parts.samples() / "vnfd" / "types"
    files = {f"Definitions/{one.name}": one.read_bytes() for one in types.iterdir()}
    for one in SOURCE.rglob("*.yaml"):
        text = one.read_text().replace("@VNFD_ID@", vnfd_id)
        files[str(one.relative_to(SOURCE))] = text.encode()
    if manifest:
        files[MANIFEST] = manifest.encode()
    files[archive.PATH] = archive.render(files, "Definitions/web.vnfd.yaml")
    archive.write(path, files)


class Cnf:
    """A VNF instance of it, and its package.

    :param vim: what the API wants to know of the VIM that it runs on; v1: its id.
    :param manifest: what its package has in place of the one Deployment.
    :ivar namespace: where it is instantiated.
    """

    namespace = NAMESPACE

    def __init__(
        self, tacker: Tacker, scratch: Path, vim: Any, manifest: str | None = None
    ) -> None:
        self._tacker = tacker
        self._vim = vim
        vnfd_id = str(uuid.uuid4())
        csar = scratch / f"cnf-{vnfd_id}.zip"
        self._build(csar, vnfd_id, manifest)
        self._package = tacker.upload_package(csar, {"test": vnfd_id})["id"]
        self.id = str(tacker.create(vnfd_id, f"cnf-{vnfd_id[:6]}")["id"])

    def _build(self, csar: Path, vnfd_id: str, manifest: str | None) -> None:
        build(csar, vnfd_id, manifest)

    def instantiate(self, level: str = "one") -> None:
        """Instantiate it on the VIM.

        :param level: instantiation level; it counts in the v2 API only.
        """
        vim = {"id": str(uuid.uuid4()), "vimId": self._vim, "vimType": "kubernetes"}
        self._do(
            "instantiate",
            {
                "flavourId": "web",
                "instantiationLevelId": level,
                "additionalParams": self._parameters(),
                "vimConnectionInfo": [vim],
            },
        )

    def _parameters(self) -> dict[str, Any]:
        return {"lcm-kubernetes-def-files": [MANIFEST], "namespace": self.namespace}

    def refused(self) -> str:
        """Instantiate it, which fails, and roll that back or give it up; the error."""
        with contextlib.suppress(RuntimeError):
            self.instantiate()
        (operation,) = self._tacker.failed(self.id)
        error = self._tacker.occurrence(operation)["error"]["detail"]
        self._tacker.handle(operation, "rollback")
        end = self._tacker.wait(operation, "ROLLED_BACK", "FAILED_TEMP")
        if end["operationState"] == "FAILED_TEMP":
            # What may not create may not delete either.
            self._tacker.handle(operation, "fail")
            self._tacker.wait(operation, "FAILED")
        return str(error)

    def terminate(self) -> None:
        """Terminate it; until it is deleted, Tacker counts it as using the VIM."""
        self._do("terminate", {"terminationType": "FORCEFUL"})

    def delete(self) -> None:
        """Delete the VNF instance."""
        self._tacker.delete(self.id)

    def remove(self) -> None:
        """Take away what is there, whatever became of it."""
        for step in (self.terminate, self.delete):
            with contextlib.suppress(RuntimeError):
                step()
        self._tacker.delete_package(self._package)

    def _do(self, verb: str, body: dict[str, object]) -> None:
        operation = self._tacker.operate(self.id, verb, body)
        self._tacker.wait(operation, "COMPLETED")
