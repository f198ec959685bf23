# SPDX-License-Identifier: Apache-2.0
"""Manifests of a CNF's package: a tenant's files, read in the conductor."""

import os

import pytest

from tacker_k8s_mgmt.hooks.cnf import manifests
from tacker_k8s_mgmt.model import yaml_text
from tacker_k8s_mgmt.model.yaml_text import check_yaml

SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: a}\n"
    "spec: {type: NodePort, ports: [{port: 80, nodePort: 30080}]}\n"
)


@pytest.fixture
def package(tmp_path):
    root = tmp_path / "package"
    root.mkdir()
    (root / "web.yaml").write_text(SERVICE)
    return root


def test_services_of_all_files(package):
    (package / "empty.yaml").write_text("")
    found = manifests.services(str(package), ["web.yaml", "empty.yaml"], "b")
    assert [(one.namespace, one.name) for one in found] == [("b", "web")]


def test_no_more_is_read_than_the_limit_of_all_files(package, monkeypatch):
    monkeypatch.setattr(manifests, "LARGEST", len(SERVICE))
    assert manifests.services(str(package), ["web.yaml"], None)
    assert manifests.services(str(package), ["web.yaml", "web.yaml"], None) is None


def test_the_limit_of_values_holds_for_all_files_together(package, monkeypatch):
    many = f"---\n{SERVICE}" * 20
    (package / "web.yaml").write_text(many)
    monkeypatch.setattr(yaml_text, "MOST_VALUES", 2 * check_yaml(many))
    assert len(manifests.services(str(package), ["web.yaml"] * 2, None)) == 40
    assert manifests.services(str(package), ["web.yaml"] * 3, None) is None


def test_a_file_without_an_end_is_not_read_to_its_end(package):
    with (package / "sparse.yaml").open("wb") as file:
        file.truncate(1 << 40)
    assert manifests.services(str(package), ["sparse.yaml"], None) is None


@pytest.mark.parametrize("name", ["pipe", "device", "out", "directory", "../x", "/x"])
def test_what_is_no_file_of_the_package_is_not_read(package, name):
    os.mkfifo(package / "pipe")
    (package / "device").symlink_to("/dev/zero")
    (package / "out").symlink_to("/proc/self/environ")
    (package / "directory").mkdir()
    assert manifests.services(str(package), [name], None) is None
