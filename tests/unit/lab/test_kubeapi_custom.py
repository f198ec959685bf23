# SPDX-License-Identifier: Apache-2.0
"""Custom kinds of the Kubernetes API stand-in: served, converted, advised against.

``tests/real/test_differential.py`` compares the same with a real server.
"""

import pytest

from tests.helpers import kubeapi as bed
from tests.helpers.kubeapi import SNAPSHOTS, custom, definition, wait_for

pytestmark = pytest.mark.skipif(not bed.KUBECTL, reason="no kubectl on PATH")

OLD = "snapshot.storage.k8s.io/v1beta1"
IN_DEFAULT = "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots"


@pytest.fixture
def kube(tmp_path):
    with bed.serving(bed.make_certificate(tmp_path), "w1") as served:
        yield served


def test_served_while_it_is_defined(kube):
    bed.define(kube)
    found = kube.kubectl("api-resources", "--no-headers").stdout
    assert ["volumesnapshots", "snapshot.storage.k8s.io/v1", "true"] in [
        line.split()[:3] for line in found.splitlines()
    ]
    kube.apply(custom("one", "default", OLD))
    assert kube.get(f"{IN_DEFAULT}/one")["apiVersion"] == "snapshot.storage.k8s.io/v1"
    crd = definition()["metadata"]["name"]
    kube.kubectl("delete", "crd", crd)
    wait_for(lambda: kube.request("GET", SNAPSHOTS)[0] == 404)


def test_its_conditions(kube):
    bed.define(kube)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    (made,) = kube.get(path)["items"]
    kinds = [one["type"] for one in made["status"]["conditions"]]
    assert kinds == ["NamesAccepted", "Established"]
    assert made["status"]["storedVersions"] == ["v1"]


def test_a_webhook_that_is_gone_fails_lists_of_that_kind_only(kube):
    bed.break_snapshots(kube)
    status, body, _ = kube.request("GET", SNAPSHOTS)
    assert (status, body["message"]) == (
        500,
        "conversion webhook for snapshot.storage.k8s.io/v1beta1, Kind=VolumeSnapshot "
        'failed: Post "https://gone.default.svc:443/convert?timeout=30s": service '
        '"gone" not found',
    )
    done = kube.kubectl("get", "configmaps,volumesnapshots", "-A", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error from server: conversion webhook for ")
    assert kube.kubectl("get", "configmaps", "-A").returncode == 0


def test_a_namespace_ends_when_its_objects_can_be_read_again(kube):
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    kube.apply(space)
    bed.break_snapshots(kube, "shop")
    kube.kubectl("delete", "namespace", "shop", "--wait=false")
    with pytest.raises(AssertionError):
        wait_for(lambda: kube.request("GET", "/api/v1/namespaces/shop")[0] == 404, 1)
    kube.apply(definition())
    patch = '{"spec": {"conversion": {"strategy": "None", "webhook": null}}}'
    crd = definition()["metadata"]["name"]
    kube.kubectl("patch", "crd", crd, "--type=merge", "-p", patch)
    wait_for(lambda: kube.request("GET", "/api/v1/namespaces/shop")[0] == 404)


def test_a_deprecated_version_comes_with_a_warning(kube):
    made = definition()
    made["spec"]["versions"][1]["deprecated"] = True
    kube.apply(made)
    wait_for(lambda: kube.request("GET", SNAPSHOTS)[0] == 200)
    path = SNAPSHOTS.replace("/v1/", "/v1beta1/")
    for place, warned in ((SNAPSHOTS, None), (path, True)):
        _, _, headers = kube.request("GET", place)
        assert headers["Warning"] == (
            warned and f'299 - "{OLD} VolumeSnapshot is deprecated"'
        )
    warning = f"Warning: {OLD} VolumeSnapshot is deprecated"
    asked = "volumesnapshots.v1beta1.snapshot.storage.k8s.io"
    done = kube.kubectl("get", asked, "-A", expected_warning=warning)
    assert warning in done.stderr
