# SPDX-License-Identifier: Apache-2.0
"""What is put on the lab's Ansible server."""

import io
import json
import tarfile

import pytest

from lab.cloud import ansible_server


@pytest.fixture
def source(tmp_path):
    """A tree with what the real one has: a link out of it, and byte code."""
    outside = tmp_path / "kubeapi"
    outside.mkdir()
    (outside / "server.py").write_text("pass")
    (outside / "__pycache__").mkdir()
    (outside / "__pycache__" / "server.pyc").write_text("")
    tree = tmp_path / "kubespray"
    (tree / "playbooks").mkdir(parents=True)
    (tree / "playbooks" / "cluster.yml").write_text("- hosts: all\n")
    (tree / "kubeapi").symlink_to(outside)
    return tree


def members(archive):
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {member.name: member for member in opened.getmembers()}


def test_the_archive_has_the_tree_with_its_links_followed(source):
    packed = members(ansible_server.pack(source, {"lab.json": json.dumps({})}))
    assert sorted(name for name, each in packed.items() if each.isfile()) == [
        "./kubeapi/server.py",
        "./playbooks/cluster.yml",
        "lab.json",
    ]
    assert packed["./kubeapi"].isdir()
    assert {(each.uid, each.gid) for each in packed.values()} == {(1000, 1000)}


def test_equal_trees_make_equal_archives_whenever_they_were_written(source):
    before = ansible_server.pack(source, {})
    playbook = source / "playbooks" / "cluster.yml"
    playbook.write_text(playbook.read_text())
    assert ansible_server.pack(source, {}) == before
    playbook.write_text("- hosts: none\n")
    assert ansible_server.pack(source, {}) != before
