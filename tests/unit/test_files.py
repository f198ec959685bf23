# SPDX-License-Identifier: Apache-2.0
"""Files that are written completely or not at all, and never in place of a device."""

import ast
import errno
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from tacker_k8s_mgmt import files
from tests import tree
from tests.helpers import source


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


def test_what_is_written_goes_into_the_file_that_was_made(tmp_path):
    """Another user of the directory puts a link in the temporary file's place."""
    path, victim = tmp_path / "file", tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    with files.replacing(path, mode=0o644) as new:
        (temporary,) = tmp_path.glob(".new-*")
        temporary.unlink()
        temporary.symlink_to(victim)
        new.write_text("ours")
    assert victim.read_text() == "precious"
    assert victim.stat().st_mode & 0o777 == 0o600


NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")


@as_root
class TestRoot:
    """Root among the files of another user, who plants links there."""

    @pytest.fixture
    def theirs(self, tmp_path):
        # pytest's own directories are closed to others.
        directory = Path(tempfile.mkdtemp(prefix="files-", dir="/tmp"))
        directory.chmod(0o755)
        (directory / "theirs").mkdir()
        os.chown(directory / "theirs", NOBODY, NOBODY)
        yield directory / "theirs"
        shutil.rmtree(directory)

    @pytest.fixture
    def victim(self, theirs):
        place = theirs.parent / "root"
        place.mkdir(mode=0o700)
        (place / "precious").write_text("precious")
        return place

    def plant(self, path, target):
        path.symlink_to(target)
        os.lchown(path, NOBODY, NOBODY)

    def test_no_link_of_theirs_is_followed(self, theirs, victim):
        self.plant(theirs / "link", victim)
        for place in (theirs / "link", theirs / "link" / "below"):
            with pytest.raises(files.NotWritten, match="link of another user"):
                replace(place / "file", pytest.fail)
            with pytest.raises(OSError, match="link of another user"):
                files.make_directory(place)
        assert [path.name for path in victim.iterdir()] == ["precious"]

    def test_links_of_roots_are(self, theirs, victim):
        (theirs.parent / "by-name").symlink_to("root")
        (theirs.parent / "by-path").symlink_to(victim)
        for link in ("by-name", "by-path"):
            replace(theirs.parent / link / link, lambda new: new.write_text("ours"))
            assert (victim / link).read_text() == "ours"
        (theirs.parent / "round").symlink_to("round")
        with pytest.raises(files.NotWritten):
            replace(theirs.parent / "round" / "file", pytest.fail)

    def test_it_becomes_the_owner_and_is_root_again(self, theirs, victim):
        former = os.geteuid(), os.getegid(), os.getgroups()
        with files.as_owner_of(theirs):
            (theirs / "made").write_text("")
            self_made = (theirs / "made").stat()
            assert (self_made.st_uid, self_made.st_gid) == (NOBODY, NOBODY)
            assert os.getgroups() == [NOBODY]
            with pytest.raises(PermissionError):
                (victim / "precious").read_text()
            with files.as_owner_of(victim):
                assert os.geteuid() == 0
                (victim / "precious").read_text()
            assert os.geteuid() == NOBODY
        assert (os.geteuid(), os.getegid(), os.getgroups()) == former
        with pytest.raises(KeyError), files.as_owner_of(theirs):
            raise KeyError
        assert (os.geteuid(), os.getegid(), os.getgroups()) == former

    def test_the_group_of_root_is_not_taken_along(self, theirs):
        for user, group in ((NOBODY, NOBODY), (NOBODY - 1, NOBODY - 1)):
            os.chown(theirs, user, 0)
            with files.as_owner_of(theirs):
                assert (os.geteuid(), os.getegid()) == (user, group)
                assert os.getgroups() == [group]


def test_directories_are_made_with_those_above_them(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.make_directory(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    files.make_directory(tmp_path / "a" / "b", parents=True)
    files.make_directory(tmp_path / "a" / "b")
    files.make_directory(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        files.make_directory(tmp_path / "file")


def _follows_paths(node):
    """Whether a call changes what a path leads to, links followed."""
    called = node.func
    name = getattr(called, "attr", getattr(called, "id", ""))
    return name in ("chown", "lchown", "chmod", "truncate", "mkstemp")


def test_no_module_changes_owner_or_mode_of_what_a_path_leads_to():
    found = set()
    for name in tree.files():
        if name.startswith("tacker_k8s_mgmt/") and name.endswith(".py"):
            module = source.module(tree.ROOT / name)
            calls = (one for one in ast.walk(module) if isinstance(one, ast.Call))
            found |= {name for call in calls if _follows_paths(call)}
    # On other hosts.
    remote = "tacker_k8s_mgmt/remote/"
    assert found == {
        f"{remote}ssh/session.py",
        f"{remote}ansible/run_files/k8s_mgmt_events.py",
    }
