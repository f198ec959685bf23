# SPDX-License-Identifier: Apache-2.0
"""Packages of others: what they may not have, and what reading them may not cost."""

import contextlib
import re
import stat
import struct
import time
import tracemalloc
import zipfile
import zlib

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.tools.csar import archive
from tacker_k8s_mgmt.tools.csar.package_check import check


def member(name, mode, kind=zipfile.ZIP_STORED):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.compress_type = kind
    return info


def packed(path, *members):
    with zipfile.ZipFile(path, "w") as made:
        for info, content in members:
            made.writestr(info, content)
    return path


@pytest.mark.parametrize(
    "mode", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK]
)
def test_links_and_devices_are_refused(tmp_path, mode):
    info = member("Scripts/lb.sh", mode | 0o777)
    (problem,) = check(packed(tmp_path / "a.zip", (info, b"/etc/shadow"))).problems
    assert "'Scripts/lb.sh' is a link or device" in problem


@pytest.mark.parametrize("mode", [0, stat.S_IFREG | 0o644])
def test_files_of_any_system_are_read(tmp_path, mode):
    path = packed(tmp_path / "a.zip", (member("a/b", mode), b"text"))
    assert archive.read(path) == {"a/b": b"text"}


def test_a_file_that_is_a_directory_as_well_is_refused(tmp_path):
    members = (member("a", 0), b"1"), (member("a/b", 0), b"2")
    with pytest.raises(errors.PackageError, match="'a/b' is below what is a file"):
        archive.read(packed(tmp_path / "a.zip", *members))


@pytest.mark.parametrize(
    "names",
    [
        ["a" * 256],
        ["é" * 128],
        ["."],
        ["a/."],
        [""],
        ["a//"],
        ["./a", "a/b"],
        ["./a", "a"],
        ["a/" * 64 + "b"],
        ["/".join(["a" * 200] * 6)],
        ["a/" * 900],
        ["a/" * 30_000 + "b"],
        ["\0a"],
    ],
    ids=lambda names: f"{names[0][:10]}-{len(names[0])}",
)
def test_names_of_no_file_are_a_finding(tmp_path, names):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            info = zipfile.ZipInfo("x")
            info.filename = name
            made.writestr(info, b"" if name.endswith("/") else b"1")
    began = time.monotonic()
    (problem,) = check(path).problems
    assert len(problem) < 500
    assert time.monotonic() - began < 5


def test_whatever_is_wrong_with_a_zip_is_a_finding(tmp_path):
    members = (
        (member("a/é.yaml", 0, zipfile.ZIP_DEFLATED), b"a: b" * 9),
        (member("b", 0), b""),
    )
    path = packed(tmp_path / "a.zip", *members)
    content = path.read_bytes()
    for place in range(len(content)):
        for byte in (0, 0x7F, 0xFF):
            path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
            with contextlib.suppress(errors.PackageError):
                archive.read(path)


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path, kind):
    path = packed(tmp_path / "a.zip", (member("a", 0, kind), bytes(1 << 20)))
    with pytest.raises(errors.PackageError, match="not compressed with deflate"):
        archive.read(path)


def test_a_size_that_is_a_lie_is_not_exceeded(tmp_path):
    size = 64 << 20
    path = packed(
        tmp_path / "a.zip", (member("a", 0, zipfile.ZIP_DEFLATED), bytes(size))
    )
    told = size.to_bytes(4, "little")
    content = path.read_bytes()
    assert content.count(told) == 2
    path.write_bytes(content.replace(told, (7).to_bytes(4, "little")))
    tracemalloc.start()
    try:
        with pytest.raises(errors.PackageError, match="cannot be read as a zip"):
            archive.read(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < size / 4


@pytest.mark.parametrize(
    "error",
    [
        *(OSError("no space"), EOFError(), RuntimeError("encrypted"), ValueError("x")),
        *(NotImplementedError("x"), IndexError("x"), struct.error("x")),
        *(
            zipfile.BadZipFile("x"),
            zlib.error("x"),
            UnicodeDecodeError("a", b"", 0, 1, "x"),
        ),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("place", ["ZipFile.__init__", "ZipFile.open"])
def test_what_zipfile_raises_is_a_finding(tmp_path, monkeypatch, error, place):
    def fail(*_, **__):
        raise error

    path = packed(tmp_path / "a.zip", (member("a", 0), b"text"))
    monkeypatch.setattr(f"zipfile.{place}", fail)
    with pytest.raises(errors.PackageError, match="cannot be read as a zip"):
        archive.read(path)


def test_sizes_and_numbers_have_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_LIMIT", 100)
    big = packed(tmp_path / "big.zip", (member("a", 0), bytes(101)))
    with pytest.raises(errors.PackageError, match="101 bytes are too much"):
        archive.read(big)
    began = time.monotonic()
    members = [(member(str(n), 0), b"") for n in range(25_000)]
    with pytest.raises(errors.PackageError, match="25000 files are too many"):
        archive.read(packed(tmp_path / "many.zip", *members))
    assert time.monotonic() - began < 60


def test_a_file_that_is_not_there_is_no_damaged_package(tmp_path):
    with pytest.raises(FileNotFoundError):
        archive.read(tmp_path / "none.zip")


def test_what_is_cut_off_is_refused(tmp_path):
    path = packed(tmp_path / "a.zip", (member("a", 0), b"text" * 100))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(errors.PackageError, match="cannot be read as a zip"):
        archive.read(path)


def test_nothing_is_unpacked_outside(tmp_path):
    with archive.unpacked({"a/b": b"1"}) as root:
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
        found = [str(one.relative_to(root)) for one in root.rglob("*")]
    assert found == ["a", "a/b"]
    assert re.match("csar-", root.name)
    assert not root.exists()
