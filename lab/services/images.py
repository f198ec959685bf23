# SPDX-License-Identifier: Apache-2.0
"""Images: a stand-in for Glance.

Its images are names with properties; what a host of the lab is made of depends on the
name alone. Tacker's v2 API asks for those that it made for a VNF, at every grant and at
the end (``sol_refactored/nfvo/local_nfvo.py``); the lab's packages bring none, so no
image has a tag.
"""

from collections.abc import Mapping
from typing import Any

from lab.cloud.settings import PREPARED
from lab.services import stand_in
from lab.services.stand_in import Answer
from lab.settings import url

NAME = "images"
#: The image of the samples.
UBUNTU = "ubuntu-24.04-server-cloudimg-amd64"
#: One on which kubespray installs nothing.
OTHER = "cirros-0.6.3-x86_64"
_VERSION = {
    "id": "v2.16",
    "status": "CURRENT",
    "links": [{"rel": "self", "href": f"{url(NAME)}/v2/"}],
}


def _image(number: int, name: str, **properties: Any) -> dict[str, Any]:
    image_id = f"00000000-0000-4000-8000-1a6e{number:08}"
    return {
        "id": image_id,
        "name": name,
        "status": "active",
        "visibility": "public",
        "container_format": "bare",
        "disk_format": "qcow2",
        "min_disk": 4,
        "min_ram": 512,
        "tags": [],
        "self": f"/v2/images/{image_id}",
        "file": f"/v2/images/{image_id}/file",
        "schema": "/v2/schemas/image",
        **properties,
    }


IMAGES = (
    _image(1, UBUNTU, os_distro="ubuntu", os_version="24.04", os_admin_user="ubuntu"),
    _image(2, OTHER, os_distro="cirros"),
    _image(3, PREPARED, os_distro="ubuntu", os_version="24.04"),
)


def answer(path: str, query: Mapping[str, str]) -> Answer:
    """Status and document of a GET."""
    if path in ("", "/versions"):
        return 300, {"versions": [_VERSION]}
    if path == "/v2":
        return 200, {"version": _VERSION}
    if path == "/v2/images":
        wanted = {key: query[key] for key in ("name", "status") if key in query}
        found = [] if "tag" in query else stand_in.matching(IMAGES, wanted)
        return 200, {"images": found, "schema": "/v2/schemas/images"}
    for image in IMAGES:
        if path == f"/v2/images/{image['id']}":
            return 200, image
    return stand_in.absent(path)
