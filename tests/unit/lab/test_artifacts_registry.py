# SPDX-License-Identifier: Apache-2.0
"""Images in a registry's storage: digests, layers, and what is missing in one."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from lab.artifacts.images import Entry, Start, Storage, of_directory, write_archive

ENTRIES = (
    Entry("etc"),
    Entry("etc/motd", b"hello\n", 0o644),
    Entry("bin", link="usr/bin"),
)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "docker/registry/v2"


@pytest.fixture
def storage(tmp_path):
    return Storage(tmp_path)


def blob(root, digest):
    """The contents of a blob, which its name is the digest of."""
    value = digest.removeprefix("sha256:")
    data = (root / "blobs/sha256" / value[:2] / value / "data").read_bytes()
    assert hashlib.sha256(data).hexdigest() == value
    return data


def tagged(root, repository, tag):
    """The manifest that a tag names."""
    home = root / "repositories" / repository
    link = (home / "_manifests/tags" / tag / "current/link").read_text()
    revision = home / "_manifests/revisions" / link.replace(":", "/") / "link"
    assert revision.read_text() == link
    return json.loads(blob(root, link))


def test_a_tag_leads_to_the_config_and_layers_with_their_true_digests(root, storage):
    layers = [storage.layer(ENTRIES), storage.layer([Entry("b", b"2")])]
    start = Start(["/b"], ["-v"], {"a": "label"})
    storage.image("group/name", "v1", layers, start)
    manifest = tagged(root, "group/name", "v1")
    config = json.loads(blob(root, manifest["config"]["digest"]))
    assert config["architecture"] == "amd64"
    assert config["config"]["Entrypoint"] == ["/b"]
    assert config["config"]["Cmd"] == ["-v"]
    plain = []
    for part in manifest["layers"]:
        data = blob(root, part["digest"])
        assert part["size"] == len(data)
        unpacked = gzip.decompress(data)
        plain.append(f"sha256:{hashlib.sha256(unpacked).hexdigest()}")
        home = root / "repositories/group/name/_layers"
        link = home / part["digest"].replace(":", "/") / "link"
        assert link.read_text() == part["digest"]
    assert config["rootfs"]["diff_ids"] == plain


def test_a_layer_has_files_directories_and_links_that_belong_to_root(root, storage):
    layer = storage.layer(ENTRIES)
    with tarfile.open(fileobj=io.BytesIO(blob(root, layer.digest))) as tar:
        members = {member.name: member for member in tar}
        assert tar.extractfile("etc/motd").read() == b"hello\n"
    assert members["etc"].isdir()
    assert members["etc/motd"].mode == 0o644
    assert members["bin"].issym()
    assert members["bin"].linkname == "usr/bin"
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(0, 0, 0)}


def test_the_same_contents_are_the_same_image_at_any_time(tmp_path, monkeypatch):
    digests = set()
    for now in (1000.0, 2000.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        storage = Storage(tmp_path / str(now))
        digests.add(storage.image("a", "1", [storage.layer(ENTRIES)], Start()))
    assert len(digests) == 1


def test_an_image_without_a_start_leaves_it_to_its_pod(root, storage):
    storage.image("a", "1", [storage.layer(ENTRIES)], Start())
    config = json.loads(blob(root, tagged(root, "a", "1")["config"]["digest"]))
    assert config["config"]["Entrypoint"] is None
    assert config["config"]["Cmd"] is None


def test_an_image_is_complete_with_all_of_its_blobs_only(root, storage):
    assert storage.lacks("a", "1")
    storage.image("a", "1", [storage.layer(ENTRIES)], Start())
    assert not storage.lacks("a", "1")
    assert storage.lacks("a", "2")
    for data in [*root.glob("blobs/sha256/*/*/data")]:
        former = data.read_bytes()
        data.unlink()
        assert storage.lacks("a", "1")
        data.write_bytes(former)
    assert not storage.lacks("a", "1")


def test_an_image_that_skopeo_has_copied_is_kept_as_it_was(root, storage, tmp_path):
    """Its directory has a file ``version`` as well, and the empty layer once."""
    layers = [storage.layer(ENTRIES), storage.layer([]), storage.layer([])]
    storage.image("a", "1", layers, Start())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "version").write_text("Directory Transport Version: 1.1\n")
    link = "repositories/a/_manifests/tags/1/current/link"
    manifest = blob(root, (root / link).read_text())
    (copy / "manifest.json").write_bytes(manifest)
    for part in (tagged(root, "a", "1")["config"], *tagged(root, "a", "1")["layers"]):
        name = part["digest"].partition(":")[2]
        (copy / name).write_bytes(blob(root, part["digest"]))
    other = Storage(tmp_path / "other")
    other.adopt("b/c", "2", copy)
    assert not other.lacks("b/c", "2")
    home = tmp_path / "other/docker/registry/v2"
    assert tagged(home, "b/c", "2") == json.loads(manifest)
    assert len(list(home.glob("repositories/b/c/_layers/sha256/*/link"))) == 3


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_an_image_for_several_machines_must_have_ours(root, storage, architecture):
    digest = storage.image("a", "1", [storage.layer(ENTRIES)], Start())
    described = {
        "digest": f"sha256:{digest}",
        "platform": {"architecture": architecture},
    }
    index = json.dumps({"manifests": [described]}).encode()
    value = hashlib.sha256(index).hexdigest()
    target = root / "blobs/sha256" / value[:2] / value / "data"
    target.parent.mkdir(parents=True)
    target.write_bytes(index)
    tag = root / "repositories/a/_manifests/tags/1/current/link"
    tag.write_text(f"sha256:{value}")
    assert storage.lacks("a", "1") == (architecture != "amd64")


def test_a_directory_becomes_the_members_that_it_has(tmp_path):
    source = tmp_path / "tree"
    (source / "usr/bin").mkdir(parents=True)
    (source / "usr/bin/run").write_text("#!/bin/sh\n")
    (source / "usr/bin/run").chmod(0o750)
    (source / "bin").symlink_to("usr/bin")
    assert of_directory(source) == [
        Entry("bin", link="usr/bin"),
        Entry("usr", mode=(source / "usr").stat().st_mode & 0o7777),
        Entry("usr/bin", mode=(source / "usr/bin").stat().st_mode & 0o7777),
        Entry("usr/bin/run", source / "usr/bin/run", 0o750),
    ]


def test_an_archives_digests_are_those_of_what_was_written(tmp_path):
    target = tmp_path / "a.tgz"
    packed, plain = write_archive(target, [Entry("file", Path(__file__))])
    data = target.read_bytes()
    assert hashlib.sha256(data).hexdigest() == packed
    assert hashlib.sha256(gzip.decompress(data)).hexdigest() == plain
