# SPDX-License-Identifier: Apache-2.0
"""The stand-in for Glance: it has no images and says so as Glance does."""

import pytest

from lab.services import images
from lab.settings import url


@pytest.mark.parametrize("path", ["/", "/versions"])
def test_a_client_finds_the_version(path):
    status, found = images.document(path)
    (version,) = found["versions"]
    assert (status, version["status"]) == (300, "CURRENT")
    assert version["links"][0]["href"] == f"{url('images')}/v2/"


def test_there_are_no_images_of_any_vnf():
    status, found = images.document("/v2/images?tag=some-vnf&limit=20")
    assert (status, found["images"]) == (200, [])


def test_everything_else_is_not_there():
    assert images.document("/v2/images/one")[0] == 404
