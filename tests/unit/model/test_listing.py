# SPDX-License-Identifier: Apache-2.0
"""Which objects a listing may lack, whose kinds or APIs could not be listed."""

import pytest

from tacker_k8s_mgmt.model.manifests import Listing

UNLISTED = {
    "volumesnapshots.snapshot.storage.k8s.io": "no webhook",
    "metrics.k8s.io/v1beta1": "its server is away",
}


@pytest.mark.parametrize(
    ("api_version", "kind", "may_lack"),
    [
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshot", True),
        ("metrics.k8s.io/v1beta1", "PodMetrics", True),
        ("storage.k8s.io/v1", "StorageClass", False),
        ("v1", "Secret", False),
    ],
)
def test_an_object_of_what_could_not_be_listed(api_version, kind, may_lack):
    one = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}
    assert Listing((), UNLISTED).may_lack(one) is may_lack
    assert not Listing(()).may_lack(one)


def test_what_is_not_known_is_told_with_its_reasons():
    assert Listing((), UNLISTED).unknown == (
        "volumesnapshots.snapshot.storage.k8s.io (no webhook); "
        "metrics.k8s.io/v1beta1 (its server is away)"
    )
    assert Listing(()).unknown == ""
