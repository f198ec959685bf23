# SPDX-License-Identifier: Apache-2.0
"""Records of applications, which administrators of the cluster may write."""

import base64
import gzip
import json

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.features.applications import content
from tacker_k8s_mgmt.features.applications.content import (
    ApplicationRecords,
    InstalledApplication,
)
from tacker_k8s_mgmt.model import untrusted


class Kubectl:
    """A cluster with these Secrets, by their names."""

    def __init__(self, records):
        self.items = [
            {
                **{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}},
                "data": {"record": base64.b64encode(text.encode()).decode()},
            }
            for name, text in records.items()
        ]

    def get(self, *_, read):
        return read({"items": self.items})


def read(records):
    return ApplicationRecords(Kubectl(records)).read()


def packed(name, **more):
    record = json.loads(content.unpacked(InstalledApplication(name, name, "").pack()))
    text = json.dumps({**record, **more}).encode()
    return base64.b64encode(gzip.compress(text)).decode()


def test_each_is_read():
    found = read({name: packed(name) for name in "ab"})
    assert {name: one.name for name, one in found.items()} == {"a": "a", "b": "b"}


def test_all_together_unpack_to_no_more_than_the_limit(monkeypatch):
    monkeypatch.setattr(content, "LARGEST", 1024 * 1024)
    records = {name: packed(name, detail="x" * 400_000) for name in "abc"}
    assert len(read({name: records[name] for name in "ab"})) == 2
    with pytest.raises(errors.ClusterError, match=r"application c, .* is too large"):
        read(records)


def test_all_together_have_no_more_values_than_the_limit(monkeypatch):
    monkeypatch.setattr(untrusted, "MOST_JSON_VALUES", 250)
    leaving = [{} for _ in range(40)]
    records = {name: packed(name, leaving=leaving) for name in "abc"}
    assert len(read({name: records[name] for name in "ab"})) == 2
    with pytest.raises(errors.ClusterError, match=r"application c, .* cannot be used"):
        read(records)
