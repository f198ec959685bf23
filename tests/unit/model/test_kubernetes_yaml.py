# SPDX-License-Identifier: Apache-2.0
"""Manifests and charts are read as kubectl and Helm read them."""

import contextlib
import json

import pytest
import yaml

from tacker_k8s_mgmt.features.applications import sources
from tacker_k8s_mgmt.model import kubernetes_yaml, manifests
from tests.helpers import hostile
from tests.helpers.kubernetes_yaml import BIG, REFUSED, SCALARS, STRUCTURES

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(("text", "value"), [*SCALARS.items(), *BIG.items()])
def test_a_scalar_is_what_it_is_for_kubectl(text, value):
    (read,) = kubernetes_yaml.document(f"[{text}]")
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(("text", "value"), STRUCTURES.items())
def test_so_are_keys_and_merges(text, value):
    assert kubernetes_yaml.document(text) == value


@pytest.mark.parametrize("text", REFUSED)
def test_what_kubectl_refuses_is_no_manifest(text):
    with pytest.raises(manifests.Unusable):
        manifests.parse(f"{HEAD}data: {text}\n")


def test_json_is_read_as_json():
    text = '{"a": "\\ud83d\\ude00", "b": 1.0, "n": 18446744073709551616}\n{"b": 2}'
    first, second = kubernetes_yaml.documents(text)
    assert (first["a"], second) == ("\U0001f600", {"b": 2})
    assert first["n"] == 2**64
    assert kubernetes_yaml.documents("{a: y}\n---\nb: 0o7\n") == [{"a": True}, {"b": 7}]


def test_documents_are_several_or_none():
    assert kubernetes_yaml.documents("") == []
    assert kubernetes_yaml.document("") is None
    assert kubernetes_yaml.documents("a: 1\n---\n---\n- 2\n") == [{"a": 1}, None, [2]]


@pytest.mark.parametrize("text", hostile.YAML.values(), ids=hostile.YAML.keys())
def test_what_would_harm_is_refused_as_in_other_yaml(text):
    with contextlib.suppress(yaml.YAMLError):
        read = kubernetes_yaml.documents(text)
        assert len(json.dumps(read)) < 10 * len(text) + 100_000


def test_a_tag_makes_no_object_of_python():
    text = hostile.YAML["objects of Python"]
    assert kubernetes_yaml.document(text) == {"a": ["touch /tmp/owned"]}


def test_a_mac_address_in_a_manifest_is_text():
    text = f"{HEAD}data: {{mac: 52:54:00:12:34:56, day: 2026-01-02, mode: 0644}}\n"
    (read,) = manifests.parse(text)
    assert read["data"] == {
        "mac": "52:54:00:12:34:56",
        "day": "2026-01-02",
        "mode": 420,
    }


@pytest.mark.parametrize(
    ("written", "version"),
    [("2026-01-02", "2026-01-02"), ("1.10", "1.1"), ("1.0", "1"), ("'1.10'", "1.10")],
)
def test_a_charts_version_is_what_helm_takes_it_for(written, version):
    files = {"Chart.yaml": f"name: web\nversion: {written}\n".encode()}
    assert sources.version_of(sources.packed(files)) == f"web {version}"
