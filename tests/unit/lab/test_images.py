# SPDX-License-Identifier: Apache-2.0
"""The stand-in for Glance: a few images, none of which belongs to a VNF."""

import pytest

from lab.services import images
from lab.settings import url


@pytest.mark.parametrize("path", ["", "/versions"])
def test_a_client_finds_the_version(path):
    status, found = images.answer(path, {})
    (version,) = found["versions"]
    assert (status, version["status"]) == (300, "CURRENT")
    assert version["links"][0]["href"] == f"{url('images')}/v2/"


def test_there_are_no_images_of_any_vnf():
    status, found = images.answer("/v2/images", {"tag": "some-vnf", "limit": "20"})
    assert (status, found["images"]) == (200, [])


def test_images_by_name_and_by_id():
    status, found = images.answer("/v2/images", {"name": images.UBUNTU})
    (image,) = found["images"]
    assert (status, image["os_distro"]) == (200, "ubuntu")
    assert images.answer(f"/v2/images/{image['id']}", {}) == (200, image)


def test_everything_else_is_not_there():
    assert images.answer("/v2/images/one", {})[0] == 404
