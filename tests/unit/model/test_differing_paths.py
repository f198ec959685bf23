# SPDX-License-Identifier: Apache-2.0
"""Objects as wanted, and as an API server gives them back."""

from typing import Any

import pytest

from tacker_k8s_mgmt.model.manifests import differing_paths

POLICY: dict[str, Any] = {
    "metadata": {"name": "one", "labels": {"a": "b"}},
    "spec": {"ports": [{"port": 80}], "hard": {"cpu": "0.5", "pods": "4"}},
}


def found(wanted, actual):
    return list(differing_paths(wanted, actual))


def test_what_others_add_is_none():
    actual = {
        **POLICY,
        "status": {"used": {}},
        "metadata": {**POLICY["metadata"], "uid": "1"},
    }
    assert found(POLICY, actual) == []


@pytest.mark.parametrize(
    ("wanted", "actual"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1k"),
        (".5", "500m"),
    ],
)
def test_quantities_are_compared_by_value(wanted, actual):
    assert found({"cpu": wanted}, {"cpu": actual}) == []
    assert found({"cpu": wanted}, {"cpu": "7"}) == ["cpu"]


def spec(**changes):
    return {**POLICY, "spec": {**POLICY["spec"], **changes}}


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (spec(ports=[]), ["spec.ports"]),
        (spec(ports=[{"port": 81}]), ["spec.ports[0].port"]),
        (spec(hard=None), ["spec.hard.cpu", "spec.hard.pods"]),
        ({**POLICY, "metadata": None}, ["metadata.name", "metadata.labels.a"]),
    ],
)
def test_paths(actual, expected):
    assert found(POLICY, actual) == expected
