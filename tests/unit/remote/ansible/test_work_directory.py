# SPDX-License-Identifier: Apache-2.0
"""The owned directory on a real file system behind SSH."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from tacker_k8s_mgmt import errors
from tacker_k8s_mgmt.remote.ansible.cluster_directory import (
    MARKER,
    ClusterDirectory,
    ClusterLock,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clusters of all" / "simple's"


@pytest.fixture
def workdir(session, path):
    return ClusterDirectory(session, str(path), "vnf-1")


@pytest.fixture
def foreign(session, path):
    return ClusterDirectory(session, str(path), "vnf-2")


def tree(path: Path):
    return {
        str(one.relative_to(path)): one.read_text() if one.is_file() else None
        for one in path.rglob("*")
    }


def test_claim_makes_a_private_directory_with_our_marker(workdir, path):
    assert workdir.owner() is None
    workdir.claim()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert [one.name for one in path.iterdir()] == [MARKER]
    assert stat.S_IMODE((path / MARKER).stat().st_mode) == 0o600
    assert json.loads((path / MARKER).read_text())["owner"] == "vnf-1"
    assert workdir.owner() == "vnf-1"
    assert workdir.obstacle() is None


def test_claim_on_a_full_disk_leaves_no_directory_and_says_so(workdir, path, sshd):
    sshd.full = True
    sshd.program("df", "echo head; echo '0 1000 900 /srv of all'")
    with pytest.raises(errors.FileError) as caught:
        workdir.claim()
    text = str(caught.value)
    assert (
        "could not be written: Failure; 0 MiB and 900 inodes free on /srv of all"
        in (text)
    )
    assert text.endswith("Make room there.")
    assert not path.exists()


def test_claim_that_fails_leaves_a_directory_that_was_there(workdir, path, sshd):
    path.mkdir(parents=True)
    sshd.full = True
    with pytest.raises(errors.FileError):
        workdir.claim()
    assert path.exists()


def test_what_is_no_text_is_named_without_its_content(workdir, path):
    workdir.claim()
    (path / "machines.json").write_bytes(b"secret \xff\xfe")
    with pytest.raises(errors.DamagedFile) as caught:
        workdir.read("machines.json")
    assert f"The file {path}/machines.json on the Ansible server 127.0.0.1" in (
        str(caught.value)
    )
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_claim_again_changes_nothing(workdir, path):
    workdir.claim()
    workdir.write("hosts.yaml", "all: {}\n")
    before, number = tree(path), (path / MARKER).stat().st_ino
    workdir.claim()
    assert tree(path) == before
    assert (path / MARKER).stat().st_ino == number


def test_what_a_broken_claim_left_does_not_bar_the_next_one(workdir, path):
    path.mkdir(parents=True)
    (path / f"{MARKER}.0a1b2c3d").write_text("{}")
    (path / f".{MARKER}.0a1b2c3d.4e5f6071").write_text("")
    workdir.claim()
    assert workdir.owner() == "vnf-1"


def test_empty_directory_may_be_claimed(workdir, path):
    path.mkdir(parents=True, mode=0o755)
    workdir.claim()
    assert workdir.owner() == "vnf-1"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def with_content(path):
    path.mkdir(parents=True)
    (path / "precious").write_text("data")


def as_file(path):
    path.parent.mkdir(parents=True)
    path.write_text("data")


def as_link(path):
    path.parent.mkdir(parents=True)
    target = path.parent / "elsewhere"
    target.mkdir()
    path.symlink_to(target)


def with_strange_marker(path):
    path.mkdir(parents=True)
    (path / MARKER).write_text("[1")


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (with_content, "is not empty and has no marker"),
        (as_file, "is no directory"),
        (as_link, "is a symbolic link"),
        (with_strange_marker, "cannot be understood"),
    ],
)
def test_what_is_not_ours_is_refused_and_untouched(workdir, path, prepare, reason):
    prepare(path)
    before = tree(path.parent)
    assert reason in workdir.obstacle()
    with pytest.raises(errors.OwnershipError, match=reason):
        workdir.claim()
    assert tree(path.parent) == before


def test_directory_below_a_file_is_an_obstacle(workdir, path):
    path.parent.write_text("data")
    assert f"{path.parent} is no directory that the user may" in workdir.obstacle()
    assert path.parent.read_text() == "data"


def test_directory_that_the_user_may_not_create_is_an_obstacle(session, sshd):
    if os.geteuid() == 0:
        # Nobody may look into root's home.
        setpriv = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        sshd.program("sh", f'exec {setpriv} /bin/sh "$@"')
    obstacle = ClusterDirectory(session, "/root/clusters/simple", "vnf-1").obstacle()
    assert "/root is no directory that the user may write to" in obstacle
    assert not os.path.exists("/root/clusters")


def test_another_owner_is_named(workdir, foreign):
    foreign.claim()
    assert "belongs to the VNF instance vnf-2" in workdir.obstacle()
    with pytest.raises(errors.OwnershipError, match="vnf-2") as caught:
        workdir.claim()
    assert str(workdir.path) in str(caught.value)
    assert workdir.owner() == "vnf-2"


def test_asking_for_obstacles_makes_nothing(workdir, path):
    assert workdir.obstacle() is None
    assert not path.parent.exists()


def test_of_two_that_claim_at_once_one_wins(log_in, path):
    sessions = [log_in() for _ in range(4)]
    path.mkdir(parents=True)
    barrier = threading.Barrier(len(sessions))
    outcomes = {}

    def work(number, session):
        barrier.wait()
        try:
            ClusterDirectory(session, str(path), f"vnf-{number}").claim()
            outcomes[number] = True
        except errors.OwnershipError:
            outcomes[number] = False

    threads = [threading.Thread(target=work, args=item) for item in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for number, won in outcomes.items() if won]
    assert json.loads((path / MARKER).read_text())["owner"] == f"vnf-{winner}"
    assert [one.name for one in path.iterdir()] == [MARKER]


def test_marker_that_cannot_be_made_is_an_error(workdir, path, sshd):
    sshd.program("ln", "echo 'ln: Operation not permitted' >&2; exit 1")
    with pytest.raises(errors.RemoteError, match="Operation not permitted"):
        workdir.claim()
    assert workdir.owner() is None


def test_write_and_read(workdir, path):
    workdir.claim()
    assert workdir.write("hosts.yaml", "grün\n") is True
    assert workdir.write("hosts.yaml", "grün\n") is False
    assert workdir.read("hosts.yaml") == "grün\n"
    assert workdir.read("absent") is None
    assert stat.S_IMODE((path / "hosts.yaml").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc/passwd", MARKER])
def test_only_plain_names_are_files_of_the_directory(workdir, name):
    with pytest.raises(ValueError, match="plain"):
        workdir.write(name, "x")
    with pytest.raises(ValueError, match="plain"):
        workdir.read(name)
    with pytest.raises(ValueError, match="plain"):
        workdir.drop_facts([name])


def test_facts_of_named_hosts_are_dropped(workdir, path):
    workdir.claim()
    (path / "facts").mkdir()
    for name in ("worker-10-0-0-5", "worker-10-0-0-50"):
        (path / "facts" / name).touch()
    workdir.drop_facts(["worker-10-0-0-5", "never-seen"])
    workdir.drop_facts([])
    assert [one.name for one in (path / "facts").iterdir()] == ["worker-10-0-0-50"]


def test_remove_takes_all_that_is_ours_and_nothing_beside(workdir, path):
    workdir.claim()
    workdir.write("hosts.yaml", "x")
    (path / "runs" / "-rf").mkdir(parents=True)
    (path / ".hidden").touch()
    beside = path.parent / "other"
    beside.mkdir()
    (path / "link").symlink_to(beside)
    (beside / "precious").touch()
    assert workdir.remove() is True
    assert not path.exists()
    assert (beside / "precious").exists()
    assert workdir.remove() is False


def test_clear_keeps_named_files_for_what_is_built_anew(session, workdir, path):
    """And the lock: while it is held, no other operation begins."""
    workdir.claim()
    workdir.write("hosts.yaml", "x")
    workdir.write("exposures.json", "[]")
    lock = ClusterLock(session, str(path), "heal_end")
    lock.acquire()
    assert workdir.clear(["exposures.json"]) is True
    assert sorted(tree(path)) == sorted([MARKER, "exposures.json", "operation.lock"])
    with pytest.raises(errors.LockedError, match="heal_end"):
        ClusterLock(session, str(path), "scale_end").acquire(0.1)
    workdir.claim()
    assert workdir.read("exposures.json") == "[]"
    assert lock.held
    (path / "exposures.json").unlink()
    assert workdir.clear(["exposures.json"]) is True
    assert workdir.owner() == "vnf-1"


@pytest.fixture
def inside(session, path):
    """Claimed by an earlier release, which has allowed it."""

    def claimed(below, owner="vnf-2"):
        place = path / below
        place.mkdir(parents=True)
        marker = {"owner": owner, "path": str(place), "format": 1}
        (place / MARKER).write_text(json.dumps(marker))
        (place / "hosts.yaml").write_text("precious")
        return ClusterDirectory(session, str(place), owner)

    return claimed


BELOW = ["two", "runs/two", "a/b c/*[x]", "facts/-rf"]


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("owner", ["vnf-1", "vnf-2"])
def test_claim_inside_a_clusters_directory_is_refused(session, workdir, below, owner):
    """At any depth, in the runs as well, and whichever cluster has left the outer."""
    workdir.claim()
    path = Path(workdir.path)
    before = tree(path.parent)
    inner = ClusterDirectory(session, f"{path}/{below}", owner)
    for refused in (inner.obstacle() or "", str(raised(inner.claim))):
        assert f"is inside {path}, which belongs to the VNF instance vnf-1" in refused
        assert "Give this VNF a transferring_inventory_path of its own" in refused
    assert tree(path.parent) == before


def test_claim_inside_one_through_a_link_is_refused(session, workdir, path, tmp_path):
    workdir.claim()
    (tmp_path / "link").symlink_to(path)
    inner = ClusterDirectory(session, str(tmp_path / "link" / "two"), "vnf-2")
    assert f"is inside {tmp_path}/link" in str(raised(inner.claim))
    deep = ClusterDirectory(session, str(tmp_path / "deep" / "two"), "vnf-2")
    (path / "runs").mkdir()
    (tmp_path / "deep").symlink_to(path / "runs")
    assert f"is inside {path.resolve()}" in str(raised(deep.claim))
    assert not (path / "two").exists()


def test_claim_around_a_clusters_directory_is_refused(session, foreign, path):
    foreign.claim()
    outer = ClusterDirectory(session, str(path.parent), "vnf-1")
    before = tree(path.parent)
    assert "is not empty and has no marker" in (outer.obstacle() or "")
    assert "is not empty and has no marker" in str(raised(outer.claim))
    assert tree(path.parent) == before


@pytest.mark.parametrize("place", [".", "two", "two/three"])
def test_claims_at_once_of_one_inside_the_other_leave_one_or_none(
    session, workdir, path, sshd, place, monkeypatch
):
    """The other one is claimed between the first check and the marker."""
    other = ClusterDirectory(session, str(path / place), "vnf-2")
    mark = ClusterDirectory._mark

    def late(self):
        monkeypatch.undo()
        other.claim()
        return mark(self)

    monkeypatch.setattr(ClusterDirectory, "_mark", late)
    text = str(raised(workdir.claim))
    assert "vnf-2" in text or str(path / place) in text
    assert [one.parent for one in path.rglob(MARKER)] == [path / place]
    assert other.owner() == "vnf-2"


def raised(work):
    with pytest.raises(errors.OwnershipError) as caught:
        work()
    return caught.value


@pytest.mark.parametrize("name", ["hosts.ini", "hosts.yaml", "Inventory.YML", "a.json"])
def test_path_of_a_file_is_refused(session, tmp_path, name):
    place = tmp_path / "inventory" / name
    named = ClusterDirectory(session, str(place), "vnf-1")
    for refused in (named.obstacle() or "", str(raised(named.claim))):
        assert "has the name of a file" in refused
        assert f"such as {tmp_path}/inventory" in refused
    assert not place.parent.exists()


def test_directory_of_an_earlier_release_with_such_a_name_stays_in_use(session, inside):
    named = inside("hosts.ini")
    assert named.obstacle() is None
    named.claim()
    assert named.remove() is True


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("owner", ["vnf-1", "vnf-2"])
def test_what_is_inside_outlives_the_outer_one(workdir, path, inside, below, owner):
    workdir.claim()
    workdir.write("hosts.yaml", "ours")
    (path / "runs" / "1").mkdir(parents=True)
    inner = inside(below, owner)
    assert inner.obstacle() is None
    assert workdir.clear() is True
    assert inner.read("hosts.yaml") == "precious"
    workdir.write("hosts.yaml", "ours")
    refusal = raised(workdir.remove)
    assert f"other clusters in it: {path}/{below}." in str(refusal)
    assert "delete it when those clusters are gone" in str(refusal)
    assert inner.read("hosts.yaml") == "precious"
    assert not (path / "hosts.yaml").exists()
    assert (path / "runs" / "1").exists() == below.startswith("runs")
    assert inner.remove() is True
    assert workdir.remove() is True
    assert not path.exists()


@pytest.mark.parametrize("prepare", [None, with_content, as_file])
def test_remove_leaves_what_has_no_marker(workdir, path, prepare):
    if prepare:
        prepare(path)
    before = tree(path.parent) if prepare else None
    assert workdir.remove() is False
    assert before is None or tree(path.parent) == before


@pytest.mark.parametrize("take", [ClusterDirectory.remove, ClusterDirectory.clear])
def test_what_belongs_to_another_stays(workdir, foreign, path, take):
    """A failed instantiation is rolled back: the other VNF's directory stays."""
    foreign.claim()
    foreign.write("hosts.yaml", "precious")
    before = tree(path)
    assert take(workdir) is False
    assert tree(path) == before


def test_remove_does_not_follow_a_link_that_took_the_place(workdir, path):
    workdir.claim()
    moved = path.parent / "moved"
    path.rename(moved)
    path.symlink_to(moved)
    with pytest.raises(errors.OwnershipError, match="symbolic link"):
        workdir.remove()
    assert (moved / MARKER).exists()


def test_remove_refuses_a_copy_of_our_directory(session, workdir, path):
    workdir.claim()
    copy = path.rename(path.parent / "copy")
    with pytest.raises(errors.OwnershipError, match="not where it was"):
        ClusterDirectory(session, str(copy), "vnf-1").remove()
    assert (copy / MARKER).exists()


def test_removal_that_broke_off_is_still_known_as_ours(workdir, path, sshd):
    workdir.claim()
    workdir.write("hosts.yaml", "x")
    sshd.program("find", "rm -f hosts.yaml; exit 1")
    with pytest.raises(errors.CommandFailed):
        workdir.remove()
    assert workdir.owner() == "vnf-1"
    (sshd.bin / "find").unlink()
    assert workdir.remove() is True


def test_directory_below_a_link_can_be_claimed_and_removed(session, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    workdir = ClusterDirectory(session, str(tmp_path / "link" / "cluster"), "vnf-1")
    workdir.claim()
    assert (tmp_path / "disk" / "cluster" / MARKER).exists()
    assert workdir.remove() is True
    assert not (tmp_path / "disk" / "cluster").exists()


def test_directory_that_others_can_replace_is_refused(workdir, path):
    path.parent.mkdir()
    path.parent.chmod(0o777)
    assert f"can replace what is in {path.parent}" in workdir.obstacle()
    with pytest.raises(errors.OwnershipError, match="is not safe"):
        workdir.claim()
    assert not path.exists()
    path.parent.chmod(0o1777)
    workdir.claim()
    assert workdir.owner() == "vnf-1"


def test_so_is_one_behind_a_link_that_others_can_lead_elsewhere(session, tmp_path):
    shared, own = tmp_path / "shared", tmp_path / "own"
    for place, mode in ((shared, 0o777), (own, 0o755)):
        place.mkdir()
        place.chmod(mode)
    (shared / "link").symlink_to(own)
    obstacle = ClusterDirectory(session, str(shared / "link" / "a"), "vnf-1").obstacle()
    assert f"can replace what is in {shared}" in obstacle
    (own / "link").symlink_to(shared)
    obstacle = ClusterDirectory(session, str(own / "link" / "a"), "vnf-1").obstacle()
    assert f"can replace what is in {own / 'link'}" in obstacle


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives directories away")
def test_one_that_somebody_has_put_into_a_shared_directory_is_refused(
    session, tmp_path
):
    shared = tmp_path / "shared"
    (shared / "theirs").mkdir(parents=True)
    shared.chmod(0o1777)
    os.chown(shared / "theirs", 65534, 65534)
    obstacle = ClusterDirectory(
        session, str(shared / "theirs" / "a"), "vnf-1"
    ).obstacle()
    assert f"can replace what is in {shared / 'theirs'}" in obstacle
    # A directory of an operator is no concern of the driver's, but in a shared one.
    os.chown(shared, 65534, 65534)
    shared.chmod(0o755)
    assert ClusterDirectory(session, str(shared / "a"), "vnf-1").obstacle() is None
