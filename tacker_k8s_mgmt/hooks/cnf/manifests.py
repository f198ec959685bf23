# SPDX-License-Identifier: Apache-2.0
"""The Services in the manifests of a CNF's package, before they are in the cluster."""

from collections.abc import Sequence
from typing import Any

import yaml

from tacker_k8s_mgmt.model import yaml_text
from tacker_k8s_mgmt.model.services import Service
from tacker_k8s_mgmt.remote import local_files
from tacker_k8s_mgmt.remote.local_files import Place

#: Bytes of all files together; the hook runs in the conductor.
LARGEST = 20 * 1024 * 1024
_PACKAGE = Place("the place of manifests", "the VNF package")

# What reading a Service raises that is none.
_NO_SERVICE = (AttributeError, KeyError, TypeError, ValueError)


def services(
    package: str, files: Sequence[str], namespace: str | None
) -> tuple[Service, ...] | None:
    """The Services of these files; None if not all of them can be read.

    What is wrong with them is Tacker's to report, which reads them next.

    :param package: directory of the VNF package.
    :param files: paths in it, by the request; URLs are not fetched, and what is outside
        of the package is not read.
    :param namespace: of the request, which replaces that of the manifests.
    """
    found: list[Service] = []
    left, values_left = LARGEST, yaml_text.MOST_VALUES
    try:
        for name in files:
            content = local_files.read(name, package, place=_PACKAGE, largest=left + 1)
            left -= len(content)
            if left < 0:
                return None
            text = content.decode()
            values_left -= yaml_text.check_yaml(text, values_left)
            for written in yaml_text.yaml_documents(text):
                if isinstance(written, dict) and written.get("kind") == "Service":
                    found.append(Service.read(_placed(written, namespace)))
    except (local_files.FileNotAllowed, yaml.YAMLError, RecursionError, *_NO_SERVICE):
        return None
    return tuple(found)


def _placed(written: dict[str, Any], namespace: str | None) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {**written, "metadata": {**written["metadata"], **place}}
