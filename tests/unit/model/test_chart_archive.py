# SPDX-License-Identifier: Apache-2.0
"""The archive of a chart is read, or refused: tenants make it."""

import base64
import gzip
import json
import subprocess
import sys
import tarfile

import pytest

from tacker_k8s_mgmt.features.applications import sources
from tacker_k8s_mgmt.features.applications.content import (
    APPLIED,
    DamagedRecord,
    InstalledApplication,
    read,
    unpacked,
)
from tacker_k8s_mgmt.model.manifests import Unusable
from tests.helpers import hostile

CHART = b"name: keystone\nversion: 0.3.1\n"
FILE = tarfile.REGTYPE
NO_CHART = "has no Chart.yaml"
UNNAMED = "has a Chart.yaml without name or version"
NO_ARCHIVE = "is no archive of a chart"


def chart(text):
    return hostile.tgz(("keystone/Chart.yaml", FILE, text, ""))


def test_name_and_version_of_a_chart():
    assert sources.version_of(chart(CHART)) == "keystone 0.3.1"
    packed = sources.packed({"Chart.yaml": CHART, "values.yaml": b""})
    assert sources.version_of(packed) == "keystone 0.3.1"
    assert sources.version_of(chart(b"name: a\nversion: 1\n")) == "a 1"


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.SYMTYPE, "Chart.yaml"),
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "../../etc/passwd"),
        (tarfile.LNKTYPE, "keystone/Chart.yaml"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (tarfile.DIRTYPE, ""),
    ],
)
def test_links_and_devices_are_no_chart(kind, target):
    archive = hostile.tgz(("keystone/Chart.yaml", kind, b"", target))
    with pytest.raises(Unusable, match=NO_CHART):
        sources.version_of(archive)


def test_members_outside_of_the_directory_are_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    archive = hostile.tgz(
        ("/tmp/owned", FILE, b"x", ""),
        ("../owned", FILE, b"x", ""),
        ("keystone/Chart.yaml", FILE, CHART, ""),
    )
    assert sources.version_of(archive) == "keystone 0.3.1"
    assert not list(tmp_path.iterdir())
    assert not (tmp_path.parent / "owned").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (hostile.LAUGHS.encode() + b"name: *a9\nversion: 1\n", UNNAMED),
        (b"name: [1]\nversion: 1\n", UNNAMED),
        (b'name: "a\\e[2J"\nversion: 1\n', UNNAMED),
        (b"name: ''\nversion: 1\n", UNNAMED),
        (b"name: " + b"a" * 1000 + b"\nversion: 1\n", UNNAMED),
        (hostile.DEEP.encode(), UNNAMED),
        (b"\xff\xfe", UNNAMED),
        (b"# " + b"a" * (1 << 20) + b"\n" + CHART, NO_CHART),
    ],
    ids=[
        *("aliases", "a list", "an escape", "an empty name", "a long name", "deep"),
        *("no UTF-8", "a long file"),
    ],
)
def test_what_a_chart_file_must_not_have(text, reason):
    with pytest.raises(Unusable, match=reason):
        sources.version_of(chart(text))


@pytest.mark.parametrize(
    "archive",
    [
        b"",
        b"no archive",
        chart(CHART)[:-20],
        b"\x1f\x8b\x08" + bytes(100),
        hostile.zeros(1 << 20)[:-8],
    ],
    # Archives have the time in them.
    ids=["empty", "no archive", "cut off", "no content", "no checksum"],
)
def test_damaged_ones_are_refused(archive):
    with pytest.raises(Unusable, match=NO_ARCHIVE):
        sources.version_of(archive)


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_UNPACKED", 4 << 20)
    archive = hostile.long_header(16 << 20)
    assert len(archive) < 1 << 20
    with pytest.raises(Unusable, match="more than 4194304 bytes when it is unpacked"):
        sources.version_of(archive)


def test_a_record_in_the_cluster_unpacks_to_no_more_than_it_may_have():
    # Of the API server, whose answer has at most 8 MiB.
    packed = base64.b64encode(hostile.zeros(80 << 20)).decode()
    with pytest.raises(DamagedRecord, match="too large"):
        unpacked(packed)
    record = InstalledApplication("shop", "shop", APPLIED)
    assert read(unpacked(record.pack())) == record
    leaves = record.changed(leaving=({"kind": "Job", "metadata": {"name": "seed"}},))
    assert read(unpacked(leaves.pack())) == leaves


def test_an_earlier_release_reads_the_record_of_what_does_not_leave():
    record = InstalledApplication("shop", "shop", APPLIED)
    text = gzip.decompress(base64.b64decode(record.pack()))
    assert "leaving" not in json.loads(text)


def test_a_member_is_not_larger_than_its_archive():
    entry = tarfile.TarInfo("keystone/Chart.yaml")
    entry.size = 1 << 40
    with pytest.raises(Unusable):
        sources.version_of(chart_gz(entry.tobuf() + CHART))


def chart_gz(content):
    return gzip.compress(content)


def raw_header(name: str, size: int, kind: bytes = FILE) -> bytes:
    """The header of a member that claims any size."""
    entry = tarfile.TarInfo(name)
    entry.type = kind
    header = bytearray(entry.tobuf(tarfile.GNU_FORMAT))
    if size < 0:
        header[124:136] = b"\xff" + (2**88 + size).to_bytes(11, "big")
    else:
        header[124:136] = b"\x80" + size.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


_SIZES = (-(2**80), -1024, -513, -512, -1, 2**40, 2**63, 2**80)
_KINDS = (FILE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE)


_READ_ALL = """
import base64, resource, sys
from tacker_k8s_mgmt.features.applications import sources
from tacker_k8s_mgmt.model import manifests
gigabyte = 1 << 30
resource.setrlimit(resource.RLIMIT_AS, (2 * gigabyte, 2 * gigabyte))
for line in sys.stdin:
    for read in (sources.version_of, sources.looks_up):
        try:
            read(base64.b64decode(line))
        except manifests.Unusable:
            pass
"""


def test_a_member_of_an_impossible_size_ends_the_reading():
    first = raw_header("c/x", 0)
    lines = [
        base64.b64encode(
            gzip.compress(first + raw_header("c/y", size, kind) + bytes(1024))
        ).decode()
        for size in _SIZES
        for kind in _KINDS
    ]
    argv = [sys.executable, "-c", _READ_ALL]
    subprocess.run(argv, input="\n".join(lines), text=True, timeout=120, check=True)


def test_long_names_that_follow_each_other_are_no_archive():
    header = raw_header("c/x", 0, tarfile.GNUTYPE_LONGNAME)
    archive = gzip.compress(header * 50_000)
    with pytest.raises(Unusable):
        sources.version_of(archive)


def test_a_chart_of_very_many_files_is_refused():
    header = tarfile.TarInfo("c/x").tobuf()
    with pytest.raises(Unusable, match="more than 10000 files"):
        sources.version_of(gzip.compress(header * 10_001))
