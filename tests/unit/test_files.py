# SPDX-License-Identifier: Apache-2.0
"""Files that are written completely or not at all, and never in place of a device."""

import errno
import os
import socket
import stat

import pytest

from tacker_k8s_mgmt import files


def device(path):
    """One like /dev/null, never the system's own."""
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))


def listening(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


#: What else than a file can be at a path.
OTHER = {
    "device": device,
    "named pipe": os.mkfifo,
    "socket": listening,
    "directory": os.mkdir,
    "symbolic link": lambda path: os.symlink("elsewhere", path),
    "symbolic link to a file": lambda path: os.symlink(__file__, path),
}


@pytest.fixture(params=OTHER)
def taken(request, tmp_path):
    """A path at which something is that must stay."""
    path = tmp_path / "taken"
    try:
        OTHER[request.param](path)
    except PermissionError:
        pytest.skip("only root makes devices")
    return path


def replace(path, write):
    with files.replacing(path, mode=0o600) as new:
        write(new)


def test_only_a_file_is_replaced(taken):
    before = taken.lstat()
    with pytest.raises(files.NotWritten, match=r"taken cannot be written: it is a "):
        replace(taken, pytest.fail)
    assert os.path.samestat(taken.lstat(), before)
    assert list(taken.parent.iterdir()) == [taken]


def test_what_comes_while_the_file_is_written_stays(tmp_path):
    path = tmp_path / "path"
    with pytest.raises(files.NotWritten, match="it is a named pipe"):
        replace(path, lambda new: os.mkfifo(path))
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.parametrize("before", [None, "former"])
def test_a_file_gets_content_and_mode_at_once(tmp_path, mode, before):
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
        path.chmod(0o666)
    with files.replacing(path, mode=mode) as new:
        new.write_text("new")
        assert path.exists() == (before is not None)
        assert new.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == mode


FULL = OSError(errno.ENOSPC, "No space left on device")
FAILURES = {"a full disk": (FULL, files.NotWritten), "a bug": (KeyError(1), KeyError)}


@pytest.mark.parametrize(("error", "raised"), FAILURES.values(), ids=FAILURES)
def test_a_failure_leaves_the_former_file_alone(tmp_path, error, raised):
    path = tmp_path / "file"
    path.write_text("former")

    def fail(new):
        new.write_text("half")
        raise error

    with pytest.raises(raised):
        replace(path, fail)
    assert path.read_text() == "former"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_read_meanwhile_keeps_its_name(tmp_path):
    absent = tmp_path / "absent"
    with pytest.raises(FileNotFoundError, match="absent"):
        replace(tmp_path / "file", lambda new: absent.read_text())


@pytest.mark.parametrize("place", ["absent/file", "file/below"])
def test_a_place_that_there_is_not(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(files.NotWritten, match="cannot be written: No"):
        replace(tmp_path / place, pytest.fail)


def test_what_was_written_is_on_the_disk_before_it_replaces(tmp_path, monkeypatch):
    stored = []

    def fsync(descriptor):
        stored.append((os.pread(descriptor, 9, 0), path.read_bytes()))

    path = tmp_path / "path"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fsync)
    replace(path, lambda new: new.write_bytes(b"new"))
    assert stored == [(b"new", b"old")]
    assert path.read_bytes() == b"new"
