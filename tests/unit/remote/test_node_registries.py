# SPDX-License-Identifier: Apache-2.0
"""Certificates and names of registries on a node, in files of this host."""

import stat
import subprocess
from types import SimpleNamespace

import pytest

from tacker_k8s_mgmt.remote import node_registries

ENTRIES = ("10.0.0.4 r.example.org r", "fd00::4 other.example.org")
MARK = "# tacker-k8s-mgmt: private registry"


@pytest.fixture
def place(tmp_path):
    """Places certificates and names on a node; returns its /etc/hosts."""
    hosts = tmp_path / "hosts"

    def run(argv, *, stdin, timeout, sudo):
        assert sudo
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        subprocess.run(argv, input=data, timeout=timeout, check=True)

    def place(certificates, entries, before=None):
        if before is not None:
            hosts.write_text(before)
        session = SimpleNamespace(run=run)
        node_registries.place(session, certificates, entries, str(hosts))
        return hosts.read_text()

    return place


def marked(*entries):
    return "".join(f"{entry} {MARK}\n" for entry in entries)


@pytest.mark.parametrize(
    "before",
    ["", "127.0.0.1 localhost\n", "127.0.0.1 localhost", "# BEGIN x\n1.1.1.1 a\n"],
)
def test_names_are_added_once_and_the_rest_stays(place, before, tmp_path):
    kept = before if before.endswith("\n") or not before else f"{before}\n"
    assert place({}, ENTRIES, before) == kept + marked(*ENTRIES)
    inode = (tmp_path / "hosts").stat().st_ino
    assert place({}, ENTRIES) == kept + marked(*ENTRIES)
    assert (tmp_path / "hosts").stat().st_ino == inode
    assert place({}, ENTRIES[:1]) == kept + marked(ENTRIES[0])
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]


def test_without_names_the_file_is_left_alone(place, tmp_path):
    assert place({}, (), "x") == "x"
    (tmp_path / "hosts").unlink()
    with pytest.raises(FileNotFoundError):
        place({}, ())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kept", ["", "127.0.0.1 localhost\n", "1.1.1.1 a # mine\n"])
def test_names_that_are_not_asked_for_any_more_go(place, tmp_path, kept):
    assert place({}, ENTRIES, kept) == kept + marked(*ENTRIES)
    assert place({}, ENTRIES[1:]) == kept + marked(ENTRIES[1])
    assert place({}, ()) == kept
    inode = (tmp_path / "hosts").stat().st_ino
    assert place({}, ()) == kept
    assert (tmp_path / "hosts").stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir()] == ["hosts"]


def test_mode_and_link_of_the_file_stay(place, tmp_path):
    real = tmp_path / "real"
    real.write_text("127.0.0.1 localhost\n")
    real.chmod(0o640)
    (tmp_path / "hosts").symlink_to("real")
    place({}, ENTRIES)
    assert (tmp_path / "hosts").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "r.example.org" in real.read_text()


def test_a_file_that_is_not_there_is_made(place):
    assert place({}, ENTRIES) == marked(*ENTRIES)


def test_a_certificate_is_written_whole_and_again(place, tmp_path):
    path = tmp_path / "certs.d" / "r.example.org:5000" / "tacker-k8s-mgmt.crt"
    for content in (b"first\n", b"first\n", b"second without line end"):
        place({str(path): content}, (), "")
        assert path.read_bytes() == content
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [one.name for one in path.parent.iterdir()] == ["tacker-k8s-mgmt.crt"]


def test_what_cannot_be_written_is_an_error(place, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(subprocess.CalledProcessError):
        place({str(tmp_path / "file" / "x"): b"x"}, (), "")
